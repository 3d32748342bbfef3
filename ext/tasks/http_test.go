package tasks_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A wire sees the requests to a handler, and drops answers.
type wire struct {
	next http.Handler
	drop func(method string) bool // after the request was carried out

	mu     sync.Mutex
	seen   []seenRequest
	listen context.CancelFunc // ends the last subscription
}

// lose ends the connection of the last subscription.
func (w *wire) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listen()
}

type seenRequest struct {
	method, name string // of the header fields
	body         []byte
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	method := r.Header.Get("Mcp-Method")
	w.mu.Lock()
	w.seen = append(w.seen, seenRequest{method, r.Header.Get("Mcp-Name"), body})
	drop := w.drop != nil && w.drop(method)
	if method == mcp.MethodListen {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		r, w.listen = r.WithContext(ctx), end
	}
	w.mu.Unlock()
	if !drop {
		w.next.ServeHTTP(rw, r)
		return
	}
	w.next.ServeHTTP(lostAnswer{make(http.Header)}, r)
	panic(http.ErrAbortHandler)
}

// lostAnswer is where an answer is lost.
type lostAnswer struct{ header http.Header }

func (l lostAnswer) Header() http.Header       { return l.header }
func (lostAnswer) Write(p []byte) (int, error) { return len(p), nil }
func (lostAnswer) WriteHeader(int)             {}
func (lostAnswer) Flush()                      {}

// overHTTP is a client of a fake over Streamable HTTP.
func overHTTP(t *testing.T, f *fake, w *wire, o client.Options) *client.Client {
	t.Helper()
	endpoint := streamable.NewHandler(f.srv, nil)
	w.next = endpoint
	site := webtest.Serve(t, w)
	webtest.Abort(t, endpoint.Shutdown)
	c, err := client.Connect(t.Context(), streamable.URL(site.URL), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// quickly are options with the shortest pauses.
func quickly() *tasks.WaitOptions {
	return &tasks.WaitOptions{MinPoll: time.Millisecond, PollOnly: true}
}

// "The client MUST set the Mcp-Name header to the value of params.taskId", whatever an
// identifier is made of; requests are what the schema says.
func TestRequestsOverHTTP(t *testing.T) {
	for _, id := range []string{"786512e2-9e0d-44bd-8f29-789f320fe840", "a\r\nX-Other: 1", " é ", "=?base64?YQ==?=", "\x00", strings.Repeat("x", 1024)} {
		f := newFake(t)
		raw, err := strictjson.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		own := []string{"taskId", string(raw), "pollIntervalMs", "1"}
		f.created = map[string]string{"taskId": string(raw), "pollIntervalMs": "1"}
		f.get = steps(says("input_required", append(own, "inputRequests", `{"k":`+form("first")+`}`)...))
		f.update = func(int, map[string]mcp.RawValue) error {
			f.get = steps(says("completed", own...))
			return nil
		}
		o := waiting(quickly())
		o.OnElicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(naming{"Ada"})
		}
		w := &wire{}
		c := overHTTP(t, f, w, o)
		h, err := tasks.Start[string](t.Context(), c, "t", nil, &tasks.StartOptions{Wait: quickly()})
		if err != nil {
			t.Fatalf("%q: %v", id, err)
		}
		if got, err := h.Wait(t.Context()); err != nil || got != "done" || h.ID() != id {
			t.Errorf("%q: %q, %v", id, got, err)
		}
		if err := h.Cancel(t.Context()); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		var names []string
		for _, r := range w.seen {
			definition := map[string]string{tasks.MethodGet: "GetTaskRequest", tasks.MethodUpdate: "UpdateTaskRequest", tasks.MethodCancel: "CancelTaskRequest"}[r.method]
			if definition != "" {
				validate(t, definition, r.body)
				names = append(names, r.name)
			}
		}
		if len(names) < 4 || len(slices.Compact(names)) != 1 || names[0] == "" || strings.ContainsAny(names[0], "\r\n\x00") {
			t.Errorf("%q: Mcp-Name was %q", id, names)
		}
		if strings.Trim(id, "-0123456789abcdefx") == "" && names[0] != id {
			t.Errorf("%q: Mcp-Name was %q", id, names[0])
		}
	}
}

// Answers that are lost, in the midst of all, change nothing: the person is asked once,
// and the result comes.
func TestLostAnswers(t *testing.T) {
	f := newFake(t)
	f.created = map[string]string{"pollIntervalMs": "1"}
	f.get = steps(says("working", "pollIntervalMs", "1"), says("input_required", "pollIntervalMs", "1", "inputRequests", `{"k":`+form("first")+`}`))
	var keys []string
	f.update = func(n int, answers map[string]mcp.RawValue) error {
		keys = append(keys, keysOf(answers))
		if n >= 4 {
			f.get = steps(says("completed"))
		}
		return nil
	}
	lost := make(map[string]int)
	w := &wire{drop: func(method string) bool {
		lost[method]++
		return (method == tasks.MethodGet || method == tasks.MethodUpdate) && lost[method] <= 4
	}}
	asked := 0
	o := waiting(quickly())
	o.OnElicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		asked++
		return client.Accept(naming{"Ada"})
	}
	got, err := client.Call[string](t.Context(), overHTTP(t, f, w, o), "t", nil)
	if err != nil || got != "done" || asked != 1 {
		t.Errorf("%q, %v, asked %d times", got, err, asked)
	}
	f.change(func() { // requests whose answers were lost may still run
		if len(keys) < 4 || len(slices.Compact(keys)) != 1 {
			t.Errorf("answers to %q", keys)
		}
	})
}

// A call that is given up cancels its task by tasks/cancel: "notifications/cancelled MUST
// NOT be used for task cancellation".
func TestCancelOverHTTP(t *testing.T) {
	f := newFake(t)
	f.created = map[string]string{"pollIntervalMs": "1"}
	ctx, cancel := context.WithCancelCause(t.Context())
	f.get = func(n int) (string, error) {
		if n == 3 {
			cancel(errLeft)
		}
		return says("working", "pollIntervalMs", "1"), nil
	}
	w := &wire{}
	_, err := client.Call[string](ctx, overHTTP(t, f, w, waiting(quickly())), "t", nil)
	if !errors.Is(err, errLeft) {
		t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var methods []string
	for _, r := range w.seen {
		methods = append(methods, r.method)
	}
	if n := len(methods); methods[n-1] != tasks.MethodCancel || slices.Contains(methods, mcp.NotifyCancelled) {
		t.Errorf("it sent %q", methods)
	}
}

// A subscription that was lost is renewed, and the state is asked for then: something may
// have happened meanwhile.
func TestSubscriptionAgain(t *testing.T) {
	f := newFake(t)
	f.agree = true
	f.created = map[string]string{"pollIntervalMs": "86400000"}
	o := waiting(&tasks.WaitOptions{MaxPoll: time.Hour})
	w := &wire{}
	c := overHTTP(t, f, w, o)
	lost := false
	f.get = func(n int) (string, error) {
		if !lost {
			lost = true
			w.lose()
		}
		if n < 2 {
			return says("working", "pollIntervalMs", "86400000"), nil
		}
		return says("completed"), nil
	}
	if got, err := client.Call[string](t.Context(), c, "t", nil); err != nil || got != "done" {
		t.Errorf("%q, %v", got, err)
	}
	f.change(func() {
		if f.gets != 2 || f.listens != 2 {
			t.Errorf("asked %d times, with %d subscriptions", f.gets, f.listens)
		}
	})
}
