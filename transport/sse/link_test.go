package sse_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/web"
)

func notice() *jsonrpc.Outgoing { return &jsonrpc.Outgoing{Method: "kit/release"} }

func ask(id int64, params string) *jsonrpc.Outgoing {
	return &jsonrpc.Outgoing{ID: jsonrpc.IntID(id), Method: "kit/echo", Params: jsonrpc.Raw(jsonrpc.RawValue(params))}
}

// A script is a server by hand: what is sent to events goes out on the stream,
// what is posted comes out of posts and is answered with the next status.
type script struct {
	events   chan string // closed: the end of the stream
	posts    chan string
	statuses chan int
}

func newScript() *script {
	return &script{events: make(chan string, 10), posts: make(chan string, 10), statuses: make(chan int, 10)}
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		s.posts <- string(body)
		select {
		case code := <-s.statuses:
			w.WriteHeader(code)
		case <-r.Context().Done():
		}
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_, _ = io.WriteString(w, "event: endpoint\ndata: /m\n\n")
	for {
		w.(http.Flusher).Flush()
		select {
		case text, ok := <-s.events:
			if !ok {
				return
			}
			_, _ = io.WriteString(w, text)
		case <-r.Context().Done():
			return
		}
	}
}

// connect dials a script.
func connect(t *testing.T, s *script, maxResponse int) (transport.Link, *linktest.Inbox) {
	t.Helper()
	d := sse.URL(webtest.Serve(t, s).URL)
	d.MaxResponse = maxResponse
	in := linktest.NewInbox()
	link, err := d.Dial(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := link.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return link, in
}

// begin sends a request and gives the error it ends with.
func begin(t *testing.T, link transport.Link, m *jsonrpc.Outgoing) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := link.Do(t.Context(), m, transport.Route{})
		done <- err
	}()
	return done
}

// What is no message is passed over; a message may have several lines.
func TestEvents(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newScript()
	link, _ := connect(t, s, 0)
	done := make(chan struct{})
	var m *jsonrpc.Incoming
	var err error
	go func() {
		defer close(done)
		m, err = link.Do(t.Context(), ask(1, `{}`), transport.Route{})
	}()
	got := <-s.posts            // an answer before that would be none
	s.statuses <- http.StatusOK // some old servers say so
	s.events <- ":\n\nevent: ping\ndata: now\n\ndata:\n\nretry: 1\n\nevent: endpoint\ndata: https://evil.example\n\n" +
		"id: 7\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\r\ndata:\"result\":{\"a\":1}}\n\n"
	<-done
	if err != nil || string(m.Result.Raw()) != `{"a":1}` {
		t.Errorf("the answer is %v, %v; want the result", m, err)
	}
	if want := `{"jsonrpc":"2.0","id":1,"method":"kit/echo","params":{}}`; got != want {
		t.Errorf("%s was posted, want %s", got, want)
	}
}

// A message that cannot be posted is the end, and the error says why.
func TestPostFails(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newScript()
	link, in := connect(t, s, 0)
	done := begin(t, link, ask(1, `{}`))
	<-s.posts
	s.statuses <- http.StatusBadGateway
	var failed *web.StatusError
	if err := <-done; !errors.Is(err, transport.ErrInterrupted) || !errors.As(err, &failed) || failed.Status != http.StatusBadGateway {
		t.Errorf("the request ended with %v, want ErrInterrupted and a StatusError with 502", err)
	}
	if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) || !errors.As(err, &failed) {
		t.Errorf("the link ended with %v, want ErrClosed and a StatusError", err)
	}
}

// Proves: SEC-DOS-1. The server's limit is met by requests alone, by answers
// with an error in their place, and by notifications without a trace.
func TestTooLargeForServer(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newScript()
	link, in := connect(t, s, 0)
	done := begin(t, link, ask(1, `{"big":1}`))
	<-s.posts
	s.statuses <- http.StatusRequestEntityTooLarge
	var failed *web.StatusError
	if err := <-done; errors.Is(err, transport.ErrInterrupted) || !errors.As(err, &failed) || failed.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("the request ended with %v, want a StatusError with 413, and that it has not run", err)
	}
	for _, m := range []*jsonrpc.Outgoing{
		notice(),
		{ID: jsonrpc.IntID(9), Result: jsonrpc.Raw(jsonrpc.RawValue(`{"big":1}`))},
	} {
		if err := link.Post(t.Context(), m, transport.Route{}); err != nil {
			t.Fatal(err)
		}
		<-s.posts
		s.statuses <- http.StatusRequestEntityTooLarge
	}
	if got := <-s.posts; !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":9,"error":{`) {
		t.Errorf("in place of the answer %s was posted, want an error", got)
	}
	s.statuses <- http.StatusAccepted
	done = begin(t, link, ask(2, `{}`))
	<-s.posts
	s.statuses <- http.StatusAccepted
	s.events <- "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n"
	if err := <-done; err != nil {
		t.Errorf("the next request ended with %v, want its answer", err)
	}
	select {
	case err := <-in.Ended:
		t.Errorf("the link ended with %v", err)
	default:
	}
}

// A request that the server refuses as one of too many ends with that; another
// one that it works on goes on.
func TestTooManyForServer(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newScript()
	link, _ := connect(t, s, 0)
	first := begin(t, link, ask(1, `{}`))
	<-s.posts
	s.statuses <- http.StatusAccepted
	second := begin(t, link, ask(2, `{}`))
	<-s.posts
	s.statuses <- http.StatusTooManyRequests
	var refused *transport.TemporaryError
	if err := <-second; errors.Is(err, transport.ErrInterrupted) || !errors.As(err, &refused) || !refused.NotRun {
		t.Errorf("the request ended with %v, want that it has not run", err)
	}
	s.events <- "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
	if err := <-first; err != nil {
		t.Errorf("the request before ended with %v, want its answer", err)
	}
}

// A server that refuses everything as too large is not asked for ever.
func TestEverythingTooLarge(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newScript()
	link, in := connect(t, s, 0)
	for range 2 {
		s.statuses <- http.StatusRequestEntityTooLarge
	}
	if err := link.Post(t.Context(), &jsonrpc.Outgoing{ID: jsonrpc.IntID(9), Result: jsonrpc.Empty()}, transport.Route{}); err != nil {
		t.Fatal(err)
	}
	if err := <-in.Ended; !strings.Contains(err.Error(), "413") {
		t.Errorf("the link ended with %v, want the refusal", err)
	}
}

// Proves: SEC-DOS-1.
func TestTooLargeForClient(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newScript()
	_, in := connect(t, s, 1000)
	s.events <- "data: " + strings.Repeat("x", 10_000) + "\n\n"
	if err := <-in.Ended; !strings.Contains(err.Error(), "limit") {
		t.Errorf("the link ended with %v, want the limit", err)
	}
}

// The server ends the stream with a request under way.
func TestStreamEnds(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newScript()
	link, in := connect(t, s, 0)
	s.statuses <- http.StatusAccepted
	done := begin(t, link, ask(1, `{}`))
	<-s.posts
	close(s.events)
	if err := <-done; !errors.Is(err, transport.ErrInterrupted) {
		t.Errorf("the request ended with %v, want ErrInterrupted", err)
	}
	if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the link ended with %v, want ErrClosed", err)
	}
	if _, err := link.Do(t.Context(), ask(2, `{}`), transport.Route{}); err == nil || errors.Is(err, transport.ErrInterrupted) {
		t.Errorf("a request after the end gives %v, want an error that says it has not run", err)
	}
}

// A message whose POST is not answered does not keep Close.
func TestCloseDuringPost(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newScript()
	link, _ := connect(t, s, 0)
	done := begin(t, link, ask(1, `{}`))
	<-s.posts
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = link.Close(ctx) // may say that it was impolite
	if err := <-done; err == nil {
		t.Error("the request has an answer")
	}
}

// Two requests with one id: the second is refused, the first goes on.
func TestSameID(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newScript()
	link, _ := connect(t, s, 0)
	first := begin(t, link, ask(1, `{}`))
	<-s.posts
	if err := <-begin(t, link, ask(1, `{}`)); err == nil {
		t.Error("a second request with the id in use was sent")
	}
	s.statuses <- http.StatusRequestEntityTooLarge
	if err := <-first; err == nil || !strings.Contains(err.Error(), "413") {
		t.Errorf("the first request ended with %v, want its refusal", err)
	}
}
