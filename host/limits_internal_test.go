package host

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
)

var errOver = errors.New("the time is over")

// Time runs down while nobody is asked, and only then: for limits that begin before a
// person is asked, meanwhile and between, in whichever order the questions end.
func TestLimitSet(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var set limitSet
				var limits []context.Context
				begin := func() {
					ctx, cancel := pausetimer.WithTimeout(t.Context(), time.Minute, errOver)
					t.Cleanup(cancel)
					t.Cleanup(set.add(ctx))
					limits = append(limits, ctx)
				}
				begin()
				time.Sleep(20 * time.Second)
				var resume [3]func()
				for i := range resume {
					resume[i] = pausetimer.Pause(set.pausedFrom(t.Context()))
					begin()
					time.Sleep(time.Hour)
				}
				for _, i := range order {
					for n, ctx := range limits {
						if err := context.Cause(ctx); err != nil {
							t.Errorf("limit %d, before question %d ended: %v", n, i, err)
						}
					}
					resume[i]()
					if i != order[2] {
						time.Sleep(time.Hour)
					}
				}
				begin()
				start := time.Now()
				for n, want := range []time.Duration{40 * time.Second, time.Minute, time.Minute, time.Minute, time.Minute} {
					<-limits[n].Done()
					if got := time.Since(start); got != want || !errors.Is(context.Cause(limits[n]), errOver) {
						t.Errorf("limit %d ended %v after the last question, with %v; want %v", n, got, context.Cause(limits[n]), want)
					}
				}
			})
		})
	}
}

// A limit that is removed while a person is asked leaves those around it as they were.
func TestLimitRemovedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set limitSet
		outer, cancel := pausetimer.WithTimeout(t.Context(), time.Minute, errOver)
		defer cancel()
		set.Pause()
		inner, cancelInner := pausetimer.WithTimeout(outer, time.Minute, errOver)
		remove := set.add(inner)
		time.Sleep(time.Hour)
		remove()
		cancelInner()
		start := time.Now()
		<-outer.Done()
		if got := time.Since(start); got != time.Minute {
			t.Errorf("the outer limit ended %v later, want 1m0s", got)
		}
		set.Resume()
	})
}

// What may ask a person itself is not paused by that: the set would wait for itself.
func TestLimitOfWhatAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set limitSet
		ctx, cancel := pausetimer.WithTimeout(set.pausedFrom(t.Context()), time.Minute, errOver)
		defer cancel()
		defer set.add(ctx)()
		resume := pausetimer.Pause(ctx)
		time.Sleep(time.Hour)
		resume()
		if err := context.Cause(ctx); err != nil || set.asked != 0 {
			t.Errorf("the limit ended with %v, and %d are asked", err, set.asked)
		}
	})
}
