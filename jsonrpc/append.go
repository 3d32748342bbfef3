package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/parley-mcp/parley/internal/wire"
)

// Errors of messages that cannot be written. They are mistakes of the program.
var (
	errShape = errors.New("a message is a request, a notification, a result or an error")
	errBody  = errors.New("params and result must be JSON objects")
	errEmpty = errors.New("empty raw value")
	errWhole = errors.New("the message cannot be written in pieces")
)

// AppendJSON appends the message to dst, in one piece and without line
// breaks, and returns the longer slice. On error dst is returned as it was.
func (m *Outgoing) AppendJSON(dst []byte) ([]byte, error) {
	out, body, err := m.appendHead(dst)
	if err != nil {
		return dst, err
	}
	if body != nil {
		if out, err = appendBody(out, body); err != nil {
			return dst, m.failed(err)
		}
	}
	return append(out, '}'), nil
}

// appendHead appends what comes before the body, and returns the body if there
// is one.
func (m *Outgoing) appendHead(dst []byte) ([]byte, Body, error) {
	if err := m.check(); err != nil {
		return dst, nil, err
	}
	out := append(dst, `{"jsonrpc":"2.0"`...)
	if !m.ID.IsZero() || m.Error != nil && m.NullID {
		out = append(out, `,"id":`...)
		out, _ = m.ID.AppendJSON(out) // never fails
	}
	switch {
	case m.Result != nil:
		return append(out, `,"result":`...), m.Result, nil
	case m.Method == "":
		out = append(out, `,"error":`...)
		out, _ = m.Error.AppendJSON(out) // never fails
		return out, nil, nil
	}
	out = append(out, `,"method":`...)
	out = wire.AppendString(out, m.Method)
	if m.Params == nil {
		return out, nil, nil
	}
	return append(out, `,"params":`...), m.Params, nil
}

func (m *Outgoing) failed(err error) error {
	return fmt.Errorf("encoding %s: %w", m.what(), err)
}

// Size is the exact length of what WriteJSON writes, or -1 if the message must
// be encoded as a whole, with AppendJSON: because that is simpler, as for most,
// or because it cannot be encoded.
func (m *Outgoing) Size() int64 {
	s, ok := m.streamer()
	if !ok {
		return -1
	}
	size := s.JSONSize()
	if size < 0 {
		return -1
	}
	head, _, err := m.appendHead(nil)
	if err != nil {
		return -1
	}
	return int64(len(head)) + size + 1
}

// WriteJSON writes the message in pieces, which are never held together. It is
// for messages whose Size is known. After an error some of it may have been
// written.
func (m *Outgoing) WriteJSON(w io.Writer) error {
	s, ok := m.streamer()
	if !ok {
		return m.failed(errWhole)
	}
	head, _, err := m.appendHead(nil)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	if err := s.WriteJSON(w); err != nil {
		return m.failed(err)
	}
	_, err = w.Write([]byte{'}'})
	return err
}

func (m *Outgoing) streamer() (Streamer, bool) {
	s, ok := m.Result.(Streamer)
	return s, ok
}

// check says whether m is one of the four kinds.
func (m *Outgoing) check() error {
	result := m.Result != nil
	isError := m.Error != nil && m.Method == "" && !result
	isCall := m.Error == nil && m.Method != "" && !result
	isResult := m.Error == nil && m.Method == "" && result && !m.ID.IsZero() && m.Params == nil
	if isError || isCall || isResult {
		return nil
	}
	return errShape
}

func (m *Outgoing) what() string {
	if m.Method != "" {
		return "params of " + m.Method
	}
	return "result"
}

func appendBody(dst []byte, b Body) ([]byte, error) {
	start := len(dst)
	out, err := b.AppendJSON(dst)
	if err != nil {
		return dst, err
	}
	if len(out) <= start || out[start] != '{' {
		return dst, errBody
	}
	return out, nil
}

// JSON returns the body that is the JSON encoding of v, made when the message
// is written.
func JSON(v any) Body { return encoded{v} }

type encoded struct{ v any }

func (e encoded) AppendJSON(dst []byte) ([]byte, error) { return wire.Append(dst, e.v) }

// Raw returns the body with the text v, which must be valid JSON: it is
// copied, not read. Line breaks between its tokens become spaces, so that it
// fits into transports that end messages with one.
func Raw(v RawValue) Body { return raw(v) }

type raw RawValue

func (r raw) AppendJSON(dst []byte) ([]byte, error) {
	text := bytes.TrimLeft(r, " \t\r\n")
	if len(text) == 0 {
		return dst, errEmpty
	}
	start := len(dst)
	dst = append(dst, text...)
	// Valid JSON has raw line breaks only between tokens.
	for _, c := range [2]byte{'\n', '\r'} {
		rest := dst[start:]
		for i := bytes.IndexByte(rest, c); i >= 0; i = bytes.IndexByte(rest, c) {
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
	return dst, nil
}

// Empty is the body {}.
func Empty() Body { return raw("{}") }
