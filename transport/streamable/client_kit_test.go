package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Revisions that the tests of the client speak.
const (
	modern      = "2026-07-28"
	primed      = "2025-11-25"
	headless    = "2025-03-26" // no MCP-Protocol-Version
	unresumable = "2024-11-05"
)

// farURL is where a farEnd is.
const farURL = "http://far.example/mcp"

// A farCall is one HTTP request as a farEnd sees it.
type farCall struct {
	*http.Request
	body string
	id   string // of the message, as JSON
	name string // its method
	at   time.Duration
	nth  int // of its HTTP method, from 1
}

// A farEnd is a scripted server without sockets, so that it can live in a
// synctest bubble. It shakes hands, takes notifications with 202, and leaves
// the rest to its functions; a nil response is a broken connection.
type farEnd struct {
	session         string
	version         string
	post, get, bury func(c *farCall) *http.Response
	born            time.Time

	mu    sync.Mutex
	calls []*farCall
}

func (f *farEnd) RoundTrip(req *http.Request) (*http.Response, error) {
	c := &farCall{Request: req, at: time.Since(f.born)}
	m, err := linktest.Read(req)
	if err != nil {
		return nil, err
	}
	c.body, c.id, c.name = m.Text, m.ID, m.Method
	f.mu.Lock()
	f.calls = append(f.calls, c)
	for _, other := range f.calls {
		if other.Method == req.Method {
			c.nth++
		}
	}
	f.mu.Unlock()
	resp := f.answer(c)
	if resp == nil {
		return nil, errors.New("connection reset by the test")
	}
	resp.Request = req
	if req.Context().Err() != nil {
		return nil, context.Cause(req.Context())
	}
	return resp, nil
}

func (f *farEnd) answer(c *farCall) *http.Response {
	switch {
	case c.Method == http.MethodPost && c.name == "initialize":
		resp := reply(200, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q}}`, c.id, f.version))
		if f.session != "" {
			resp.Header.Set("Mcp-Session-Id", f.session)
		}
		return resp
	case c.Method == http.MethodPost && c.id == "" && f.post == nil:
		return reply(202, "", "")
	case c.Method == http.MethodPost && f.post != nil:
		return f.post(c)
	case c.Method == http.MethodGet && f.get != nil:
		return f.get(c)
	case c.Method == http.MethodDelete && f.bury != nil:
		return f.bury(c)
	case c.Method == http.MethodDelete:
		return reply(204, "", "")
	}
	return reply(405, "text/plain", "no")
}

// seen returns the calls with an HTTP method.
func (f *farEnd) seen(method string) []*farCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	var some []*farCall
	for _, c := range f.calls {
		if c.Method == method {
			some = append(some, c)
		}
	}
	return some
}

// reply is a whole response.
func reply(status int, kind, body string) *http.Response {
	return webtest.NewResponse(status, kind, body)
}

// A tape is a body that gives its text and then an error, or, without one,
// nothing until its request ends.
type tape struct {
	text io.Reader
	then error
	ctx  context.Context //nolint:containedctx // of the request that the body answers
	shut chan struct{}
	once sync.Once
}

func (t *tape) Read(p []byte) (int, error) {
	n, err := t.text.Read(p)
	if err == nil {
		return n, nil
	}
	if t.then != nil {
		return 0, t.then
	}
	select {
	case <-t.ctx.Done():
		return 0, context.Cause(t.ctx)
	case <-t.shut:
		return 0, errors.New("read of a closed body")
	}
}

func (t *tape) Close() error {
	t.once.Do(func() { close(t.shut) })
	return nil
}

// stream is a response that is an event stream. A nil end leaves it open.
func (c *farCall) stream(text string, end error) *http.Response {
	resp := reply(200, "text/event-stream", "")
	resp.ContentLength = -1
	resp.Body = &tape{text: strings.NewReader(text), then: end, ctx: c.Context(), shut: make(chan struct{})}
	return resp
}

// result is the answer to the request of the call; with the id of another if
// id is not empty.
func (c *farCall) result() string { return answerTo(c.id) }

func answerTo(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

// note is a notification with a number.
func note(n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"test/note","params":{"n":%d}}`, n)
}

// event is one event; an empty id leaves the field out.
func event(id, data string) string {
	if id != "" {
		id = "id: " + id + "\n"
	}
	return id + "data: " + data + "\n\n"
}

// notes takes count notes that have arrived, and their numbers.
func notes(t *testing.T, in *linktest.Inbox, count int) []string {
	t.Helper()
	var numbers []string
	for range count {
		m := <-in.Messages
		raw, _ := m.Params.Member("n")
		numbers = append(numbers, string(raw))
	}
	if n := len(in.Messages); n != 0 {
		t.Errorf("%d more messages arrived", n)
	}
	return numbers
}

// near makes a link to a farEnd and closes it with the test.
func (f *farEnd) near(t *testing.T, adjust func(*streamable.Dialer)) (transport.Link, *linktest.Inbox) {
	t.Helper()
	f.born = time.Now()
	d := &streamable.Dialer{URL: farURL, Client: &http.Client{Transport: f}}
	if adjust != nil {
		adjust(d)
	}
	in := linktest.NewInbox()
	link, err := d.Dial(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, link, in) })
	return link, in
}

// established is near with a handshake.
func (f *farEnd) established(t *testing.T, adjust func(*streamable.Dialer)) (transport.Link, *linktest.Inbox) {
	t.Helper()
	if f.version == "" {
		f.version = primed
	}
	link, in := f.near(t, adjust)
	shake(t, link, f.version)
	return link, in
}

// shake does a handshake.
func shake(t *testing.T, link transport.Link, version string) {
	t.Helper()
	if _, err := link.Do(t.Context(), ask(900, "initialize"), transport.Route{}); err != nil {
		t.Fatalf("initialize: %v", err)
	}
	if err := link.Establish(t.Context(), transport.Established{Version: version, Handshake: true}); err != nil {
		t.Fatalf("establish: %v", err)
	}
}

// shut closes a link and checks that its inbox was told.
func shut(t *testing.T, link transport.Link, in *linktest.Inbox) {
	t.Helper()
	if err := link.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
	if !in.IsClosed() {
		t.Error("Inbox.Closed was not called")
	}
}

// ask makes a request.
func ask(id int64, method string) *jsonrpc.Outgoing {
	return &jsonrpc.Outgoing{ID: jsonrpc.IntID(id), Method: method, Params: jsonrpc.Empty()}
}

// modernRoute is the route of a request of the stateless revision.
func modernRoute(method string) transport.Route {
	return transport.Route{Carried: true, Version: modern, Method: method}
}

// do sends a request of the stateless revision.
func do(t *testing.T, link transport.Link) (*jsonrpc.Incoming, error) {
	return link.Do(t.Context(), ask(1, "tools/list"), modernRoute("tools/list"))
}

// certain checks that an error says that the request was not carried out.
func certain(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, transport.ErrClosed) || errors.Is(err, transport.ErrInterrupted) {
		t.Errorf("error is %v, want ErrClosed and not ErrInterrupted", err)
	}
}

// unsure checks that an error says that the request may have been carried out.
func unsure(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, transport.ErrInterrupted) {
		t.Errorf("error is %v, want ErrInterrupted", err)
	}
}
