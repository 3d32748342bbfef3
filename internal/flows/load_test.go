package flows_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// Ruling 30: an honest client never meets the limits: 200 calls at once and
// 1,000 one after the other, by every transport and in every revision.
func TestHonestCalls(t *testing.T) {
	build := with(server.Tool("sum", "Adds.", sum))
	eachServer(t, build, func(t *testing.T, _ mcptest.Era, join joiner) {
		_, c := join(nil)
		args := map[string]int{"a": 1, "b": 2}
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if _, err := c.CallTool(t.Context(), "sum", args, nil); err != nil {
					t.Errorf("one of 200 at once: %v", err)
				}
			})
		}
		wg.Wait()
		for i := range 1000 {
			if _, err := c.CallTool(t.Context(), "sum", args, nil); err != nil {
				t.Fatalf("call %d of 1,000: %v", i, err)
			}
		}
	})
}

// Ruling 30: a hundred clients behind one address connect at once, list what
// there is three times, and call.
func TestHonestClients(t *testing.T) {
	for _, version := range []string{newest, autumn, june} {
		t.Run(version, func(t *testing.T) {
			mcptest.NoLeaks(t)
			s := with(server.Tool("sum", "Adds.", sum), server.Text("x:a", "a", "A"))(t, quiet())
			dialer := mcptest.Dialer(t, s, "streamable")
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() {
					c, err := client.Connect(t.Context(), dialer, &client.Options{Versions: []string{version}})
					if err != nil {
						t.Errorf("client %d: %v", i, err)
						return
					}
					defer c.Close()
					for range 3 {
						n := 0
						for _, err := range c.Tools(t.Context()) {
							if err != nil {
								t.Errorf("client %d: %v", i, err)
							}
							n++
						}
						for _, err := range c.Resources(t.Context()) {
							if err != nil {
								t.Errorf("client %d: %v", i, err)
							}
							n++
						}
						if n != 2 {
							t.Errorf("client %d: %d features", i, n)
						}
					}
					if _, err := c.CallTool(t.Context(), "sum", map[string]int{"a": 1, "b": 2}, nil); err != nil {
						t.Errorf("client %d: %v", i, err)
					}
				})
			}
			wg.Wait()
		})
	}
}

// Ruling 30: forty clients behind one address subscribe, and each hears of a
// change.
func TestHonestSubscribers(t *testing.T) {
	for _, version := range []string{newest, autumn} {
		t.Run(version, func(t *testing.T) {
			mcptest.NoLeaks(t)
			s := with(server.Text("x:a", "a", "A"))(t, quiet())
			dialer := mcptest.Dialer(t, s, "streamable")
			var subscribed, heard sync.WaitGroup
			for i := range 40 {
				var once sync.Once
				heard.Add(1)
				subscribed.Go(func() {
					c, err := client.Connect(t.Context(), dialer, &client.Options{
						Versions:          []string{version},
						OnResourceUpdated: func(context.Context, string) { once.Do(heard.Done) },
					})
					if err == nil {
						t.Cleanup(func() { c.Close() })
						_, err = c.Subscribe(t.Context(), "x:a")
					}
					if err != nil {
						t.Errorf("client %d: %v", i, err)
						once.Do(heard.Done)
					}
				})
			}
			subscribed.Wait()
			s.ResourceUpdated("x:a")
			heard.Wait()
		})
	}
}

// answered is the place for the answer to one request.
type answered struct{ code atomic.Int64 }

func (*answered) Send(context.Context, *jsonrpc.Outgoing) error { return nil }

func (a *answered) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
	if a.code.Store(1); m.Error != nil {
		a.code.Store(m.Error.Code)
	}
	return nil
}

// Proves: SEC-DOS-1. A flood of 5,000 calls per second from one address is
// served as far as its rate goes, and does not slow another address down.
func TestFloodOfOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := with(server.Tool("sum", "Adds.", sum))(t, quiet())
		text := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta("{}") + `,"name":"sum","arguments":{"a":1,"b":2}}}`
		call := func(address string) int64 {
			in, err := jsonrpc.Parse([]byte(text), jsonrpc.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			out := new(answered)
			s.Serve(t.Context(), &transport.Exchange{In: in, Out: out, Principal: &principal.Principal{Remote: address}})
			return out.code.Load()
		}
		var (
			wg                      sync.WaitGroup
			served, refused, others atomic.Int64
		)
		const seconds = 3
		for i := range seconds * 1000 { // milliseconds
			for range 5 {
				wg.Go(func() {
					switch code := call("192.0.2.1"); code {
					case 1:
						served.Add(1)
					case mcp.CodeRateLimited:
						refused.Add(1)
					default:
						t.Errorf("a call of the flood: %d", code)
					}
				})
			}
			if i%10 == 0 {
				began := time.Now()
				if code := call("192.0.2.2"); code != 1 || !time.Now().Equal(began) {
					t.Errorf("a call beside the flood: %d", code)
				}
				others.Add(1)
			}
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		// The burst of 5,000, 500 a second, and a second's worth that waited.
		const want = 5000 + seconds*500 + 500
		if got := served.Load(); got < want-10 || got > want+10 || got+refused.Load() != seconds*5000 || others.Load() != seconds*100 {
			t.Errorf("%d of the flood were served, want about %d, and %d refused; %d beside it", got, want, refused.Load(), others.Load())
		}
	})
}

// Behind a proxy that is trusted, limits go by the address of the client: who
// floods is refused, and another client of the same proxy is served. Headers of
// a connection that is not trusted change nothing.
func TestLimitsBehindProxy(t *testing.T) {
	for name, trusted := range map[string][]netip.Prefix{"trusted": {netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, "not trusted": nil} {
		t.Run(name, func(t *testing.T) {
			o := quiet()
			o.Limits.ToolRate = 0.01 // a burst of one, of ten times as many for an address
			s := with(server.Tool("sum", "Adds.", sum))(t, o)
			endpoint := streamable.NewHandler(s, &streamable.Options{Access: web.Access{TrustedProxies: trusted}})
			at := httptest.NewServer(endpoint)
			defer at.Close()
			site := &site{t: t, url: at.URL, app: s}
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta("{}") + `,"name":"sum","arguments":{"a":1,"b":2}}}`
			calls := func(n int, forwarded string) (refused int) {
				for range n {
					r := site.do("POST", body, "Content-Type", "application/json", "Accept", "application/json, text/event-stream",
						"MCP-Protocol-Version", newest, "Mcp-Method", "tools/call", "Mcp-Name", "sum", "X-Forwarded-For", forwarded)
					switch code := r.code(); code {
					case "":
					case fmt.Sprint(mcp.CodeRateLimited):
						if refused++; !strings.Contains(r.text, "anonymous callers of one address (10 times Limits.ToolRate)") {
							t.Errorf("refused with %s", r.text)
						}
					default:
						t.Fatalf("answered %d %s", r.status, r.text)
					}
				}
				return refused
			}
			first := calls(20, "198.51.100.9, 203.0.113.1")
			forged := calls(5, "203.0.113.2, 203.0.113.1") // still the first, who writes what it likes in front
			second := calls(1, "203.0.113.2")
			if first < 10 || forged < 3 {
				t.Errorf("of 20 calls %d were refused, and %d of 5 with a forged address", first, forged)
			}
			if want := map[bool]int{true: 0, false: 1}[trusted != nil]; second != want {
				t.Errorf("of the other client's call %d were refused, want %d", second, want)
			}
		})
	}
}
