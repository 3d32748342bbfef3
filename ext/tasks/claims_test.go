package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
)

// A counted store counts the claims, and fails when there are far too many, so that what asks for
// them without a pause ends.
type counted struct {
	tasks.Store
	claims atomic.Int32
}

func (*counted) Durable() bool { return true }

func (c *counted) Claim(ctx context.Context, d time.Duration, n int, skip []string) ([]*tasks.Claimed, error) {
	if c.claims.Add(1) > 2000 {
		return nil, errors.New("too many claims")
	}
	return c.Store.Claim(ctx, d, n, skip)
}

// More tasks that a process cannot run than it remembers are not claimed and given back without
// a pause.
func TestManyTasksOfOthers(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &counted{Store: tasks.Memory()}
		for i := range 1100 {
			n := &tasks.NewTask{ID: fmt.Sprint("task ", i), Tool: "of others", Repeatable: true, Call: []byte("{}")}
			if _, _, err := store.Create(t.Context(), n, time.Nanosecond); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		s := serverOf(t, "tests", nil, store, &tasks.Options{}, sleeper("own", 0))
		s.Start()
		time.Sleep(30 * time.Second)
		if n := store.claims.Load(); n > 200 {
			t.Errorf("%d claims in half a minute", n)
		}
	})
}
