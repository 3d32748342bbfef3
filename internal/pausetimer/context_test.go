package pausetimer_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
)

var errSlow = errors.New("slow")

// A person's time is nobody's delay; what comes after it counts again.
func TestWithTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := pausetimer.WithTimeout(t.Context(), time.Minute, errors.New("outer"))
		defer cancel()
		inner, cancelInner := pausetimer.WithTimeout(outer, 10*time.Second, errSlow)
		defer cancelInner()
		time.Sleep(6 * time.Second)
		first := pausetimer.Pause(inner)
		second := pausetimer.Pause(inner)
		time.Sleep(time.Hour)
		first()
		first() // counts once
		time.Sleep(time.Hour)
		second()
		if err := context.Cause(inner); err != nil {
			t.Fatalf("the time of a person was counted: %v", err)
		}
		start := time.Now()
		<-inner.Done()
		if got := time.Since(start); got != 4*time.Second || !errors.Is(context.Cause(inner), errSlow) {
			t.Errorf("ended %v later with %v, want 4s and %v", got, context.Cause(inner), errSlow)
		}
		if outer.Err() != nil {
			t.Errorf("the outer limit went on: %v", context.Cause(outer))
		}
	})
}

func TestPauseWithoutPauser(t *testing.T) {
	pausetimer.Pause(t.Context())()
}

// A limit of nothing, or less, ends the context at once, as in package context.
func TestWithTimeoutAtOnce(t *testing.T) {
	for _, limit := range []time.Duration{0, -1, math.MinInt64} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, cancel := pausetimer.WithTimeout(t.Context(), limit, errSlow)
			defer cancel()
			<-ctx.Done()
			if took := time.Since(begun); took != 0 || !errors.Is(context.Cause(ctx), errSlow) {
				t.Errorf("%v: ended after %v with %v", limit, took, context.Cause(ctx))
			}
		})
	}
}

// A pause reaches Pausers of others in outer contexts. The context tells no
// deadline but that of an outer one.
func TestOuter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		around := new(counter)
		deadline := time.Now().Add(time.Hour)
		ctx, cancel := context.WithDeadline(context.WithValue(t.Context(), pausetimer.Key{}, around), deadline)
		defer cancel()
		ctx, cancel = pausetimer.WithTimeout(ctx, time.Minute, errSlow)
		defer cancel()
		if at, ok := ctx.Deadline(); !ok || at != deadline {
			t.Errorf("the deadline is %v, want %v", at, deadline)
		}
		resume := pausetimer.Pause(ctx)
		if around.paused != 1 {
			t.Errorf("in a pause the outer one is paused %d times", around.paused)
		}
		resume()
		if around.paused != 0 {
			t.Errorf("after a pause the outer one is paused %d times", around.paused)
		}
	})
}

// A counter counts pauses.
type counter struct{ paused int }

func (c *counter) Pause()  { c.paused++ }
func (c *counter) Resume() { c.paused-- }

// A limit that has ended does not come back to life.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := pausetimer.WithTimeout(t.Context(), time.Second, errSlow)
		resume := pausetimer.Pause(ctx)
		cancel()
		resume()
		time.Sleep(time.Minute)
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want %v", err, context.Canceled)
		}
	})
}
