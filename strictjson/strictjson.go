// Package strictjson reads JSON as the rest of the library does, for authors of
// extensions and for every text that a stranger may have written: no member twice
// in an object, no invalid Unicode, nothing after the value, bounded size and
// depth, member names with exact letter case. Writing is that of encoding/json/v2.
//
//	var p struct {
//		TaskID string `json:"taskId"`
//	}
//	if err := strictjson.Unmarshal(data, &p); err != nil {
//		return err // "/taskId: expected string, got number"
//	}
//
// Two readers of one text, such as a gateway and the server behind it, must not
// take it for two different things. Package encoding/json takes the last of two
// members with one name, ignores letter case, and replaces what is not UTF-8.
//
// The functions keep nothing and may be called by many goroutines at once.
package strictjson

import "github.com/parley-mcp/parley/internal/wire"

// RawValue is the text of one JSON value. It is encoding/json's RawMessage, and
// the same type as mcp.RawValue.
type RawValue = wire.RawValue

// Options bound what is accepted. The zero value, and nil, mean the defaults.
type Options struct {
	// MaxBytes is the longest text, in bytes. Default 0: no limit.
	MaxBytes int
	// MaxDepth is how many objects and arrays may be open at once. Default 64.
	MaxDepth int
	// RefuseUnknown refuses members that the type does not have, in all of its
	// structs. It is for texts of one's own. Default: they are ignored, as the
	// protocol wants it of messages.
	RefuseUnknown bool
}

// options returns the first of o, or the defaults.
func options(o []*Options) Options {
	if len(o) == 0 || o[0] == nil {
		return Options{}
	}
	return *o[0]
}

func (o Options) limits() wire.Limits { return wire.Limits{Bytes: o.MaxBytes, Depth: o.MaxDepth} }

// Unmarshal checks data and decodes it into v, a non-nil pointer. Names of members
// match exactly, and one that differs from a known one in letter case only is
// refused. Other unknown members are ignored, or kept by a field with the tag
// `json:",embed"`. A time.Duration is a string such as "1m30s", []byte is base64. The error
// is an [*Error]; v may have been written to in part.
func Unmarshal(data []byte, v any, o ...*Options) error {
	opts := options(o)
	if err := Valid(data, &opts); err != nil {
		return err
	}
	if opts.RefuseUnknown {
		return public(wire.DecodeKnown(data, v))
	}
	return public(wire.DecodeParams(data, v))
}

// Marshal returns the JSON encoding of v, on one line. Nothing is escaped for
// HTML; a nil slice becomes [], a nil map {}, a time.Duration a string; maps are
// written in the order of their keys; a RawValue must be valid. The error is an
// [*Error].
func Marshal(v any) ([]byte, error) {
	raw, err := wire.Marshal(v)
	return raw, public(err)
}

// Valid reports why data is not one JSON value that Unmarshal accepts, or nil. The
// error is an [*Error].
func Valid(data []byte, o ...*Options) error {
	return public(wire.Valid(data, options(o).limits()))
}

// Equal reports whether a and b are the same JSON value: members in any order,
// numbers in any spelling, compared exactly, strings with any escapes. What is not
// valid, or nested deeper than 512, equals nothing.
func Equal(a, b RawValue) bool { return wire.Equal(a, b) }

// Canonical returns the canonical form of a value (RFC 8785), for digests. Integers
// beyond what a double holds keep their digits, so that different integers never
// share a digest. The error is an [*Error].
func Canonical(v RawValue) (RawValue, error) {
	raw, err := wire.Canonical(v)
	return raw, public(err)
}
