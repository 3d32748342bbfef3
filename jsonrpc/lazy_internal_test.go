package jsonrpc

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

type valueKey struct{}

// A lazy context is one like any other, whoever looks at it and when.
func TestLazyContext(t *testing.T) {
	why := errors.New("why")
	parent := func() (context.Context, context.CancelCauseFunc) {
		return context.WithCancelCause(context.WithValue(context.Background(), valueKey{}, 7))
	}
	for name, look := range map[string]func(l *lazyContext){
		"not looked at": func(*lazyContext) {},
		"looked at":     func(l *lazyContext) { l.Done() },
		"derived from": func(l *lazyContext) {
			ctx, cancel := context.WithCancel(l)
			t.Cleanup(cancel)
			ctx.Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for end, f := range map[string]struct {
				end   func(l *lazyContext, parent context.CancelCauseFunc)
				cause error
			}{
				"cancelled": {func(l *lazyContext, _ context.CancelCauseFunc) { l.cancel(why) }, why},
				"parent":    {func(_ *lazyContext, parent context.CancelCauseFunc) { parent(why) }, why},
				"over":      {func(l *lazyContext, _ context.CancelCauseFunc) { l.end() }, context.Canceled},
				"over twice": {func(l *lazyContext, _ context.CancelCauseFunc) {
					l.end()
					l.cancel(why)
					l.end()
				}, context.Canceled},
			} {
				p, cancel := parent()
				l := &lazyContext{Context: p}
				look(l)
				if l.Err() != nil || context.Cause(l) != nil {
					t.Errorf("%s: ended before its time: %v", end, l.Err())
				}
				f.end(l, cancel)
				<-l.Done()
				if !errors.Is(l.Err(), context.Canceled) || !errors.Is(context.Cause(l), f.cause) || l.Value(valueKey{}) != 7 {
					t.Errorf("%s: Err %v, Cause %v, Value %v", end, l.Err(), context.Cause(l), l.Value(valueKey{}))
				}
				child, stop := context.WithCancel(l)
				if child.Err() == nil {
					t.Errorf("%s: a context derived from it has not ended", end)
				}
				stop()
				cancel(nil)
			}
		})
	}
}

// Once Err has said how the context ended, it says so for ever, also after the
// end of the request.
func TestLazyContextKeepsItsErr(t *testing.T) {
	why := errors.New("why")
	parent, stop := context.WithDeadlineCause(t.Context(), time.Now().Add(-time.Second), why)
	defer stop()
	l := &lazyContext{Context: parent}
	for _, when := range []string{"before", "after"} {
		if !errors.Is(l.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(l), why) {
			t.Errorf("%s the end: Err %v, Cause %v", when, l.Err(), context.Cause(l))
		}
		l.end()
	}
	<-l.Done()
}

// Many may look at once, while it is cancelled.
func TestLazyContextAtOnce(t *testing.T) {
	for range 100 {
		l := &lazyContext{Context: t.Context()}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { <-l.Done() })
		}
		wg.Go(func() { l.cancel(ErrClosed) })
		wg.Wait()
		if !errors.Is(context.Cause(l), ErrClosed) {
			t.Fatalf("Cause is %v", context.Cause(l))
		}
		l.end()
	}
}
