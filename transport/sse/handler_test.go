package sse_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/web"
)

// Proves: MSG-4 (202 without a body).
func TestStream(t *testing.T) {
	mcptest.NoLeaks(t)
	mux := http.NewServeMux()
	mux.Handle("/deep/", http.StripPrefix("/deep", sse.NewHandler(mcptest.TransportPeer(), nil)))
	s := webtest.Serve(t, mux)
	p := open(t, s.Client(), s.URL+"/deep/s%2Fse?tenant=a%26b&sessionId=mine", nil)
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no",
	} {
		if got := p.response.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := p.url.EscapedPath(); got != "/deep/s%2Fse" {
		t.Errorf("messages go to the path %s, want that of the stream as the client sees it", got)
	}
	if q := p.url.Query(); q.Get("tenant") != "a&b" || len(q["sessionId"]) != 1 || len(q.Get("sessionId")) < 20 {
		t.Errorf("the query for messages is %v, want that of the stream with a session of the server's", q)
	}
	for range 3 {
		if got := p.ask(echo); got != echoed {
			t.Errorf("the answer is %s, want %s", got, echoed)
		}
	}
	code, body, _ := p.postHeader(free, nil)
	if code != http.StatusAccepted || body != "" {
		t.Errorf("a notification is answered %d %q, want 202 without a body", code, body)
	}
	if got := p.ask(`{"id":`); !strings.Contains(got, `"code":-32700`) {
		t.Errorf("what is no JSON is answered %s on the stream, want a parse error", got)
	}
	if got := p.ask(echo); got != echoed {
		t.Errorf("after it the answer is %s, want %s", got, echoed)
	}
}

// The path may look like a host, which clients would refuse.
func TestEndpointNamesNoHost(t *testing.T) {
	s := webtest.Serve(t, sse.NewHandler(mcptest.TransportPeer(), nil))
	p := open(t, s.Client(), s.URL+"//evil.example/sse", nil)
	if p.url.Host != strings.TrimPrefix(s.URL, "http://") {
		t.Errorf("messages go to %s, want the server itself", p.url)
	}
}

// Proves: SEC-HTTP-1.
func TestRefusals(t *testing.T) {
	mcptest.NoLeaks(t)
	const limit = 1000
	s := webtest.Serve(t, sse.NewHandler(mcptest.TransportPeer(), &sse.Options{MaxMessage: limit}))
	p := open(t, s.Client(), s.URL, nil)
	json := func(h http.Header) http.Header {
		all := http.Header{"Content-Type": {"application/json"}}
		for name, values := range h {
			all[name] = values
		}
		return all
	}
	big := func() io.Reader { return strings.NewReader(strings.Repeat("x", limit+1)) }
	for _, test := range []struct {
		name, method, url string
		header            http.Header
		body              io.Reader
		want              int
	}{
		{"method", http.MethodDelete, p.url.String(), nil, nil, http.StatusMethodNotAllowed},
		{"head", http.MethodHead, s.URL, nil, nil, http.StatusMethodNotAllowed},
		{"no session", http.MethodPost, s.URL, json(nil), strings.NewReader(echo), http.StatusNotFound},
		{"foreign session", http.MethodPost, s.URL + "?sessionId=ABCDEFGHIJKLMNOPQRSTUVWXYZ", json(nil), strings.NewReader(echo), http.StatusNotFound},
		{"no type", http.MethodPost, p.url.String(), nil, strings.NewReader(echo), http.StatusUnsupportedMediaType},
		{"form", http.MethodPost, p.url.String(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, strings.NewReader(echo), http.StatusUnsupportedMediaType},
		{"text", http.MethodPost, p.url.String(), http.Header{"Content-Type": {"text/plain"}}, strings.NewReader(echo), http.StatusUnsupportedMediaType},
		{"compressed", http.MethodPost, p.url.String(), json(http.Header{"Content-Encoding": {"gzip"}}), strings.NewReader(echo), http.StatusUnsupportedMediaType},
		{"too large", http.MethodPost, p.url.String(), json(nil), big(), http.StatusRequestEntityTooLarge},
		{"too large, unannounced", http.MethodPost, p.url.String(), json(nil), io.MultiReader(big()), http.StatusRequestEntityTooLarge},
		{"foreign page, stream", http.MethodGet, s.URL, http.Header{"Origin": {"https://evil.example"}}, nil, http.StatusForbidden},
		{"foreign page, message", http.MethodPost, p.url.String(), json(http.Header{"Origin": {"https://evil.example"}}), strings.NewReader(echo), http.StatusForbidden},
		{"rebound name, stream", http.MethodGet, s.URL, http.Header{"Host": {"evil.example"}}, nil, http.StatusForbidden},
		{"rebound name, message", http.MethodPost, p.url.String(), json(http.Header{"Host": {"evil.example"}}), strings.NewReader(echo), http.StatusForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, body, header := status(t, s.Client(), test.method, test.url, test.header, test.body)
			if code != test.want {
				t.Errorf("the status is %d, want %d", code, test.want)
			}
			if code == http.StatusMethodNotAllowed && header.Get("Allow") != "GET, POST" {
				t.Errorf("Allow is %q, want GET, POST", header.Get("Allow"))
			}
			if test.method != http.MethodHead && !strings.Contains(body, `"error":{`) {
				t.Errorf("the body is %q, want an error for people", body)
			}
		})
	}
	if got := p.ask(`{"jsonrpc":"2.0","id":1,"method":"kit/echo","params":{"n":1}}` + strings.Repeat(" ", limit-len(echo))); got != echoed {
		t.Errorf("after all that, a message of the largest size is answered %s, want %s", got, echoed)
	}
}

// byName takes the caller's name from a header.
func byName(r *http.Request) *principal.Principal {
	return &principal.Principal{Subject: r.Header.Get("X-Name"), Remote: "192.0.2.1"}
}

// Proves: SEC-HTTP-1 (sessions are bound to the user).
func TestOtherUser(t *testing.T) {
	s := webtest.Serve(t, sse.NewHandler(mcptest.TransportPeer(), &sse.Options{Access: web.Access{Principal: byName}}))
	p := open(t, s.Client(), s.URL, http.Header{"X-Name": {"ada"}})
	_, unknown, _ := status(t, s.Client(), http.MethodPost, s.URL+"?sessionId=x", http.Header{"Content-Type": {"application/json"}}, strings.NewReader(echo))
	for _, name := range []string{"eve", ""} {
		code, body, _ := p.postHeader(echo, http.Header{"X-Name": {name}})
		if code != http.StatusNotFound || body != unknown {
			t.Errorf("a message of %q is answered %d %s, want what an unknown session is answered: 404 %s", name, code, body, unknown)
		}
	}
	if got := p.ask(echo); got != echoed {
		t.Errorf("the owner's message is answered %s, want %s", got, echoed)
	}
}

// Proves: SEC-DOS-1.
func TestMaxSessions(t *testing.T) {
	mcptest.NoLeaks(t)
	h, ended := watch()
	s := webtest.Serve(t, sse.NewHandler(h, &sse.Options{
		Access: web.Access{Principal: byName}, MaxSessions: 3, MaxSessionsPerPrincipal: 2,
	}))
	ada, bob := http.Header{"X-Name": {"ada"}}, http.Header{"X-Name": {"bob"}}
	refused := func(who http.Header) {
		t.Helper()
		code, _, header := status(t, s.Client(), http.MethodGet, s.URL, who, nil)
		if code != http.StatusTooManyRequests || header.Get("Retry-After") == "" {
			t.Errorf("one stream too many is answered %d with Retry-After %q, want 429 with one", code, header.Get("Retry-After"))
		}
	}
	first := open(t, s.Client(), s.URL, ada)
	open(t, s.Client(), s.URL, ada)
	refused(ada)
	open(t, s.Client(), s.URL, bob)
	refused(bob)
	first.hang()
	if err := <-ended; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the session ended with %v, want ErrClosed", err)
	}
	// The session is forgotten a moment after the handler was told.
	for code := http.StatusAccepted; code != http.StatusNotFound; {
		code = first.post(free)
	}
	open(t, s.Client(), s.URL, ada)
}

// Anonymous callers of one address are counted together and named callers one
// by one; a refusal says which limit it was.
func TestMaxSessionsPerAddress(t *testing.T) {
	mcptest.NoLeaks(t)
	s := webtest.Serve(t, sse.NewHandler(mcptest.TransportPeer(), &sse.Options{
		Access: web.Access{Principal: byName}, MaxSessionsPerPrincipal: 1, MaxSessionsPerAddress: 2,
	}))
	refused := func(who http.Header, want string) {
		t.Helper()
		code, body, _ := status(t, s.Client(), http.MethodGet, s.URL, who, nil)
		if code != http.StatusTooManyRequests || !strings.Contains(body, want) {
			t.Errorf("one stream too many is answered %d %s, want 429 and %s", code, body, want)
		}
	}
	ada := http.Header{"X-Name": {"ada"}}
	open(t, s.Client(), s.URL, nil)
	open(t, s.Client(), s.URL, nil)
	refused(nil, "MaxSessionsPerAddress")
	open(t, s.Client(), s.URL, ada)
	refused(ada, "MaxSessionsPerPrincipal")
}

// Anonymous callers leave a tenth of the streams to those with a name, and a
// stream that is open goes on.
//
// Proves: SEC-DOS-1.
func TestAttackFullOfStreams(t *testing.T) {
	mcptest.NoLeaks(t)
	s := webtest.Serve(t, sse.NewHandler(mcptest.TransportPeer(), &sse.Options{Access: web.Access{Principal: byName}, MaxSessions: 10}))
	refused := func(who http.Header, want string) {
		t.Helper()
		code, body, _ := status(t, s.Client(), http.MethodGet, s.URL, who, nil)
		if code != http.StatusTooManyRequests || !strings.Contains(body, want) {
			t.Errorf("one stream too many is answered %d %s, want 429 and %s", code, body, want)
		}
	}
	last := open(t, s.Client(), s.URL, nil)
	for range 8 {
		open(t, s.Client(), s.URL, nil)
	}
	refused(nil, "9 streams open, which is the most of them together (nine tenths of MaxSessions)")
	open(t, s.Client(), s.URL, http.Header{"X-Name": {"ada"}})
	refused(http.Header{"X-Name": {"bob"}}, "10 streams open, which is the most it takes (MaxSessions)")
	if code := last.post(`{"jsonrpc":"2.0","method":"kit/none"}`); code != http.StatusAccepted {
		t.Errorf("a stream that is open answers %d", code)
	}
}

// Proves: SEC-DOS-1. All times are the defaults, on the bubble's clock.
func TestStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ended := watch()
		m := webtest.ServeMemory(t, sse.NewHandler(h, nil))
		c := m.Conn()
		address := request(t, c, "localhost")
		begun := time.Now()
		post := `{"jsonrpc":"2.0","id":1,"method":"kit/notify","params":{"count":100,"size":4096}}`
		code, _, _ := status(t, m.Client(), http.MethodPost, address, http.Header{"Content-Type": {"application/json"}}, strings.NewReader(post))
		if code != http.StatusAccepted {
			t.Fatalf("POST: %d", code)
		}
		if err := <-ended; !errors.Is(err, transport.ErrClosed) && !errors.Is(err, transport.ErrStalled) {
			t.Errorf("the session of a client that does not read ended with %v, want ErrClosed or ErrStalled", err)
		}
		if d := time.Since(begun); d < 30*time.Second || d > 40*time.Second {
			t.Errorf("that took %v, want half a minute", d)
		}
	})
}

// Messages are taken also while a write waits for the client to read.
func TestReadsDuringWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conn transport.Conn
		var begun atomic.Int32
		h := &linktest.Handler{
			Handler: mcptest.TransportPeer(),
			OnOpen:  func(c transport.Conn) error { conn = c; return nil },
			OnBegin: func(ctx context.Context, x *transport.Exchange, s transport.Session) func() {
				if begun.Add(1) == 1 { // before the reader comes back for the next message
					go func() {
						for conn.Send(ctx, &jsonrpc.Outgoing{Method: "kit/tick", Params: jsonrpc.JSON(map[string]string{"x": strings.Repeat("x", 4096)})}) == nil {
						}
					}()
					synctest.Wait()
				}
				return s.Begin(ctx, x)
			},
		}
		m := webtest.ServeMemory(t, sse.NewHandler(h, nil))
		c := m.Conn()
		address := request(t, c, "localhost")
		start := time.Now()
		for range 2 {
			if code, _, _ := status(t, m.Client(), http.MethodPost, address, http.Header{"Content-Type": {"application/json"}}, strings.NewReader(echo)); code != http.StatusAccepted {
				t.Errorf("POST: %d, want 202", code)
			}
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("messages were taken after %v, when the write that waited had ended", d)
		}
		synctest.Wait()
		if n := begun.Load(); n != 2 {
			t.Errorf("%d requests have begun, want 2", n)
		}
		_ = c.Close()
	})
}

// A client that vanished without a word is noticed by the sign of life that it
// does not take.
func TestSilentVanishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ended := watch()
		m := webtest.ServeMemory(t, sse.NewHandler(h, nil))
		c := m.Conn()
		request(t, c, "localhost")
		begun := time.Now()
		if err := <-ended; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("the session ended with %v, want ErrClosed", err)
		}
		if d := time.Since(begun); d != 45*time.Second {
			t.Errorf("that took %v, want 15 s of silence and 30 s of patience", d)
		}
	})
}

// What is refused leaves no deadline behind on a connection that goes on.
func TestRefusedConnectionGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := webtest.ServeMemory(t, sse.NewHandler(mcptest.TransportPeer(), &sse.Options{MaxSessions: 1}))
		p := open(t, m.Client(), "http://localhost/sse", nil)
		go func() { _, _ = io.Copy(io.Discard, p.response.Body) }() // ends with the stream
		c := m.Conn()
		r := bufio.NewReader(c)
		const post = "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
		for _, step := range []struct {
			request string
			want    int
		}{
			{"GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusTooManyRequests},
			{fmt.Sprintf(post, p.url.RequestURI(), len(free), free), http.StatusAccepted},
			{fmt.Sprintf(post, "/sse?sessionId=x", len(free), free), http.StatusNotFound},
			{"GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusTooManyRequests},
		} {
			if _, err := io.WriteString(c, step.request); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != step.want {
				t.Fatalf("the status is %d, want %d", resp.StatusCode, step.want)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			time.Sleep(time.Hour)
		}
	})
}

// A client that does not even read what it is refused is not waited for.
//
// Proves: SEC-DOS-1.
func TestAnswerNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := webtest.ServeMemory(t, sse.NewHandler(mcptest.TransportPeer(), nil))
		c := m.Conn()
		if _, err := io.WriteString(c, "DELETE /sse HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("after a minute %d bytes are still there to read, want the end", n)
		}
	})
}

// A handler that panics while it takes a message ends its session, and with it
// the messages that wait.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := &linktest.Handler{Handler: mcptest.TransportPeer(), OnBegin: func(context.Context, *transport.Exchange, transport.Session) func() {
			<-release
			panic("planted")
		}}
		m := webtest.ServeMemory(t, sse.NewHandler(h, nil))
		p := open(t, m.Client(), "http://localhost/sse", nil)
		if code := p.post(echo); code != http.StatusAccepted {
			t.Fatalf("POST: %d, want 202", code)
		}
		go func() {
			synctest.Wait() // the next message waits for the reader
			close(release)
		}()
		if code := p.post(echo); code != http.StatusServiceUnavailable {
			t.Errorf("a message that waits is answered %d, want 503", code)
		}
		if e, err := p.events.Next(); err == nil {
			t.Errorf("the stream goes on with %v, want its end", e)
		}
	})
}

// request sends a GET by hand, reads up to the address for messages, and then
// nothing more.
func request(t *testing.T, c io.ReadWriter, host string) (address string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET /sse HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
		t.Fatal(err)
	}
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if path, ok := strings.CutPrefix(line, "data: "); ok {
			_, _ = r.Discard(r.Buffered())
			return "http://" + host + strings.TrimSpace(path)
		}
	}
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := webtest.ServeMemory(t, sse.NewHandler(mcptest.TransportPeer(), nil))
		p := open(t, m.Client(), "http://localhost/sse", nil)
		begun := time.Now()
		for i := range 3 {
			var three [3]byte
			if _, err := io.ReadFull(p.response.Body, three[:]); err != nil || string(three[:]) != ":\n\n" {
				t.Fatalf("read %q, %v; want a comment", three, err)
			}
			if d := time.Since(begun); d != time.Duration(i+1)*15*time.Second {
				t.Errorf("comment %d came after %v", i, d)
			}
		}
		time.Sleep(10 * time.Second)
		if got := p.ask(echo); got != echoed {
			t.Errorf("the answer is %s, want %s", got, echoed)
		}
		begun = time.Now()
		var one [1]byte
		if _, err := p.response.Body.Read(one[:]); err != nil || one[0] != ':' {
			t.Fatalf("read %q, %v; want a comment", one, err)
		}
		if d := time.Since(begun); d != 15*time.Second {
			t.Errorf("the comment came %v after a message, want 15 s of silence", d)
		}
	})
}

// Proves: SEC-DOS-1.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := webtest.ServeMemory(t, sse.NewHandler(mcptest.TransportPeer(), nil))
		p := open(t, m.Client(), "http://localhost/sse", nil)
		begun := time.Now()
		never, w := io.Pipe()
		defer w.Close()
		code, _, _ := status(t, p.client, http.MethodPost, p.url.String(), http.Header{"Content-Type": {"application/json"}}, never)
		if d := time.Since(begun); code != http.StatusRequestTimeout || d != 30*time.Second {
			t.Errorf("a body that does not come is answered %d after %v, want 408 after 30 s", code, d)
		}
		if got := p.ask(echo); got != echoed {
			t.Errorf("after that the answer is %s, want %s", got, echoed)
		}
	})
}

// A body that is on its way when the session ends is not waited for.
func TestSessionEndsDuringBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := webtest.ServeMemory(t, sse.NewHandler(mcptest.TransportPeer(), nil))
		p := open(t, m.Client(), "http://localhost/sse", nil)
		begun := time.Now()
		never, w := io.Pipe()
		defer w.Close()
		go func() {
			synctest.Wait()
			p.hang()
		}()
		code, _, _ := status(t, p.client, http.MethodPost, p.url.String(), http.Header{"Content-Type": {"application/json"}}, never)
		if d := time.Since(begun); code != http.StatusServiceUnavailable || d != 0 {
			t.Errorf("the message is answered %d after %v, want 503 at once", code, d)
		}
	})
}

// Messages that nobody has taken when their session ends get 503; few of them
// are held in memory until then.
//
// Proves: SEC-DOS-1.
func TestSessionEndsBeforeTaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, release := make(chan struct{}, 1), make(chan struct{})
		h := &linktest.Handler{Handler: mcptest.TransportPeer(), OnBegin: func(ctx context.Context, x *transport.Exchange, s transport.Session) func() {
			begun <- struct{}{} // the reader of messages is busy
			<-release
			return s.Begin(ctx, x)
		}}
		m := webtest.ServeMemory(t, sse.NewHandler(h, nil))
		p := open(t, m.Client(), "http://localhost/sse", nil)
		if code := p.post(echo); code != http.StatusAccepted {
			t.Fatalf("POST: %d, want 202", code)
		}
		<-begun // the reader has it, and takes no other
		const held = 8
		var sent atomic.Int64
		var posts sync.WaitGroup
		for range 3 * held {
			posts.Go(func() {
				body := io.MultiReader(strings.NewReader(strings.Repeat(" ", 100<<10)), sentinel{&sent})
				code, _, _ := status(t, p.client, http.MethodPost, p.url.String(), http.Header{"Content-Type": {"application/json"}}, body)
				if code != http.StatusServiceUnavailable {
					t.Errorf("a message that was not taken is answered %d, want 503", code)
				}
			})
		}
		synctest.Wait()
		if n := sent.Load(); n != held {
			t.Errorf("%d bodies were read with nobody to take them, want %d", n, held)
		}
		p.hang()
		posts.Wait()
		close(release)
	})
}

// A sentinel is the end of a body, and counts that it was reached.
type sentinel struct{ n *atomic.Int64 }

func (s sentinel) Read([]byte) (int, error) {
	s.n.Add(1)
	return 0, io.EOF
}

// A client that writes all before it reads gets to read why its message was
// refused.
func TestTooLargeIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := webtest.ServeMemory(t, sse.NewHandler(mcptest.TransportPeer(), &sse.Options{MaxMessage: 1000}))
		p := open(t, m.Client(), "http://localhost/sse", nil)
		c := m.Conn()
		const size = 900_000
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			p.url.RequestURI(), size, strings.Repeat(" ", size)); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("the status is %d, want 413", resp.StatusCode)
		}
	})
}

// Proves: FLOW-SHUTDOWN (a client vanishes with a request under way).
func TestVanish(t *testing.T) {
	mcptest.NoLeaks(t)
	h, ended := watch()
	s := webtest.Serve(t, sse.NewHandler(h, nil))
	p := open(t, s.Client(), s.URL, nil)
	if got := p.ask(wait); !strings.Contains(got, "kit/waiting") {
		t.Fatalf("%s arrived, want kit/waiting", got)
	}
	p.hang()
	if err := <-ended; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the session ended with %v, want ErrClosed", err)
	}
}

// Proves: FLOW-SHUTDOWN.
func TestShutdown(t *testing.T) {
	mcptest.NoLeaks(t)
	h := sse.NewHandler(mcptest.TransportPeer(), nil)
	s := webtest.Serve(t, h)
	busy, idle := open(t, s.Client(), s.URL, nil), open(t, s.Client(), s.URL, nil)
	busy.ask(wait)
	ctx, cancel := context.WithCancel(t.Context())
	down := make(chan error, 1)
	go func() { down <- h.Shutdown(ctx) }()
	if e, err := idle.events.Next(); err != io.EOF { //nolint:errorlint // the clean end is meant
		t.Fatalf("the idle stream gave %v, %v; want its end in good order", e, err)
	}
	if code := busy.post(echo); code != http.StatusServiceUnavailable {
		t.Errorf("a message while shutting down is answered %d, want 503", code)
	}
	if code, _, _ := status(t, s.Client(), http.MethodGet, s.URL, nil, nil); code != http.StatusServiceUnavailable {
		t.Errorf("a new stream while shutting down is answered %d, want 503", code)
	}
	select {
	case err := <-down:
		t.Fatalf("Shutdown returned %v with a request under way", err)
	default:
	}
	cancel()
	if err := <-down; !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown returned %v, want that it needed the end of its context", err)
	}
	for {
		if _, err := busy.events.Next(); err == io.EOF { //nolint:errorlint // the clean end is meant
			break
		} else if err != nil {
			t.Fatalf("the busy stream ended with %v, want good order", err)
		}
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Errorf("a second Shutdown: %v", err)
	}
}

// What finishes in time is answered.
func TestShutdownFinishes(t *testing.T) {
	mcptest.NoLeaks(t)
	// It answers kit/wait when its session is told of the end.
	h := sse.NewHandler(&linktest.Handler{Handler: mcptest.TransportPeer(), OnEnding: func(s transport.Session) {
		m, err := jsonrpc.Parse([]byte(free), jsonrpc.Limits{})
		if err != nil {
			t.Error(err)
		}
		s.Accept(m)
	}}, nil)
	s := webtest.Serve(t, h)
	p := open(t, s.Client(), s.URL, nil)
	p.ask(wait)
	if err := h.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if got := string(p.next().Data); got != freed {
		t.Errorf("the request under way is answered %s, want %s", got, freed)
	}
}

func TestOpenRefused(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("out of %w", jsonrpc.NewError(-31004, "the server is about to end")), "the server is about to end"},
		{errors.New("secret"), "try again later"},
	} {
		s := webtest.Serve(t, sse.NewHandler(&linktest.Handler{Handler: mcptest.TransportPeer(), OnOpen: func(transport.Conn) error { return test.err }}, nil))
		code, body, header := status(t, s.Client(), http.MethodGet, s.URL, nil, nil)
		if code != http.StatusServiceUnavailable || !strings.Contains(body, test.want) || strings.Contains(body, "secret") {
			t.Errorf("the stream is answered %d %s, want 503 with %q", code, body, test.want)
		}
		if got := header.Get("Content-Type"); got != "application/json" {
			t.Errorf("the answer has type %q, want JSON", got)
		}
	}
}

// A response that cannot have deadlines is refused: nothing could end a write
// to a client that does not read.
func TestNoDeadlines(t *testing.T) {
	h := sse.NewHandler(mcptest.TransportPeer(), nil)
	r := httptest.NewRequest(http.MethodGet, "http://localhost/sse", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusInternalServerError {
		t.Errorf("the status is %d, want 500", w.Code)
	}
}
