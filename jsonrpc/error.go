package jsonrpc

import (
	"fmt"
	"strconv"

	"github.com/parley-mcp/parley/internal/wire"
)

// NewError returns an error with a code and a message made as by fmt.Sprintf.
func NewError(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With returns a copy of e with data, in its JSON encoding. Data that cannot
// be encoded is left out: an error must always reach its peer.
func (e *Error) With(data any) *Error {
	with := *e
	with.Data = nil
	if raw, err := wire.Marshal(data); err == nil {
		with.Data = raw
	}
	return &with
}

// AppendJSON appends the error object. Data that is not valid JSON is left
// out, so that the error is always nil.
func (e *Error) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, e.Code, 10)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendString(dst, e.Message)
	if len(e.Data) > 0 {
		start := len(dst)
		dst = append(dst, `,"data":`...)
		var err error
		if dst, err = wire.Append(dst, e.Data); err != nil {
			dst = dst[:start]
		}
	}
	return append(dst, '}'), nil
}

// MarshalJSON returns the error object.
func (e *Error) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// ParseError says why a message was not accepted and what to answer.
type ParseError struct {
	// Err is the answer: code -32700 or -32600.
	Err *Error
	// ID is the id of the message as far as it could be read, else zero.
	ID ID
	// Notification says that the message was a notification, which is never
	// answered (spec 2026-07-28, basic: notifications MUST NOT have a response).
	Notification bool
	// Response says that the message was meant as a response. It must not be
	// answered: its ID is one of ours, the request it belongs to has failed.
	Response bool
}

// Failure is the error response that stands for a malformed one, so that the
// request it belongs to fails instead of waiting on. It is nil if the message
// was to be no response, or its id could not be read.
func (e *ParseError) Failure() *Incoming {
	if !e.Response || e.ID.IsZero() {
		return nil
	}
	return &Incoming{Kind: Response, ID: e.ID, Error: e.Err}
}

// Error returns the message of the answer.
func (e *ParseError) Error() string { return e.Err.Error() }

// Unwrap returns the answer.
func (e *ParseError) Unwrap() error { return e.Err }
