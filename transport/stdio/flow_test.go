//go:build unix

package stdio_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

type (
	number struct {
		N int `json:"n"`
	}
	confirm struct {
		Sure bool `json:"sure"`
	}
)

// join serves s to a client over the system's pipes.
func join(tb testing.TB, s *server.Server, o *client.Options) *client.Client {
	tb.Helper()
	near, far := osPipes(tb)
	background(tb, func(ctx context.Context) error { return stdio.ServeConn(ctx, far, s, nil) })
	c, err := client.Connect(tb.Context(), stdio.Conn(near), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("closing: %v", err)
		}
	})
	return c
}

// unlimited is a server without limits of rate.
func unlimited() *server.Server {
	return server.New("flows", "1", &server.Options{
		Logger: slog.New(slog.DiscardHandler),
		Limits: server.Limits{ToolRate: server.Unlimited, ListRate: server.Unlimited},
	})
}

// double calls the tool of that name and checks what it gives.
func double(ctx context.Context, c *client.Client, n int) error {
	out, err := client.Call[number](ctx, c, "double", number{n})
	if err != nil {
		return err
	}
	if out.N != 2*n {
		return fmt.Errorf("twice %d is %d", n, out.N)
	}
	return nil
}

// busily calls quick tools in the background, close after each other, until
// the test ends: so that requests run on the goroutine that reads.
func busily(tb testing.TB, c *client.Client) {
	ctx := context.WithoutCancel(tb.Context()) // which ends before what Cleanup does
	var stop atomic.Bool
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if err := double(ctx, c, i); err != nil {
					tb.Errorf("a quick call: %v", err)
					return
				}
			}
		})
	}
	tb.Cleanup(func() { stop.Store(true); calls.Wait() })
}

// Proves: FLOW-CANCEL, FLOW-SHUTDOWN. Whatever a tool does, the connection
// lives: while quick calls go by, tools wait for each other, ask the person,
// are cancelled, panic and end their goroutine.
func TestToolsThatWait(t *testing.T) {
	mcptest.NoLeaks(t)
	s := unlimited()
	begun, cancelled, meet := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.Add(
		server.Tool("double", "Doubles.", func(_ context.Context, in number) (number, error) { return number{2 * in.N}, nil }),
		server.Tool("meet", "Waits for another call.", func(ctx context.Context, _ number) (string, error) {
			select {
			case meet <- struct{}{}:
			case <-meet:
			case <-ctx.Done():
			}
			return "met", ctx.Err()
		}),
		server.Tool("wait", "Waits to be cancelled.", func(ctx context.Context, _ number) (string, error) {
			begun <- struct{}{}
			<-ctx.Done()
			cancelled <- struct{}{}
			return "", ctx.Err()
		}),
		server.Tool("ask", "Asks.", func(ctx context.Context, _ number) (string, error) {
			a, err := server.Elicit[confirm](ctx, "Sure?")
			return fmt.Sprint(a.Accepted()), err
		}),
		server.Tool("panic", "Panics.", func(context.Context, number) (string, error) { panic("out of luck") }),
		server.Tool("exit", "Ends its goroutine.", func(context.Context, number) (string, error) {
			runtime.Goexit()
			return "", nil
		}),
	)
	c := join(t, s, &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(confirm{true})
	}})
	busily(t, c)
	call := func(ctx context.Context, name string) (string, error) {
		return client.Call[string](ctx, c, name, number{})
	}
	for range 20 {
		var pair sync.WaitGroup
		for range 2 {
			pair.Go(func() {
				if got, err := call(t.Context(), "meet"); err != nil || got != "met" {
					t.Errorf("meet: %q, %v", got, err)
				}
			})
		}
		pair.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := call(ctx, "wait"); ended <- err }()
		<-begun
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("ping: %v", err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("wait: %v, want that it is cancelled", err)
		}
		<-cancelled
		if got, err := call(t.Context(), "ask"); err != nil || got != "true" {
			t.Errorf("ask: %q, %v", got, err)
		}
		for _, name := range []string{"panic", "exit"} {
			if _, err := call(t.Context(), name); err == nil || !strings.Contains(err.Error(), "internal error") {
				t.Errorf("%s: %v, want an internal error", name, err)
			}
		}
	}
}

// Ten thousand calls, some slow, some that use the processor, from many
// goroutines: each gets its own answer.
func TestQuickAndSlow(t *testing.T) {
	mcptest.NoLeaks(t)
	s := unlimited()
	s.Add(server.Tool("double", "Doubles.", func(ctx context.Context, in number) (number, error) {
		switch {
		case in.N%500 == 0: // waits for long
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		case in.N%100 == 0: // computes for some time
			for start := time.Now(); time.Since(start) < 100*time.Microsecond; {
				runtime.Gosched()
			}
		case in.N%50 == 0: // says something before
			_ = server.Progress(ctx, 1, 2, "half")
		}
		return number{2 * in.N}, nil
	}))
	c := join(t, s, nil)
	const callers, calls = 20, 500
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range calls {
				if err := double(t.Context(), c, i*calls+n); err != nil {
					t.Errorf("call %d of %d: %v", n, i, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A peer that waits for its answers with half a line sent gets them.
func TestHalfLine(t *testing.T) {
	mcptest.NoLeaks(t)
	near, far := osPipes(t)
	background(t, func(ctx context.Context) error { return stdio.ServeConn(ctx, far, mcptest.TransportPeer(), nil) })
	t.Cleanup(func() { _ = near.Close() })
	answers := bufio.NewReader(near)
	const n = 100
	half := `{"jsonrpc":"2.0","id":"`
	for range 50 {
		text := strings.Repeat(half+`a","method":"kit/echo","params":{}}`+"\n", n) + half
		if _, err := near.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for range n {
			if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, `"id":"a"`) {
				t.Fatalf("answered: %q, %v", line, err)
			}
		}
		if _, err := near.Write([]byte(`b","method":"kit/echo","params":{}}` + "\n")); err != nil {
			t.Fatal(err)
		}
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, `"id":"b"`) {
			t.Fatalf("answered: %q, %v", line, err)
		}
	}
}
