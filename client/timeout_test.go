package client_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

// signIn is how long a person takes: longer than any time limit of a client.
const signIn = 2 * time.Minute

// A login is a RoundTripper that has a person sign in before the first request
// of a method goes on to next. Honest says that it tells so.
type login struct {
	next   http.RoundTripper
	method string
	honest bool
	dead   bool // afterwards nothing is answered

	mu   sync.Mutex
	done bool
}

func (l *login) RoundTrip(r *http.Request) (*http.Response, error) {
	if methodOf(r) != l.method {
		return l.next.RoundTrip(r)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done {
		if err := ask(r.Context(), l.honest); err != nil {
			return nil, err
		}
		l.done = true
	}
	if l.dead {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	return l.next.RoundTrip(r)
}

// ask has a person sign in.
func ask(ctx context.Context, honest bool) error {
	if honest {
		defer transport.PauseTimeouts(ctx)()
	}
	timer := time.NewTimer(signIn)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// methodOf is the method of the message that r carries.
func methodOf(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	m, _ := linktest.Read(&http.Request{Body: body}) // a message of ours
	return m.Method
}

// A dialer that signs in before it connects, but for the first time.
type loginDialer struct {
	transport.Dialer
	honest bool
	dials  int
}

func (d *loginDialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	if d.dials++; d.dials > 1 {
		if err := ask(ctx, d.honest); err != nil {
			return nil, err
		}
	}
	return d.Dialer.Dial(ctx, in)
}

// While a person signs in, nobody is slow: the time of the probe, of the
// handshake, of a call, of a subscription stands still, if whoever asks says
// so. Spec 2026-07-28, basic/patterns/cancellation.
func TestSignInStopsTheClock(t *testing.T) {
	connected := func(*testing.T, *client.Client) error { return nil }
	call := func(t *testing.T, c *client.Client) error {
		_, err := c.CallTool(t.Context(), "t", nil, nil)
		return err
	}
	subscribe := func(t *testing.T, c *client.Client) error {
		_, err := c.Subscribe(t.Context(), "a:b")
		return err
	}
	for _, test := range []struct {
		method string
		old    bool
		do     func(*testing.T, *client.Client) error
	}{
		{mcp.MethodDiscover, false, connected},
		{mcp.MethodDiscover, true, connected},
		{mcp.MethodInitialize, true, connected},
		{mcp.NotifyInitialized, true, connected},
		{mcp.MethodToolsCall, false, call},
		{mcp.MethodToolsCall, true, call},
		{mcp.MethodListen, false, subscribe},
		{mcp.MethodResourcesSubscribe, true, subscribe},
	} {
		for _, honest := range []bool{true, false} {
			if test.method == mcp.MethodDiscover && test.old && !honest {
				continue // a probe that takes long says enough of an old server
			}
			synctest.Test(t, func(t *testing.T) {
				s := &site{old: test.old, on: map[string]func(*http.Request, string) *http.Response{
					mcp.MethodListen:             func(r *http.Request, id string) *http.Response { return listening(r, id, make(chan struct{})) },
					mcp.MethodResourcesSubscribe: func(_ *http.Request, id string) *http.Response { return result(id, `{}`) },
				}}
				d := &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: &login{next: s, method: test.method, honest: honest}}}
				start := time.Now()
				c, err := client.Connect(t.Context(), d, &client.Options{Eras: client.NewEraMemory(), OnResourceUpdated: func(context.Context, string) {}})
				if err == nil {
					defer c.Close()
					err = test.do(t, c)
				}
				if took := time.Since(start); honest && (err != nil || took < signIn) || !honest && !errors.Is(err, client.ErrTimeout) {
					t.Errorf("%s, old %t, said so %t: %v after %v", test.method, test.old, honest, err, took)
				}
			})
		}
	}
}

// After a person has signed in the server has as long as ever, and no longer;
// and other calls have their own time.
func TestSignInIsNoExcuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{on: map[string]func(*http.Request, string) *http.Response{
			mcp.MethodResourcesRead: func(*http.Request, string) *http.Response { return nil },
		}}
		d := &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: &login{next: s, method: mcp.MethodToolsCall, honest: true, dead: true}}}
		c := dial(t, d, &client.Options{Eras: client.NewEraMemory()})
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.CallTool(t.Context(), "t", nil, nil); !errors.Is(err, client.ErrTimeout) || time.Since(start) != signIn+time.Minute {
				t.Errorf("the call ended after %v: %v", time.Since(start), err)
			}
		})
		if _, err := c.ReadResource(t.Context(), "a:b", nil); !errors.Is(err, client.ErrTimeout) || time.Since(start) != time.Minute {
			t.Errorf("another call ended after %v: %v", time.Since(start), err)
		}
		wg.Wait()
	})
}

// All calls wait for a connection that a person has to sign in for.
func TestSignInToReconnect(t *testing.T) {
	for _, honest := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{on: tool(func(*req) (any, error) { return raw(done), nil })}
			c := dial(t, &loginDialer{Dialer: mem.New(s, &mem.Options{Principal: principal.Local}), honest: honest}, nil)
			s.last().end()
			synctest.Wait()
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					if _, err := c.CallTool(t.Context(), "t", nil, nil); honest != (err == nil) || !honest && !errors.Is(err, client.ErrTimeout) {
						t.Errorf("said so %t: %v", honest, err)
					}
				})
			}
			wg.Wait()
		})
	}
}

// Around a connection that is made for somebody's call, that one's time stands
// still too.
func TestSignInStopsClocksAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		around := new(tally)
		ctx := context.WithValue(t.Context(), transport.PauserKey{}, around)
		d := &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: &login{next: &site{}, method: mcp.MethodDiscover, honest: true}}}
		c, err := client.Connect(ctx, d, &client.Options{Eras: client.NewEraMemory()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if around.paused != 1 || around.resumed != 1 {
			t.Errorf("paused %d times, resumed %d times, want 1", around.paused, around.resumed)
		}
	})
}

// A tally is a clock that counts.
type tally struct{ paused, resumed int }

func (c *tally) Pause()  { c.paused++ }
func (c *tally) Resume() { c.resumed++ }

// Times that mean "no limit" are none: the longest, and negative ones.
func TestNoLimit(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for name, test := range map[string]struct {
		o     client.Options
		call  client.CallOptions
		takes time.Duration
		want  time.Duration // when it ends in ErrTimeout; 0: never
	}{
		"longest":             {client.Options{CallTimeout: longest, MaxCallTime: longest}, client.CallOptions{}, 1000 * time.Hour, 0},
		"longest of a call":   {client.Options{}, client.CallOptions{Timeout: longest}, 1000 * time.Hour, 0},
		"longest silence":     {client.Options{CallTimeout: longest}, client.CallOptions{}, time.Hour, 10 * time.Minute},
		"negative":            {client.Options{CallTimeout: -1, MaxCallTime: -1}, client.CallOptions{}, 1000 * time.Hour, 0},
		"negative silence":    {client.Options{CallTimeout: -1}, client.CallOptions{}, time.Hour, 10 * time.Minute},
		"negative in all":     {client.Options{MaxCallTime: -1}, client.CallOptions{}, time.Hour, time.Minute},
		"own, no time in all": {client.Options{MaxCallTime: -1}, client.CallOptions{Timeout: time.Hour}, 2 * time.Hour, time.Hour},
		"NoTimeout":           {client.Options{}, client.CallOptions{NoTimeout: true}, 1000 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			eras(t, func(t *testing.T, versions []string) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{versions: versions, on: tool(func(r *req) (any, error) {
						select {
						case <-time.After(test.takes):
						case <-r.ctx.Done():
						}
						return raw(done), nil
					})}
					test.o.Versions = versions
					c := connect(t, s, &test.o)
					start := time.Now()
					_, err := c.CallTool(t.Context(), "t", nil, &test.call)
					if took := time.Since(start); errors.Is(err, client.ErrTimeout) != (test.want > 0) || test.want == 0 && err != nil || took != cmp.Or(test.want, test.takes) {
						t.Errorf("error %v after %v, want the end after %v", err, took, cmp.Or(test.want, test.takes))
					}
				})
			})
		})
	}
}
