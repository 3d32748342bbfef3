package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// listen opens a subscription, checks its acknowledgement, and returns its id.
func (l *line) listen(filter, ack string) string {
	l.t.Helper()
	id := l.start("subscriptions/listen", fmt.Sprintf(`{"notifications":%s}`, filter))
	m := l.note("notifications/subscriptions/acknowledged")
	got := decode[struct {
		Meta          map[string]int `json:"_meta"`
		Notifications any            `json:"notifications"`
	}](l.t, m.Params)
	if d := cmp.Diff(decode[any](l.t, mcp.RawValue(ack)), got.Notifications); d != "" {
		l.t.Errorf("acknowledged: %s", d)
	}
	if fmt.Sprint(got.Meta[mcp.MetaSubscriptionID]) != id {
		l.t.Errorf("the acknowledgement of %s is tagged %v", id, got.Meta)
	}
	return id
}

func (l *line) cancel(id string) {
	l.t.Helper()
	l.WriteLine(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id))
}

// Every kind of change reaches the sessions of the handshake era, and the
// subscriptions that asked for it. Proves: FLOW-LIST-CHANGED, FLOW-SUB.
func TestChanges(t *testing.T) {
	each(t, versions, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(nil, echo(), review(), server.Text("test:a", "a", ""), server.Text("test:b", "b", ""))
			l := join(t, s, v)
			tag := ""
			if l.modern() {
				filter := `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["test:a"]}`
				tag = `{"io.modelcontextprotocol/subscriptionId":` + l.listen(filter, filter) + `}`
			} else {
				l.result(l.call("resources/subscribe", `{"uri":"test:a"}`))
			}
			for _, c := range []struct {
				change func()
				method string
			}{
				{func() { s.Add(give("x", "")) }, "notifications/tools/list_changed"},
				{func() { s.RemoveTools("x") }, "notifications/tools/list_changed"},
				{func() { s.Add(server.Prompt("x", "", func(context.Context, none) (string, error) { return "", nil })) }, "notifications/prompts/list_changed"},
				{func() { s.RemovePrompts("x") }, "notifications/prompts/list_changed"},
				{func() { s.Add(server.Text("test:x", "x", "")) }, "notifications/resources/list_changed"},
				{func() { s.RemoveResources("test:x") }, "notifications/resources/list_changed"},
				{func() { s.ResourceUpdated("test:a") }, "notifications/resources/updated"},
			} {
				c.change()
				m := l.note(c.method)
				if tag != "" && !strings.Contains(m.raw, `"_meta":`+tag) || tag == "" && strings.Contains(m.raw, "_meta") {
					t.Errorf("tag of %s", m.raw)
				}
			}
			s.ResourceUpdated("test:b") // nobody subscribed
			l.Silent()
		})
	})
}

// Only what was asked for, exists and may be read is acknowledged; nothing is
// sent before the acknowledgement (G8). Rulings 24 and 25.
func TestListenFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil, echo(), server.Text("test:a", "a", ""), server.Text("test:hidden", "h", ""))
		s.Visible(func(_ context.Context, it server.Item) bool { return it.Name != "test:hidden" })
		l := join(t, s, v2607)
		l.listen(`{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["test:a","test:a","test:hidden","test:nosuch"],"nosuch":true}`,
			`{"toolsListChanged":true,"resourceSubscriptions":["test:a"]}`)
		l.listen(`{}`, `{}`)
		s.Add(server.Text("test:nosuch", "n", ""))
		s.ResourceUpdated("test:hidden")
		s.ResourceUpdated("test:nosuch") // was not there when it was asked for
		l.Silent()
		l.fails(l.call("subscriptions/listen", `{}`), mcp.CodeInvalidParams)
		l.fails(l.call("subscriptions/listen", `{"notifications":{"toolsListChanged":"yes"}}`), mcp.CodeInvalidParams)
		l.fails(l.call("subscriptions/listen", `{"notifications":[]}`), mcp.CodeInvalidParams)
	})
}

// Two subscriptions on one connection live apart: each is tagged with its own
// id, one ends without the other, and calls go on beside them (G8, M1).
// Proves: FLOW-SUB, FLOW-CANCEL.
func TestTwoListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil, echo(), server.Text("test:a", "a", ""))
		l := join(t, s, v2607)
		first := l.listen(`{"toolsListChanged":true}`, `{"toolsListChanged":true}`)
		second := l.listen(`{"toolsListChanged":true,"resourceSubscriptions":["test:a"]}`, `{"toolsListChanged":true,"resourceSubscriptions":["test:a"]}`)
		s.Add(give("x", ""))
		seen := ""
		for range 2 {
			m := l.note("notifications/tools/list_changed")
			seen += m.raw
		}
		for _, id := range []string{first, second} {
			if !strings.Contains(seen, `"io.modelcontextprotocol/subscriptionId":`+id) {
				t.Errorf("no notice for %s: %s", id, seen)
			}
		}
		l.cancel(second)
		l.Silent() // no answer to what was cancelled
		s.ResourceUpdated("test:a")
		s.Add(give("y", ""))
		if m := l.note("notifications/tools/list_changed"); !strings.Contains(m.raw, `subscriptionId":`+first) {
			t.Errorf("after cancelling the second: %s", m.raw)
		}
		if got := l.text(l.tool("echo", `{"text":"hi"}`)); got != "hi" {
			t.Errorf("beside a subscription: %q", got)
		}
		l.Silent()
	})
}

// Subscriptions are bounded per caller and per stream; ending one makes room.
// Proves: SEC-RES-4, SEC-DOS-1. Ruling 26.
func TestSubscriptionLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := unlimited()
		o.Limits.MaxListens, o.Limits.MaxSubscriptions = 2, 2
		s := newServer(o, server.Text("test:a", "a", ""), server.Text("test:b", "b", ""), server.Text("test:c", "c", ""))
		l, other := joinAs(t, s, v2607, ada), joinAs(t, s, v2607, ada)
		l.listen(`{}`, `{}`)
		id := other.listen(`{}`, `{}`) // counted for the caller, not the connection
		m := l.call("subscriptions/listen", `{"notifications":{}}`)
		l.fails(m, mcp.CodeTooManyInFlight)
		if got := decode[mcp.RetryData](t, m.Error.Data); got.RetryAfterMs <= 0 {
			t.Errorf("retry data %s", m.Error.Data)
		}
		joinAs(t, s, v2607, bob).listen(`{}`, `{}`)
		other.cancel(id)
		synctest.Wait()
		l.listen(`{}`, `{}`)
		l.fails(l.call("subscriptions/listen", `{"notifications":{"resourceSubscriptions":["test:a","test:b","test:c"]}}`), mcp.CodeTooManyInFlight)
	})
	synctest.Test(t, func(t *testing.T) {
		o := unlimited()
		o.Limits.MaxSubscriptions = 2
		s := newServer(o, server.Text("test:a", "a", ""), server.Text("test:b", "b", ""), server.Text("test:c", "c", ""))
		l := join(t, s, v2607)
		l.fails(l.call("subscriptions/listen", `{"notifications":{"resourceSubscriptions":["test:a","test:b","test:c"]}}`), mcp.CodeInvalidParams)
		old := join(t, s, v2511)
		for _, uri := range []string{"test:a", "test:b", "test:a"} { // again is no more
			old.result(old.call("resources/subscribe", fmt.Sprintf(`{"uri":%q}`, uri)))
		}
		old.fails(old.call("resources/subscribe", `{"uri":"test:c"}`), mcp.CodeInvalidParams)
		old.result(old.call("resources/unsubscribe", `{"uri":"test:a"}`))
		old.result(old.call("resources/subscribe", `{"uri":"test:c"}`))
	})
}

// What a subscription says is kept while it lasts, and bounded: 64 KiB and one
// more for each resource that it may watch.
//
// Proves: SEC-DOS-1.
func TestLargeListen(t *testing.T) {
	for limit, most := range map[int]int{0: 320 << 10, 16: 80 << 10, server.Unlimited: 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			o := unlimited()
			o.Limits.MaxSubscriptions = limit
			l := joinAs(t, newServer(o, server.Text("test:a", "a", "")), v2607, ada)
			padded := func(n int) string { return fmt.Sprintf(`{"notifications":{},"x":%q}`, strings.Repeat("x", n)) }
			l.start("subscriptions/listen", padded(most-1<<10))
			l.note(mcp.NotifySubscriptionsAcknowledged)
			if limit < 0 {
				return
			}
			m := l.call("subscriptions/listen", padded(most))
			l.fails(m, mcp.CodeInvalidParams)
			if want := fmt.Sprintf("and may have %d", most); !strings.Contains(m.Error.Message, want) {
				t.Errorf("refused with %s, want %q", m.Error.Message, want)
			}
		})
	}
}

// Many changes are merged and paced, none is lost. Proves: SEC-RES-4.
func TestChangeRate(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			o := quiet()
			o.Limits.ChangeRate = 5
			s := newServer(o)
			uris := []string{}
			for i := range 30 {
				uris = append(uris, fmt.Sprintf("test:%02d", i))
				s.Add(server.Text(uris[i], "x", ""))
			}
			l := join(t, s, v)
			list := string(mustJSON(t, uris))
			if l.modern() {
				l.listen(`{"resourceSubscriptions":`+list+`}`, `{"resourceSubscriptions":`+list+`}`)
			} else {
				for _, u := range uris {
					l.result(l.call("resources/subscribe", fmt.Sprintf(`{"uri":%q}`, u)))
				}
			}
			time.Sleep(time.Minute) // whatever was used of the rate is there again
			begun := time.Now()
			for range 10 {
				for _, u := range uris {
					s.ResourceUpdated(u)
				}
			}
			seen := make(map[string]int)
			for len(seen) < len(uris) {
				seen[string(l.note("notifications/resources/updated").Params)]++
			}
			if took := time.Since(begun); took < 4*time.Second || took > 7*time.Second {
				t.Errorf("30 notices at 5 per second took %v", took)
			}
			for p, n := range seen {
				if n > 2 {
					t.Errorf("%s was told %d times", p, n)
				}
			}
		})
	})
}

// A watcher runs while somebody is subscribed, once for all of them.
// Proves: FLOW-SUB. Ruling 24.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, started := 0, 0
		poke := make(chan func(), 1)
		watch := func(ctx context.Context, changed func()) {
			running++
			started++
			poke <- changed
			<-ctx.Done()
			running--
		}
		s := newServer(nil,
			server.Text("test:a", "a", "").With(server.ResourceOptions{Watch: watch}),
			server.Template("tpl:{v}", "t", func(context.Context, struct {
				V string `uri:"v"`
			},
			) (string, error) {
				return "x", nil
			}).With(server.TemplateOptions{Watch: func(ctx context.Context, uri string, changed func()) {
				if uri == "tpl:1" {
					changed()
				}
				<-ctx.Done()
			}}))
		synctest.Wait()
		if started != 0 {
			t.Error("watched before anybody subscribed")
		}
		one, two := join(t, s, v2607), join(t, s, v2511)
		id := one.listen(`{"resourceSubscriptions":["test:a"]}`, `{"resourceSubscriptions":["test:a"]}`)
		two.result(two.call("resources/subscribe", `{"uri":"test:a"}`))
		(<-poke)()
		one.note("notifications/resources/updated")
		two.note("notifications/resources/updated")
		one.cancel(id)
		synctest.Wait()
		if running != 1 || started != 1 {
			t.Errorf("%d running, %d started", running, started)
		}
		two.Close() // the end of a session ends its subscriptions
		synctest.Wait()
		if running != 0 {
			t.Errorf("%d running after the end", running)
		}
		one.listen(`{"resourceSubscriptions":["tpl:1"]}`, `{"resourceSubscriptions":["tpl:1"]}`)
		if m := one.note("notifications/resources/updated"); !strings.Contains(m.raw, `"uri":"tpl:1"`) {
			t.Errorf("got %s", m.raw)
		}
	})
}

// The server ends a subscription by telling it twice over where all share one
// channel: cancelled, then the tagged result. Ruling 24. Proves: FLOW-SHUTDOWN.
func TestListenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil, echo())
		l := join(t, s, v2607)
		id := l.listen(`{"toolsListChanged":true}`, `{"toolsListChanged":true}`)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m := l.note("notifications/cancelled"); !strings.Contains(m.raw, `"requestId":`+id) {
			t.Errorf("got %s", m.raw)
		}
		m := l.wait(id)
		got := l.toolResult(m)
		if got.ResultType != mcp.ResultComplete || string(got.Meta[mcp.MetaSubscriptionID]) != id {
			t.Errorf("got %s", m.raw)
		}
	})
}

// What cannot be subscribed to is an error in the handshake era, and
// subscriptions/listen is not there. Ruling 24.
func TestSubscribeErrors(t *testing.T) {
	s := newServer(nil, server.Text("test:a", "a", ""), server.Text("test:hidden", "a", ""))
	s.Visible(func(_ context.Context, it server.Item) bool { return it.Name != "test:hidden" })
	l := join(t, s, v2511)
	l.fails(l.call("resources/subscribe", `{"uri":"test:nosuch"}`), mcp.CodeResourceNotFoundLegacy)
	l.fails(l.call("resources/subscribe", `{"uri":"test:hidden"}`), mcp.CodeResourceNotFoundLegacy)
	l.fails(l.call("resources/subscribe", `{}`), mcp.CodeInvalidParams)
	l.result(l.call("resources/unsubscribe", `{"uri":"test:never"}`))
	l.fails(l.call("subscriptions/listen", `{"notifications":{}}`), mcp.CodeMethodNotFound)
	modern := join(t, s, v2607)
	modern.fails(modern.call("resources/subscribe", `{"uri":"test:a"}`), mcp.CodeMethodNotFound)
}

// Mistakes in watchers and rules are logged, and the server lives.
func TestWatchPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text logtest.Log
		broken := false
		s := newServer(&server.Options{Logger: text.Logger()}, echo(), server.Text("test:b", "b", ""),
			server.Text("test:a", "a", "").With(server.ResourceOptions{Watch: func(context.Context, func()) { panic("watcher") }}))
		s.Visible(func(context.Context, server.Item) bool {
			if broken {
				panic("rule")
			}
			return true
		})
		l := join(t, s, v2607)
		l.listen(`{"resourceSubscriptions":["test:a","test:b"]}`, `{"resourceSubscriptions":["test:a","test:b"]}`)
		synctest.Wait()
		broken = true
		s.ResourceUpdated("test:b")
		l.Silent()
		broken = false
		s.ResourceUpdated("test:b")
		l.note("notifications/resources/updated")
		for _, what := range []string{"panic=watcher", "panic=rule"} {
			if !strings.Contains(text.String(), what) {
				t.Errorf("no %s in the log", what)
			}
		}
	})
}

// A watcher that panicked runs again after a pause, for those who are subscribed,
// and one that returned runs again for the next subscriber.
func TestWatchAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		s := newServer(nil, server.Text("test:a", "a", "").With(server.ResourceOptions{Watch: func(ctx context.Context, changed func()) {
			switch runs.Add(1) {
			case 1, 2:
				panic("watcher")
			case 3:
				changed()
				return
			}
			changed()
			<-ctx.Done()
		}}))
		first := join(t, s, v2607)
		first.listen(`{"resourceSubscriptions":["test:a"]}`, `{"resourceSubscriptions":["test:a"]}`)
		begun := time.Now()
		first.note("notifications/resources/updated")
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("the third run was after %v, want pauses of 1 s and 2 s", took)
		}
		second := join(t, s, v2607)
		second.listen(`{"resourceSubscriptions":["test:a"]}`, `{"resourceSubscriptions":["test:a"]}`)
		second.note("notifications/resources/updated")
		first.note("notifications/resources/updated")
		time.Sleep(time.Hour)
		if n := runs.Load(); n != 4 {
			t.Errorf("it ran %d times", n)
		}
	})
}

// A cancelled subscription hears of no change that a later message makes, also
// while its end is still under way. Proves: FLOW-CANCEL.
func TestChangeAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *server.Server
		extra := give("extra", "")
		toggle := server.Tool("toggle", "", func(context.Context, none) (string, error) {
			if !s.RemoveTools("extra") {
				s.Add(extra)
			}
			return "", nil
		})
		s = newServer(unlimited(), toggle)
		l := join(t, s, v2607)
		for range 500 {
			id := l.listen(`{"toolsListChanged":true}`, `{"toolsListChanged":true}`)
			l.cancel(id)
			call := l.start("tools/call", toolParams("toggle", "{}"))
			if m := l.next(); m.Method != "" {
				t.Fatalf("after the cancellation came %s, before the answer to %s", m.raw, call)
			}
		}
		l.Silent()
	})
}

// A server hears of subscriptions to its resources before they are answered, with the URIs that it
// knows, wherever it is mounted, and of their end. What nobody may see is not told.
func TestOnSubscribe(t *testing.T) {
	each(t, versions, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			var told logtest.List
			inner := newServer(nil, server.Text("test:a", "a", ""), server.Text("ui://page", "page", ""), server.Text("test:hidden", "hidden", ""))
			inner.Visible(func(_ context.Context, it server.Item) bool { return it.Name != "test:hidden" })
			inner.OnSubscribe(func(_ context.Context, uris []string) func() {
				time.Sleep(time.Second) // of fake time
				told.Add("begun " + strings.Join(uris, " "))
				return func() { told.Add("ended " + strings.Join(uris, " ")) }
			})
			middle, top := newServer(nil), newServer(nil, server.Text("test:own", "own", ""))
			top.OnSubscribe(func(_ context.Context, uris []string) func() {
				told.Add("top " + strings.Join(uris, " "))
				return nil
			})
			middle.Mount("in", inner)
			top.Mount("mid", middle)
			l := join(t, top, v)
			var want []string
			if l.modern() {
				id := l.listen(`{"resourceSubscriptions":["mid+in+test:a","ui://mid+in+page","mid+in+test:hidden","test:none"]}`,
					`{"resourceSubscriptions":["mid+in+test:a","ui://mid+in+page"]}`)
				want = []string{"begun test:a ui://page", "top mid+in+test:a ui://mid+in+page"}
				if got := told.Take(); !sameElements(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
				l.cancel(id)
				want = []string{"ended test:a ui://page"}
			} else {
				l.result(l.call("resources/subscribe", `{"uri":"mid+in+test:a"}`))
				l.fails(l.call("resources/subscribe", `{"uri":"mid+in+test:hidden"}`), mcp.CodeResourceNotFoundLegacy)
				want = []string{"begun test:a", "ended test:a", "top mid+in+test:a"}
			}
			synctest.Wait()
			if got := told.Take(); !sameElements(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	})
}

// sameElements reports whether two lists have the same elements, in any order.
func sameElements(a, b []string) bool {
	return cmp.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Several functions may hear of subscriptions. A panic of one, before or after the answer, keeps none of
// the others from its end, and a subscription that was refused is none.
func TestOnSubscribePanics(t *testing.T) {
	each(t, versions, func(t *testing.T, v string) {
		for _, when := range []string{"begin", "end"} {
			synctest.Test(t, func(t *testing.T) {
				var told logtest.List
				s := newServer(nil, server.Text("test:a", "a", ""))
				for _, name := range []string{"1", "2", "3"} {
					s.OnSubscribe(func(context.Context, []string) func() {
						if when == "begin" && name == "2" {
							panic("begin")
						}
						told.Add("begun " + name)
						return func() {
							told.Add("ended " + name)
							if when == "end" {
								panic("end of " + name)
							}
						}
					})
				}
				l := join(t, s, v)
				var reply string
				switch {
				case !l.modern():
					reply = string(l.call("resources/subscribe", `{"uri":"test:a"}`).raw)
				case when == "begin":
					reply = string(l.call("subscriptions/listen", `{"notifications":{"resourceSubscriptions":["test:a"]}}`).raw)
				default:
					l.cancel(l.listen(`{"resourceSubscriptions":["test:a"]}`, `{"resourceSubscriptions":["test:a"]}`))
				}
				synctest.Wait()
				if reply != "" && !strings.Contains(reply, `"error"`) {
					t.Errorf("%s: answered with %s", when, reply)
				}
				want := []string{"begun 1", "ended 1"}
				if when == "end" {
					want = []string{"begun 1", "begun 2", "begun 3", "ended 3", "ended 2", "ended 1"}
				}
				if got := told.Take(); !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q", when, got, want)
				}
				s.ResourceUpdated("test:a")
				synctest.Wait()
				l.Silent()
			})
		}
	})
}
