package anthropic_test

import (
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/app/model/anthropic"
	"github.com/parley-mcp/parley/app/model/modeltest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// testKey is the key of all tests; it must be in no output.
const testKey = "sk-ant-test-91c2d7e6f0"

// What these tests share with those of other providers.
var (
	show  = modeltest.Show
	says  = modeltest.Says
	hello = modeltest.Hello
)

// A reply is what the transport answers with.
type reply struct {
	status int    // default 200
	kind   string // default an event stream
	body   io.Reader
}

// A transport answers requests without a socket, and records them.
type transport struct {
	mu      sync.Mutex
	replies []reply // one after the other; the last one stays
	reqs    []*http.Request
	bodies  []string
	closed  int
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	body := ""
	if req.Body != nil {
		data, _ := io.ReadAll(req.Body) // memory
		body = string(data)
	}
	t.reqs, t.bodies = append(t.reqs, req), append(t.bodies, body)
	r := t.replies[0]
	if len(t.replies) > 1 {
		t.replies = t.replies[1:]
	}
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if r.kind == "" {
		r.kind = "text/event-stream; charset=utf-8"
	}
	return &http.Response{StatusCode: r.status, Header: http.Header{"Content-Type": {r.kind}}, Body: &counted{r.body, t}, Request: req}, nil
}

// A counted body counts that it was closed.
type counted struct {
	io.Reader

	of *transport
}

func (c *counted) Close() error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.closed++
	return nil
}

// answers makes a transport that answers with streams, one for each request.
func answers(bodies ...io.Reader) *transport {
	t := &transport{}
	for _, b := range bodies {
		t.replies = append(t.replies, reply{body: b})
	}
	return t
}

// model makes a model behind a transport.
func model(t *testing.T, at http.RoundTripper, change ...func(*anthropic.Options)) *anthropic.Model {
	t.Helper()
	o := &anthropic.Options{Model: "claude-test-1", Key: testKey, Client: &http.Client{Transport: at}}
	for _, f := range change {
		f(o)
	}
	m, err := anthropic.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// recorded is a stream of testdata.
func recorded(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".sse"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// secret checks that the key is in no text, body or address.
func secret(t *testing.T, at *transport, texts ...string) {
	t.Helper()
	for i, req := range at.reqs {
		texts = append(texts, req.URL.String(), at.bodies[i])
	}
	if slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, testKey) }) {
		t.Error("the key is in an output")
	}
}
