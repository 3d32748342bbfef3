package anthropic_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/model/anthropic"
	"github.com/parley-mcp/parley/app/internal/model/modeltest"
)

// testKey is the key of all tests; it must be in no output.
const testKey = "sk-ant-test-91c2d7e6f0"

// What these tests share with those of other providers.
var (
	golden = modeltest.Golden
	show   = modeltest.Show
	says   = modeltest.Says
	hello  = modeltest.Hello
)

type (
	reply     = modeltest.Reply
	transport = modeltest.Transport
)

// answers makes a transport that answers with streams, one for each request.
func answers(bodies ...io.Reader) *transport {
	t := &transport{}
	for _, b := range bodies {
		t.Replies = append(t.Replies, reply{Body: b})
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
	texts = slices.Concat(texts, at.URLs, at.Bodies)
	if slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, testKey) }) {
		t.Error("the key is in an output")
	}
}
