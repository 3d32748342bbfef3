package web

import (
	"bytes"
	"errors"
	"io"
	"math"
	"sync"
)

// trusted is how many bytes of a body get memory because its header announces
// them. More is only given to those who have sent so much.
const trusted = 64 << 10

// firstParts are buffers of at least trusted bytes.
var firstParts = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// ErrTooLarge says that a body has more bytes than it may have.
var ErrTooLarge = errors.New("body exceeds the limit")

// ReadBody reads a body of length bytes, -1 if that is not known, into memory
// of its own. Of a body with more than limit bytes, ErrTooLarge, not more than
// one byte above that is read. It is never nil without an error.
func ReadBody(body io.Reader, length int64, limit int) ([]byte, error) {
	limit = min(limit, math.MaxInt-1)
	switch {
	case length > int64(limit):
		return nil, ErrTooLarge
	case length >= 0 && length <= trusted:
		data := make([]byte, length)
		_, err := io.ReadFull(body, data)
		return data, err
	}
	first := firstParts.Get().(*bytes.Buffer)
	defer firstParts.Put(first)
	first.Reset()
	first.Grow(trusted + 1 + bytes.MinRead)
	most := int64(min(trusted, limit)) + 1
	n, err := first.ReadFrom(io.LimitReader(body, most))
	switch {
	case err != nil:
		return nil, err
	case length >= 0:
		data := make([]byte, length)
		_, err = io.ReadFull(body, data[copy(data, first.Bytes()):])
		return data, err
	case n < most:
		return bytes.Clone(first.Bytes()), nil
	}
	data, err := io.ReadAll(io.LimitReader(io.MultiReader(first, body), int64(limit)+1))
	if err == nil && len(data) > limit {
		return nil, ErrTooLarge
	}
	return data, err
}
