package streamable_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

const (
	v2411 = "2024-11-05"
	v2503 = "2025-03-26"
	v2506 = "2025-06-18"
	v2511 = "2025-11-25"
	v2607 = "2026-07-28"
)

// patience ends what hangs; nothing else lasts so long, on a busy machine either.
const patience = 5 * time.Minute

// errNone makes a scripted method leave its request without an answer.
var errNone = errors.New("no answer")

// A method is what a scripted peer does with a request.
type method func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error)

// A peer is a scripted transport.Handler: what a transport sees of a server.
type peer struct {
	methods map[string]method
	refusal error // of Open

	mu       sync.Mutex
	sessions []*peerSession
	accepted chan *jsonrpc.Incoming // room for what Accept is given
}

func newPeer(methods map[string]method) *peer {
	p := &peer{methods: methods, accepted: make(chan *jsonrpc.Incoming, 1000)}
	if p.methods == nil {
		p.methods = make(map[string]method)
	}
	if p.methods["echo"] == nil {
		p.methods["echo"] = func(_ context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			return echo(x.In.Params), nil
		}
	}
	return p
}

func echo(params jsonrpc.Object) jsonrpc.Body {
	if params.IsZero() {
		return jsonrpc.Empty()
	}
	return jsonrpc.Raw(params.Raw())
}

func (*peer) Refused(context.Context, transport.Refusal) {}

func (p *peer) Serve(ctx context.Context, x *transport.Exchange) { p.handle(ctx, x, func() {}) }

// handle carries out a request. Its tracking ends before the client can know.
func (p *peer) handle(ctx context.Context, x *transport.Exchange, end func()) {
	defer end()
	answer := jsonrpc.Outgoing{ID: x.In.ID}
	f := p.methods[x.In.Method]
	if f == nil {
		f = func(context.Context, *transport.Exchange) (jsonrpc.Body, error) {
			return nil, jsonrpc.NewError(jsonrpc.CodeMethodNotFound, "no such method")
		}
	}
	result, err := f(ctx, x)
	switch e, ok := errors.AsType[*jsonrpc.Error](err); {
	case errors.Is(err, errNone):
		return
	case ok:
		answer.Error = e
	case err != nil:
		answer.Error = jsonrpc.NewError(jsonrpc.CodeInternalError, "%v", err)
	default:
		answer.Result = result
	}
	end()
	_ = x.Out.Answer(ctx, &answer) // a client that has gone is what some tests are about
}

func (p *peer) Open(c transport.Conn) (transport.Session, error) {
	if p.refusal != nil {
		return nil, p.refusal
	}
	s := &peerSession{p: p, conn: c, requests: jsonrpc.NewPeer(nil)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions = append(p.sessions, s)
	return s, nil
}

// session is the one opened last.
func (p *peer) session() *peerSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[len(p.sessions)-1]
}

// A peerSession is the session of a scripted peer.
type peerSession struct {
	p        *peer
	conn     transport.Conn
	requests *jsonrpc.Peer

	mu     sync.Mutex
	rules  transport.Rules
	ended  int // calls of Ending
	closed error
}

func (s *peerSession) Begin(ctx context.Context, x *transport.Exchange) func() {
	if x.In.Method == "initialize" {
		return s.initialize(ctx, x)
	}
	ctx, end, err := s.requests.Begin(ctx, x.In.ID)
	if err != nil {
		_ = x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Error: jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "%v", err)})
		return nil
	}
	return func() { s.p.handle(ctx, x, end) }
}

// initialize negotiates what the client asks for.
func (s *peerSession) initialize(ctx context.Context, x *transport.Exchange) func() {
	raw, _ := x.In.Params.Member("protocolVersion")
	version := strings.Trim(string(raw), `"`)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules.Version != "" || version == "bad" {
		_ = x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Error: jsonrpc.NewError(jsonrpc.CodeInvalidParams, "not now")})
		return nil
	}
	return func() {
		s.mu.Lock()
		s.rules = transport.Rules{Version: version, Batch: version == v2503, MaxBatch: 10, NullID: version != v2511}
		s.mu.Unlock()
		_ = x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: jsonrpc.JSON(map[string]string{"protocolVersion": version})})
	}
}

func (s *peerSession) Accept(m *jsonrpc.Incoming) {
	if m.Kind == jsonrpc.Response {
		s.requests.Resolve(m)
	}
	s.p.accepted <- m
}

func (s *peerSession) Rules() transport.Rules {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rules
}

func (s *peerSession) Ending() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
}

func (s *peerSession) Close(cause error) {
	s.mu.Lock()
	s.closed = cause
	s.mu.Unlock()
	s.requests.Close(cause)
}

// A site is an endpoint under test, and a client for it.
type site struct {
	testing.TB
	h      *streamable.Handler
	url    string
	client *http.Client
	user   string // who calls
}

// asUser tells the endpoint who calls by a header, as authentication in front
// of it would.
func asUser(o *streamable.Options) *streamable.Options {
	opts := streamable.Options{}
	if o != nil {
		opts = *o
	}
	opts.Access = web.Access{Principal: func(r *http.Request) *principal.Principal {
		return &principal.Principal{Subject: r.Header.Get("X-User"), Remote: cmp.Or(r.Header.Get("X-Address"), "192.0.2.1")}
	}}
	return &opts
}

// newSite serves p on a socket until the test ends.
func newSite(t testing.TB, p transport.Handler, o *streamable.Options) *site {
	t.Helper()
	h := streamable.NewHandler(p, asUser(o))
	srv := webtest.Serve(t, h)
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	t.Cleanup(c.CloseIdleConnections)
	webtest.ShutDown(t, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return h.Shutdown(ctx)
	})
	return &site{TB: t, h: h, url: srv.URL, client: c, user: "ada"}
}

// newPipes is newSite without sockets, for tests that own the clock.
func newPipes(t testing.TB, p transport.Handler, o *streamable.Options) *site {
	t.Helper()
	h := streamable.NewHandler(p, asUser(o))
	return newMemorySite(t, h, h, "ada")
}

// newMemorySite serves h in memory until the test ends, behind front, and is called by user.
func newMemorySite(t testing.TB, h *streamable.Handler, front http.Handler, user string) *site {
	t.Helper()
	webtest.ShutDown(t, h.Shutdown)
	m := webtest.ServeMemory(t, front)
	return &site{TB: t, h: h, url: "http://localhost", client: m.Client(), user: user}
}

// An outcome is a whole HTTP response.
type outcome struct {
	status int
	header http.Header
	body   string
}

// do sends a request and returns the response, whose body is open.
func (s *site) do(ctx context.Context, httpMethod, body string, header ...string) (*http.Response, error) {
	s.Helper()
	r, err := http.NewRequestWithContext(ctx, httpMethod, s.url, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("X-User", s.user)
	if httpMethod == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
			continue
		}
		r.Header[http.CanonicalHeaderKey(header[i])] = append(r.Header[http.CanonicalHeaderKey(header[i])], header[i+1])
		if header[i] == "Accept" || header[i] == "Content-Type" || header[i] == "X-User" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	return s.client.Do(r)
}

// send sends a request and reads the whole response.
func (s *site) send(httpMethod, body string, header ...string) outcome {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := s.do(ctx, httpMethod, body, header...)
	if err != nil {
		s.Fatalf("%s: %v", httpMethod, err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		s.Fatalf("reading the response to %s: %v", httpMethod, err)
	}
	return outcome{r.StatusCode, r.Header, string(data)}
}

// modern sends a request of the stateless revision.
func (s *site) modern(name, params string, header ...string) outcome {
	s.Helper()
	return s.send(http.MethodPost, modernBody(1, name, params), append([]string{"MCP-Protocol-Version", v2607, "Mcp-Method", name}, header...)...)
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + v2607 + `","io.modelcontextprotocol/clientCapabilities":{}}`

func modernBody(id int, name, params string) string {
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%s}}`, id, name, params, modernMeta)
}

func rpc(id int, name, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, name, params)
}

// open makes the handshake and returns the session's id.
func (s *site) open(version string) string {
	s.Helper()
	r := s.send(http.MethodPost, rpc(0, "initialize", `"protocolVersion":"`+version+`"`))
	id := r.header.Get("Mcp-Session-Id")
	if r.status != http.StatusOK || id == "" {
		s.Fatalf("initialize: status %d, session %q, body %s", r.status, id, r.body)
	}
	return id
}

// check compares the important parts of a response.
func (s *site) check(what string, r outcome, status int, parts ...string) {
	s.Helper()
	if r.status != status {
		s.Errorf("%s: status %d, want %d; body %s", what, r.status, status, r.body)
	}
	for _, part := range parts {
		if !strings.Contains(r.body, part) {
			s.Errorf("%s: body %s, want %s in it", what, r.body, part)
		}
	}
}

// A feed reads a response that is an event stream.
type feed struct {
	testing.TB
	r      *http.Response
	events *eventstream.Reader
	cancel context.CancelFunc
}

// follow sends a request whose response is an event stream.
func (s *site) follow(httpMethod, body string, header ...string) *feed {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.Cleanup(cancel)
	r, err := s.do(ctx, httpMethod, body, header...)
	if err != nil {
		s.Fatalf("%s: %v", httpMethod, err)
	}
	s.Cleanup(func() { r.Body.Close() })
	if got := r.Header.Get("Content-Type"); r.StatusCode != http.StatusOK || got != "text/event-stream" {
		data, _ := io.ReadAll(r.Body)
		s.Fatalf("%s: status %d, content type %s, want an event stream; body %s", httpMethod, r.StatusCode, got, data)
	}
	return &feed{s.TB, r, eventstream.NewReader(bufio.NewReader(r.Body), 64<<20), cancel}
}

// next returns the next event.
func (f *feed) next() eventstream.Event {
	f.Helper()
	e, err := f.events.Next()
	if err != nil {
		f.Fatalf("reading an event: %v", err)
	}
	return e
}

// wants reads one event with these parts in its data.
func (f *feed) wants(parts ...string) eventstream.Event {
	f.Helper()
	e := f.next()
	for _, part := range parts {
		if !strings.Contains(string(e.Data), part) {
			f.Fatalf("event %s, want %s in it", e.Data, part)
		}
	}
	return e
}

// primed reads the event that begins a stream in revisions that have one.
func (f *feed) primed() eventstream.Event {
	f.Helper()
	e := f.next()
	if len(e.Data) != 0 || !e.HasID || !e.HasRetry {
		f.Fatalf("event %+v, want one with id and retry and without data", e)
	}
	return e
}

// ends checks that nothing more comes.
func (f *feed) ends() {
	f.Helper()
	if e, err := f.events.Next(); !errors.Is(err, io.EOF) {
		f.Errorf("event %q, error %v, want the end of the stream", e.Data, err)
	}
}

// hangUp breaks the connection.
func (f *feed) hangUp() { f.cancel() }

// notify sends a numbered notification.
func notify(ctx context.Context, to jsonrpc.Sender, n int) error {
	return to.Send(ctx, &jsonrpc.Outgoing{Method: "note", Params: jsonrpc.JSON(map[string]int{"n": n})})
}

func noted(n int) string { return fmt.Sprintf(`"params":{"n":%d}`, n) }

// count makes a method that sends so many notifications and answers.
func count(n int) method {
	return func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		for i := range n {
			if err := notify(ctx, x.Out, i); err != nil {
				return nil, err
			}
		}
		return jsonrpc.Empty(), nil
	}
}

// gate is a method that says that it runs and waits to be let go.
type gate struct {
	entered chan context.Context
	release chan struct{}
}

func newGate() *gate {
	return &gate{make(chan context.Context, 100), make(chan struct{}, 100)}
}

func (g *gate) wait(ctx context.Context, _ *transport.Exchange) (jsonrpc.Body, error) {
	g.entered <- ctx
	select {
	case <-g.release:
		return jsonrpc.Empty(), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// within fails the test if c has nothing in time.
func within[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-c:
		return v
	case <-timer.C:
		t.Fatalf("%s did not happen in time", what)
	}
	panic("not reached")
}
