package streamable_test

import (
	"context"
	"errors"
	"fmt"
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

// quiet leaves the stream for other messages out.
func quiet(d *streamable.Dialer) { d.NoStream = true }

// resumed makes a request whose answer begins with first and goes on with
// what get gives, and returns what Do did.
func resumed(t *testing.T, far *farEnd, first string, end error, adjust func(*streamable.Dialer)) (*jsonrpc.Incoming, *linktest.Inbox, error) {
	t.Helper()
	far.post = func(c *farCall) *http.Response { return c.stream(first, end) }
	link, in := far.established(t, func(d *streamable.Dialer) {
		quiet(d)
		if adjust != nil {
			adjust(d)
		}
	})
	m, err := link.Do(t.Context(), ask(1, "tools/call"), transport.Route{})
	return m, in, err
}

// asked returns when streams were asked for, and from where on.
func (f *farEnd) asked() []string {
	var all []string
	for _, c := range f.seen(http.MethodGet) {
		all = append(all, fmt.Sprintf("%s@%s", strings.Join(c.Header["Last-Event-Id"], "|"), c.at))
	}
	return all
}

// Proves: FLOW-TOOL. Spec 2025-11-25, basic/transports: a server may end the
// connection after an event with an id; the client waits for as long as retry
// says, asks for the rest, and gets nothing twice.
func TestResume(t *testing.T) {
	for name, end := range map[string]error{"polled": io.EOF, "broken": io.ErrUnexpectedEOF} {
		synctest.Test(t, func(t *testing.T) {
			far := &farEnd{session: "s-1", get: func(c *farCall) *http.Response {
				switch c.nth {
				case 1: // repeats more than it was asked for, and breaks again
					return c.stream("retry: 700\n\n"+event("e1", note(1))+event("e2", note(2))+event("e3", note(3)), io.ErrUnexpectedEOF)
				case 2:
					return c.stream(event("e3", note(3))+event("", note(4))+event("e5", answerTo("1")), io.EOF)
				}
				return nil
			}}
			_, in, err := resumed(t, far, "id: e0\nretry: 500\ndata:\n\n"+event("e1", note(1))+event("e2", note(2)), end, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff([]string{"1", "2", "3", "4"}, notes(t, in, 4)); diff != "" {
				t.Errorf("%s: notes (-want +got):\n%s", name, diff)
			}
			if diff := cmp.Diff([]string{"e2@500ms", "e3@1.2s"}, far.asked()); diff != "" {
				t.Errorf("%s: streams asked for (-want +got):\n%s", name, diff)
			}
			h := far.seen(http.MethodGet)[0].Header
			if h.Get("Accept") != "text/event-stream" || h.Get("Mcp-Session-Id") != "s-1" || h.Get("Mcp-Protocol-Version") != primed {
				t.Errorf("the stream was asked for with headers %v", h)
			}
			if n := len(far.seen(http.MethodPost)); n != 2 {
				t.Errorf("%d POSTs, want the handshake and the request once", n)
			}
		})
	}
}

// Without a word of the server the pause doubles with each failure, up to a
// limit; after MaxResumes of them the request may have run, nobody knows.
func TestResumeGivesUp(t *testing.T) {
	for name, get := range map[string]func(*farCall) *http.Response{
		"broken": func(*farCall) *http.Response { return nil },
		"500":    func(*farCall) *http.Response { return reply(500, "text/plain", "oh") },
		"429":    func(*farCall) *http.Response { return reply(429, "text/plain", "later") },
		"silent": func(c *farCall) *http.Response { return c.stream(": nothing\n\n", io.EOF) },
	} {
		synctest.Test(t, func(t *testing.T) {
			far := &farEnd{session: "s-1", get: get}
			_, _, err := resumed(t, far, event("e0", ""), io.ErrUnexpectedEOF, func(d *streamable.Dialer) { d.MaxRetry = 6 * time.Second })
			unsure(t, err)
			if diff := cmp.Diff([]string{"e0@1s", "e0@3s", "e0@7s", "e0@13s", "e0@19s"}, far.asked()); diff != "" {
				t.Errorf("%s: streams asked for (-want +got):\n%s", name, diff)
			}
		})
	}
}

// Progress begins the count anew: a server may have a long call polled for as
// long as it likes.
func TestResumeProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{get: func(c *farCall) *http.Response {
			switch {
			case c.nth == 100:
				return c.stream(event("last", answerTo("1")), io.EOF)
			case c.nth%5 == 0:
				return c.stream(fmt.Sprintf("id: e%d\nretry: 2000\ndata:\n\n", c.nth), io.EOF)
			}
			return nil
		}}
		if _, _, err := resumed(t, far, event("e0", ""), io.EOF, nil); err != nil {
			t.Fatal(err)
		}
		if got := far.seen(http.MethodGet)[99].Header.Get("Last-Event-Id"); got != "e95" {
			t.Errorf("the last stream was asked for after %s, want e95", got)
		}
	})
}

// A connection that lived for long was no failure, if only signs of life came.
func TestResumeLongSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{get: func(c *farCall) *http.Response {
			if c.nth == 20 {
				return c.stream(event("last", answerTo("1")), io.EOF)
			}
			resp := c.stream("", nil)
			time.AfterFunc(time.Minute, func() { _ = resp.Body.Close() })
			return resp
		}}
		if _, _, err := resumed(t, far, event("e0", ""), io.EOF, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// What makes resuming pointless ends the request at once.
func TestResumeRefused(t *testing.T) {
	for name, test := range map[string]struct {
		first   string
		get     func(*farCall) *http.Response
		version string
		gets    int
	}{
		"no id":            {first: "retry: 5\n\n" + event("", note(1))},
		"id taken back":    {first: event("e1", "") + "id:\ndata:\n\n"},
		"id too long":      {first: event(strings.Repeat("x", 1025), "")},
		"id no header":     {first: event("a\x01b", "")},
		"old revision":     {first: event("e1", ""), version: unresumable},
		"400":              {first: event("e1", ""), get: func(*farCall) *http.Response { return reply(400, "", "") }, gets: 1},
		"405":              {first: event("e1", ""), get: func(*farCall) *http.Response { return reply(405, "", "") }, gets: 1},
		"no stream":        {first: event("e1", ""), get: func(*farCall) *http.Response { return reply(200, "text/html", "x") }, gets: 1},
		"404":              {first: event("e1", ""), get: func(*farCall) *http.Response { return reply(404, "", "") }, gets: 1},
		"malformed answer": {first: event("e1", ""), get: func(c *farCall) *http.Response { return c.stream(event("e2", "{"), io.EOF) }, gets: 1},
		"too long": {first: event("e1", ""), get: func(c *farCall) *http.Response {
			return c.stream(event("e2", strings.Repeat("x", 2000)), nil)
		}, gets: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			far := &farEnd{session: "s-1", get: test.get, version: test.version}
			_, in, err := resumed(t, far, test.first, io.EOF, func(d *streamable.Dialer) { d.MaxResponse = 1500 })
			unsure(t, err)
			if n := len(far.seen(http.MethodGet)); n != test.gets {
				t.Errorf("%s: %d streams asked for, want %d", name, n, test.gets)
			}
			synctest.Wait() // the inbox would be told later
			if in.IsClosed() {
				t.Errorf("%s: the link has ended", name)
			}
		})
	}
}

func TestResumeSwitchedOff(t *testing.T) {
	far := &farEnd{}
	_, _, err := resumed(t, far, event("e0", ""), io.EOF, func(d *streamable.Dialer) { d.MaxResumes = -1 })
	unsure(t, err)
	if n := len(far.seen(http.MethodGet)); n != 0 {
		t.Errorf("%d streams asked for, want none", n)
	}
}

// Proves: SEC-DOS-1. A server's wish is kept within bounds.
func TestResumePauseIsBounded(t *testing.T) {
	for retry, want := range map[string]string{"0": "e0@10ms", "3600000": "e0@30s", "999999999999999999999": "e0@30s", "2500": "e0@2.5s"} {
		synctest.Test(t, func(t *testing.T) {
			far := &farEnd{get: func(c *farCall) *http.Response { return c.stream(event("e1", answerTo("1")), io.EOF) }}
			if _, _, err := resumed(t, far, "retry: "+retry+"\n"+event("e0", ""), io.EOF, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{want}, far.asked()); diff != "" {
				t.Errorf("retry %s: streams asked for (-want +got):\n%s", retry, diff)
			}
		})
	}
}

// Proves: FLOW-SHUTDOWN, FLOW-CANCEL. Nobody waits for a pause to end.
func TestResumeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{post: func(c *farCall) *http.Response { return c.stream("retry: 20000\n"+event("e0", ""), io.EOF) }}
		link, in := far.established(t, quiet)
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		for _, ctx := range []context.Context{ctx, t.Context()} { // the second has all the time
			go func() {
				_, err := link.Do(ctx, ask(1, "tools/call"), transport.Route{})
				done <- err
			}()
		}
		synctest.Wait()
		cancel(reason)
		if err := <-done; !errors.Is(err, reason) {
			t.Errorf("error is %v, want the cause", err)
		}
		shut(t, link, in)
		unsure(t, <-done)
		if now := time.Since(far.born); now != 0 {
			t.Errorf("it took %v to end", now)
		}
	})
}

// A server that gives each event the same id loses no answer by it.
func TestResumeSameIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{get: func(c *farCall) *http.Response { return c.stream(event("1", answerTo("1")), io.EOF) }}
		_, in, err := resumed(t, far, event("1", note(1))+event("1", note(2))+event("1", note(3)), io.EOF, nil)
		if err != nil {
			t.Fatal(err)
		}
		notes(t, in, 3)
	})
}
