package openai_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/model/modeltest"
	"github.com/parley-mcp/parley/app/internal/model/openai"
	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// testKey is the key of all tests; it must be in no output.
const testKey = "sk-test-4f0c9a71d2"

// What these tests share with those of other providers.
var (
	streams = modeltest.Streams
	show    = modeltest.Show
	events  = modeltest.Events
	splits  = modeltest.Splits
	hello   = modeltest.Hello
	golden  = modeltest.Golden
)

type (
	reply     = modeltest.Reply
	transport = modeltest.Transport
)

// model makes a model behind a transport.
func model(t *testing.T, at http.RoundTripper, change ...func(*openai.Options)) *openai.Model {
	t.Helper()
	o := &openai.Options{
		Model: "m", Key: testKey, BaseURL: "https://models.example/v1", Client: &http.Client{Transport: at},
		Info: host.ModelInfo{MaxImage: 1 << 10},
	}
	for _, f := range change {
		f(o)
	}
	m, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func says(role mcp.Role, texts ...string) host.Message {
	m := host.Message{Role: role}
	for _, text := range texts {
		m.Blocks = append(m.Blocks, host.Block{Content: mcp.Text(text)})
	}
	return m
}

// delta is an event with a delta.
func delta(members string) string { return `{"choices":[{"index":0,"delta":{` + members + `}}]}` }

// finish is an event with the reason of the end.
func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

const done = "[DONE]"

func client(at http.RoundTripper) *http.Client { return &http.Client{Transport: at} }

// joined is a list of models as text.
func joined(list []provider.Model) string {
	texts := make([]string, len(list))
	for i, m := range list {
		texts[i] = fmt.Sprintf("%s|%s|%d", m.ID, m.Name, m.Window)
	}
	return strings.Join(texts, " ")
}
