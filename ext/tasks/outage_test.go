package tasks_test

import (
	"errors"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
)

// A server that asks to wait for longer than MaxOutage ends the waiting at once, with what it said.
func TestMaxOutageShorterThanTold(t *testing.T) {
	in(t, func(t *testing.T) {
		f := newFake(t)
		f.get = func(int) (string, error) {
			return "", mcp.NewError(mcp.CodeRateLimited, "not now").With(mcp.RetryData{RetryAfterMs: time.Hour.Milliseconds()})
		}
		h, err := tasks.Start[string](t.Context(), reconnect(t, f.srv, waiting(nil)), "t", nil, &tasks.StartOptions{Wait: &tasks.WaitOptions{MaxOutage: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = h.Wait(t.Context())
		var told *client.RetryError
		if !errors.As(err, &told) || time.Since(began) > time.Minute {
			t.Errorf("%v, after %v", err, time.Since(began))
		}
	})
}
