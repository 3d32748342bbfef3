package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// What can be wrong with a text, to be found with errors.Is in the errors of
// this package.
var (
	// ErrSyntax says that the text is not JSON.
	ErrSyntax = errors.New("not valid JSON")
	// ErrUTF8 says that a string is not valid Unicode.
	ErrUTF8 = errors.New("not valid Unicode")
	// ErrDuplicate says that an object has two members of the same name.
	ErrDuplicate = errors.New("duplicate member name")
	// ErrDepth says that the nesting is too deep.
	ErrDepth = errors.New("nested too deeply")
	// ErrSize says that the text is too large.
	ErrSize = errors.New("too large")
	// ErrCount says that an array has too many elements.
	ErrCount = errors.New("too many elements")
	// ErrNotObject says that the text is valid JSON, but not an object.
	ErrNotObject = errors.New("not an object")
	// ErrNotArray says that the text is valid JSON, but not an array.
	ErrNotArray = errors.New("not an array")
	// ErrUnknown says that an object has a member that its type does not know.
	ErrUnknown = errors.New("unknown member")
	// ErrTwin says that the name of a member differs from a known one in
	// letter case only.
	ErrTwin = errors.New("member name in wrong letter case")
)

// Error says what is wrong with a JSON text and where. It never shows values
// of the text, which may be secret; it shows names of members.
type Error struct {
	// Pointer is the place as a JSON pointer (RFC 6901); "" is the root, or
	// a place that is known by its offset only.
	Pointer string
	// Offset is the place in bytes from the start for errors of syntax, and
	// -1 for others.
	Offset int64
	// Reason says what is wrong, in words for a person or a model.
	Reason string
	// Err is the cause, such as ErrDuplicate, or nil. It is not part of the text.
	Err error
}

// Error returns place and reason.
func (e *Error) Error() string {
	switch {
	case e.Pointer != "":
		return printable(e.Pointer, 200) + ": " + e.Reason
	case e.Offset >= 0:
		return e.Reason + " at byte " + strconv.FormatInt(e.Offset, 10)
	}
	return e.Reason
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func newError(pointer string, cause error, format string, args ...any) *Error {
	return &Error{Pointer: pointer, Offset: -1, Reason: fmt.Sprintf(format, args...), Err: cause}
}

func sizeError(size, limit int) *Error {
	return newError("", ErrSize, "message of %d bytes is larger than the limit of %d", size, limit)
}

func duplicateError(offset int, name []byte) *Error {
	return &Error{
		Offset: int64(offset),
		Reason: "duplicate member name " + QuoteName(string(name)),
		Err:    ErrDuplicate,
	}
}

func twinError(pointer, name, known string) *Error {
	return newError(pointer, ErrTwin, "member %s must be written %s", QuoteName(name), QuoteName(known))
}

// QuoteName shows a member's name, which a stranger chose: quoted and bounded.
func QuoteName(name string) string {
	return strconv.Quote(cut(name, 64))
}

// printable shows text that a stranger had a hand in: bounded, and quoted if
// it holds what a terminal would act on.
func printable(s string, limit int) string {
	s = cut(s, limit)
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// cut shortens s to about limit bytes, at a border between characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
