package streamable_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// rpcError is an error response; an empty id leaves the member out.
func rpcError(id string, code int) string {
	if id != "" {
		id = `,"id":` + id
	}
	return `{"jsonrpc":"2.0"` + id + `,"error":{"code":` + strconv.Itoa(code) + `,"message":"no"}}`
}

// Proves: MSG-1, SEC-DOS-1. What is an answer, and what is none: then the
// request may have run.
func TestWholeAnswer(t *testing.T) {
	const kind = "application/json"
	deep := `{"jsonrpc":"2.0","id":1,"result":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`
	tests := []struct {
		name       string
		status     int
		kind, body string
		code       int64 // of the error in the answer; 0 is a result
		want       error // nil is an answer
	}{
		{"result", 200, kind, answerTo("1"), 0, nil},
		{"with charset", 200, "Application/JSON; charset=utf-8", answerTo("1"), 0, nil},
		{"error", 200, kind, rpcError("1", -32602), -32602, nil},
		{"error without id", 200, kind, rpcError("", -32602), -32602, nil},
		{"error with null", 200, kind, rpcError("null", -32602), -32602, nil},
		{"error with status", 404, kind, rpcError("1", -32601), -32601, nil},
		{"error without id with status", 400, kind, rpcError("", -32022), -32022, nil},
		{"error without a type", 400, "", rpcError("null", -32000), -32000, nil},
		{"error of one's own making", 400, kind, rpcError(`"server-error"`, -32600), -32600, nil},
		{"error with 500", 500, kind, rpcError("1", -32603), -32603, nil},
		{"batch", 200, kind, "[" + answerTo("7") + "," + answerTo("1") + "," + note(3) + "]", 0, nil},
		{"batch with a stray error", 200, kind, "[" + answerTo("1") + "," + rpcError("null", -32600) + "]", 0, nil},
		{"other id", 200, kind, answerTo("2"), 0, transport.ErrInterrupted},
		{"a request", 200, kind, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 0, transport.ErrInterrupted},
		{"batch without ours", 200, kind, "[" + answerTo("7") + "]", 0, transport.ErrInterrupted},
		{"empty batch", 200, kind, "[]", 0, transport.ErrInterrupted},
		{"no type", 200, "", answerTo("1"), 0, nil},
		{"text", 200, "text/plain", answerTo("1"), 0, nil},
		{"events by another type", 200, kind, "event: message\ndata: " + answerTo("1") + "\n\n", 0, nil},
		{"page", 200, "text/html", "<html>log in</html>", 0, transport.ErrInterrupted},
		{"accepted", 202, "", "", 0, transport.ErrInterrupted},
		{"blank", 200, kind, " \n", 0, transport.ErrInterrupted},
		{"nothing", 200, kind, "", 0, transport.ErrInterrupted},
		{"cut off", 200, kind, `{"jsonrpc":"2.0","id":1,"res`, 0, transport.ErrInterrupted},
		{"twice the same name", 200, kind, `{"jsonrpc":"2.0","id":1,"id":1,"result":{}}`, 0, transport.ErrInterrupted},
		{"result no object", 200, kind, `{"jsonrpc":"2.0","id":1,"result":[]}`, 0, transport.ErrInterrupted},
		{"too deep", 200, kind, deep, 0, transport.ErrInterrupted},
		{"too long", 200, kind, `{"jsonrpc":"2.0","id":1,"result":{"a":"` + strings.Repeat("x", 2000) + `"}}`, 0, transport.ErrInterrupted},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			far := &farEnd{post: func(*farCall) *http.Response { return reply(test.status, test.kind, test.body) }}
			link, in := far.near(t, func(d *streamable.Dialer) { d.MaxResponse = 1000 })
			m, err := do(t, link)
			switch {
			case test.want != nil && !errors.Is(err, test.want):
				t.Fatalf("error is %v, want %v", err, test.want)
			case test.want != nil:
				return
			case err != nil:
				t.Fatal(err)
			case m.ID != jsonrpc.IntID(1):
				t.Errorf("the answer has id %s, want that of the request", m.ID)
			case (m.Error == nil) != (test.code == 0) || m.Error != nil && m.Error.Code != test.code:
				t.Errorf("the answer has error %v, want code %d", m.Error, test.code)
			}
			if test.name == "batch" && (len(in.Messages) != 2 || (<-in.Messages).Kind != jsonrpc.Response) {
				t.Error("what else was in the batch is not in the inbox")
			}
		})
	}
}

// Proves: FLOW-AUTH, FLOW-INIT. What statuses mean: for the request, for the
// handshake, for who wants to log in.
func TestStatus(t *testing.T) {
	tests := []struct {
		status            int
		again             bool // with Retry-After
		unsure, elsewhere bool // elsewhere: as an answer to initialize
		body              string
	}{
		{status: 301},
		{status: 302},
		{status: 400, elsewhere: true},
		{status: 401},
		{status: 403},
		{status: 404, elsewhere: true},
		{status: 405, elsewhere: true},
		{status: 406},
		{status: 415},
		{status: 429},
		{status: 500, unsure: true},
		{status: 502, unsure: true},
		{status: 503, unsure: true},
		{status: 503, again: true},
		{status: 401, body: rpcError("1", -32000)},
		{status: 403, body: rpcError("", -32000)},
		{status: 400, elsewhere: true, body: `{"detail":"Not Found"}`},
		{status: 404, elsewhere: true, body: answerTo("1")},
		{status: 408, body: rpcError("1", -32000)},
		{status: 429, body: rpcError("1", -31001)},
		{status: 503, body: rpcError("", -31002)},
	}
	for _, test := range tests {
		for _, method := range []string{"initialize", "server/discover", "tools/call"} {
			rt := roundTripper(func(req *http.Request) *http.Response {
				resp := reply(test.status, "application/json", test.body)
				resp.Header.Set("WWW-Authenticate", "Bearer x")
				if test.again {
					resp.Header.Set("Retry-After", "3")
				}
				return resp
			})
			link, in := dial(t, &streamable.Dialer{URL: farURL, Client: &http.Client{Transport: rt}})
			_, err := link.Do(t.Context(), ask(1, method), transport.Route{})
			var status *web.StatusError
			if !errors.As(err, &status) || status.Status != test.status || status.Header.Get("WWW-Authenticate") != "Bearer x" {
				t.Errorf("%s: error is %v, want a StatusError with %d and the header", method, err, test.status)
			}
			if got := errors.Is(err, transport.ErrInterrupted); got != test.unsure {
				t.Errorf("%s: %v says that it may have run: %v, want %v", method, err, got, test.unsure)
			}
			if got, want := errors.Is(err, transport.ErrOtherTransport), test.elsewhere && method == "initialize"; got != want {
				t.Errorf("%s: %v says that there may be another transport: %v, want %v", method, err, got, want)
			}
			if got, want := errors.Is(err, transport.ErrNotUnderstood), (test.elsewhere || test.status == 405) && method != "initialize"; got != want {
				t.Errorf("%s: %v says that the server may be older: %v, want %v", method, err, got, want)
			}
			if errors.Is(err, transport.ErrClosed) {
				t.Errorf("%s: %v says that the link is over", method, err)
			}
			shut(t, link, in)
		}
	}
}

// An inbox that is not emptied holds no Do up whose context has ended, also
// where the answer is no stream.
func TestAnswerWaitsForInbox(t *testing.T) {
	for name, body := range map[string]string{"array": "[" + note(1) + "," + answerTo("1") + "]", "note": note(1)} {
		synctest.Test(t, func(t *testing.T) {
			far := &farEnd{post: func(*farCall) *http.Response { return reply(200, "application/json", body) }}
			in := linktest.NewInboxOf(0)
			link, err := (&streamable.Dialer{URL: farURL, Client: &http.Client{Transport: far}}).Dial(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			reason := errors.New("enough")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, reason)
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := link.Do(ctx, ask(1, "tools/call"), modernRoute("tools/call"))
				done <- err
			}()
			time.Sleep(2 * time.Second) // in the bubble's time
			select {
			case err := <-done:
				if !errors.Is(err, reason) {
					t.Errorf("%s: error is %v, want the cause", name, err)
				}
			default:
				t.Errorf("%s: Do waits although its context has ended", name)
			}
			notes(t, in, 1)
			shut(t, link, in)
		})
	}
}

// roundTripper is a server of one function.
type roundTripper func(*http.Request) *http.Response

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	resp := f(req)
	resp.Request = req
	return resp, nil
}

func dial(t *testing.T, d *streamable.Dialer) (transport.Link, *linktest.Inbox) {
	t.Helper()
	in := linktest.NewInbox()
	link, err := d.Dial(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, link, in) })
	return link, in
}

// Proves: FLOW-INIT. A session id that no server may give ends the handshake.
func TestSessionIDRefused(t *testing.T) {
	for _, id := range []string{"has blank", "ümlaut", strings.Repeat("x", 8193)} {
		far := &farEnd{session: id}
		link, _ := far.near(t, nil)
		if _, err := link.Do(t.Context(), ask(1, "initialize"), transport.Route{}); err == nil {
			t.Errorf("session id %.20q was taken", id)
		}
	}
	link, _ := (&farEnd{session: strings.Repeat("x", 8192)}).near(t, nil)
	shake(t, link, primed)
}

// Proves: SEC-DOS-1. Compressed bytes do not get round the limit.
func TestGzipBomb(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	_, _ = w.Write(bytes.Repeat([]byte(" "), 8<<20))
	_ = w.Close()
	for _, kind := range []string{"application/json", "text/event-stream"} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		})
		link, _ := dial(t, &streamable.Dialer{URL: url, MaxResponse: 1 << 20})
		_, err := do(t, link)
		unsure(t, err)
		if err == nil || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%s: error is %v, want one that names the limit", kind, err)
		}
	}
}

// Proves: FLOW-PROGRESS, FLOW-LOG. All that a stream brings before the answer
// is in the inbox when Do returns, in order; what is no message is left out.
func TestStreamAnswer(t *testing.T) {
	far := &farEnd{post: func(c *farCall) *http.Response {
		return c.stream("\ufeff: hello\n\nretry: 1\n\nevent: ping\ndata: {}\n\n"+event("", note(1))+"event: message\n"+event("", note(2))+
			": alive\n\n"+event("", `{"jsonrpc":"2.0","method":7}`)+event("", "["+note(3)+","+note(4)+"]")+event("", answerTo(`"x"`))+
			event("", `{"jsonrpc":"2.0","id":9,"method":"roots/list"}`)+event("", c.result())+event("", note(5)), nil)
	}}
	link, in := far.near(t, nil)
	if _, err := do(t, link); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(in.Messages) > 0 {
		m := <-in.Messages
		raw, _ := m.Params.Member("n")
		got = append(got, m.Method+string(raw))
	}
	if got, want := strings.Join(got, " "), "test/note1 test/note2 test/note3 test/note4  roots/list"; got != want {
		t.Errorf("the inbox has %q, want %q", got, want)
	}
}

// A stream that cannot hold the answer any more ends the request, which may
// have run. A stateless revision resumes nothing.
func TestStreamBroken(t *testing.T) {
	for name, text := range map[string]string{
		"ended":           event("1", note(1)),
		"malformed":       event("1", note(1)) + event("2", `{"jsonrpc":"2.0","id":1,"result":`),
		"malformed ours":  event("1", note(1)) + event("2", `{"jsonrpc":"2.0","id":1,"result":1}`),
		"too long":        event("1", note(1)) + event("2", strings.Repeat("x", 2000)),
		"an endless line": event("1", note(1)) + "data: " + strings.Repeat("x", 2000),
	} {
		for _, established := range []bool{false, true} {
			if established && name == "ended" {
				continue // is resumed
			}
			far := &farEnd{version: primed, post: func(c *farCall) *http.Response { return c.stream(text, io.EOF) }}
			link, in := far.near(t, func(d *streamable.Dialer) { d.MaxResponse, d.NoStream = 1000, true })
			if established {
				shake(t, link, primed)
			}
			_, err := link.Do(t.Context(), ask(1, "tools/call"), transport.Route{})
			unsure(t, err)
			notes(t, in, 1)
			if n := len(far.seen(http.MethodGet)); n != 0 {
				t.Errorf("%s: %d GETs, want none", name, n)
			}
		}
	}
}

// Proves: FLOW-CANCEL. The end of the context ends Do at once, even while the
// inbox is full, and closes the response, which cancels in a stateless
// revision.
func TestCancelledStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer *http.Response
		far := &farEnd{post: func(c *farCall) *http.Response {
			answer = c.stream(event("", note(1))+event("", note(2)), nil)
			return answer
		}}
		far.born = time.Now()
		in := linktest.NewInboxOf(0)
		link, err := (&streamable.Dialer{URL: farURL, Client: &http.Client{Transport: far}}).Dial(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() {
			_, err := link.Do(ctx, ask(1, "tools/call"), modernRoute("tools/call"))
			done <- err
		}()
		synctest.Wait() // the first note is offered
		cancel(reason)
		if err := <-done; !errors.Is(err, reason) {
			t.Errorf("error is %v, want the cause", err)
		}
		<-in.Messages // the note that was on its way
		synctest.Wait()
		select {
		case <-answer.Body.(*tape).shut:
		default:
			t.Error("the response is still open")
		}
		if n := len(in.Messages); n != 0 {
			t.Error("another note came after the end")
		}
		shut(t, link, in)
	})
}

// After the answer the server has a second to end the stream, so that the
// connection can be used again; who asked has no part in it any more.
func TestStreamAfterAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer *tape
		far := &farEnd{post: func(c *farCall) *http.Response {
			resp := c.stream(event("", c.result()), nil)
			answer = resp.Body.(*tape)
			return resp
		}}
		link, _ := far.near(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := link.Do(ctx, ask(1, "tools/call"), modernRoute("tools/call")); err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		select {
		case <-answer.shut:
			t.Error("the response was closed with the context of the request")
		default:
		}
		<-answer.shut
		if got := time.Since(far.born); got != time.Second {
			t.Errorf("the response was closed after %v, want 1s", got)
		}
	})
}

// An ended context and a context that ends before the head of the response
// give their cause as well.
func TestCancelledEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &farEnd{post: func(c *farCall) *http.Response {
			<-c.Context().Done()
			return nil
		}}
		link, _ := far.near(t, nil)
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 2)
		go func() {
			_, err := link.Do(ctx, ask(1, "tools/call"), modernRoute("tools/call"))
			done <- err
		}()
		go func() { done <- link.Post(ctx, &jsonrpc.Outgoing{Method: "test/note"}, transport.Route{}) }()
		synctest.Wait()
		cancel(reason)
		for range 2 {
			if err := <-done; !errors.Is(err, reason) {
				t.Errorf("error is %v, want the cause", err)
			}
		}
		sent := len(far.calls)
		if _, err := link.Do(ctx, ask(2, "tools/call"), modernRoute("tools/call")); !errors.Is(err, reason) {
			t.Errorf("with an ended context: %v, want its cause", err)
		}
		if err := link.Post(ctx, &jsonrpc.Outgoing{Method: "test/note"}, transport.Route{}); !errors.Is(err, reason) {
			t.Errorf("posting with an ended context: %v, want its cause", err)
		}
		if len(far.calls) != sent {
			t.Error("a request with an ended context was sent")
		}
	})
}

// Proves: MSG-4. A notification is answered by a status alone.
func TestPost(t *testing.T) {
	tests := []struct {
		status     int
		kind, body string
		ok         bool
	}{
		{202, "", "", true},
		{204, "", "", true},
		{200, "application/json", "{}", true},
		{200, "text/event-stream", ": open\n\n", true},
		{400, "application/json", rpcError("", -32600), false},
		{400, "", "", false},
		{401, "", "", false},
		{500, "", "", false},
		{302, "", "", false},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			far := &farEnd{post: func(c *farCall) *http.Response {
				if test.kind == "text/event-stream" {
					return c.stream(test.body, nil) // stays open: nobody may wait for its end
				}
				return reply(test.status, test.kind, test.body)
			}}
			link, in := far.near(t, nil)
			err := link.Post(t.Context(), &jsonrpc.Outgoing{Method: "notifications/cancelled"}, transport.Route{})
			if (err == nil) != test.ok {
				t.Errorf("status %d with %s: error is %v", test.status, test.kind, err)
			}
			if test.body != "" && !test.ok && !strings.Contains(err.Error(), "-32600") {
				t.Errorf("error is %v, want what the server said", err)
			}
			shut(t, link, in)
		})
	}
}
