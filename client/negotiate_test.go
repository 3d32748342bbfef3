package client_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A site is a server at a URL, without sockets so that it can live in a
// synctest bubble. It knows the handshake, or the stateless revision, or
// neither, as its fields say, which a test may change between calls.
type site struct {
	mu      sync.Mutex
	old     bool
	refusal func(id string) *http.Response // of an old server, for what is stateless
	on      map[string]func(r *http.Request, id string) *http.Response
	down    map[string]error // by method: nothing is sent
	heard   []string
}

func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	m, err := linktest.Read(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	down, old, on := s.down[m.Method], s.old, s.on[m.Method]
	if down == nil {
		s.heard = append(s.heard, r.Method+" "+m.Method)
	}
	s.mu.Unlock()
	if down != nil {
		return nil, down
	}
	resp := s.answer(r, old, on, m.Method, m.ID)
	if resp == nil { // what will not be answered
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	resp.Request = r
	return resp, nil
}

func (s *site) answer(r *http.Request, old bool, on func(*http.Request, string) *http.Response, method, id string) *http.Response {
	stateless := r.Header.Get("Mcp-Protocol-Version") == modern
	switch {
	case r.Method == http.MethodGet:
		return whole(405, "")
	case r.Method == http.MethodDelete, id == "":
		return whole(202, "")
	case stateless && old && s.refusal != nil:
		return s.refusal(id)
	case on != nil:
		return on(r, id)
	case method == mcp.MethodInitialize && old:
		return result(id, initialized)
	case method == mcp.MethodDiscover && !old:
		return result(id, `{"resultType":"complete","supportedVersions":["`+modern+`"],"capabilities":`+allCaps+`,"ttlMs":0,"cacheScope":"private"}`)
	case method == mcp.MethodInitialize, method == mcp.MethodDiscover:
		return whole(404, rpcError(id, -32601))
	}
	return result(id, done)
}

// initialized is the result of initialize.
const initialized = `{"protocolVersion":"` + newest + `","capabilities":` + allCaps + `,"serverInfo":{"name":"old","version":"1"}}`

func whole(status int, body string) *http.Response {
	return webtest.NewResponse(status, "application/json", body)
}

func result(id, value string) *http.Response {
	return whole(200, `{"jsonrpc":"2.0","id":`+id+`,"result":`+value+`}`)
}

func rpcError(id string, code int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, id, code)
}

// became replaces the server by another.
func (s *site) became(old bool, refusal func(id string) *http.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old, s.refusal, s.heard = old, refusal, nil
}

// count says how often a method was heard.
func (s *site) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.heard {
		if m == "POST "+method {
			n++
		}
	}
	return n
}

// visit connects a client to a site.
func visit(t *testing.T, s *site, o *client.Options) *client.Client {
	t.Helper()
	opts := client.Options{}
	if o != nil {
		opts = *o
	}
	opts.Eras = client.NewEraMemory()
	return dial(t, &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: s}}, &opts)
}

// Ruling 4; spec 2026-07-28, basic/versioning: a server that another one of the
// handshake era has replaced, at the same URL and with no connection that
// ended, is found out. Ruling 16: what may have run is not sent again.
func TestServerBecomesOld(t *testing.T) {
	for name, test := range map[string]struct {
		refusal func(id string) *http.Response
		unsure  bool // it does not say that nothing was carried out
	}{
		"text":      {func(string) *http.Response { return whole(400, "unsupported protocol version") }, false},
		"not there": {func(string) *http.Response { return whole(404, "") }, false},
		"405":       {func(string) *http.Response { return whole(405, "") }, false},
		"python":    {func(string) *http.Response { return whole(400, rpcError(`"server-error"`, -32600)) }, false},
		"sdk":       {func(string) *http.Response { return whole(400, rpcError("null", -32000)) }, true},
		"session":   {func(string) *http.Response { return whole(404, rpcError("null", -32001)) }, true},
	} {
		for _, harmless := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := &site{on: map[string]func(*http.Request, string) *http.Response{
					mcp.MethodResourcesRead: func(_ *http.Request, id string) *http.Response { return result(id, `{"contents":[]}`) },
				}}
				c := visit(t, s, nil)
				call := func() error {
					if harmless {
						_, err := c.ReadResource(t.Context(), "a:b", nil)
						return err
					}
					_, err := c.CallTool(t.Context(), "writes", nil, nil)
					return err
				}
				if err := call(); err != nil || !c.Modern() {
					t.Fatalf("%s: %v, modern %v", name, err, c.Modern())
				}
				s.became(true, test.refusal)
				err := call()
				if (err == nil) != (harmless || !test.unsure) {
					t.Errorf("%s, harmless %v: error %v", name, harmless, err)
				}
				if err := call(); err != nil || c.Version() != newest {
					t.Errorf("%s: the call after: %v, version %s", name, err, c.Version())
				}
				if n := s.count(mcp.MethodInitialize); n != 1 {
					t.Errorf("%s: %d handshakes", name, n)
				}
			})
		}
	}
}

// A server that still is what it was is asked once for each such refusal, and
// the refusal stays. Others give no reason to ask.
func TestServerStaysModern(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(id string) *http.Response
		asked  int
	}{
		"own code":      {func(id string) *http.Response { return whole(200, rpcError(id, -32000)) }, 1},
		"gone":          {func(string) *http.Response { return whole(404, "") }, 1},
		"internal":      {func(id string) *http.Response { return whole(200, rpcError(id, -32603)) }, 0},
		"params":        {func(id string) *http.Response { return whole(200, rpcError(id, -32602)) }, 0},
		"unauthorized":  {func(string) *http.Response { return whole(401, "") }, 0},
		"busy":          {func(string) *http.Response { return whole(503, "") }, 0}, // it may have run
		"broken beyond": {func(string) *http.Response { return whole(502, "") }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{}
			c := visit(t, s, nil)
			s.on = map[string]func(*http.Request, string) *http.Response{
				mcp.MethodToolsCall: func(_ *http.Request, id string) *http.Response { return test.answer(id) },
			}
			s.became(false, nil)
			if _, err := c.CallTool(t.Context(), "t", nil, nil); err == nil {
				t.Errorf("%s: no error", name)
			}
			if n := s.count(mcp.MethodDiscover); n != test.asked || s.count(mcp.MethodInitialize) != 0 || s.count(mcp.MethodToolsCall) != 1 || !c.Modern() {
				t.Errorf("%s: %d probes, want %d; heard %v", name, n, test.asked, s.heard)
			}
		})
	}
}

// listening is a stream that acknowledges a watch and stays open until stop is
// closed, or ends at once if stop is nil.
func listening(r *http.Request, id string, stop chan struct{}) *http.Response {
	out, in := io.Pipe()
	go func() {
		_, _ = fmt.Fprintf(in, "data: {\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":{\"notifications\":{\"resourceSubscriptions\":[\"a:b\"]},"+
			"\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%s}}}\n\n", mcp.NotifySubscriptionsAcknowledged, id)
		if stop != nil {
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		}
		_ = in.CloseWithError(io.ErrUnexpectedEOF)
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: out, ContentLength: -1}
}

// Ruling 24: a watch whose stream breaks is taken up again, ever more seldom
// if it breaks at once, and counts as changed each time. No other call suffers.
func TestWatchBreaksOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		stop := make(chan struct{})
		s := &site{on: map[string]func(*http.Request, string) *http.Response{
			mcp.MethodListen: func(r *http.Request, id string) *http.Response { return listening(r, id, stop) },
		}}
		c := visit(t, s, &client.Options{OnResourceUpdated: d.options().OnResourceUpdated})
		if _, err := c.Subscribe(t.Context(), "a:b"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // of fake time
		if got := d.read(); len(got) != 0 || s.count(mcp.MethodListen) != 1 {
			t.Errorf("told %v before anything broke, %d listens", got, s.count(mcp.MethodListen))
		}
		s.mu.Lock()
		s.heard, s.down = nil, map[string]error{mcp.MethodListen: &net.OpError{Op: "dial", Err: errors.New("refused")}}
		s.mu.Unlock()
		close(stop) // from now on every stream breaks at once
		time.Sleep(time.Minute)
		s.mu.Lock()
		s.down = nil
		s.mu.Unlock()
		time.Sleep(time.Hour)
		// One each 30 s to 37.5 s.
		if n := s.count(mcp.MethodListen); n < 90 || n > 125 {
			t.Errorf("%d listens in an hour", n)
		}
		if got := d.read(); len(got) < 90 {
			t.Errorf("told %d times that it may have changed", len(got))
		}
		if n := s.count(mcp.MethodDiscover); n != 0 {
			t.Errorf("%d probes", n)
		}
	})
}

// A watch goes on with a server that became old.
func TestWatchOfServerThatBecomesOld(t *testing.T) {
	for name, refusal := range map[string]func(id string) *http.Response{
		"text": func(string) *http.Response { return whole(400, "what?") },
		"sdk":  func(string) *http.Response { return whole(400, rpcError("null", -32000)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var d diary
			stop := make(chan struct{})
			s := &site{on: map[string]func(*http.Request, string) *http.Response{
				mcp.MethodListen:             func(r *http.Request, id string) *http.Response { return listening(r, id, stop) },
				mcp.MethodResourcesSubscribe: func(_ *http.Request, id string) *http.Response { return result(id, `{}`) },
			}}
			c := visit(t, s, &client.Options{OnResourceUpdated: d.options().OnResourceUpdated})
			if _, err := c.Subscribe(t.Context(), "a:b"); err != nil {
				t.Fatal(err)
			}
			s.became(true, refusal)
			close(stop)
			time.Sleep(time.Minute) // of fake time
			if n := s.count(mcp.MethodResourcesSubscribe); n != 1 || c.Version() != newest {
				t.Errorf("%s: %d subscriptions, version %s", name, n, c.Version())
			}
			if got := d.read(); len(got) != 1 {
				t.Errorf("%s: told %v", name, got)
			}
		})
	}
}

// Over HTTP a request that cannot be sent says nothing about those under way:
// they go on, and so does the session.
func TestUnsentSparesOthers(t *testing.T) {
	for _, old := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			slow := make(chan struct{})
			s := &site{old: old, refusal: func(string) *http.Response { return whole(400, "") }}
			s.on = map[string]func(*http.Request, string) *http.Response{
				mcp.MethodToolsCall: func(r *http.Request, id string) *http.Response {
					select {
					case <-slow:
						return result(id, done)
					case <-r.Context().Done():
						return nil
					}
				},
				mcp.MethodResourcesRead: func(_ *http.Request, id string) *http.Response { return result(id, `{"contents":[]}`) },
			}
			c := visit(t, s, nil)
			ended := make(chan error)
			go func() {
				_, err := c.CallTool(t.Context(), "slow", nil, nil)
				ended <- err
			}()
			synctest.Wait()
			s.mu.Lock()
			s.down = map[string]error{mcp.MethodResourcesRead: &net.OpError{Op: "dial", Err: errors.New("refused")}}
			s.heard = nil
			s.mu.Unlock()
			if _, err := c.ReadResource(t.Context(), "a:b", nil); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("error %v, want that nothing was sent", err)
			}
			s.mu.Lock()
			s.down = nil
			s.mu.Unlock()
			if _, err := c.ReadResource(t.Context(), "a:b", nil); err != nil {
				t.Error(err)
			}
			close(slow)
			if err := <-ended; err != nil {
				t.Errorf("the call that was under way: %v", err)
			}
			if n := s.count(mcp.MethodInitialize) + s.count(mcp.MethodDiscover); n != 0 {
				t.Errorf("negotiated anew: %v", s.heard)
			}
		})
	}
}

// A pause of the network of less than a moment is not seen.
func TestUnsentIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		c := visit(t, s, nil)
		s.down = map[string]error{mcp.MethodToolsCall: &net.OpError{Op: "dial", Err: errors.New("refused")}}
		time.AfterFunc(50*time.Millisecond, func() {
			s.mu.Lock()
			s.down = nil
			s.mu.Unlock()
		})
		if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil || s.count(mcp.MethodToolsCall) != 1 {
			t.Errorf("%v, sent %d times", err, s.count(mcp.MethodToolsCall))
		}
	})
}

// Revisions of the handshake know nothing of x-mcp-header, so that a tool is
// not left out for it there; the stateless one reads the same definition anew.
func TestHeadersByRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fields []string
		s := &site{old: true, refusal: func(string) *http.Response { return whole(400, "") }}
		s.on = map[string]func(*http.Request, string) *http.Response{
			mcp.MethodToolsList: func(_ *http.Request, id string) *http.Response {
				return result(id, `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[
					{"name":"good","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}},
					{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}`)
			},
			mcp.MethodToolsCall: func(r *http.Request, id string) *http.Response {
				fields = append(fields, r.Header.Get("Mcp-Param-A"))
				if r.Header.Get("Mcp-Session-Id") == "" && r.Header.Get("Mcp-Protocol-Version") != modern {
					return whole(400, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["`+modern+`"]}}}`, id))
				}
				return result(id, done)
			},
		}
		c := visit(t, s, nil)
		count := func() (n int) {
			for _, err := range c.Tools(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		}
		if n := count(); n != 2 || c.Modern() {
			t.Errorf("%d tools in revision %s, want both", n, c.Version())
		}
		s.became(false, nil)
		if _, err := c.CallTool(t.Context(), "good", map[string]any{"a": "x"}, nil); err != nil || !c.Modern() {
			t.Errorf("error %v, version %s", err, c.Version())
		}
		if n := count(); n != 1 {
			t.Errorf("%d tools in revision %s, want the good one", n, c.Version())
		}
		if _, err := c.CallTool(t.Context(), "good", map[string]any{"a": "x"}, nil); err != nil || fields[len(fields)-1] != "x" {
			t.Errorf("error %v, headers %q", err, fields)
		}
	})
}

// Over HTTP several streams bring messages at once. What belongs to one call
// stays in order, and nothing is lost.
func TestReceiveAtOnce(t *testing.T) {
	const calls, reports = 16, 40
	synctest.Test(t, func(t *testing.T) {
		var logs diary
		s := &site{on: map[string]func(*http.Request, string) *http.Response{
			mcp.MethodToolsCall: func(_ *http.Request, id string) *http.Response {
				var b strings.Builder
				for n := range reports {
					fmt.Fprintf(&b, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":%d}}\n\n", id, n+1)
					fmt.Fprintf(&b, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":%d}}\n\n", n)
					b.WriteString("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
				}
				b.WriteString("data: {\"jsonrpc\":\"2.0\",\"id\":" + id + ",\"result\":" + done + "}\n\n")
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(b.String())), ContentLength: -1}
			},
		}}
		c := visit(t, s, &client.Options{OnLog: func(_ context.Context, p *mcp.LogParams) { logs.Add(string(p.Data)) }})
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				last := 0.0
				_, err := c.CallTool(t.Context(), "t", nil, &client.CallOptions{OnProgress: func(p, _ float64, _ string) {
					if p != last+1 {
						t.Errorf("progress %v after %v", p, last)
					}
					last = p
				}})
				if err != nil || last != reports {
					t.Errorf("%v, progress %v", err, last)
				}
			})
		}
		wg.Wait()
		if got := logs.read(); len(got) != calls*reports {
			t.Errorf("%d logs, want %d", len(got), calls*reports)
		}
	})
}

// A forgetful site keeps sessions of the handshake era, and loses them.
type forgetful struct {
	lost   func(id string) *http.Response // to requests of sessions that are not known; nil: 404
	stream int                            // the status of GET; 0: 405

	mu       sync.Mutex
	sessions int // made so far; the last one is known
	ran      map[string]int
}

func (f *forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	m, err := linktest.Read(r)
	if err != nil {
		return nil, err
	}
	id, name := m.ID, member[string](m.Params, "name")
	f.mu.Lock()
	defer f.mu.Unlock()
	given := r.Header.Get("Mcp-Session-Id")
	switch {
	case m.Method == mcp.MethodInitialize && given == "":
		f.sessions++
		resp := result(id, initialized)
		resp.Header.Set("Mcp-Session-Id", fmt.Sprint("s-", f.sessions))
		return resp, nil
	case r.Method == http.MethodGet:
		return whole(cmp.Or(f.stream, 405), ""), nil
	case f.lost != nil && id != "" && (given != fmt.Sprint("s-", f.sessions) || name == "cursed"):
		return f.lost(id), nil
	case given != fmt.Sprint("s-", f.sessions):
		return whole(404, rpcError("null", -32001)), nil
	case id == "":
		return whole(202, ""), nil
	}
	f.ran[name]++
	if name == "slow" {
		f.mu.Unlock()
		<-r.Context().Done()
		f.mu.Lock()
		return nil, context.Cause(r.Context())
	}
	return result(id, done), nil
}

// Spec 2025-11-25, basic/transports: a client that gets 404 for its session
// MUST start a new one. Ruling 16: what met the 404 was not carried out and is
// sent again; what was under way may have been, and is not.
func TestSessionIsRemade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forgetful{ran: make(map[string]int)}
		c := dial(t, &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: f}},
			&client.Options{Eras: client.NewEraMemory(), Versions: []string{newest}})
		slow := make(chan error)
		go func() {
			_, err := c.CallTool(t.Context(), "slow", nil, nil)
			slow <- err
		}()
		synctest.Wait()
		f.mu.Lock()
		f.sessions++ // nobody has the new one
		f.mu.Unlock()
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				if _, err := c.CallTool(t.Context(), fmt.Sprint("t", n), nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := <-slow; !errors.Is(err, transport.ErrInterrupted) {
			t.Errorf("what was under way: %v, want that it may have run", err)
		}
		if f.sessions != 3 {
			t.Errorf("%d sessions, want one new one", f.sessions-1)
		}
		for name, n := range f.ran {
			if n != 1 {
				t.Errorf("%s ran %d times", name, n)
			}
		}
	})
}

// A server with sessions may have no stream and say so by 404. Where it has lost the
// session, by 404 with any body or in words, there is one new session; a request that
// was refused by 404 is sent again, one that was answered in words only if that does no harm.
// Proves: Rulings 16, 40.
func TestWaysToLoseASession(t *testing.T) {
	words := func(status int) func(string) *http.Response {
		return func(id string) *http.Response {
			return whole(status, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
		}
	}
	for name, test := range map[string]struct {
		lost    func(id string) *http.Response
		certain bool // the request was refused
	}{
		"404":                           {func(string) *http.Response { return whole(404, "") }, true},
		"404 with an error":             {func(id string) *http.Response { return whole(404, rpcError(id, -32601)) }, true},
		"404 with an error for nothing": {func(string) *http.Response { return whole(404, rpcError("null", -32001)) }, true},
		"400 with words":                {words(400), false}, //nolint:bodyclose // the client closes it
		"200 with words":                {words(200), false}, //nolint:bodyclose // the client closes it
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { loseSessions(t, test.lost, test.certain) })
		})
	}
}

func loseSessions(t *testing.T, lost func(id string) *http.Response, certain bool) {
	t.Helper()
	f := &forgetful{ran: make(map[string]int), lost: lost, stream: 404}
	c := dial(t, &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: f}},
		&client.Options{Eras: client.NewEraMemory(), Versions: []string{newest}})
	forget := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sessions++ // nobody has the new one
	}
	call := func(name string) error {
		_, err := c.CallTool(t.Context(), name, nil, nil)
		return err
	}
	if err := call("first"); err != nil {
		t.Fatal(err)
	}
	forget()
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("what does no harm: %v", err)
	}
	if f.sessions != 3 {
		t.Errorf("%d sessions, want one new one", f.sessions-1)
	}
	forget()
	if err := call("second"); certain && err != nil || !certain && !errors.Is(err, transport.ErrInterrupted) {
		t.Errorf("what may do harm: %v", err)
	}
	if err := call("third"); err != nil {
		t.Errorf("in a new session: %v", err)
	}
	sessions := f.sessions
	if err := call("cursed"); err == nil {
		t.Error("what is refused in each session has a result")
	}
	if n := f.sessions - sessions; n > 1 {
		t.Errorf("%d new sessions for one request, want at most one", n)
	}
}
