package web_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"testing/iotest"

	"github.com/parley-mcp/parley/transport/web"
)

// Proves: SEC-DOS-1. A body is read whole, in memory of its own, up to its
// limit and not beyond, whether its length is known or not.
func TestReadBody(t *testing.T) {
	const part = 64 << 10
	sizes := []int{0, 1, part - 1, part, part + 1, part + 2, 3 * part}
	for _, limit := range append(sizes, math.MaxInt) {
		for _, size := range sizes {
			text := bytes.Repeat([]byte("x"), size)
			for _, length := range []int64{-1, int64(size)} {
				t.Run(fmt.Sprint(limit, size, length), func(t *testing.T) {
					body := bytes.NewReader(append(text, "rest"...))
					data, err := web.ReadBody(io.LimitReader(body, int64(size)), length, limit)
					if size > limit {
						if !errors.Is(err, web.ErrTooLarge) || size-body.Len()+4 > limit+1 {
							t.Errorf("%d bytes, %v; %d are left", len(data), err, body.Len())
						}
						return
					}
					if err != nil || data == nil || !bytes.Equal(data, text) || body.Len() != 4 {
						t.Errorf("%d bytes, %v; %d are left", len(data), err, body.Len())
					}
				})
			}
		}
	}
}

// A body that breaks off is an error, and never a shorter one.
func TestReadBodyBroken(t *testing.T) {
	const part = 64 << 10
	for _, size := range []int{0, 1, part - 1, part, part + 1, 3 * part} {
		for _, length := range []int64{-1, int64(size) + 1} {
			for _, cause := range []error{io.ErrUnexpectedEOF, errors.New("gone")} {
				body := io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(cause))
				if _, err := web.ReadBody(body, length, math.MaxInt); !errors.Is(err, cause) {
					t.Errorf("size %d, length %d: %v, want %v", size, length, err, cause)
				}
			}
		}
	}
	if _, err := web.ReadBody(bytes.NewReader(make([]byte, part)), 2*part, part*3); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a short body: %v", err)
	}
}
