package anthropic_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/model/anthropic"
	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// The first bytes of images are enough for their types.
var (
	png  = []byte("\x89PNG\r\n\x1a\n0000")
	jpeg = []byte("\xff\xd8\xff\xe00000")
)

func use(id, name, input string) *mcp.ToolUseContent {
	return &mcp.ToolUseContent{ID: id, Name: name, Input: mcp.RawValue(input)}
}

func result(id string, contents ...mcp.Content) *mcp.ToolResultContent {
	return &mcp.ToolResultContent{ToolUseID: id, Content: contents}
}

func failed(id string, contents ...mcp.Content) *mcp.ToolResultContent {
	r := result(id, contents...)
	r.IsError = true
	return r
}

func thought(provider, data string) host.Block {
	return host.Block{Reasoning: &host.Reasoning{Provider: provider, Text: "…", Data: mcp.RawValue(data)}}
}

func weather() []host.ToolSpec {
	return []host.ToolSpec{
		{Name: "weather", Description: "Tells the weather.", InputSchema: mcp.RawValue(`{"type":"object","properties":{"location":{"type":"string"}}}`)},
		{Name: "time"},
	}
}

const signed = `{"signature":"EqQB+/==","thinking":"<27> & 453","type":"thinking"}`

// requests are conversations, and what is sent of them is in testdata.
var requests = map[string]func() (*host.Request, func(*anthropic.Options)){
	"whole": func() (*host.Request, func(*anthropic.Options)) {
		zero := 0.0
		answer := says(mcp.RoleAssistant, mcp.Text("I'll look at both."), use("c4", "weather", `{"location": "Praha <&>"}`), use("c5", "time", `{}`))
		answer.Blocks = append([]host.Block{thought("anthropic", signed), thought("openai", `{"type":"thinking"}`), thought("anthropic", `{"type":"redacted_thinking","data":"Emw="}`)}, answer.Blocks...)
		return &host.Request{
			System: "Be brief.",
			Messages: []host.Message{
				says(mcp.RoleUser, mcp.Text("What is it like here?"), mcp.Image(png, "image/png")),
				answer,
				says(mcp.RoleUser, result("c4", mcp.Text("Sunny."), mcp.Image(jpeg, "image/png"), mcp.Link("file:///a", "a"), mcp.Embed(mcp.ResourceContents{URI: "file:///b", Text: "b"})),
					failed("c5", mcp.Text("No clock."), mcp.Image(png, "image/png"))),
			},
			Tools: weather(), MaxTokens: 100, Temperature: &zero, Stop: []string{"END", " \n", ""},
		}, nil
	},
	"mended": func() (*host.Request, func(*anthropic.Options)) {
		only := host.Message{Role: mcp.RoleAssistant, Blocks: []host.Block{thought("anthropic", signed)}}
		last := says(mcp.RoleAssistant, use("a", "späte frage", `no JSON`), use("a", "", `[1]`))
		last.Blocks = append(last.Blocks, thought("anthropic", signed))
		return &host.Request{
			System: " ",
			Messages: []host.Message{
				says(mcp.RoleAssistant, mcp.Text("I begin."), use("a", "time", ""), mcp.Text("\n")),
				says(mcp.RoleUser, mcp.Text("")),
				says(mcp.RoleUser, mcp.Text("Before."), result("zz", mcp.Text("whose?"))),
				says(mcp.RoleUser, result("a"), mcp.Text("After.")),
				only,
				says(mcp.RoleUser, mcp.Audio([]byte("RIFF"), "audio/wav"), mcp.Image([]byte("GIF89a"), "image/gif"), mcp.Image([]byte("<svg/>"), "image/svg+xml"),
					mcp.Image(append(png, make([]byte, 100)...), "image/png"), mcp.Embed(mcp.ResourceContents{URI: "a:b", MIMEType: "image/jpeg", Blob: jpeg})),
				last,
			},
		}, func(o *anthropic.Options) { o.Info.MaxImage = 100 }
	},
	"adaptive": func() (*host.Request, func(*anthropic.Options)) {
		r, warm := hello(), 0.5
		r.Temperature = &warm
		return r, func(o *anthropic.Options) {
			o.Thinking, o.Effort, o.MaxTokens = anthropic.ThinkingAdaptive, "low", 5000
		}
	},
	"budget": func() (*host.Request, func(*anthropic.Options)) {
		r, warm := hello(), 0.5
		r.Temperature, r.MaxTokens = &warm, 500
		return r, func(o *anthropic.Options) { o.Thinking = 2000 }
	},
	"off": func() (*host.Request, func(*anthropic.Options)) {
		r, warm := hello(), 0.5
		r.Temperature = &warm
		r.Messages = append(r.Messages, says(mcp.RoleAssistant, mcp.Text("Hi ")))
		r.Messages[0].Blocks = append(r.Messages[0].Blocks, host.Block{Content: mcp.Image(png, "image/png")})
		return r, func(o *anthropic.Options) { o.Thinking, o.Info.MaxImage = anthropic.ThinkingOff, -1 }
	},
}

func TestRequests(t *testing.T) {
	for name, make := range requests {
		t.Run(name, func(t *testing.T) {
			r, change := make()
			same, _ := make()
			at := answers(strings.NewReader(recorded(t, "nothing")))
			var m *anthropic.Model
			if change == nil {
				change = func(*anthropic.Options) {}
			}
			m = model(t, at, change)
			if got := show(m, r); !strings.HasSuffix(got, "stop end\n") {
				t.Fatal(got)
			}
			var b bytes.Buffer
			if err := json.Indent(&b, []byte(at.Bodies[0]), "", "\t"); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".json", b.String())
			if !reflect.DeepEqual(r, same) {
				t.Error("the host's request was changed")
			}
			secret(t, at)
			header := at.Headers[0]
			if at.URLs[0] != "https://api.anthropic.com/v1/messages" || header.Get("X-Api-Key") != testKey || header.Get("Anthropic-Version") == "" {
				t.Errorf("%s %v", at.URLs[0], header)
			}
		})
	}
}

// Reasoning goes back as it came, byte for byte.
func TestReasoningReturns(t *testing.T) {
	at := answers(strings.NewReader(recorded(t, "thinking")), strings.NewReader(recorded(t, "nothing")))
	m := model(t, at)
	r := hello()
	answer := host.Message{Role: mcp.RoleAssistant}
	var want []string
	for p, err := range m.Generate(t.Context(), r) {
		switch {
		case err != nil:
			t.Fatal(err)
		case p.Reasoning != nil:
			answer.Blocks = append(answer.Blocks, host.Block{Reasoning: p.Reasoning})
			want = append(want, string(p.Reasoning.Data))
		case p.Text != "":
			answer.Blocks = append(answer.Blocks, host.Block{Content: mcp.Text(p.Text)})
		}
	}
	r.Messages = append(r.Messages, answer, says(mcp.RoleUser, mcp.Text("Go on.")))
	show(m, r)
	if all := strings.Join(want, ",") + `,{"type":"text"`; len(want) != 3 || !strings.Contains(at.Bodies[1], all) {
		t.Errorf("%s is not in\n%s", all, at.Bodies[1])
	}
}

func TestNothingIsAsked(t *testing.T) {
	at := answers(strings.NewReader(""))
	for _, messages := range [][]host.Message{nil, {says(mcp.RoleUser, mcp.Text(" "))}} {
		if got := show(model(t, at), &host.Request{Messages: messages}); got != "error the model is asked nothing: the conversation is empty\n" {
			t.Error(got)
		}
	}
	if len(at.URLs) != 0 {
		t.Error("a request was made")
	}
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		options anthropic.Options
		want    string
	}{
		{anthropic.Options{}, `the name of a model of anthropic is ""; it looks like claude-sonnet-5; 'parley model list anthropic' lists what there is`},
		{anthropic.Options{Model: "a\x1bb"}, `the name of a model of anthropic is "a\x1bb"; it looks like claude-sonnet-5; 'parley model list anthropic' lists what there is`},
		{anthropic.Options{Model: "m", Key: testKey + "\n" + testKey}, "anthropic: the key has a blank, a line break or another character in it that no key has; was more than the key copied?"},
		{anthropic.Options{Model: "m", Key: testKey, BaseURL: "http://example.com"}, `anthropic: the base URL "http://example.com" is http, and not on this machine: the key would be sent in the clear; use https`},
		{anthropic.Options{Model: "m", Thinking: -3}, "thinking is -3 tokens; it is at least 1024, or 0 for the model's default"},
		{anthropic.Options{Model: "m", MaxTokens: -1}, "an answer of at most -1 tokens; it is at least 1, or 0 for the default"},
	} {
		_, err := anthropic.New(&test.options)
		if err == nil || err.Error() != test.want {
			t.Errorf("%v\nwant %s", err, test.want)
		}
	}
	info := model(t, nil, func(o *anthropic.Options) { o.Info = host.ModelInfo{Name: "other", Window: 7} }).Info()
	if want := (host.ModelInfo{Name: "claude-test-1", Provider: "anthropic", Window: 7, MaxImage: anthropic.DefaultMaxImage}); !reflect.DeepEqual(info, want) {
		t.Errorf("%+v", info)
	}
}

// The pages of a list follow https://platform.claude.com/docs/en/api/models/list.
func TestList(t *testing.T) {
	page := func(body string) reply { return reply{Kind: "application/json", Body: strings.NewReader(body)} }
	at := &transport{Replies: []reply{
		page(`{"data":[{"id":"claude-b","display_name":"Claude B","max_input_tokens":200000,"type":"model"}],"has_more":true,"first_id":"claude-b","last_id":"claude-b"}`),
		page(`{"data":[{"id":"a"}],"has_more":true,"last_id":"claude-b"}`),
	}}
	list := func() ([]provider.Model, error) {
		return anthropic.List(t.Context(), &anthropic.Options{Key: testKey, Client: &http.Client{Transport: at}})
	}
	got, err := list()
	if want := "[{claude-b Claude B 200000} {a  0}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v", got, err)
	}
	if len(at.URLs) != 2 || at.URLs[1] != "https://api.anthropic.com/v1/models?after_id=claude-b&limit=1000" {
		t.Errorf("%v", at.URLs)
	}
	at.Replies = []reply{{Status: 401, Body: strings.NewReader(`{"error":{"message":"invalid x-api-key"}}`)}}
	if _, err := list(); err == nil || !strings.Contains(err.Error(), "refuses the key") {
		t.Errorf("%v", err)
	}
	secret(t, at)
}

// Reasoning that one address signed goes to no other: there the signature is a fault for
// which each further request is refused.
func TestReasoningOfAddress(t *testing.T) {
	const stream = `data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"Hm","signature":"c2ln"}}` + "\n\n" +
		`data: {"type":"content_block_stop","index":0}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n"
	var first *host.Reasoning
	elsewhere := func(o *anthropic.Options) { o.BaseURL = "https://Models.example/v1" }
	for piece, err := range model(t, answers(strings.NewReader(stream)), elsewhere).Generate(t.Context(), hello()) {
		if err != nil {
			t.Fatal(err)
		}
		if piece.Reasoning != nil {
			first = piece.Reasoning
		}
	}
	if first == nil || first.Provider != "anthropic@models.example" {
		t.Fatalf("got %+v", first)
	}
	said := says(mcp.RoleAssistant, mcp.Text("Hello"))
	said.Blocks = append([]host.Block{{Reasoning: first}}, said.Blocks...)
	r := &host.Request{Messages: []host.Message{hello().Messages[0], said, hello().Messages[0]}}
	for _, test := range []struct {
		change []func(*anthropic.Options)
		back   bool
	}{{nil, false}, {[]func(*anthropic.Options){elsewhere}, true}} {
		at := answers(strings.NewReader(stream))
		show(model(t, at, test.change...), r)
		if len(at.Bodies) != 1 || strings.Contains(at.Bodies[0], "c2ln") != test.back {
			t.Errorf("sent %s", at.Bodies)
		}
	}
}

// One model is asked for, also by the name of the newest of its kind.
func TestWindow(t *testing.T) {
	for body, want := range map[string]int{
		`{"id":"claude-b-20260101","type":"model","max_input_tokens":200000,"max_tokens":64000}`: 200000,
		`{"id":"claude-b"}`: 0, `{"max_input_tokens":3}`: 0,
	} {
		at := &transport{Replies: []reply{{Kind: "application/json", Body: strings.NewReader(body)}}}
		got, err := anthropic.Window(t.Context(), &anthropic.Options{Model: "claude/b", Key: testKey, Client: &http.Client{Transport: at}})
		if got != want || err != nil || at.URLs[0] != "https://api.anthropic.com/v1/models/claude%2Fb" {
			t.Errorf("%s: %d, %v from %v", body, got, err, at.URLs)
		}
		secret(t, at)
	}
	at := &transport{Replies: []reply{{Status: 529, Body: strings.NewReader(`{}`)}}}
	if got, err := anthropic.Window(t.Context(), &anthropic.Options{Model: "m", Key: testKey, Client: &http.Client{Transport: at}}); got != 0 || err == nil || len(at.URLs) != 1 {
		t.Errorf("%d, %v, %d requests", got, err, len(at.URLs))
	}
}
