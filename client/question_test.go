package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

type questionKey struct{}

// askingServer has a tool that asks the person.
func askingServer() *server.Server {
	s := server.New("asking", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})
	s.Add(server.Tool("asks", "", func(ctx context.Context, _ struct{}) (string, error) {
		a, err := server.Elicit[struct {
			Name string `json:"name"`
		}](ctx, "Who?")
		return a.Value.Name, err
	}))
	return s
}

// A question of a server with a handshake is told when it arrives, and its
// handler has the context that was given. A stateless server sends none.
func TestOnQuestion(t *testing.T) {
	for _, transportName := range []string{"mem", "stdio", "streamable", "sse", "websocket"} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			told := []string{mcp.MethodElicit}
			if version == "2026-07-28" {
				told = nil
			}
			if transportName == "sse" { // which has no elicitation
				continue
			}
			t.Run(transportName+" "+version, func(t *testing.T) {
				var mu sync.Mutex
				var methods []string
				o := &client.Options{
					Versions: []string{version},
					OnQuestion: func(ctx context.Context, method string) context.Context {
						mu.Lock()
						defer mu.Unlock()
						methods = append(methods, method)
						return context.WithValue(ctx, questionKey{}, "the first")
					},
					OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
						name, _ := ctx.Value(questionKey{}).(string)
						return client.Accept(map[string]string{"name": name + " by " + fmt.Sprint(client.RequestFrom(ctx) != nil)})
					},
				}
				c := dial(t, mcptest.Dialer(t, askingServer(), transportName), o)
				got, err := client.Call[string](t.Context(), c, "asks", nil)
				// Over HTTP, and in the stateless era, it is known which call asks.
				want := fmt.Sprintf("%s by %v", strings.Repeat("the first", len(told)), transportName == "streamable" || told == nil)
				if err != nil || got != want {
					t.Errorf("got %q, %v; want %q", got, err, want)
				}
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(methods, told) {
					t.Errorf("told of %q, want %q", methods, told)
				}
			})
		}
	}
}

// What comes behind a question on the connection is not read before OnQuestion has
// returned: a call that the server answers right after it returns later, and
// questions are told in their order.
func TestOnQuestionOrder(t *testing.T) {
	const each = 3
	for _, transportName := range []string{"mem", "stdio"} {
		t.Run(transportName, func(t *testing.T) {
			var mu sync.Mutex
			var order []string
			s := &script{versions: []string{newest}, on: map[string]func(*req) (any, error){
				mcp.MethodToolsCall: func(r *req) (any, error) {
					name := member[string](r.in.Params, "name")
					for i := range each {
						id := jsonrpc.StringID(fmt.Sprintf("%s/%d", name, i))
						m := &jsonrpc.Outgoing{ID: id, Method: fmt.Sprintf("ask/%s/%d", name, i), Params: jsonrpc.Raw(raw(`{}`))}
						if err := r.out.Send(r.ctx, m); err != nil {
							return nil, err
						}
					}
					return raw(`{"content":[]}`), nil
				},
			}}
			c := dial(t, mcptest.Dialer(t, s, transportName), &client.Options{
				Versions: []string{newest},
				OnQuestion: func(ctx context.Context, method string) context.Context {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, method)
					return ctx
				},
			})
			var want []string
			for n := range 50 {
				if _, err := c.CallTool(t.Context(), fmt.Sprint(n), nil, nil); err != nil {
					t.Fatal(err)
				}
				for i := range each {
					want = append(want, fmt.Sprintf("ask/%d/%d", n, i))
				}
				mu.Lock()
				got := slices.Clone(order)
				mu.Unlock()
				if !slices.Equal(got, want) {
					t.Fatalf("after call %d told of %q, want %q", n, got, want)
				}
			}
		})
	}
}

// The end of the context that OnQuestion returns ends the handler's; its own is
// that of the call, where it is known which one asks.
func TestOnQuestionContext(t *testing.T) {
	for _, transportName := range []string{"stdio", "streamable"} {
		t.Run(transportName, func(t *testing.T) {
			reason := errors.New("enough")
			var value any
			var cause error
			c := dial(t, mcptest.Dialer(t, askingServer(), transportName), &client.Options{
				Versions: []string{"2025-11-25"},
				OnQuestion: func(ctx context.Context, _ string) context.Context {
					value = ctx.Value(questionKey{})
					ctx, cancel := context.WithCancelCause(ctx)
					cancel(reason)
					return ctx
				},
				OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return nil, cause
				},
			})
			ctx := context.WithValue(t.Context(), questionKey{}, "the caller's")
			if _, err := client.Call[string](ctx, c, "asks", nil); err == nil {
				t.Error("the call has an answer")
			}
			if !errors.Is(cause, reason) {
				t.Errorf("the handler's context ended with %v", cause)
			}
			if known := transportName == "streamable"; known != (value == "the caller's") {
				t.Errorf("the context has the value %v", value)
			}
		})
	}
}

// A panic, and no context at all, leave the question as it is, and the log has
// the panic.
func TestOnQuestionFaulty(t *testing.T) {
	for name, faulty := range map[string]func(context.Context, string) context.Context{
		"panic": func(context.Context, string) context.Context { panic("swordfish") },
		"nil":   func(context.Context, string) context.Context { return nil },
	} {
		for _, transportName := range []string{"mem", "stdio", "streamable"} {
			t.Run(name+" "+transportName, func(t *testing.T) {
				var log logtest.Log
				c := dial(t, mcptest.Dialer(t, askingServer(), transportName), &client.Options{
					Versions: []string{"2025-11-25"}, OnQuestion: faulty, Logger: slog.New(slog.NewTextHandler(&log, nil)),
					OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
						return client.Accept(map[string]string{"name": "ada"})
					},
				})
				for range 2 {
					if got, err := client.Call[string](t.Context(), c, "asks", nil); err != nil || got != "ada" {
						t.Errorf("got %q, %v", got, err)
					}
				}
				if got := strings.Count(log.String(), "swordfish"); (got == 2) != (name == "panic") {
					t.Errorf("the log says %s", log.String())
				}
			})
		}
	}
}
