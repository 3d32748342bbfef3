package streamable_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// serve serves one function over HTTP, until the test ends.
func serve(t testing.TB, f http.HandlerFunc) string {
	t.Helper()
	return webtest.Serve(t, f).URL
}

// idOf reads the id of a request.
func idOf(r *http.Request) string {
	m, _ := linktest.Read(r)
	return m.ID
}

// Requests that can be answered one after the other need one connection.
func TestConnectionsAreReused(t *testing.T) {
	mcptest.NoLeaks(t)
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answerTo(idOf(r)))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	link, _ := dial(t, streamable.URL(s.URL))
	for range 10 {
		if _, err := do(t, link); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// A server that is not there has carried nothing out.
func TestDialFails(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	link, _ := dial(t, streamable.URL(s.URL+"/mcp?token=hunter2"))
	_, err := do(t, link)
	certain(t, err)
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error repeats a secret: %v", err)
	}
	certain(t, link.Post(t.Context(), &jsonrpc.Outgoing{Method: "test/note"}, transport.Route{}))
}

// A certificate that cannot be trusted has carried nothing out either.
func TestUntrusted(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	link, _ := dial(t, streamable.URL(s.URL))
	_, err := do(t, link)
	certain(t, err)
}

// A connection that breaks after the request has arrived leaves it open
// whether it was carried out.
func TestConnectionBreaks(t *testing.T) {
	for name, head := range map[string]string{
		"at once":   "",
		"in a body": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"json",
		"in events": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\nid: 1\ndata:\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(c, head)
				_ = c.Close()
			})
			link, _ := dial(t, streamable.URL(url))
			_, err := do(t, link)
			unsure(t, err)
		})
	}
}

// Proves: SEC-AUTH-1. Credentials and messages go nowhere else; within the
// origin a redirect that repeats the request is followed.
func TestRedirects(t *testing.T) {
	var elsewhere atomic.Int64
	other := serve(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	for _, test := range []struct {
		status int
		to     string
		ok     bool
	}{
		{307, "/new", true}, {308, "/new", true}, {302, "/new", false}, {307, other, false}, {307, "/", false}, // the last is a circle
	} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/new" && r.Header.Get("X-Mine") == "yes" {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answerTo(idOf(r)))
				return
			}
			http.Redirect(w, r, test.to, test.status)
		})
		link, _ := dial(t, &streamable.Dialer{URL: url, Header: func(context.Context) (http.Header, error) {
			return http.Header{"X-Mine": {"yes"}}, nil
		}})
		_, err := do(t, link)
		var status *web.StatusError
		if test.ok && err != nil || !test.ok && (!errors.As(err, &status) || errors.Is(err, transport.ErrInterrupted)) {
			t.Errorf("%d to %s: error is %v", test.status, test.to, err)
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests went to another origin", n)
	}
}

// Proves: FLOW-SHUTDOWN. A session that the server has forgotten ends the
// link: the request that found out was not carried out, others may have been.
func TestSessionLost(t *testing.T) {
	for name, body := range map[string]string{"plain": "gone", "error": rpcError("null", -32001), "odd error": rpcError(`"server-error"`, -32600), "error for the request": rpcError("2", -32601)} {
		synctest.Test(t, func(t *testing.T) {
			far := &farEnd{session: "s-1", post: func(c *farCall) *http.Response {
				if c.name == "slow" {
					return c.stream(event("1", ""), nil)
				}
				return reply(404, "application/json", body)
			}}
			link, in := far.established(t, nil)
			slow := make(chan error)
			go func() {
				_, err := link.Do(t.Context(), ask(1, "slow"), transport.Route{})
				slow <- err
			}()
			synctest.Wait()
			_, err := link.Do(t.Context(), ask(2, "tools/call"), transport.Route{})
			certain(t, err)
			unsure(t, <-slow)
			_, err = link.Do(t.Context(), ask(3, "tools/call"), transport.Route{})
			certain(t, err)
			certain(t, link.Post(t.Context(), &jsonrpc.Outgoing{Method: "test/note"}, transport.Route{}))
			if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) {
				t.Errorf("%s: the inbox was told %v, want ErrClosed", name, err)
			}
			shut(t, link, in)
			if n := len(far.seen(http.MethodDelete)); n != 0 {
				t.Error("the end of a session that is lost was told to the server")
			}
		})
	}
}

// Requests at once in a session that is lost are each refused: none is cut off because another one
// heard of it first, which would leave open whether it ran.
// Proves: Ruling 40.
func TestSessionLostByManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{session: "s-1", post: func(c *farCall) *http.Response {
			if c.name == "later" {
				time.Sleep(100 * time.Millisecond) // in the bubble's time
			}
			return reply(404, "", "")
		}}
		link, in := far.established(t, quiet)
		var wg sync.WaitGroup
		for id, name := range []string{"at once", "later", "later"} {
			wg.Go(func() {
				_, err := link.Do(t.Context(), ask(int64(id+1), name), transport.Route{})
				certain(t, err)
			})
		}
		wg.Wait()
		shut(t, link, in)
	})
}

// What has no status soon is cut off, and may have run; who waits no longer does not wait for it.
func TestSessionLostDuringARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{session: "s-1", post: func(c *farCall) *http.Response {
			if c.name == "slow" {
				<-c.Context().Done()
				return nil
			}
			return reply(404, "", "")
		}}
		link, _ := far.established(t, quiet)
		slow := make(chan error)
		go func() {
			_, err := link.Do(t.Context(), ask(1, "slow"), transport.Route{})
			slow <- err
		}()
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := link.Do(ctx, ask(2, "tools/call"), transport.Route{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who waits no longer: %v", err)
		}
		if waited := time.Since(began); waited > 10*time.Millisecond {
			t.Errorf("who waits no longer waited %v", waited)
		}
		unsure(t, <-slow)
	})
}

// A notification can find out too.
func TestSessionLostByPost(t *testing.T) {
	far := &farEnd{session: "s-1", post: func(*farCall) *http.Response { return reply(404, "", "") }}
	link, in := far.established(t, nil)
	certain(t, link.Post(t.Context(), &jsonrpc.Outgoing{Method: "test/note"}, transport.Route{}))
	<-in.Ended //nolint:errcheck // why is told elsewhere
}

// A 404 is not the end of a session if there is none.
func TestNotFoundIsNoEnd(t *testing.T) {
	far := &farEnd{post: func(c *farCall) *http.Response {
		return reply(404, "application/json", rpcError(c.id, -32601))
	}}
	link, in := far.established(t, nil)
	m, err := link.Do(t.Context(), ask(1, "no/such"), transport.Route{})
	if err != nil || m.Error == nil {
		t.Errorf("answer %v, error %v, want an error in the answer", m, err)
	}
	if in.IsClosed() {
		t.Error("the link has ended")
	}
}

// A 404 to the DELETE that ends a session is none of the caller's business.
func TestNotFoundAtTheEnd(t *testing.T) {
	far := &farEnd{session: "s-1", bury: func(*farCall) *http.Response { return reply(404, "", "") }}
	link, in := far.established(t, nil)
	shut(t, link, in)
	if n := len(far.seen(http.MethodDelete)); n != 1 {
		t.Errorf("the end of the session was told %d times, want once", n)
	}
}

// A server that says in words that it does not know the session has lost it, and
// the request may have run; in a session in which it has answered nothing yet, or
// where the words are those of a result, they are the answer.
// Proves: Ruling 40.
func TestSessionLostInWords(t *testing.T) {
	const kind = "application/json"
	say := func(words string) string {
		return `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"` + words + `"}}`
	}
	for name, test := range map[string]struct {
		status     int
		kind, body string
		fresh      bool // the session has no answer yet
		lost       bool
	}{
		"error":                        {400, kind, say("Bad Request: No valid session ID provided"), false, true},
		"text":                         {400, "text/plain", "Invalid session ID\n", false, true},
		"other JSON":                   {400, kind, `{"error":"Invalid or missing session ID"}`, false, true},
		"with the id":                  {400, kind, say("Session s-1 not found"), false, true},
		"with more words":              {400, kind, say("Bad Request: No valid session ID or not an initialize request"), false, true},
		"by its id":                    {400, kind, say("Session with ID s-1 not found"), false, true},
		"as code writes it":            {400, kind, say("sessionId not found"), false, true},
		"200":                          {200, kind, say("Unknown session: s-1"), false, true},
		"200, no message":              {200, kind, `{"error":"Session not found"}`, false, true},
		"200, no message, as a stream": {200, "text/event-stream", event("", `{"error":"Session not found"}`), false, true},
		"200, as a stream":             {200, "text/event-stream", event("", say("mcp-session-id: the session has expired")), false, true},
		"fresh":                        {200, kind, say("Session not found"), true, true},
		"fresh, 400":                   {400, kind, say("Session not found"), true, true},
		"not initialized":              {400, kind, say("Bad Request: Server not initialized"), false, true},
		"not initialized, 200":         {200, kind, strings.Replace(say("Server not initialized"), "-32000", "-32002", 1), false, true},
		"no active session":            {400, kind, say("No active session"), false, true},
		"401":                          {401, "text/plain", "Unauthorized: Session not found", false, true},
		"401, error":                   {401, kind, say("Session not found"), false, true},
		"403":                          {403, kind, `{"error":"Unknown session"}`, false, true},
		"another error":                {200, kind, say("the session of the browser shows no page"), false, false},
		"another session":              {200, kind, say("invalid session token for the shop"), false, false},
		"a session in a shell":         {200, kind, say("Unknown session ID 5"), false, false},
		"a page to visit":              {200, kind, strings.Replace(say("Your session has expired"), "-32000", "-32042", 1), false, false},
		"a resource":                   {200, kind, strings.Replace(say("Session not found"), "-32000", "-32002", 1), false, false},
		"another error, by 400":        {400, kind, say("session: limit of sessions reached"), false, false},
		"result":                       {200, kind, `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Session not found"}],"isError":true}}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			far := &farEnd{session: "s-1", post: func(c *farCall) *http.Response {
				switch c.name {
				case "":
					return reply(202, "", "")
				case "ping":
					return reply(200, kind, answerTo(c.id))
				}
				return reply(test.status, test.kind, test.body)
			}}
			link, in := far.established(t, quiet)
			if !test.fresh {
				if _, err := link.Do(t.Context(), ask(1, "ping"), transport.Route{}); err != nil {
					t.Fatal(err)
				}
			}
			m, err := link.Do(t.Context(), ask(2, "tools/call"), transport.Route{})
			if !test.lost {
				if err != nil || m == nil || in.IsClosed() {
					t.Errorf("answer %v, error %v, link ended: %v; want the answer", m, err, in.IsClosed())
				}
				return
			}
			if unsure := errors.Is(err, transport.ErrInterrupted); !errors.Is(err, transport.ErrClosed) || unsure != (test.status == 200 || test.status == 400) {
				t.Errorf("error %v, want ErrClosed, and ErrInterrupted unless the request was refused", err)
			}
			if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) {
				t.Errorf("the inbox was told %v, want ErrClosed", err)
			}
		})
	}
}

// A 401 that asks for credentials, or has other words, is no lost session.
// Proves: Ruling 40.
func TestUnauthorizedIsNoLostSession(t *testing.T) {
	for name, answer := range map[string]struct{ challenge, words string }{
		"a challenge": {"Bearer", "Session not found"},
		"other words": {"", "Your token has expired"},
	} {
		far := &farEnd{session: "s-1", post: func(c *farCall) *http.Response {
			if c.name == "" {
				return reply(202, "", "")
			}
			resp := reply(401, "text/plain", answer.words)
			if answer.challenge != "" {
				resp.Header.Set("WWW-Authenticate", answer.challenge)
			}
			return resp
		}}
		link, in := far.established(t, quiet)
		_, err := link.Do(t.Context(), ask(2, "tools/call"), transport.Route{})
		if !errors.Is(err, transport.ErrDenied) || in.IsClosed() {
			t.Errorf("%s: error %v, link ended: %v; want ErrDenied", name, err, in.IsClosed())
		}
	}
}

// Proves: FLOW-SHUTDOWN. Close tells the server, ends all that is under way
// and leaves nothing, whatever the state of the link.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{session: "s-1", post: func(c *farCall) *http.Response {
			if c.name == "silent" {
				<-c.Context().Done()
				return nil
			}
			return c.stream(event("1", ""), nil)
		}, get: func(c *farCall) *http.Response { return c.stream(": open\n\n", nil) }}
		link, in := far.established(t, nil)
		done := make(chan error)
		for id, method := range []string{"silent", "streaming"} {
			go func() {
				_, err := link.Do(t.Context(), ask(int64(id+1), method), transport.Route{})
				done <- err
			}()
		}
		synctest.Wait()
		shut(t, link, in)
		unsure(t, <-done)
		unsure(t, <-done)
		if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("the inbox was told %v, want ErrClosed", err)
		}
		ends := far.seen(http.MethodDelete)
		if len(ends) != 1 || ends[0].Header.Get("Mcp-Session-Id") != "s-1" {
			t.Errorf("%d DELETEs, want one for the session", len(ends))
		}
		_, err := link.Do(t.Context(), ask(3, "tools/call"), transport.Route{})
		certain(t, err)
		certain(t, link.Post(t.Context(), &jsonrpc.Outgoing{Method: "test/note"}, transport.Route{}))
		if err := link.Establish(t.Context(), transport.Established{Version: primed, Handshake: true}); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("establishing a closed link: %v, want ErrClosed", err)
		}
	})
}

// Close tells the server of a session that was begun and not agreed on, and
// no more of one that was not.
func TestCloseUnsettled(t *testing.T) {
	for _, session := range []string{"", "s-1"} {
		far := &farEnd{session: session}
		link, in := far.near(t, nil)
		if _, err := link.Do(t.Context(), ask(1, "initialize"), transport.Route{}); err != nil {
			t.Fatal(err)
		}
		shut(t, link, in)
		if n := len(far.seen(http.MethodDelete)); n != len(session)/3 {
			t.Errorf("session %q: %d DELETEs", session, n)
		}
	}
}

// Proves: FLOW-SHUTDOWN. A server that does not answer holds Close up for two
// seconds, one that refuses not at all, and an ended context leaves no time.
func TestCloseIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		bury  func(c *farCall) *http.Response
		ended bool
		want  time.Duration
		sent  int
	}{
		"silent":  {func(c *farCall) *http.Response { <-c.Context().Done(); return nil }, false, 2 * time.Second, 1},
		"refuses": {func(*farCall) *http.Response { return reply(405, "", "") }, false, 0, 1},
		"broken":  {func(*farCall) *http.Response { return nil }, false, 0, 1},
		"hurried": {nil, true, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			far := &farEnd{session: "s-1", bury: test.bury}
			link, _ := far.established(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.ended {
				cancel()
			}
			begun := time.Now()
			if err := link.Close(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(begun); took != test.want {
				t.Errorf("%s: close took %v, want %v", name, took, test.want)
			}
			if n := len(far.seen(http.MethodDelete)); n != test.sent {
				t.Errorf("%s: %d DELETEs, want %d", name, n, test.sent)
			}
		})
	}
}

// Close waits for requests, also for those that take their time to end.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		far := &farEnd{post: func(*farCall) *http.Response {
			<-release // whatever the context says
			return nil
		}}
		link, in := far.near(t, nil)
		go func() { _, _ = link.Do(t.Context(), ask(1, "tools/call"), transport.Route{}) }() // its end is what counts
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			shut(t, link, in)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close did not wait for a request under way")
		default:
		}
		close(release)
		<-closed
	})
}

// Several may close at once; each returns when nothing is left.
func TestCloseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{session: "s-1", bury: func(*farCall) *http.Response {
			time.Sleep(time.Second) // in the bubble's time
			return reply(204, "", "")
		}}
		link, in := far.established(t, nil)
		for range 4 {
			go shut(t, link, in)
		}
		shut(t, link, in)
	})
}

func TestEstablishUnknown(t *testing.T) {
	link, _ := (&farEnd{}).near(t, nil)
	if err := link.Establish(t.Context(), transport.Established{Version: "1999-01-01", Handshake: true}); err == nil {
		t.Error("a revision that nobody knows was established")
	}
}

// A second handshake ends the first session.
func TestEstablishAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{session: "s-1", get: func(c *farCall) *http.Response { return c.stream("", nil) }}
		link, _ := far.established(t, nil)
		synctest.Wait()
		far.session = "s-2"
		shake(t, link, primed)
		synctest.Wait()
		ends, streams := far.seen(http.MethodDelete), far.seen(http.MethodGet)
		if len(ends) != 1 || ends[0].Header.Get("Mcp-Session-Id") != "s-1" {
			t.Errorf("%d DELETEs, want one for the first session", len(ends))
		}
		if len(streams) != 2 || streams[0].Context().Err() == nil || streams[1].Context().Err() != nil {
			t.Errorf("%d streams, want the second alone to be open", len(streams))
		}
	})
}

// Many requests at once, with answers of both forms, over real connections.
func TestConcurrent(t *testing.T) {
	mcptest.NoLeaks(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		id := idOf(r)
		if r.Header.Get("Mcp-Name") == "stream" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, event("", note(1))+event("", answerTo(id)))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answerTo(id))
	})
	in := linktest.NewInbox()
	link, err := streamable.URL(url).Dial(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for _, name := range []string{"stream", "whole", "stream", "whole"} {
		go func() {
			var failed error
			for range 50 {
				r := modernRoute("tools/call")
				r.Name = name
				_, err := link.Do(t.Context(), ask(1, "tools/call"), r)
				failed = errors.Join(failed, err)
			}
			errs <- failed
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	shut(t, link, in)
	if n := len(in.Messages); n != 100 {
		t.Errorf("%d notes arrived, want 100", n)
	}
}
