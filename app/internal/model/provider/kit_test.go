package provider_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/model/provider"
)

// testKey is the key of all tests; it must be in no output.
const testKey = "sk-test-0c8e1b7a4d"

// A reply is what the transport answers with.
type reply struct {
	status int // default 200
	kind   string
	header map[string]string
	body   string
	stream io.Reader // in the place of body
	err    error     // in the place of an answer
	hang   bool      // until the request ends
}

// A transport answers requests without a socket, and records them.
type transport struct {
	mu      sync.Mutex
	replies []reply // one after the other; the last one stays
	at      []time.Time
	reqs    []*http.Request
	bodies  []string
	closed  int
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.mu.Lock()
	r := t.replies[0]
	if len(t.replies) > 1 {
		t.replies = t.replies[1:]
	}
	t.at, t.reqs = append(t.at, time.Now()), append(t.reqs, req)
	if req.Body != nil {
		data, _ := io.ReadAll(req.Body) // memory
		t.bodies = append(t.bodies, string(data))
	}
	t.mu.Unlock()
	if r.hang {
		<-req.Context().Done()
		return nil, context.Cause(req.Context())
	}
	if r.err != nil {
		return nil, r.err
	}
	header := http.Header{}
	if r.kind != "" {
		header.Set("Content-Type", r.kind)
	}
	for name, value := range r.header {
		header.Set(name, value)
	}
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if r.stream == nil {
		r.stream = strings.NewReader(r.body)
	}
	return &http.Response{StatusCode: r.status, Header: header, Body: &body{r.stream, t, req.Context().Done()}, Request: req}, nil
}

// A body ends with its request, as those of net/http do, and counts that it was closed.
type body struct {
	io.Reader

	of   *transport
	done <-chan struct{}
}

func (b *body) Read(p []byte) (int, error) {
	select {
	case <-b.done:
		return 0, context.Canceled
	default:
		return b.Reader.Read(p)
	}
}

func (b *body) Close() error {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.closed++
	return nil
}

// endpoint is one behind replies.
func endpoint(replies ...reply) (*provider.Endpoint, *transport) {
	t := &transport{replies: replies}
	return &provider.Endpoint{
		Provider: "acme", URL: "https://models.example/v1",
		Key: testKey, KeyHeader: "Authorization", KeyPrefix: "Bearer ",
		Client: &http.Client{Transport: t},
	}, t
}

// read is what a stream says: the data of its events, and its error.
func read(ctx context.Context, e *provider.Endpoint) (events []string, err error) {
	for event, failed := range e.Stream(ctx, "/chat", map[string]string{"a": "<b>"}) {
		if failed != nil {
			return events, failed
		}
		events = append(events, event.Name+"="+string(event.Data))
	}
	return events, nil
}

// mustFail checks the text of an error, and that the key is not in it.
func mustFail(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want %q", want)
	}
	if got := err.Error(); got != want {
		t.Errorf("the error is\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(err.Error(), testKey) {
		t.Error("the key is in the error")
	}
}
