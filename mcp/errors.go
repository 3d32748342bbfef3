package mcp

import (
	"errors"
	"fmt"
)

// Error is an error that is meant for the peer: its text, code and data are
// sent as they are. Any other error of a handler reaches the peer as an internal
// error without its text.
type Error struct {
	// Code is the code of the error response. Zero leaves it to the method:
	// a tool's result with IsError, or else [CodeInternalError].
	Code int64
	// Message is for people and models. It says what was wrong and what to do.
	Message string
	// Data is encoded as JSON; nil is absent.
	Data any

	err error
}

// Errorf makes an error whose text may be shown to the peer, formatted as by
// fmt.Errorf (%w wraps). Returned by a tool it becomes a result with IsError,
// which the model reads; returned elsewhere an error with [CodeInternalError].
func Errorf(format string, args ...any) error { return NewError(0, format, args...) }

// NewError makes an error with a code, its text formatted as by fmt.Errorf (%w
// wraps). Also when a tool returns it, it is an error of the protocol, which
// models do not always read.
func NewError(code int64, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), err: err}
}

// With returns a copy of e with data.
func (e *Error) With(data any) *Error {
	c := *e
	c.Data = data
	return &c
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the error that was made with the format, for errors.Is.
func (e *Error) Unwrap() error { return e.err }

// Code returns the code of the [Error] in err's chain; if it has none, or no
// code, [CodeInternalError]. For a nil error it is 0.
func Code(err error) int64 {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Code != 0 {
		return e.Code
	}
	return CodeInternalError
}
