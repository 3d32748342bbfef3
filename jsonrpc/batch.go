package jsonrpc

import (
	"bytes"
	"errors"
	"unicode"

	"github.com/parley-mcp/parley/internal/wire"
)

// BatchItem is one element of a batch: a message, or the reason why it is none.
type BatchItem struct {
	In  *Incoming
	Err *ParseError
}

// IsBatch says whether data starts as a JSON array does.
func IsBatch(data []byte) bool {
	for _, c := range withoutMark(data) {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return c == '['
	}
	return false
}

// ParseBatch reads an array of messages. The items keep the order of the
// array; each is a message or the reason why it is none. A text that is not
// strict JSON as a whole, an empty array and one of more than limit elements
// (0 means no limit) are refused as a whole, with a *[ParseError]. It takes
// data over, which must not change afterwards.
func ParseBatch(data []byte, lim Limits, limit int) ([]BatchItem, error) {
	data = withoutMark(data)
	elements, err := wire.ParseArray(data, lim, limit)
	mended := false
	if errors.Is(err, wire.ErrUTF8) && lim.Lenient {
		var text []byte
		if text, mended = wire.MendText(data); mended {
			elements, err = wire.ParseArray(text, lim, limit)
		}
	}
	if err != nil {
		return nil, &ParseError{Err: parseFailure(err, "send fewer messages at once (the server's Limits.MaxBatch), or one by one")}
	}
	if len(elements) == 0 {
		return nil, &ParseError{Err: NewError(CodeInvalidRequest, "invalid request: the array of messages is empty")}
	}
	items := make([]BatchItem, len(elements))
	for i, element := range elements {
		in, err := Parse(element, lim)
		if in != nil && mended && bytes.ContainsRune(element, unicode.ReplacementChar) {
			in.AddFlaw(flawUnicode)
		}
		items[i].In = in
		items[i].Err, _ = errors.AsType[*ParseError](err)
	}
	return items, nil
}
