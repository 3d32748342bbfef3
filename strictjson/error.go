package strictjson

import (
	"errors"

	"github.com/parley-mcp/parley/internal/wire"
)

// What can be wrong with a text, to be found with errors.Is.
var (
	// ErrSyntax says that the text is not JSON.
	ErrSyntax = wire.ErrSyntax
	// ErrUTF8 says that a string is not valid Unicode.
	ErrUTF8 = wire.ErrUTF8
	// ErrDuplicate says that an object has two members of the same name.
	ErrDuplicate = wire.ErrDuplicate
	// ErrDepth says that the nesting is deeper than Options.MaxDepth.
	ErrDepth = wire.ErrDepth
	// ErrSize says that the text is longer than Options.MaxBytes.
	ErrSize = wire.ErrSize
	// ErrNotObject says that the text is valid JSON, but not an object.
	ErrNotObject = wire.ErrNotObject
	// ErrUnknown says that an object has a member that its type does not have.
	ErrUnknown = wire.ErrUnknown
	// ErrLetterCase says that the name of a member differs from a known one in
	// letter case only.
	ErrLetterCase = wire.ErrTwin
)

// An Error says what is wrong with a text and where. It never shows values of the
// text, which may be secret; it shows names of members.
type Error struct {
	// Pointer is the place as a JSON pointer (RFC 6901); "" is the root, or a
	// place that is known by its offset only.
	Pointer string
	// Offset is the place in bytes from the start for errors of syntax, and -1
	// for others.
	Offset int64
	// Reason says what is wrong, in words for a person or a model.
	Reason string
	// Err is the cause, such as [ErrDuplicate], or nil. It is no part of the text.
	Err error
}

// Error is place and reason.
func (e *Error) Error() string { return (*wire.Error)(e).Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// public makes an Error of one of the codec.
func public(err error) error {
	if inner, ok := errors.AsType[*wire.Error](err); ok {
		own := Error(*inner)
		return &own
	}
	return err
}
