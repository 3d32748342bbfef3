package inspect

import (
	"context"
	"errors"
	"testing"

	"github.com/parley-mcp/parley/mcp"
)

// A server that ends when enough was seen is no failure, whichever is noticed first.
func TestWatchEnough(t *testing.T) {
	t.Parallel()
	gone := errors.New("the server has ended")
	for range 50 { // select chooses by chance
		for name, test := range map[string]struct {
			came int
			stop bool
			want error
		}{
			"enough":      {2, false, nil},
			"too few":     {1, false, gone},
			"interrupted": {1, true, nil},
		} {
			w := NewWatcher()
			for range test.came {
				w.notice(mcp.RawValue(`{}`))
			}
			ctx, stop := context.WithCancel(t.Context())
			if test.stop {
				stop()
			}
			lost := make(chan error, 1)
			lost <- gone
			err := w.watch(ctx, 2, lost, func(mcp.RawValue) error { return nil })
			if !errors.Is(err, test.want) || test.want == nil && err != nil {
				t.Errorf("%s: %v, want %v", name, err, test.want)
			}
			stop()
		}
	}
}
