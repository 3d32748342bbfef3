package patience_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/patience"
)

var errSlow = errors.New("slow")

// A person's time is nobody's delay; what comes after it counts again.
func TestWithTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := patience.WithTimeout(t.Context(), time.Minute, errors.New("outer"))
		defer cancel()
		inner, cancelInner := patience.WithTimeout(outer, 10*time.Second, errSlow)
		defer cancelInner()
		time.Sleep(6 * time.Second)
		first := patience.Waiting(inner)
		second := patience.Waiting(inner)
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
			t.Errorf("the clock around went on: %v", context.Cause(outer))
		}
	})
}

func TestWaitingWithoutClock(t *testing.T) {
	patience.Waiting(t.Context())()
}

// A limit that has ended does not come back to life.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := patience.WithTimeout(t.Context(), time.Second, errSlow)
		resume := patience.Waiting(ctx)
		cancel()
		resume()
		time.Sleep(time.Minute)
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want %v", err, context.Canceled)
		}
	})
}
