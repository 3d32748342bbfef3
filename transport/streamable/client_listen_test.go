package streamable_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Proves: FLOW-LIST-CHANGED, FLOW-PING. What the server sends by itself comes
// on a stream that is asked for again, from where it broke.
func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{session: "s-1", get: func(c *farCall) *http.Response {
			switch c.nth {
			case 1:
				return c.stream(event("a1", note(1))+event("a2", `{"jsonrpc":"2.0","id":1,"method":"ping"}`), io.EOF)
			case 2:
				return nil
			case 3:
				return c.stream("retry: 5000\n\n"+event("a2", note(0))+event("a3", note(2))+event("a4", "junk")+event("", answerTo("1")), io.ErrUnexpectedEOF)
			}
			return c.stream(event("a5", note(3)), nil)
		}}
		_, in := far.established(t, nil)
		var got []string
		for range 5 {
			m := <-in.Messages
			raw, _ := m.Params.Member("n")
			got = append(got, m.Method+string(raw))
		}
		if diff := cmp.Diff([]string{"test/note1", "ping", "test/note2", "", "test/note3"}, got); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"@0s", "a2@1s", "a2@3s", "a4@8s"}, far.asked()); diff != "" {
			t.Errorf("streams asked for (-want +got):\n%s", diff)
		}
	})
}

// A stream that was there once is asked for until the link ends, ever more
// seldom.
func TestListenInsists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{session: "s-1", get: func(c *farCall) *http.Response {
			switch {
			case c.nth == 1:
				return c.stream("", io.EOF)
			case c.nth%2 == 0:
				return reply(503, "", "")
			}
			return reply(409, "", "")
		}}
		link, in := far.established(t, nil)
		time.Sleep(time.Hour) // in the bubble's time
		if n := len(far.seen(http.MethodGet)); n != 124 {
			t.Errorf("%d streams asked for in an hour, want one each 30 s after the first", n)
		}
		shut(t, link, in)
	})
}

// A server may have no such stream, and say so in many ways; the link lives, with a
// session and without.
// Proves: Ruling 40.
func TestListenRefused(t *testing.T) {
	for name, test := range map[string]struct {
		get  func(*farCall) *http.Response
		want int
	}{
		"405":    {func(*farCall) *http.Response { return reply(405, "", "") }, 1},
		"400":    {func(*farCall) *http.Response { return reply(400, "", "") }, 1},
		"404":    {func(*farCall) *http.Response { return reply(404, "", "") }, 1},
		"401":    {func(*farCall) *http.Response { return reply(401, "", "") }, 1},
		"302":    {func(*farCall) *http.Response { return reply(302, "", "") }, 1},
		"page":   {func(*farCall) *http.Response { return reply(200, "text/html", "hello") }, 1},
		"none":   {func(*farCall) *http.Response { return reply(204, "", "") }, 1},
		"501":    {func(*farCall) *http.Response { return reply(501, "", "") }, 1},
		"500":    {func(*farCall) *http.Response { return reply(500, "", "") }, 6},
		"broken": {func(*farCall) *http.Response { return nil }, 124},
	} {
		for _, session := range []string{"", "s-1"} {
			synctest.Test(t, func(t *testing.T) {
				far := &farEnd{session: session, get: test.get}
				link, in := far.established(t, nil)
				time.Sleep(time.Hour) // in the bubble's time
				if n := len(far.seen(http.MethodGet)); n != test.want {
					t.Errorf("%s: %d streams asked for, want %d", name, n, test.want)
				}
				if in.IsClosed() {
					t.Errorf("%s: the link has ended", name)
				}
				shut(t, link, in)
			})
		}
	}
}

// A stream that was there once is asked for again also when the server refuses
// it in between: a token may have run out. Only 405 is a last word.
func TestListenRefusedLater(t *testing.T) {
	for status, want := range map[int]int{401: 4, 403: 4, 400: 4, 405: 2} {
		synctest.Test(t, func(t *testing.T) {
			far := &farEnd{session: "s-1", get: func(c *farCall) *http.Response {
				switch c.nth {
				case 1:
					return c.stream("", io.EOF)
				case 2, 3:
					return reply(status, "", "")
				}
				return c.stream(event("a1", note(1)), nil)
			}}
			link, in := far.established(t, nil)
			time.Sleep(time.Hour) // in the bubble's time
			if n := len(far.seen(http.MethodGet)); n != want {
				t.Errorf("%d: %d streams asked for, want %d", status, n, want)
			}
			notes(t, in, want/4)
			shut(t, link, in)
		})
	}
}

// A place that the server does not know, or an event that cannot be read, is
// left behind.
func TestListenAnew(t *testing.T) {
	for _, status := range []int{400, 404} {
		synctest.Test(t, func(t *testing.T) { listenAnew(t, status) })
	}
}

func listenAnew(t *testing.T, status int) {
	t.Helper()
	far := &farEnd{session: "s-1", get: func(c *farCall) *http.Response {
		switch {
		case c.nth == 1:
			return c.stream(event("a1", note(1)), io.EOF)
		case c.Header.Get("Last-Event-Id") != "":
			return reply(status, "", "unknown event")
		case c.nth == 3:
			return c.stream(event("a2", note(2))+event("a3", strings.Repeat("x", 2000)), nil)
		}
		return c.stream(event("a4", note(3)), nil)
	}}
	_, in := far.established(t, func(d *streamable.Dialer) { d.MaxResponse = 1000 })
	time.Sleep(time.Minute) // in the bubble's time
	notes(t, in, 3)
	if diff := cmp.Diff([]string{"@0s", "a1@1s", "@3s", "@4s"}, far.asked()); diff != "" {
		t.Errorf("streams asked for (-want +got):\n%s", diff)
	}
}

// A 404 to the stream of a session ends the link if the server does not know the session,
// whether it gave a stream before or not.
// Proves: Ruling 40.
func TestListenSessionLost(t *testing.T) {
	for _, streams := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) { listenSessionLost(t, streams) })
	}
}

func listenSessionLost(t *testing.T, streams int) {
	t.Helper()
	far := &farEnd{
		session: "s-1",
		get: func(c *farCall) *http.Response {
			if c.nth <= streams {
				return c.stream("", io.EOF)
			}
			return reply(404, "application/json", rpcError("null", -32001))
		},
		post: func(*farCall) *http.Response { return reply(404, "", "") },
	}
	link, in := far.established(t, nil)
	if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the inbox was told %v, want ErrClosed", err)
	}
	_, err := link.Do(t.Context(), ask(1, "tools/call"), transport.Route{})
	certain(t, err)
}

// A server may say by 400 or 401 that it has lost the session of a stream; with other words the stream
// is asked for again.
// Proves: Ruling 40.
func TestListenSessionLostInWords(t *testing.T) {
	for words, test := range map[string]struct {
		status int
		lost   bool
	}{"Invalid or missing session ID": {400, true}, "Bad token": {400, false}, "Unauthorized: Session not found": {401, true}, "Token expired": {401, false}} {
		lost := test.lost
		synctest.Test(t, func(t *testing.T) {
			far := &farEnd{
				session: "s-1",
				post:    func(c *farCall) *http.Response { return reply(200, "application/json", answerTo(c.id)) },
				get: func(c *farCall) *http.Response {
					switch {
					case c.nth == 1:
						time.Sleep(time.Second) // in the bubble's time
						return c.stream(event("e1", note(1)), io.EOF)
					case c.nth < 6:
						return reply(test.status, "text/plain", words)
					}
					return c.stream(event("e2", note(2)), nil)
				},
			}
			link, in := far.established(t, nil)
			if _, err := link.Do(t.Context(), ask(1, "ping"), transport.Route{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // in the bubble's time
			if in.IsClosed() != lost {
				t.Errorf("%q: the link has ended: %v, want %v", words, !lost, lost)
			}
			shut(t, link, in)
		})
	}
}

// Who does not want the stream has none, and a stateless revision neither.
func TestNoListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{session: "s-1"}
		far.established(t, quiet)
		other := &farEnd{}
		link, _ := other.near(t, nil)
		if err := link.Establish(t.Context(), transport.Established{Version: modern}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(far.seen(http.MethodGet)) + len(other.seen(http.MethodGet)); n != 0 {
			t.Errorf("%d streams asked for, want none", n)
		}
	})
}

// A server that drops what it has to say while nobody listens says it in vain
// to a client that goes on before its stream is open: the notification that
// completes the handshake returns when it is, or after a little while.
func TestStreamComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answers := range []bool{true, false} {
			far := &farEnd{session: "s1"}
			asked := make(chan struct{})
			far.get = func(c *farCall) *http.Response {
				if answers {
					<-asked // it takes its time
					return c.stream("", nil)
				}
				<-c.Context().Done()
				return nil
			}
			link, _ := far.established(t, nil)
			start := time.Now()
			go func() {
				time.Sleep(50 * time.Millisecond) // in the fake time of the test
				close(asked)
			}()
			for range 2 {
				if err := link.Post(t.Context(), &jsonrpc.Outgoing{Method: "notifications/initialized"}, transport.Route{}); err != nil {
					t.Fatal(err)
				}
			}
			want := 250 * time.Millisecond
			if answers {
				want = 50 * time.Millisecond
			}
			if took := time.Since(start); took != want {
				t.Errorf("the server answers %t: both notifications took %v, want %v for the first", answers, took, want)
			}
			if err := link.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// The requests of a link have values of contexts, so that a sign-in knows for whom it is and whose
// time stands still: those of the caller, and for the stream those of Establish, never those of Dial.
func TestContextsOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		with := func(value string) context.Context { return context.WithValue(t.Context(), key{}, value) }
		values := make(chan any, 8)
		far := &farEnd{session: "s-1", version: primed, get: func(c *farCall) *http.Response {
			values <- c.Context().Value(key{})
			return c.stream("", nil)
		}, post: func(c *farCall) *http.Response {
			values <- c.Context().Value(key{})
			return reply(200, "application/json", answerTo(c.id))
		}}
		in := linktest.NewInbox()
		link, err := (&streamable.Dialer{URL: farURL, Client: &http.Client{Transport: far}}).Dial(with("Dial"), in)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, link, in)
		if _, err := link.Do(t.Context(), ask(900, "initialize"), transport.Route{}); err != nil {
			t.Fatal(err)
		}
		if err := link.Establish(with("Establish"), transport.Established{Version: primed, Handshake: true}); err != nil {
			t.Fatal(err)
		}
		if got := <-values; got != "Establish" {
			t.Errorf("the request for the stream has the value %v", got)
		}
		if _, err := link.Do(with("Do"), ask(1, "tools/list"), transport.Route{}); err != nil {
			t.Fatal(err)
		}
		if got := <-values; got != "Do" {
			t.Errorf("the request of a call has the value %v", got)
		}
	})
}
