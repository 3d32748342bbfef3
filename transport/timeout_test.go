package transport_test

import (
	"context"
	"testing"

	"github.com/parley-mcp/parley/transport"
)

// A counter counts pauses.
type counter struct{ paused int }

func (c *counter) Pause()  { c.paused++ }
func (c *counter) Resume() { c.paused-- }

// A clock is stopped once and let go once, however often that is asked for.
// Without one nothing happens.
func TestWaiting(t *testing.T) {
	transport.PauseTimeouts(t.Context())()
	c := new(counter)
	ctx := context.WithValue(t.Context(), transport.PauserKey{}, c)
	one, two := transport.PauseTimeouts(ctx), transport.PauseTimeouts(ctx)
	for _, step := range []struct {
		resume func()
		want   int
	}{{func() {}, 2}, {one, 1}, {one, 1}, {two, 0}, {two, 0}} {
		if step.resume(); c.paused != step.want {
			t.Errorf("paused %d times, want %d", c.paused, step.want)
		}
	}
}
