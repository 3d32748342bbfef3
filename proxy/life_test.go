package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A caller by hand sends the rounds of a request of the stateless revision itself.
type caller struct{ c *client.Client }

// byHand connects a caller that declares forms and answers none by itself.
func byHand(t *testing.T, h transport.Handler, who *principal.Principal) caller {
	t.Helper()
	c, err := client.Connect(t.Context(), mem.New(h, &mem.Options{Principal: who}), &client.Options{Versions: []string{v2607}, OnElicit: accept, Retries: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return caller{c}
}

// call sends one round. What is asked is in the second result.
func (h caller) call(ctx context.Context, tool string, answers mcp.InputResponses, state *string) (*mcp.CallToolResult, *mcp.InputRequiredResult, error) {
	var raw mcp.RawValue
	params := &mcp.CallToolParams{Name: tool}
	params.InputResponses, params.RequestState = answers, state
	o := &client.CallOptions{ResultTypes: []string{mcp.ResultInputRequired}}
	if err := h.c.Request(ctx, mcp.MethodToolsCall, params, &raw, o); err != nil {
		return nil, nil, err
	}
	asked := new(mcp.InputRequiredResult)
	if strings.Contains(string(raw), `"input_required"`) {
		return nil, asked, decode(raw, asked)
	}
	res := new(mcp.CallToolResult)
	return res, nil, decode(raw, res)
}

// yes accepts all that is asked.
func yes(asked *mcp.InputRequiredResult) mcp.InputResponses {
	out := make(mcp.InputResponses)
	for key := range asked.InputRequests {
		out[key] = mcp.RawValue(`{"action":"accept","content":{"sure":true}}`)
	}
	return out
}

// wantCode checks the code and the text of an error.
func wantCode(t *testing.T, err error, code int64, part string) {
	t.Helper()
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Message, part) {
		t.Errorf("got %v, want code %d and %q", err, code, part)
	}
}

// counting is a server with a handshake whose tool "form" asks, and counts the
// calls under way.
func counting(under *atomic.Int64) *server.Server {
	s := server.New("counting", "1", &server.Options{Logger: quiet, Limits: unlimited})
	s.Add(server.Tool("form", "", func(ctx context.Context, _ mcp.None) (string, error) {
		under.Add(1)
		defer under.Add(-1)
		a, err := server.Elicit[confirm](ctx, "Sure?")
		return string(a.Action), err
	}))
	return s
}

// A thousand callers who never answer leave nothing behind.
func TestAbandonedQuestions(t *testing.T) {
	for _, version := range upstreams {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var under atomic.Int64
				o := &proxy.Options{KeptTime: 10 * time.Second, Server: server.Options{Limits: unlimited}}
				p := connect(t, counting(&under), version, o)
				h := byHand(t, p.Server(), nil)
				for i := range 1000 {
					if _, q, err := h.call(t.Context(), "form", nil, nil); err != nil || q == nil {
						t.Fatalf("call %d: %v, %v", i, q, err)
					}
				}
				synctest.Wait()
				if n := proxy.Kept(p); version == v2511 && n > 16 {
					t.Errorf("%d calls are kept", n)
				}
				time.Sleep(time.Hour) // of fake time
				if n := under.Load(); n != 0 {
					t.Errorf("%d calls are under way upstream", n)
				}
				if n := proxy.Kept(p); n != 0 {
					t.Errorf("%d calls are kept", n)
				}
			})
		})
	}
}

// Calls that begin at the same time and ask wait for room, one after the other, and
// none is lost. If the callers never answer, all end.
func TestQuestionsWaitForRoom(t *testing.T) {
	const calls = 5
	for name, answered := range map[string]bool{"answered": true, "abandoned": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var under, accepted, refused atomic.Int64
				o := &proxy.Options{KeptTime: 30 * time.Second, MaxKeptPerPrincipal: 2, Server: server.Options{Limits: unlimited}}
				p := connect(t, counting(&under), v2511, o)
				var wg sync.WaitGroup
				for range calls {
					h := byHand(t, p.Server(), nil)
					wg.Go(func() {
						r, q, err := h.call(t.Context(), "form", nil, nil)
						if err != nil {
							wantCode(t, err, mcp.CodeInternalError, "MaxKeptPerPrincipal")
							refused.Add(1)
							return
						}
						time.Sleep(time.Second) // of fake time
						if !answered {
							return
						}
						// Of two calls of one caller either may be asked what the other one's tool wants to know.
						for q != nil {
							if r, q, err = h.call(t.Context(), "form", yes(q), q.RequestState); err != nil {
								break
							}
						}
						if got := text(t, r, err); got == "accept" {
							accepted.Add(1)
						}
					})
				}
				wg.Wait()
				if answered && accepted.Load() != calls || answered && refused.Load() > 0 {
					t.Errorf("%d calls accepted, %d refused", accepted.Load(), refused.Load())
				}
				time.Sleep(time.Hour) // of fake time
				if n := under.Load(); n != 0 || proxy.Kept(p) != 0 {
					t.Errorf("%d calls are under way upstream, %d are kept", n, proxy.Kept(p))
				}
			})
		})
	}
}

// Each question of a kept call ends with its time, upstream too, and the answer
// that comes too late gets a clear error.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under atomic.Int64
		p := connect(t, counting(&under), v2511, &proxy.Options{KeptTime: time.Minute})
		h := byHand(t, p.Server(), nil)
		_, q, err := h.call(t.Context(), "form", nil, nil)
		if err != nil || q == nil {
			t.Fatal(q, err)
		}
		time.Sleep(59 * time.Second) // of fake time
		if under.Load() != 1 {
			t.Error("ended too early")
		}
		time.Sleep(2 * time.Second) // of fake time
		if under.Load() != 0 {
			t.Error("the call goes on upstream")
		}
		_, _, err = h.call(t.Context(), "form", yes(q), q.RequestState)
		wantCode(t, err, mcp.CodeInvalidParams, "send the request again without requestState")
		if _, q, err := h.call(t.Context(), "form", nil, nil); err != nil || q == nil {
			t.Errorf("the next call: %v, %v", q, err)
		}
	})
}

// An answer that is sent twice is taken once; another principal's is refused.
func TestAnswerTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under atomic.Int64
		p := connect(t, counting(&under), v2511, nil)
		h := byHand(t, p.Server(), nil)
		other := byHand(t, p.Server(), &principal.Principal{Issuer: "https://as.example", Subject: "eve"})
		_, q, err := h.call(t.Context(), "form", nil, nil)
		if err != nil || q == nil {
			t.Fatal(q, err)
		}
		_, _, err = other.call(t.Context(), "form", yes(q), q.RequestState)
		wantCode(t, err, mcp.CodeInvalidParams, "requestState")
		var wg sync.WaitGroup
		var done, gone atomic.Int64
		for range 5 {
			wg.Go(func() {
				r, _, err := h.call(t.Context(), "form", yes(q), q.RequestState)
				if err == nil && text(t, r, err) == "accept" {
					done.Add(1)
					return
				}
				gone.Add(1)
				wantCode(t, err, mcp.CodeInvalidParams, "is not here")
			})
		}
		wg.Wait()
		if done.Load() != 1 || gone.Load() != 4 {
			t.Errorf("%d results, %d errors", done.Load(), gone.Load())
		}
		if proxy.Kept(p) != 0 || under.Load() != 0 {
			t.Error("the call is still there")
		}
	})
}

// A round that is sent to another replica gets a clear error; the rounds of a
// stateless upstream server go on there.
func TestReplicas(t *testing.T) {
	keys := [][]byte{[]byte("0123456789abcdef0123456789abcdef")}
	o := &proxy.Options{Server: server.Options{StateKeys: keys}}
	for _, version := range upstreams {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := server.New("upstream", "1", &server.Options{Logger: quiet, StateKeys: keys})
				runs := 0
				up.Add(server.Tool("form", "", func(ctx context.Context, _ mcp.None) (string, error) {
					n, err := server.Once(ctx, "n", func() (int, error) { runs++; return runs, nil })
					if err != nil {
						return "", err
					}
					a, err := server.Elicit[confirm](ctx, "Sure?")
					return fmt.Sprint(a.Action, n), err
				}))
				first := byHand(t, connect(t, up, version, o).Server(), nil)
				second := byHand(t, connect(t, up, version, o).Server(), nil)
				_, q, err := first.call(t.Context(), "form", nil, nil)
				if err != nil || q == nil {
					t.Fatal(q, err)
				}
				r, _, err := second.call(t.Context(), "form", yes(q), q.RequestState)
				if version == v2511 {
					wantCode(t, err, mcp.CodeInvalidParams, "another replica")
					return
				}
				if got := text(t, r, err); got != "accept1" {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// A dying upstream server ends the calls that wait for it, also those whose
// question is with a caller, and is connected to again.
func TestUpstreamDies(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up, _ := askingServer()
		d := &breaking{Dialer: mcptest.Dialer(t, up, "mem")}
		p, err := proxy.Connect(t.Context(), d, &proxy.Options{Logger: quiet, Client: client.Options{Versions: []string{version}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		o := answers()
		die := true
		o.OnElicit = func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			if die {
				die = false
				d.cut()
				time.Sleep(time.Second) // of fake time
			}
			return client.Accept(confirm{true})
		}
		c := join(t, p.Server(), caller, o)
		r, err := c.CallTool(t.Context(), "form", nil, nil)
		if version == v2607 { // the next round reaches the new connection
			if got := text(t, r, err); got != "accept" {
				t.Errorf("got %s", got)
			}
		} else {
			wantCode(t, err, mcp.CodeInternalError, "was lost before it answered")
		}
		time.Sleep(time.Minute) // of fake time
		r, err = c.CallTool(t.Context(), "form", nil, nil)
		if got := text(t, r, err); got != "accept" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// breaking is a dialer whose links can be cut.
type breaking struct {
	transport.Dialer
	mu   sync.Mutex
	last transport.Link
}

func (d *breaking) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	l, err := d.Dialer.Dial(ctx, in)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = l
	return l, err
}

func (d *breaking) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.last.Close(context.Background())
}

// Tools that change in the middle of a call do not disturb it.
func TestToolsChangeDuringCall(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up, _ := askingServer()
		p := connect(t, up, version, nil)
		o := answers()
		o.OnElicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			up.Add(server.Tool("new", "", func(context.Context, mcp.None) (string, error) { return "new", nil }))
			time.Sleep(time.Second) // of fake time
			return client.Accept(confirm{true})
		}
		c := join(t, p.Server(), caller, o)
		r, err := c.CallTool(t.Context(), "form", nil, nil)
		if got := text(t, r, err); got != "accept" {
			t.Errorf("got %s", got)
		}
		r, err = c.CallTool(t.Context(), "new", nil, nil)
		if got := text(t, r, err); got != "new" {
			t.Errorf("the new tool: %s", got)
		}
	})
}

// Close ends what is under way, and leaves no goroutine.
func TestClose(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		var under atomic.Int64
		p := connect(t, counting(&under), version, nil)
		h := byHand(t, p.Server(), nil)
		if _, q, err := h.call(t.Context(), "form", nil, nil); err != nil || q == nil {
			t.Fatal(q, err)
		}
		c := join(t, p.Server(), caller, &client.Options{OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error)
		go func() {
			_, err := c.CallTool(ctx, "form", nil, nil)
			done <- err
		}()
		synctest.Wait()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if n := proxy.Kept(p); n != 0 {
			t.Errorf("%d calls are kept", n)
		}
		if err := <-done; err == nil {
			t.Error("a call outlived the proxy")
		}
		synctest.Wait()
		if n := under.Load(); n != 0 {
			t.Errorf("%d calls are under way upstream", n)
		}
		_, err := c.CallTool(t.Context(), "form", nil, nil)
		wantCode(t, err, mcp.CodeInternalError, "the proxy was closed")
	})
}

// What a server logs before the handshake is over is in the proxy's log.
func TestLogBeforeConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Log
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }() // the client is gone by then
			say := func(format string, args ...any) {
				if _, err := fmt.Fprintf(theirs, format+"\n", args...); err != nil {
					t.Error(err)
				}
			}
			for lines := bufio.NewScanner(theirs); lines.Scan(); {
				m, err := jsonrpc.Parse(bytes.Clone(lines.Bytes()), jsonrpc.Limits{})
				switch {
				case err != nil:
					t.Error(err)
				case m.Method == mcp.MethodInitialize:
					say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"early"}}`)
					synctest.Wait() // for the proxy to log it
					say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"logging":{}},"serverInfo":{"name":"up","version":"1"}}}`, m.ID, v2511)
				case !m.ID.IsZero():
					say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
				}
			}
		}()
		p, err := proxy.Connect(t.Context(), stdio.Conn(ours), &proxy.Options{
			Logger: log.Logger(), Refresh: -1,
			Client: client.Options{Logger: log.Logger(), Versions: []string{v2511}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if text := log.String(); !strings.Contains(text, "server=unnamed level=error") || !strings.Contains(text, "early") || strings.Contains(text, "panic") {
			t.Errorf("the log is\n%s", text)
		}
	})
}
