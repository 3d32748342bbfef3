package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/server"
)

// texts are n resources.
func texts(n int) []server.Feature {
	list := make([]server.Feature, n)
	for i := range list {
		list[i] = server.Text(fmt.Sprintf("test:%d", i), "a text", "")
	}
	return list
}

// To add a feature costs the same however many there are, in one call and one
// by one.
func TestAddIsLinear(t *testing.T) {
	few, many := texts(1000), texts(8000)
	for name, add := range map[string]func(*server.Server, []server.Feature){
		"at once": func(s *server.Server, list []server.Feature) { s.Add(list...) },
		"singly": func(s *server.Server, list []server.Feature) {
			for _, f := range list {
				s.Add(f)
			}
		},
	} {
		each := func(list []server.Feature) float64 {
			_, size := costOf(1, func() { add(newServer(nil), list) })
			return size / float64(len(list))
		}
		small, large := each(few), each(many)
		t.Logf("%s: %.0f bytes each of 1,000, %.0f of 8,000", name, small, large)
		if large > 1.5*small {
			t.Errorf("%s: %.0f bytes each of 1,000 features, %.0f of 8,000", name, small, large)
		}
	}
}

// Two equal names in one call are a mistake, of which nothing is offered; in
// two calls the second replaces the first.
func TestAddTwice(t *testing.T) {
	for name, c := range map[string]struct{ one, two server.Feature }{
		`the tool "a"`:          {give("a", "1"), give("a", "2")},
		`the prompt "review"`:   {review(), review()},
		`the resource "test:a"`: {server.Text("test:a", "", "1"), server.Text("test:a", "", "2")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(nil, echo())
				func() {
					defer func() {
						if v := fmt.Sprint(recover()); !strings.Contains(v, name) || !strings.Contains(v, "two calls") {
							t.Errorf("panics with %s", v)
						}
					}()
					s.Add(give("other", "x"), c.one, c.two)
				}()
				l := join(t, s, v2607)
				if got := string(l.result(l.call("tools/list", emptyBody))); strings.Contains(got, "other") {
					t.Errorf("a part was offered: %s", got)
				}
				s.Add(c.one)
				s.Add(c.two)
			})
		})
	}
	s := newServer(nil, give("a", "1"))
	s.Add(give("a", "2"))
	if got := string(oneCall(t, s, "a")); !strings.Contains(got, `"2"`) {
		t.Errorf("the first was kept: %s", got)
	}
}

// oneCall calls a tool, and gives the message that answers.
func oneCall(t *testing.T, s *server.Server, name string) []byte {
	t.Helper()
	out := new(sink)
	l := &line{version: v2607, caps: emptyBody}
	s.Serve(t.Context(), out.exchange(t, []byte(l.request("1", "tools/call", toolParams(name, emptyBody)))))
	return out.buffer
}

// Lists are read while features come and go, and are never torn: each has what
// was there all the time, in order.
func TestReadWhileAdding(t *testing.T) {
	o := unlimited()
	o.Limits.PageSize = server.Unlimited
	s := newServer(o, give("a", "1"), give("z", "1"))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 200 {
				name := fmt.Sprintf("m%d-%d", i, j)
				s.Add(give(name, "x"))
				if j%2 == 0 && !s.RemoveTools(name) {
					t.Errorf("%s was not there", name)
				}
			}
		})
		wg.Go(func() {
			l := &line{version: v2607, caps: emptyBody}
			text := []byte(l.request("1", "tools/list", emptyBody))
			for range 200 {
				out := new(sink)
				s.Serve(context.Background(), out.exchange(t, text))
				var m struct {
					Result struct {
						Tools []struct {
							Name string `json:"name"`
						} `json:"tools"`
					} `json:"result"`
				}
				if err := wire.Decode(out.buffer, &m); err != nil {
					t.Error(err)
					return
				}
				tools := m.Result.Tools
				if len(tools) < 2 || tools[0].Name != "a" || tools[len(tools)-1].Name != "z" {
					t.Errorf("the list is %s", out.buffer)
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		for j := 1; j < 200; j += 2 {
			if !s.RemoveTools(fmt.Sprintf("m%d-%d", i, j)) {
				t.Errorf("tool %d of %d was lost", j, i)
			}
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	list := texts(8000)
	b.Run("at once", func(b *testing.B) {
		for b.Loop() {
			newServer(nil).Add(list...)
		}
	})
	b.Run("singly", func(b *testing.B) {
		for b.Loop() {
			s := newServer(nil)
			for _, f := range list {
				s.Add(f)
			}
		}
	})
}
