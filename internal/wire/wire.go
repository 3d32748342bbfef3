// Package wire is the one JSON codec of the module: strict on what comes in,
// append-only on what goes out.
//
// What a stranger sends is validated in one pass by [ParseObject] (or
// [ParseArray], [Valid]): no duplicate names at any depth, no invalid UTF-8, no
// lone surrogates, no trailing data, bounded size and depth. The result is an
// index into the text itself; nothing is copied and no map is built. Typed
// decoding ([Decode], [DecodeKnown], [DecodeParams]) and encoding ([Append])
// are those of encoding/json/v2, with names that match exactly.
package wire

import "encoding/json"

// RawValue is the text of one JSON value.
type RawValue = json.RawMessage

// DefaultDepth is the nesting that is accepted where no other limit is given.
const DefaultDepth = 64

// maxBytes is what the offsets of an index can address, on every platform.
const maxBytes = 1<<31 - 2

// Limits bound what is accepted from a stranger. The zero Limits has no bound
// on bytes and [DefaultDepth].
type Limits struct {
	// Bytes is the largest text accepted; 0 means no limit of ours.
	Bytes int
	// Depth is the number of objects and arrays that may be open at once;
	// 0 means DefaultDepth.
	Depth int
	// Lenient is read by package jsonrpc: it accepts messages of servers with common mistakes.
	Lenient bool
}

func (l Limits) depth() int {
	if l.Depth <= 0 {
		return DefaultDepth
	}
	return l.Depth
}

func (l Limits) check(data []byte) *Error {
	if l.Bytes > 0 && len(data) > l.Bytes || len(data) > maxBytes {
		limit := l.Bytes
		if limit <= 0 || limit > maxBytes {
			limit = maxBytes
		}
		return sizeError(len(data), limit)
	}
	return nil
}

// Valid says whether data is one JSON value as strict as [ParseObject] wants
// it. The error is an *[Error].
func Valid(data []byte, lim Limits) error {
	if _, _, err := scan(data, lim, nil); err != nil {
		return err
	}
	return nil
}
