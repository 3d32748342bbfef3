package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/internal/wire"
)

// Errors of messages that cannot be written. They are mistakes of the program.
var (
	errShape = errors.New("a message is a request, a notification, a result or an error")
	errBody  = errors.New("params and result must be JSON objects")
	errEmpty = errors.New("empty raw value")
)

// AppendJSON appends the message to dst, in one piece and without line
// breaks, and returns the longer slice. On error dst is returned as it was.
func (m *Outgoing) AppendJSON(dst []byte) ([]byte, error) {
	if err := m.check(); err != nil {
		return dst, err
	}
	out := append(dst, `{"jsonrpc":"2.0"`...)
	if !m.ID.IsZero() || m.Error != nil && m.NullID {
		out = append(out, `,"id":`...)
		out, _ = m.ID.AppendJSON(out) // never fails
	}
	var err error
	switch {
	case m.Error != nil:
		out = append(out, `,"error":`...)
		out, _ = m.Error.AppendJSON(out) // never fails
	case m.Method != "":
		out = append(out, `,"method":`...)
		out = wire.AppendString(out, m.Method)
		if m.Params != nil {
			out, err = appendBody(append(out, `,"params":`...), m.Params)
		}
	default:
		out, err = appendBody(append(out, `,"result":`...), m.Result)
	}
	if err != nil {
		return dst, fmt.Errorf("encoding %s: %w", m.what(), err)
	}
	return append(out, '}'), nil
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
// fits into carriers that end messages with one.
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
