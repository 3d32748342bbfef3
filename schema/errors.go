package schema

import (
	"errors"
	"fmt"
	"strings"
)

// What can be wrong with a schema, to be found with errors.Is.
var (
	// ErrDialect says that a schema's $schema is none of 2020-12, 2019-09 and draft-07.
	ErrDialect = errors.New("unsupported JSON Schema dialect")
	// ErrTooComplex says that a schema, or checking a value with it, exceeds a bound.
	ErrTooComplex = errors.New("schema is too complex")
	// ErrExternal says that a schema refers to another document, which is never loaded.
	ErrExternal = errors.New("reference to another document")
	// ErrInvalid says that a text is not a schema of its dialect.
	ErrInvalid = errors.New("invalid JSON Schema")
	// ErrHeader says that an x-mcp-header annotation breaks the rules.
	ErrHeader = errors.New("invalid x-mcp-header")
)

// MaxProblems is the number of problems that an [*Error] lists at most.
const MaxProblems = 8

// Problem is one way in which a value does not fit its schema.
type Problem struct {
	// Pointer is the place in the value as a JSON pointer (RFC 6901); "" is
	// the whole value.
	Pointer string
	// Reason says what is expected there, in words for a person or a model.
	// It never shows the value, only its type, and names of members.
	Reason string
}

// String returns place and reason.
func (p Problem) String() string {
	if p.Pointer == "" {
		return p.Reason
	}
	return p.Pointer + ": " + p.Reason
}

// Error says why a value does not fit its schema.
type Error struct {
	// Problems has at least one and at most [MaxProblems] entries.
	Problems []Problem
	// More says that there were further problems.
	More bool
}

// Error returns the problems, separated by semicolons.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(p.String())
	}
	if e.More {
		b.WriteString("; and more")
	}
	return b.String()
}

func errNotJSON() error { return &Error{Problems: []Problem{{Reason: "not valid JSON"}}} }

func errLongNumber() error {
	return &Error{Problems: []Problem{{Reason: fmt.Sprintf("a number has more than %d digits", maxDigits)}}}
}

// bounded shortens a message that a stranger had a hand in.
func bounded(s string) string {
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F {
			return ' '
		}
		return r
	}, s)
}
