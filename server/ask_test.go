package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// visit makes a tool that sends the person to a page, and its switch.
func visit(done func(context.Context) (bool, error)) server.Feature {
	return server.Tool("pay", "", func(ctx context.Context, _ none) (string, error) {
		ok, err := server.ElicitURL(ctx, "https://pay.example/7", "Please pay.", done)
		if err != nil {
			return "", err
		}
		if !ok {
			return "declined", nil
		}
		return "paid", nil
	})
}

// Accepting a URL is consent, not the end: in the stateless era the client is
// sent away and comes back, paced, without a new question, and such rounds do
// not count. Proves: FLOW-ELICIT-P, SEC-ELICIT-2. Ruling 18.
func TestElicitURLModern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elicitURLModern(t, 0)
	})
	synctest.Test(t, func(t *testing.T) {
		elicitURLModern(t, 5*time.Second) // less than a round
	})
}

func elicitURLModern(t *testing.T, most time.Duration) {
	t.Helper()
	paid := time.Now().Add(5 * time.Minute)
	o := unlimited()
	o.Limits.MaxCallTime = most
	s := newServer(o, visit(func(context.Context) (bool, error) { return time.Now().After(paid), nil }))
	l := join(t, s, v2607)
	res := l.asked(l.tool("pay", emptyBody))
	for _, q := range res.InputRequests {
		if got := string(q["params"]); !strings.Contains(got, `"url":"https://pay.example/7"`) || !strings.Contains(got, `"mode":"url"`) || strings.Contains(got, "elicitationId") {
			t.Errorf("asked %s", got)
		}
	}
	m := l.retry("pay", emptyBody, res, `{"action":"accept"}`)
	rounds := 0
	for ; rounds < 50 && strings.Contains(m.raw, mcp.ResultInputRequired); rounds++ {
		again := l.asked(m)
		if len(again.InputRequests) != 0 || again.RequestState == nil {
			t.Fatalf("asked anew: %s", m.raw)
		}
		m = l.retry("pay", emptyBody, again, accepted)
	}
	if got := l.text(m); got != "paid" || rounds < 10 {
		t.Errorf("%q after %d rounds", got, rounds)
	}
	if got := l.text(l.retry("pay", emptyBody, res, `{"action":"decline"}`)); got != "declined" {
		t.Errorf("got %q", got)
	}
}

// In the handshake era the call waits, and the client is told when it is done;
// the id of the question is the server's. Proves: FLOW-ELICIT-P. Ruling 18.
func TestElicitURLLegacy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paid := time.Now().Add(5 * time.Minute) // longer than any time limit
		s := newServer(unlimited(), visit(func(context.Context) (bool, error) { return time.Now().After(paid), nil }))
		l := join(t, s, v2511)
		id := l.start("tools/call", toolParams("pay", emptyBody))
		q := l.next()
		p := decode[struct {
			Mode          string `json:"mode"`
			URL           string `json:"url"`
			ElicitationID string `json:"elicitationId"`
		}](t, q.Params)
		if p.Mode != "url" || p.URL != "https://pay.example/7" || p.ElicitationID == "" {
			t.Errorf("asked %s", q.raw)
		}
		l.WriteLine(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"action":"accept"}}`)
		if m := l.note("notifications/elicitation/complete"); !strings.Contains(m.raw, p.ElicitationID) {
			t.Errorf("got %s", m.raw)
		}
		if got := l.text(l.wait(id)); got != "paid" {
			t.Errorf("got %q", got)
		}
	})
}

// What goes wrong behind the URL ends the call. Ruling 18.
func TestElicitURLFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(unlimited(), visit(func(context.Context) (bool, error) { return false, mcp.Errorf("card refused") }))
		l := join(t, s, v2607)
		res := l.asked(l.tool("pay", emptyBody))
		if got := l.isError(l.retry("pay", emptyBody, res, `{"action":"accept"}`)); got != "card refused" {
			t.Errorf("got %q", got)
		}
	})
}

// A question that nobody answers ends, and so does the wait for what a person
// does behind a URL: a handler is not kept for ever.
func TestMaxAskTime(t *testing.T) {
	for name, c := range map[string]struct{ limit, open time.Duration }{
		"default": {0, 24 * time.Hour}, "own": {time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := unlimited()
				o.Limits.MaxAskTime = c.limit
				s := newServer(o, visit(func(context.Context) (bool, error) { return false, nil }),
					server.Tool("ask", "", func(ctx context.Context, _ none) (string, error) {
						_, err := server.Elicit[sure](ctx, "Sure?")
						if !errors.Is(err, server.ErrAskFailed) {
							t.Errorf("the question ended with %v", err)
						}
						return "", err
					}))
				for _, tool := range []string{"ask", "pay"} {
					l := join(t, s, v2511)
					begun := time.Now()
					id := l.start("tools/call", toolParams(tool, emptyBody))
					if q := l.next(); tool == "pay" {
						l.WriteLine(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"action":"accept"}}`)
					}
					said := l.isError(l.wait(id))
					if took := time.Since(begun); took != c.open || !strings.Contains(said, "the client did not answer the question within "+c.open.String()+" (Limits.MaxAskTime)") {
						t.Errorf("%s: after %v: %s", tool, took, said)
					}
				}
			})
		})
	}
}

// Forms are flat; what cannot be asked is told to the author.
func TestElicitForms(t *testing.T) {
	var got error
	s := newServer(unlimited(), server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		_, got = server.Elicit[struct {
			Deep struct {
				X int `json:"x"`
			} `json:"deep"`
		}](ctx, "?")
		return "", got
	}), server.Tool("choice", "", func(ctx context.Context, _ none) (string, error) {
		a, err := server.Elicit[struct {
			Size  string `json:"size" enum:"small,large"`
			Count int    `json:"count" min:"1" max:"5"`
		}](ctx, "Which?")
		if err != nil {
			return "", err
		}
		return a.Value.Size, nil
	}))
	l := join(t, s, v2607)
	l.isError(l.tool("t", emptyBody))
	if got == nil || errors.Is(got, server.ErrInputPending) {
		t.Errorf("a form that is not flat: %v", got)
	}
	res := l.asked(l.tool("choice", emptyBody))
	for answer, ok := range map[string]bool{
		`{"size":"small","count":2}`: true,
		`{"size":"huge","count":2}`:  false,
		`{"size":"small","count":6}`: false,
		`{"size":"small"}`:           false,
	} {
		m := l.retry("choice", emptyBody, res, `{"action":"accept","content":`+answer+`}`)
		if (m.Error == nil) != ok {
			t.Errorf("%s gives %s", answer, m.raw)
		}
	}
}

// A form that is made at run time, with what no tag says, is asked and checked
// in every revision that can show it. Proves: FLOW-ELICIT-P.
func TestElicitFormAtRunTime(t *testing.T) {
	form := &mcp.ElicitSchema{Required: []string{"size"}, Properties: mcp.Properties{{Name: "size", Schema: mcp.PrimitiveSchema{
		Type: "string", Enum: []string{"s", "l"}, EnumNames: []string{"Small", "Large"},
	}}}}
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("forms", "1", o)
		s.Add(server.Tool("size", "", func(ctx context.Context, _ none) (string, error) {
			r, err := server.ElicitForm(ctx, "Which?", form)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s %s", r.Action, r.Content["size"]), nil
		}))
		return s
	}
	for content, want := range map[string]string{`"l"`: `accept "l"`, `"xl"`: "", `5`: ""} {
		o := &client.Options{OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			if names := r.Params.RequestedSchema.Properties[0].Schema.EnumNames; len(names) != 2 {
				t.Errorf("the titles are %v", names)
			}
			return client.Accept(map[string]mcp.RawValue{"size": mcp.RawValue(content)})
		}}
		mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
			got, err := client.Call[string](t.Context(), c, "size", nil)
			switch {
			case era.Version == v2024 || era.Version == v2503: // they have no forms
				if err == nil {
					t.Errorf("asked without forms: %q", got)
				}
			case want == "" && err == nil, want != "" && (err != nil || got != want):
				t.Errorf("%s gives %q, %v, want %q", content, got, err, want)
			}
		})
	}
	if _, err := server.ElicitForm(t.Context(), "?", form); !errors.Is(err, server.ErrNoCall) {
		t.Errorf("outside of a request: %v", err)
	}
}

// Once waits for another run of its key as long as its context lasts, begins
// nothing when that has ended, and waits for itself no longer than that.
func TestOnceWaits(t *testing.T) {
	why := errors.New("why")
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(unlimited(), server.Tool("waits", "", func(ctx context.Context, _ none) (string, error) {
				own, cancel := context.WithTimeoutCause(ctx, time.Second, why)
				defer cancel()
				release := make(chan struct{})
				var running sync.WaitGroup
				running.Go(func() {
					n, err := server.Once(ctx, "k", func() (int, error) {
						<-release
						return 1, nil
					})
					if n != 1 || err != nil {
						t.Errorf("the first gives %d, %v", n, err)
					}
				})
				synctest.Wait()
				running.Go(func() {
					n, err := server.Once(ctx, "k", func() (int, error) { return 2, nil })
					if n != 1 || err != nil {
						t.Errorf("who waits gives %d, %v", n, err)
					}
				})
				began := time.Now()
				if _, err := server.Once(own, "k", func() (int, error) { return 3, nil }); !errors.Is(err, why) || time.Since(began) != time.Second {
					t.Errorf("who waits for a second gives %v after %v", err, time.Since(began))
				}
				if _, err := server.Once(own, "other", func() (int, error) { return 4, nil }); !errors.Is(err, why) {
					t.Errorf("when its time is over: %v", err)
				}
				close(release)
				running.Wait()
				return "done", ctx.Err()
			}), server.Tool("nests", "", func(ctx context.Context, _ none) (string, error) {
				own, cancel := context.WithTimeoutCause(ctx, time.Second, why)
				defer cancel()
				n, err := server.Once(own, "a", func() (int, error) {
					if n, err := server.Once(ctx, "b", func() (int, error) { return 2, nil }); n != 2 || err != nil {
						t.Errorf("another key within gives %d, %v", n, err)
					}
					return server.Once(own, "a", func() (int, error) { return 1, nil })
				})
				if !errors.Is(err, why) {
					t.Errorf("the same key within gives %d, %v", n, err)
				}
				return "done", ctx.Err()
			}))
			l := join(t, s, v)
			for _, name := range []string{"waits", "nests"} {
				if got := l.text(l.tool(name, emptyBody)); got != "done" {
					t.Errorf("%s: %s", name, got)
				}
			}
		})
	})
}

// A client that takes nothing more keeps a handler that no longer waits for it
// for a second at most.
func TestAskAbandonedUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := make(chan time.Duration, 1)
		s := newServer(unlimited(), server.Tool("ask", "", func(ctx context.Context, _ none) (string, error) {
			own, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			began := time.Now()
			if _, err := server.Elicit[sure](own, "Sure?"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the question gives %v", err)
			}
			took <- time.Since(began)
			return "done", nil
		}))
		c := &deaf{}
		session, err := s.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + v2511 + `","capabilities":` + allCaps + `,"clientInfo":{"name":"c","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{}}}`,
		} {
			x := c.exchange(t, text)
			x.Out = c
			if run := session.Begin(t.Context(), x); run != nil {
				run()
			}
		}
		if d := <-took; d < time.Minute || d > time.Minute+time.Second {
			t.Errorf("that took %v", d)
		}
		session.Close(nil)
	})
}

// A deaf transport takes one message, and then nothing more.
type deaf struct {
	fakeConn
	sent int
}

func (d *deaf) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	if d.sent++; d.sent > 1 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return d.fakeConn.Send(ctx, m)
}
