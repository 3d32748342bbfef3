package gemini_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/model/gemini"
	"github.com/parley-mcp/parley/app/internal/model/modeltest"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// testKey is the key of all tests; it must be in no output.
const testKey = "AIzaTest-4f0c9a71d2"

const keyHeader = "X-Goog-Api-Key"

// What these tests share with those of other providers.
var (
	streams = modeltest.Streams
	show    = modeltest.Show
	events  = modeltest.Events
	splits  = modeltest.Splits
	hello   = modeltest.Hello
	golden  = modeltest.Golden
	blocks  = modeltest.Says
)

type (
	reply     = modeltest.Reply
	transport = modeltest.Transport
)

// answers makes a transport that answers with a status and JSON.
func answers(status int, text string) *transport {
	return &transport{Replies: []reply{{Status: status, Kind: "application/json", Body: strings.NewReader(text)}}}
}

// model makes a model behind a transport.
func model(t *testing.T, at http.RoundTripper, change ...func(*gemini.Options)) *gemini.Model {
	t.Helper()
	o := &gemini.Options{
		Model: "gemini-3-pro", Key: testKey, BaseURL: "https://models.example", Client: &http.Client{Transport: at},
		Info: host.ModelInfo{MaxImage: 1 << 10},
	}
	for _, f := range change {
		f(o)
	}
	m, err := gemini.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// named changes the model's name.
func named(name string) func(*gemini.Options) { return func(o *gemini.Options) { o.Model = name } }

func says(role mcp.Role, texts ...string) host.Message {
	m := host.Message{Role: role}
	for _, text := range texts {
		m.Blocks = append(m.Blocks, host.Block{Content: mcp.Text(text)})
	}
	return m
}

func use(id, name, input string) *mcp.ToolUseContent {
	return &mcp.ToolUseContent{ID: id, Name: name, Input: mcp.RawValue(input)}
}

func result(id string, contents ...mcp.Content) *mcp.ToolResultContent {
	return &mcp.ToolResultContent{ToolUseID: id, Content: contents}
}

// parts is an event with parts.
func parts(list string) string { return `{"candidates":[{"content":{"parts":[` + list + `]}}]}` }

// finish is an event with the reason of the end.
func finish(reason string) string { return `{"candidates":[{"finishReason":"` + reason + `"}]}` }

// sent is what a model sends for a request, indented, after it was checked.
func sent(t *testing.T, m *gemini.Model, at *transport, r *host.Request) string {
	t.Helper()
	if got := show(m, r); strings.Contains(got, "error") {
		t.Fatal(got)
	}
	text := at.Bodies[len(at.Bodies)-1]
	checkRequest(t, text)
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", " "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// contents are the turns that a model sends, in one line.
func contents(t *testing.T, messages []host.Message, change ...func(*gemini.Options)) string {
	t.Helper()
	at := streams(events(finish("STOP")))
	sent(t, model(t, at, change...), at, &host.Request{Messages: messages})
	var body struct {
		Contents json.RawMessage `json:"contents"`
	}
	if err := json.Unmarshal([]byte(at.Bodies[0]), &body); err != nil {
		t.Fatal(err)
	}
	return string(body.Contents)
}
