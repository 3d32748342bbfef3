package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// A diary collects what handlers are told.
type diary struct{ logtest.List }

// read returns what was written and forgets it.
func (d *diary) read() []string {
	synctest.Wait()
	return d.Take()
}

func (d *diary) options() *client.Options {
	line := func(s string) func(context.Context) { return func(context.Context) { d.Add(s) } }
	return &client.Options{
		OnToolsChanged: line("tools"), OnPromptsChanged: line("prompts"), OnResourcesChanged: line("resources"),
		OnResourceUpdated: func(_ context.Context, uri string) { d.Add(uri) },
	}
}

func subscribing(versions []string) *script {
	return &script{versions: versions, on: map[string]func(*req) (any, error){mcp.MethodListen: listen}}
}

// notify sends a notice as the era has it, on the latest subscription of s.
func notify(s *script, modernEra bool, method, uri string) {
	params := `{"uri":"` + uri + `"}`
	if modernEra {
		listens := s.got(mcp.MethodListen)
		params = updated(listens[len(listens)-1].ID, uri)
	}
	_ = s.last().tell(context.Background(), method, params)
}

// Proves: FLOW-SUB, FLOW-LIST-CHANGED. Notices of lists and resources in both
// eras, and the end of it.
func TestSubscribe(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			var d diary
			s := subscribing(versions)
			c := connect(t, s, d.options())
			notify(s, c.Modern(), mcp.NotifyToolsListChanged, "")
			notify(s, c.Modern(), mcp.NotifyPromptsListChanged, "")
			notify(s, c.Modern(), mcp.NotifyResourcesListChanged, "")
			notify(s, c.Modern(), mcp.NotifyResourcesUpdated, "a:early")
			if got := d.read(); !slices.Equal(got, []string{"tools", "prompts", "resources"}) {
				t.Errorf("told %v", got)
			}
			sub, err := c.Subscribe(t.Context(), "a:2", "a:1", "a:2")
			if err != nil || !slices.Equal(sub.URIs(), []string{"a:1", "a:2"}) {
				t.Fatalf("%v, %v", sub, err)
			}
			notify(s, c.Modern(), mcp.NotifyResourcesUpdated, "a:1")
			if got := d.read(); !slices.Equal(got, []string{"a:1"}) {
				t.Errorf("told %v", got)
			}
			if err := sub.Close(); err != nil {
				t.Error(err)
			}
			notify(s, c.Modern(), mcp.NotifyResourcesUpdated, "a:2")
			if got := d.read(); len(got) > 0 {
				t.Errorf("told %v after the end", got)
			}
			if c.Modern() {
				ended := text(s.await(mcp.NotifyCancelled, 1), "requestId")
				if want := s.await(mcp.MethodListen, 2).ID.String(); ended != want {
					t.Errorf("cancelled %s, want %s", ended, want)
				}
			} else if n := len(s.got(mcp.MethodResourcesUnsubscribe)); n != 2 {
				t.Errorf("unsubscribed %d times", n)
			}
		})
	})
}

// Ruling 24: the acknowledgement says what will be told; nothing passes before
// it, nothing beyond it, and nothing of other subscriptions (G8).
func TestAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		s := &script{}
		s.on = map[string]func(*req) (any, error){mcp.MethodListen: func(r *req) (any, error) {
			_ = r.tell(mcp.NotifyResourcesUpdated, updated(r.in.ID, "a:early"))
			_ = r.tell(mcp.NotifySubscriptionsAcknowledged, fmt.Sprintf(
				`{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1","a:never asked"]},"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, r.in.ID))
			_ = r.tell(mcp.NotifyToolsListChanged, updated(r.in.ID, ""))
			_ = r.tell(mcp.NotifyResourcesUpdated, updated(jsonrpc.IntID(9999), "a:stranger"))
			_ = r.tell(mcp.NotifyResourcesUpdated, `{"uri":"a:untagged"}`)
			_ = r.tell(mcp.NotifyResourcesUpdated, updated(r.in.ID, "a:1"))
			return nil, errSilent
		}}
		c := connect(t, s, &client.Options{OnResourceUpdated: d.options().OnResourceUpdated})
		sub, err := c.Subscribe(t.Context(), "a:1", "a:2")
		if err != nil || !slices.Equal(sub.URIs(), []string{"a:1"}) {
			t.Errorf("%v, %v", sub, err)
		}
		if got := d.read(); !slices.Equal(got, []string{"a:1"}) {
			t.Errorf("told %v", got)
		}
	})
}

// A server that agrees to nothing is an error, in both eras.
func TestSubscribeRefused(t *testing.T) {
	refuse := func(*req) (any, error) { return nil, jsonrpc.NewError(-32602, "no such resource") }
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: versions, on: map[string]func(*req) (any, error){mcp.MethodListen: refuse, mcp.MethodResourcesSubscribe: refuse}}
			_, err := connect(t, s, nil).Subscribe(t.Context(), "a:1")
			var e *jsonrpc.Error
			if !errors.As(err, &e) {
				t.Errorf("error %v", err)
			}
		})
	})
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodListen: func(r *req) (any, error) {
			_ = r.tell(mcp.NotifySubscriptionsAcknowledged, fmt.Sprintf(`{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, r.in.ID))
			return nil, errSilent
		}}}
		if _, err := connect(t, s, nil).Subscribe(t.Context(), "a:1"); err == nil {
			t.Error("a subscription to nothing")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodListen: func(*req) (any, error) { return nil, errSilent }}}
		start := time.Now()
		if _, err := connect(t, s, nil).Subscribe(t.Context(), "a:1"); !errors.Is(err, client.ErrTimeout) || time.Since(start) != time.Minute {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
	})
}

// Two subscriptions to one resource are one to the server of the handshake era.
func TestSubscribeShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := subscribing([]string{newest})
		c := connect(t, s, nil)
		one, err := c.Subscribe(t.Context(), "a:1")
		if err != nil {
			t.Fatal(err)
		}
		two, err := c.Subscribe(t.Context(), "a:1")
		if err != nil {
			t.Fatal(err)
		}
		_ = one.Close()
		if n, m := len(s.got(mcp.MethodResourcesSubscribe)), len(s.got(mcp.MethodResourcesUnsubscribe)); n != 1 || m != 0 {
			t.Errorf("subscribed %d times, gave up %d times", n, m)
		}
		_ = two.Close()
		if m := len(s.got(mcp.MethodResourcesUnsubscribe)); m != 1 {
			t.Errorf("gave up %d times", m)
		}
	})
}

// Ending a subscription waits for a server that does not answer once, not once for
// each resource, and tells one that answers of all.
func TestUnsubscribeSilent(t *testing.T) {
	var uris []string
	for i := range 200 {
		uris = append(uris, fmt.Sprintf("a:%d", i))
	}
	for name, test := range map[string]struct {
		answer error
		asked  int
		within time.Duration
	}{"silent": {errSilent, 1, time.Second}, "answering": {nil, 200, 0}, "refusing": {jsonrpc.NewError(-32602, "unknown"), 200, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{versions: []string{newest}, on: map[string]func(*req) (any, error){mcp.MethodResourcesUnsubscribe: func(*req) (any, error) {
					return raw(`{}`), test.answer
				}}}
				sub, err := connect(t, s, nil).Subscribe(t.Context(), uris...)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if err := sub.Close(); err != nil || time.Since(start) > test.within {
					t.Errorf("closed after %v, %v", time.Since(start), err)
				}
				if n := len(s.got(mcp.MethodResourcesUnsubscribe)); n != test.asked {
					t.Errorf("gave up %d subscriptions, want %d", n, test.asked)
				}
			})
		})
	}
}

// A subscription that waits for another one, which the server does not answer, can
// be given up.
func TestSubscribeBehindSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{versions: []string{newest}, on: map[string]func(*req) (any, error){mcp.MethodResourcesSubscribe: func(*req) (any, error) { return nil, errSilent }}}
		c := connect(t, s, nil)
		first := make(chan error, 1)
		go func() {
			_, err := c.Subscribe(t.Context(), "a:1")
			first <- err
		}()
		s.await(mcp.MethodResourcesSubscribe, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.Subscribe(ctx, "a:2"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("error %v after %v, want the end of its context after 1 s", err, time.Since(start))
		}
		if err := <-first; !errors.Is(err, client.ErrTimeout) {
			t.Errorf("the first subscription: %v", err)
		}
	})
}

// Ruling 24: after the connection was lost, and after the server ended a
// subscription, it is renewed, and what was watched counts as changed.
func TestResubscribe(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			var d diary
			s := subscribing(versions)
			c := connect(t, s, d.options())
			sub, err := c.Subscribe(t.Context(), "a:1")
			if err != nil {
				t.Fatal(err)
			}
			d.read()
			s.last().end()
			time.Sleep(time.Second) // of fake time
			got := d.read()
			slices.Sort(got)
			if !slices.Equal(got, []string{"a:1", "prompts", "resources", "tools"}) {
				t.Errorf("told %v after reconnecting", got)
			}
			if len(s.conns) != 2 || !slices.Equal(sub.URIs(), []string{"a:1"}) {
				t.Errorf("%d connections, watching %v", len(s.conns), sub.URIs())
			}
			notifyAll(s, c.Modern())
			if got := d.read(); !slices.Contains(got, "a:1") {
				t.Errorf("told %v on the new connection", got)
			}
		})
	})
	for name, end := range map[string]func(r *req) (any, error){
		"result": func(r *req) (any, error) {
			return raw(fmt.Sprintf(`{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, r.in.ID)), nil
		},
		"cancelled": func(r *req) (any, error) {
			_ = r.tell(mcp.NotifyCancelled, fmt.Sprintf(`{"requestId":%s}`, r.in.ID))
			return raw(fmt.Sprintf(`{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, r.in.ID)), nil
		},
		"busy": func(*req) (any, error) { return nil, jsonrpc.NewError(mcp.CodeShuttingDown, "later") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d diary
				n := 0
				s := &script{}
				s.on = map[string]func(*req) (any, error){mcp.MethodListen: func(r *req) (any, error) {
					n++
					if n > 3 {
						return listen(r)
					}
					_, _ = listen(r)
					return end(r)
				}}
				c := connect(t, s, &client.Options{OnResourceUpdated: d.options().OnResourceUpdated})
				sub, err := c.Subscribe(t.Context(), "a:1")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second) // of fake time
				if got := d.read(); n != 4 || len(got) != 3 || len(s.conns) != 1 {
					t.Errorf("%d listens, told %v, %d connections", n, got, len(s.conns))
				}
				if err := sub.Close(); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if got := s.got(mcp.NotifyCancelled); len(got) != 1 {
					t.Errorf("told the server %d times that it is over", len(got))
				}
			})
		})
	}
}

// notifyAll sends an update of a:1 on each open subscription.
func notifyAll(s *script, modernEra bool) {
	if !modernEra {
		notify(s, false, mcp.NotifyResourcesUpdated, "a:1")
		return
	}
	for _, m := range s.got(mcp.MethodListen) {
		_ = s.last().tell(context.Background(), mcp.NotifyResourcesUpdated, updated(m.ID, "a:1"))
	}
}

// SEC-RES-4 (the client's part): a flood of notices becomes as many calls of
// the handler as it can take, and holds nothing up.
func TestCoalescing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		s := subscribing([]string{newest})
		s.on = tool(func(*req) (any, error) { return raw(done), nil })
		o := d.options()
		gate := make(chan struct{})
		o.OnToolsChanged = func(context.Context) {
			<-gate
			d.Add("tools")
		}
		c := connect(t, s, o)
		notify(s, false, mcp.NotifyToolsListChanged, "")
		synctest.Wait() // the handler is at the gate
		for range 999 {
			notify(s, false, mcp.NotifyToolsListChanged, "")
		}
		synctest.Wait()
		if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil {
			t.Error(err)
		}
		close(gate)
		if got := d.read(); len(got) != 2 {
			t.Errorf("told %d times, want 2", len(got))
		}
	})
}

// Proves: SEC-CAP-1. Notices that the server did not declare are ignored.
func TestUndeclaredNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		s := &script{versions: []string{newest}, caps: `{"tools":{},"prompts":{},"resources":{}}`}
		connect(t, s, d.options())
		for _, m := range []string{mcp.NotifyToolsListChanged, mcp.NotifyPromptsListChanged, mcp.NotifyResourcesListChanged, mcp.NotifyResourcesUpdated} {
			notify(s, false, m, "a:1")
		}
		if got := d.read(); len(got) > 0 {
			t.Errorf("told %v", got)
		}
	})
}
