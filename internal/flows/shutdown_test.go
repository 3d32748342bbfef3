package flows_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// Proves: FLOW-SHUTDOWN-P: the server's Shutdown lets what is under way
// finish, refuses what is new, and ends what does not finish.
func TestFLOW_SHUTDOWN_P(t *testing.T) {
	began, ended := make(chan string, 4), make(chan string, 4)
	build := with(server.Tool("work", "Works for a while.", func(ctx context.Context, in struct {
		Seconds int `json:"seconds"`
	},
	) (string, error) {
		began <- "work"
		select {
		case <-time.After(time.Duration(in.Seconds) * time.Second):
			return "finished", nil
		case <-ctx.Done():
			ended <- "cancelled"
			return "", context.Cause(ctx)
		}
	}), server.Text("x:a", "a", "A"))
	bubbles(t, build, func(t *testing.T, _ mcptest.Era, join joiner) {
		s, c := join(&client.Options{OnResourcesChanged: func(context.Context) {}})
		if _, err := c.Subscribe(t.Context(), "x:a"); err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 2)
		for _, seconds := range []int{3, 3000} {
			go func() {
				r, err := client.Call[string](t.Context(), c, "work", map[string]any{"seconds": seconds}, &client.CallOptions{NoTimeout: true})
				if err == nil && r != "finished" {
					err = errors.New(r)
				}
				got <- err
			}()
			<-began
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		over := make(chan error, 1)
		go func() { over <- s.Shutdown(ctx) }()
		synctest.Wait()
		if _, err := c.ReadResource(t.Context(), "x:a", nil); code(err) != mcp.CodeShuttingDown {
			t.Errorf("a new request: %v", err)
		}
		if err := <-got; err != nil {
			t.Errorf("what had time did not finish: %v", err)
		}
		if err := <-got; err == nil {
			t.Error("what had no time finished")
		}
		if err := <-over; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("Shutdown ended with %v after %v", err, time.Since(start))
		}
		if got := <-ended; got != "cancelled" {
			t.Error(got)
		}
	})
}

// Proves: FLOW-SHUTDOWN-P. Ruling 24: a subscription that the server ends gets
// notifications/cancelled and its result; a server that nothing holds ends at
// once.
func TestFLOW_SHUTDOWN_P_Listen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := with(server.Text("x:a", "a", "A"))(t, quiet())
		l := dial(t, s, nil)
		l.ask(`{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{%s,"notifications":{"resourceSubscriptions":["x:a"]}}}`, meta("{}")).
			want(`["x:a"]`, "params", "notifications", "resourceSubscriptions")
		start := time.Now()
		if err := s.Shutdown(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("Shutdown: %v after %v", err, time.Since(start))
		}
		m := l.next()
		m.want(`"notifications/cancelled"`, "method")
		m.want(`"s"`, "params", "requestId")
		m = l.next()
		m.want(`"s"`, "id")
		m.want(`"s"`, "result", "_meta", mcp.MetaSubscriptionID)
		if err := l.Err(); err == nil {
			t.Error("the connection ended as if the client had ended it")
		}
	})
}

// Proves: FLOW-SHUTDOWN-P: the client ends its output, and the server ends:
// what is quick is still answered, the rest is cancelled.
func TestFLOW_SHUTDOWN_P_Input(t *testing.T) {
	bubbles(t, with(server.Tool("wait", "Waits.", func(ctx context.Context, _ mcp.None) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	})), func(t *testing.T, _ mcptest.Era, join joiner) {
		_, c := join(nil)
		got := make(chan error, 1)
		go func() {
			_, err := c.CallTool(t.Context(), "wait", nil, nil)
			got <- err
		}()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-got; !errors.Is(err, client.ErrClosed) {
			t.Errorf("the call ended with %v", err)
		}
		if err := c.Ping(t.Context()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, with(server.Text("x:a", "a", "A"))(t, quiet()), nil)
		l.shake(june, "{}")
		l.Close()
		if err := l.Err(); err != nil {
			t.Errorf("a clean end of input: %v", err)
		}
	})
}
