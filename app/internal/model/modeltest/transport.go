package modeltest

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"sync"
)

// A Reply is what a Transport answers with.
type Reply struct {
	Status int    // default 200
	Kind   string // default an event stream
	Header map[string]string
	Body   io.Reader
}

// A Transport answers requests without a socket, and records them. What it has recorded is
// read when no request is under way.
type Transport struct {
	// Replies are given one after the other; the last one stays.
	Replies []Reply
	Bodies  []string
	URLs    []string
	Headers []http.Header
	// Closed counts the bodies of answers that were closed.
	Closed int

	mu sync.Mutex
}

// Streams makes a transport that answers with streams, one for each request.
func Streams(texts ...string) *Transport {
	t := &Transport{}
	for _, text := range texts {
		t.Replies = append(t.Replies, Reply{Body: strings.NewReader(text)})
	}
	return t
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var data []byte
	if req.Body != nil {
		data, _ = io.ReadAll(req.Body) // memory
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Bodies, t.URLs = append(t.Bodies, string(data)), append(t.URLs, req.URL.String())
	t.Headers = append(t.Headers, req.Header)
	r := t.Replies[0]
	if len(t.Replies) > 1 {
		t.Replies = t.Replies[1:]
	}
	header := http.Header{"Content-Type": {cmp.Or(r.Kind, "text/event-stream; charset=utf-8")}}
	for name, value := range r.Header {
		header.Set(name, value)
	}
	return &http.Response{StatusCode: cmp.Or(r.Status, http.StatusOK), Header: header, Body: &body{r.Body, t}, Request: req}, nil
}

// A body counts that it was closed.
type body struct {
	io.Reader

	of *Transport
}

func (b *body) Close() error {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.Closed++
	return nil
}
