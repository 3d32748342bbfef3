package server_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// What is under way is finished; what is new is refused with retry data; then
// the connections end. Proves: FLOW-SHUTDOWN. Ruling 26.
func TestShutdownDrains(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			let := make(chan struct{})
			s := newServer(nil, echo(), server.Tool("slow", "", func(context.Context, none) (string, error) {
				<-let
				return "finished", nil
			}))
			l := join(t, s, v)
			id := l.start("tools/call", toolParams("slow", emptyBody))
			synctest.Wait()
			ended := make(chan error)
			go func() { ended <- s.Shutdown(t.Context()) }()
			synctest.Wait()
			m := l.tool("echo", `{"text":"x"}`)
			l.fails(m, mcp.CodeShuttingDown)
			if got := decode[mcp.RetryData](t, m.Error.Data); got.RetryAfterMs <= 0 {
				t.Errorf("retry data %s", m.Error.Data)
			}
			select {
			case err := <-ended:
				t.Fatalf("it did not wait: %v", err)
			default:
			}
			close(let)
			if got := l.text(l.wait(id)); got != "finished" {
				t.Errorf("got %q", got)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			<-l.Served
			if err := s.Shutdown(t.Context()); err != nil {
				t.Errorf("again: %v", err)
			}
			late := dial(t, s, v2607, nil)
			<-late.Served // refused
		})
	})
}

// What does not finish in time is cancelled, and told why.
// Proves: FLOW-SHUTDOWN.
func TestShutdownCancels(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			var cause error
			s := newServer(nil, server.Tool("waits", "", func(ctx context.Context, _ none) (string, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return "", ctx.Err()
			}))
			l := join(t, s, v)
			l.start("tools/call", toolParams("waits", emptyBody))
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			begun := time.Now()
			if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(begun); took < 3*time.Second || took > 4*time.Second {
				t.Errorf("it took %v", took)
			}
			if cause == nil || !strings.Contains(cause.Error(), "shutting down") {
				t.Errorf("the cause is %v", cause)
			}
			<-l.Served
		})
	})
}

// A peer that goes away ends its calls, and nothing is left.
// Proves: FLOW-SHUTDOWN.
func TestPeerGone(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) { // fails on goroutines that are left
			ended := make(chan struct{})
			s := newServer(nil, server.Text("test:a", "a", ""), server.Tool("waits", "", func(ctx context.Context, _ none) (string, error) {
				<-ctx.Done()
				close(ended)
				return "", ctx.Err()
			}))
			l := join(t, s, v)
			if l.modern() {
				l.listen(`{"resourceSubscriptions":["test:a"]}`, `{"resourceSubscriptions":["test:a"]}`)
			}
			l.start("tools/call", toolParams("waits", emptyBody))
			synctest.Wait()
			l.Close()
			<-ended
			<-l.Served
		})
	})
}

// Closing leaves no goroutine, with calls, questions and subscriptions under
// way. Proves: FLOW-SHUTDOWN.
func TestShutdownLeaks(t *testing.T) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			mcptest.NoLeaks(t)
			s := server.New("leaks", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})
			s.Add(asker("drop", "Drop?"), server.Text("test:a", "a", ""))
			asked := make(chan struct{}, 1)
			c, err := client.Connect(t.Context(), mem.New(s, nil), &client.Options{
				Versions: []string{v},
				OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
					asked <- struct{}{}
					<-ctx.Done()
					return nil, ctx.Err()
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			sub, err := c.Subscribe(t.Context(), "test:a")
			if err != nil {
				t.Fatal(err)
			}
			called := make(chan error, 1)
			go func() {
				_, err := client.Call[string](t.Context(), c, "drop", nil)
				called <- err
			}()
			if v >= v2506 {
				<-asked
			} else if err := <-called; err == nil {
				t.Error("a client without elicitation was asked")
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if err := sub.Close(); err != nil {
				t.Logf("ending the subscription: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Logf("closing: %v", err)
			}
			if v >= v2506 {
				if err := <-called; err == nil {
					t.Error("the call succeeded")
				}
			}
		})
	}
}
