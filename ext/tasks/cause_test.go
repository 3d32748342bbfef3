package tasks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A handler that writes to its task when it is cancelled hears that it was cancelled, and not
// that the lease is lost.
func TestCancelCauseWhileSaying(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory()}
		store.get = func(ctx context.Context, _ string) error {
			if server.CallFrom(ctx) == nil {
				time.Sleep(time.Second) // the handler writes before the state is read
			}
			return nil
		}
		causes := make(chan error, 1)
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: atOnce}, server.Tool("say", "", func(ctx context.Context, _ mcp.None) (string, error) {
			for i := 0; ctx.Err() == nil; i++ {
				_ = server.Progress(ctx, float64(i), 0, "step")
				time.Sleep(50 * time.Millisecond)
			}
			causes <- context.Cause(ctx)
			return "", ctx.Err()
		}))
		p := connect(t, s)
		id := p.start("say", nil).TaskID
		time.Sleep(5300 * time.Millisecond)
		if err := p.cancel(id); err != nil {
			t.Fatal(err)
		}
		if err := <-causes; !errors.Is(err, tasks.ErrCancelled) {
			t.Errorf("the cause is %v", err)
		}
	})
}
