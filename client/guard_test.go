package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// panicking are handlers that all panic, with their log.
func panicking() (*client.Options, *logtest.Log) {
	log := new(logtest.Log)
	return &client.Options{
		OnElicit:    func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { panic("secret plan") },
		OnElicitURL: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { panic("secret plan") },
		OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			panic("secret plan")
		},
		OnRoots: func(context.Context) ([]mcp.Root, error) { panic("secret plan") },
		OnLog:   func(context.Context, *mcp.LogParams) { panic("secret plan") },

		OnToolsChanged:        func(context.Context) { panic("secret plan") },
		OnPromptsChanged:      func(context.Context) { panic("secret plan") },
		OnResourcesChanged:    func(context.Context) { panic("secret plan") },
		OnResourceUpdated:     func(context.Context, string) { panic("secret plan") },
		OnElicitationComplete: func(context.Context, string) { panic("secret plan") },
		OnNotification:        func(context.Context, string, mcp.RawValue) { panic("secret plan") },
		Logger:                slog.New(slog.NewTextHandler(log, nil)),
	}, log
}

// A handler that panics answers "internal error", says nothing of itself to
// the server, and does not end the process.
func TestHandlerPanics(t *testing.T) {
	for method, params := range map[string]string{
		mcp.MethodElicit:        `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`,
		mcp.MethodCreateMessage: `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}`,
		mcp.MethodRootsList:     `{}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			o, log := panicking()
			e := asks(t, newest, o, method, params).Error
			if got := fmt.Sprintf("%d %s", e.Code, e.Message); got != "-32603 internal error" {
				t.Errorf("%s: the server is told %q", method, got)
			}
			if got := log.String(); !strings.Contains(got, "secret plan") || !strings.Contains(got, "guard_test.go") {
				t.Errorf("%s: the log has no stack: %s", method, got)
			}
		})
	}
}

// A handler of notifications that panics costs that notification alone.
func TestNoticeHandlerPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, log := panicking()
		s := &script{versions: []string{newest}}
		c := connect(t, s, o)
		for method, params := range map[string]string{
			mcp.NotifyMessage:              `{"level":"error","data":1}`,
			mcp.NotifyToolsListChanged:     `{}`,
			mcp.NotifyPromptsListChanged:   `{}`,
			mcp.NotifyResourcesListChanged: `{}`,
			mcp.NotifyElicitationComplete:  `{"elicitationId":"e"}`,
			"x/y":                          `{}`,
		} {
			if err := s.last().tell(t.Context(), method, params); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "a handler panicked"); n != 6 {
			t.Errorf("%d panics are in the log, want 6:\n%s", n, log)
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("the client is of no use any more: %v", err)
		}
	})
}

// A panic while a call is under way ends the call, not the client.
func TestCallHandlerPanics(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(r *req) (any, error)
		o      *client.CallOptions
		is     error
	}{
		"asked": {func(*req) (any, error) {
			return raw(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}`), nil
		}, nil, client.ErrInputRefused},
		"progress": {func(r *req) (any, error) {
			for i := range 3 {
				if err := r.tell(mcp.NotifyProgress, fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, meta(r.in, "progressToken"), i)); err != nil {
					return nil, err
				}
			}
			return raw(`{"resultType":"complete","content":[]}`), nil
		}, &client.CallOptions{OnProgress: func(float64, float64, string) { panic("secret plan") }}, client.ErrPanicked},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, _ := panicking()
				s := &script{on: map[string]func(r *req) (any, error){mcp.MethodToolsCall: test.answer}}
				c := connect(t, s, o)
				_, err := c.CallTool(t.Context(), "t", nil, test.o)
				if !errors.Is(err, client.ErrPanicked) || !errors.Is(err, test.is) {
					t.Errorf("the call ends with %v", err)
				}
				if err := c.Ping(t.Context()); err != nil {
					t.Errorf("the client is of no use any more: %v", err)
				}
			})
		})
	}
}

// A list is bounded in bytes, not only in items.
func TestListBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := 0
		s := &script{on: map[string]func(r *req) (any, error){mcp.MethodToolsList: func(*req) (any, error) {
			pages++
			return raw(fmt.Sprintf(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","nextCursor":"%d","tools":[{"name":"t%d","description":%q,"inputSchema":{"type":"object"}}]}`,
				pages, pages, strings.Repeat("x", 1000))), nil
		}}}
		c := connect(t, s, &client.Options{MaxListBytes: 10_000})
		var err error
		for _, err = range c.Tools(t.Context()) {
			if err != nil {
				break
			}
		}
		if !errors.Is(err, client.ErrPages) || pages > 11 {
			t.Errorf("after %d pages: %v", pages, err)
		}
	})
}

// Middleware that panics in what the client sends by itself does not end the
// process: the client goes on, and those who wait are told.
func TestMiddlewarePanicsAlone(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			var log logtest.Log
			var method atomic.Value // that middleware panics about, once it was answered
			method.Store("")
			s := subscribing(versions)
			c := connect(t, s, &client.Options{
				OnToolsChanged: func(context.Context) {},
				Logger:         slog.New(slog.NewTextHandler(&log, nil)),
				Middleware: []client.Middleware{func(next client.Func) client.Func {
					return func(ctx context.Context, r *client.Request) (client.Result, error) {
						result, err := next(ctx, r)
						if r.Method() == method.Load() {
							panic("middleware")
						}
						return result, err
					}
				}},
			})
			opening, subscribing := mcp.MethodDiscover, mcp.MethodListen
			if !c.Modern() {
				opening, subscribing = mcp.MethodInitialize, mcp.MethodResourcesSubscribe
			}
			method.Store(subscribing)
			if c.Modern() { // which panics when the subscription ends
				listens := s.got(mcp.MethodListen)
				_ = s.last().tell(t.Context(), mcp.NotifyCancelled, fmt.Sprintf(`{"requestId":%s}`, listens[len(listens)-1].ID))
				time.Sleep(time.Second) // of fake time
			} else if _, err := c.Subscribe(t.Context(), "a:1"); !errors.Is(err, client.ErrPanicked) {
				t.Errorf("subscribing while that panics: %v", err)
			}
			method.Store(opening)
			s.last().end()
			synctest.Wait()
			if _, err := c.CallTool(t.Context(), "t", nil, nil); !errors.Is(err, client.ErrPanicked) {
				t.Errorf("a call while connecting panics: %v", err)
			}
			method.Store("")
			sub, err := c.Subscribe(t.Context(), "a:1")
			if err != nil || !slices.Equal(sub.URIs(), []string{"a:1"}) {
				t.Errorf("subscribing once nothing panics: %v", err)
			}
			if n := len(s.got(subscribing)); n < 2 {
				t.Errorf("asked to watch %d times, want again after the panic", n)
			}
			if n := strings.Count(log.String(), "a handler panicked"); n < 2 {
				t.Errorf("%d panics are in the log:\n%s", n, &log)
			}
		})
	})
}

// What waits for handlers is bounded in bytes: the rest of a flood is dropped, and
// counted. It holds up nothing else.
func TestFloodOfBigLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Log
		release, handled := make(chan struct{}), 0
		s := &script{versions: []string{newest}}
		c := connect(t, s, &client.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), OnLog: func(context.Context, *mcp.LogParams) {
			<-release
			handled++
		}})
		big := fmt.Sprintf(`{"level":"error","data":%q}`, strings.Repeat("x", 1<<20))
		for range 100 {
			if err := s.last().tell(t.Context(), mcp.NotifyMessage, big); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("a call behind the flood: %v", err)
		}
		close(release)
		if err := c.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if handled < 60 || handled > 64 {
			t.Errorf("the client kept %d MiB of logs that nobody handled, want no more than 64", handled)
		}
		if want := fmt.Sprintf("count=%d", 100-handled); !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s: %s", want, &log)
		}
		for range 2 { // there is room again
			_ = s.last().tell(t.Context(), mcp.NotifyMessage, `{"level":"error","data":1}`)
		}
		synctest.Wait()
		if err := c.Drain(t.Context()); err != nil || handled < 62 {
			t.Errorf("%d handled, %v", handled, err)
		}
	})
}

// The error of a server that ends at once says why it ended, and does not
// speak of requests that may have run.
func TestConnectToServerThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: map[string]func(r *req) (any, error){}}
		die := func(r *req) (any, error) {
			r.conn.end()
			return nil, errSilent
		}
		s.on[mcp.MethodDiscover], s.on[mcp.MethodInitialize] = die, die
		_, err := client.Connect(t.Context(), mem.New(s, nil), nil)
		if !errors.Is(err, transport.ErrClosed) || errors.Is(err, transport.ErrInterrupted) || strings.Contains(err.Error(), "may have run") {
			t.Errorf("connecting: %v", err)
		}
	})
}

// A server that does not tell of changes may still have others after it was
// started anew.
func TestListsMayChangeWithTheConnection(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			changed := make(chan struct{}, 8)
			s := &script{versions: versions, caps: `{"tools":{}}`}
			c := connect(t, s, &client.Options{OnToolsChanged: func(context.Context) { changed <- struct{}{} }})
			synctest.Wait()
			if len(changed) != 0 {
				t.Fatal("a change is told before there was one")
			}
			s.last().end()
			synctest.Wait()
			if err := c.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-changed
		})
	})
}

// Questions that wait for a person are bounded in bytes.
func TestFloodOfBigQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{versions: []string{newest}}
		connect(t, s, &client.Options{OnSample: func(ctx context.Context, _ *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		p := s.last()
		big := jsonrpc.Raw(raw(fmt.Sprintf(`{"messages":[],"maxTokens":1,"systemPrompt":%q}`, strings.Repeat("x", 30<<20))))
		for id := range 3 {
			_ = p.conn.Send(t.Context(), &jsonrpc.Outgoing{ID: mcp.IntID(int64(100 + id)), Method: mcp.MethodCreateMessage, Params: big})
		}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.told) != 1 || s.told[0].Error == nil || s.told[0].Error.Code != mcp.CodeTooManyInFlight {
			t.Errorf("refused are %d questions", len(s.told))
		}
	})
}
