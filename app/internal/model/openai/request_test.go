package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/app/internal/model/openai"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// Images of one pixel, or what begins like one.
var (
	png  = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	gif  = []byte("GIF89a\x01\x00\x01\x00")
	webp = []byte("RIFF\x1a\x00\x00\x00WEBPVP8 ")
)

func block(c mcp.Content) host.Block { return host.Block{Content: c} }

func use(id, name, input string) host.Block {
	return block(&mcp.ToolUseContent{ID: id, Name: name, Input: mcp.RawValue(input)})
}

func result(id string, content ...mcp.Content) host.Block {
	return block(&mcp.ToolResultContent{ToolUseID: id, Content: content})
}

func thought(provider, text, data string) host.Block {
	return host.Block{Reasoning: &host.Reasoning{Provider: provider, Text: text, Data: mcp.RawValue(data)}}
}

const (
	user      = mcp.RoleUser
	assistant = mcp.RoleAssistant
	here      = "openai@models.example"
)

// whole is a conversation with everything in it.
func whole() *host.Request {
	warm := 0.2
	failed := &mcp.ToolResultContent{ToolUseID: "c3", IsError: true, Content: mcp.Contents{mcp.Text("no such city")}}
	return &host.Request{
		System: "Be brief.",
		Tools: []host.ToolSpec{
			{Name: "get_weather", Description: "Tells the <weather>.", InputSchema: mcp.RawValue(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
			{Name: "list_cities"},
		},
		MaxTokens: 500, Temperature: &warm, Stop: []string{"END", "", "STOP"},
		Messages: []host.Message{
			{Role: user, Blocks: []host.Block{block(mcp.Text("What is on it?")), block(mcp.Image(png, "image/png"))}},
			{Role: assistant, Blocks: []host.Block{
				thought(here, "Look.", `{"reasoning_details":[{"type":"reasoning.text","text":"Look.","signature":"a/+=<","index":0}]}`),
				thought("anthropic", "Not yours.", `{"type":"thinking","thinking":"Not yours.","signature":"s"}`),
				block(mcp.Text("I look.")),
				thought(here, "", `{"reasoning_details":[{"type":"reasoning.encrypted","data":"b/+=","index":1}]}`),
				use("c1", "get_weather", `{"city":"Zürich"}`), use("c2", "list_cities", `{}`), use("c3", "get_weather", `{"city":"<?>"}`),
			}},
			{Role: user, Blocks: []host.Block{
				result("c2", mcp.Text("Bern"), mcp.Image(webp, "image/webp"), mcp.Link("file:///a", "a")),
				result("c1", mcp.Text("sunny")), block(failed),
			}},
			{Role: assistant, Blocks: []host.Block{thought(here, "Done.", `{"reasoning_content":"Done."}`), block(mcp.Text("Sunny."))}},
			{Role: user, Blocks: []host.Block{
				block(mcp.Text("Thanks.")), block(mcp.Embed(mcp.ResourceContents{URI: "file:///b", Text: "in b"})), block(mcp.Audio([]byte("RIFF"), "audio/wav")),
			}},
		},
	}
}

// sent is the body of the request that a model sends.
func sent(t *testing.T, r *host.Request, change ...func(*openai.Options)) string {
	t.Helper()
	at := streams(events(finish("stop"), done))
	if got := show(model(t, at, change...), r); got != "stop end\n" {
		t.Fatal(got)
	}
	return at.Bodies[0]
}

// A whole conversation, as it is sent to a server of somebody's own and to OpenAI.
func TestRequests(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*openai.Options){
		"request-server.json": func(*openai.Options) {},
		"request-openai.json": func(o *openai.Options) {
			o.BaseURL, o.MaxAudio, o.Effort = "", 1<<10, "low"
		},
	} {
		body := sent(t, whole(), change)
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(body), "", "  "); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.String())
		valid(t, body)
	}
}

// published is the schema of requests that OpenAI publishes: see testdata/README.md.
func published(t *testing.T) (*schema.Compiled, map[string]bool) {
	t.Helper()
	raw, err := os.ReadFile("testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := schema.Compile(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	type properties struct {
		Properties map[string]any `json:"properties"`
		AllOf      []struct {
			Ref        string         `json:"$ref"`
			Properties map[string]any `json:"properties"`
		} `json:"allOf"`
	}
	var doc struct {
		properties
		Defs map[string]properties `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	var add func(p properties)
	add = func(p properties) {
		for name := range p.Properties {
			known[name] = true
		}
		for _, part := range p.AllOf {
			for name := range part.Properties {
				known[name] = true
			}
			if part.Ref != "" {
				add(doc.Defs[strings.TrimPrefix(part.Ref, "#/$defs/")])
			}
		}
	}
	add(doc.properties)
	return compiled, known
}

// valid holds a request against the published schema, which allows members that it does not
// know: parameters are looked for by name besides.
func valid(t *testing.T, body string) {
	t.Helper()
	compiled, known := published(t)
	if err := compiled.Check([]byte(body)); err != nil {
		t.Errorf("%v\n%s", err, body)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatal(err)
	}
	for name := range members {
		if !known[name] {
			t.Errorf("the parameter %q is not published", name)
		}
	}
}

// The published schema finds what is wrong.
func TestPublishedSchema(t *testing.T) {
	t.Parallel()
	compiled, known := published(t)
	good := sent(t, hello())
	for _, change := range [][2]string{{`"role":"user"`, `"role":"person"`}, {`"content":"Hello"`, `"content":5`}, {`"stream":true`, `"stream":"yes"`}, {`"model":"m",`, ``}} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good || compiled.Check([]byte(bad)) == nil {
			t.Errorf("%s is not found wrong", bad)
		}
	}
	if !known["max_completion_tokens"] || !known["temperature"] || known["max_output"] {
		t.Error(known)
	}
}

// What a provider would refuse is mended or left out.
func TestMended(t *testing.T) {
	t.Parallel()
	const noResult = `{"role":"tool","content":"[host: there is no result of this call]","tool_call_id":`
	big := append(bytes.Clone(png), make([]byte, 2000)...)
	for _, c := range []struct {
		name     string
		messages []host.Message
		want     string
	}{
		{"two of a role", []host.Message{says(user, "a", ""), says(user, "b"), says(assistant, "c"), says(assistant, " "), says(assistant, "d")}, `[{"role":"user","content":"a\n\nb"},{"role":"assistant","content":"c\n\nd"}]`},
		{"the model first", []host.Message{says(assistant, "a"), says(user, "b")}, `[{"role":"user","content":"[host: the conversation begins with a message of the model]"},{"role":"assistant","content":"a"},{"role":"user","content":"b"}]`},
		{"a call without its result", []host.Message{says(user, "a"), {Role: assistant, Blocks: []host.Block{use("c1", "f", `{}`), use("c2", "f", `{}`)}}, {Role: user, Blocks: []host.Block{block(mcp.Text("b")), result("c2", mcp.Text("two"))}}}, `[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"two","tool_call_id":"c2"},` + noResult + `"c1"},{"role":"user","content":"b"}]`},
		{"a call at the end", []host.Message{says(user, "a"), {Role: assistant, Blocks: []host.Block{use("c1", "f", `{}`)}}}, `[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},` + noResult + `"c1"}]`},
		{"a result without its call, and twice", []host.Message{{Role: user, Blocks: []host.Block{result("c0", mcp.Text("no")), block(mcp.Text("a"))}}, {Role: assistant, Blocks: []host.Block{use("c1", "f", `{}`)}}, {Role: user, Blocks: []host.Block{result("c1", mcp.Text("one")), result("c1", mcp.Text("two"))}}}, `[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"one","tool_call_id":"c1"}]`},
		{"ids", []host.Message{says(user, "a"), {Role: assistant, Blocks: []host.Block{use("", "f", `{}`), use(strings.Repeat("x", 41), "f", `{}`), use("c", "f", `{}`), use("c", "f", `{}`)}}, {Role: user, Blocks: []host.Block{result("c", mcp.Text("1")), result("c", mcp.Text("2")), result("", mcp.Text("3")), result(strings.Repeat("x", 41), mcp.Text("4"))}}}, `[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"call_2","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"call_4","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"1","tool_call_id":"c"},{"role":"tool","content":"2","tool_call_id":"call_4"},{"role":"tool","content":"3","tool_call_id":"call_1"},{"role":"tool","content":"4","tool_call_id":"call_2"}]`},
		{"arguments that are no JSON", []host.Message{says(user, "a"), {Role: assistant, Blocks: []host.Block{use("c1", "f", `{x`)}}, {Role: user, Blocks: []host.Block{block(&mcp.ToolResultContent{ToolUseID: "c1", StructuredContent: mcp.RawValue(`{"y":1}`)})}}}, `[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"{\"y\":1}","tool_call_id":"c1"}]`},
		{"a result that is empty", []host.Message{says(user, "a"), {Role: assistant, Blocks: []host.Block{use("c1", "f", `{}`)}}, {Role: user, Blocks: []host.Block{result("c1", mcp.Text(""))}}}, `[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"[host: the tool gave no output]","tool_call_id":"c1"}]`},
		{"images", []host.Message{{Role: user, Blocks: []host.Block{block(mcp.Image(big, "image/png")), block(mcp.Image(gif, "image/gif")), block(mcp.Image([]byte("<svg>"), "image/png"))}}}, `[{"role":"user","content":"[image, image/png, 2016 bytes] [host: it was left out: the model takes images of at most 1024 bytes]\n\n[image, image/gif, 10 bytes] [host: it was left out: it is no PNG, JPEG or WebP]\n\n[image, image/png, 5 bytes] [host: it was left out: it is no PNG, JPEG or WebP]"}]`},
		{"sound", []host.Message{{Role: user, Blocks: []host.Block{block(mcp.Audio([]byte("x"), "audio/wav"))}}}, `[{"role":"user","content":"[audio, audio/wav, 1 bytes] [host: it was left out: the model takes no sound]"}]`},
		{"reasoning alone", []host.Message{says(user, "a"), {Role: assistant, Blocks: []host.Block{thought(here, "b", `{"reasoning":"b"}`)}}, says(user, "c")}, `[{"role":"user","content":"a\n\nc"}]`},
		{"reasoning of others", []host.Message{says(user, "a"), {Role: assistant, Blocks: []host.Block{thought("openai", "b", `{"reasoning":"b"}`), thought("openai@other.example", "b", `{"reasoning":"b"}`), thought(here, "b", ``), thought(here, "b", `[1]`), block(mcp.Text("c"))}}}, `[{"role":"user","content":"a"},{"role":"assistant","content":"c"}]`},
		{"blocks in the wrong place", []host.Message{{Role: user, Blocks: []host.Block{block(mcp.Text("a")), use("c1", "f", `{}`), thought(here, "b", `{"reasoning":"b"}`)}}, {Role: assistant, Blocks: []host.Block{result("c1", mcp.Text("x")), block(mcp.Image(png, "image/png"))}}}, `[{"role":"user","content":"a"},{"role":"assistant","content":"[image, image/png, 16 bytes]"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := sent(t, &host.Request{Messages: c.messages})
			want := `{"model":"m","messages":` + c.want + `,"stream":true,"stream_options":{"include_usage":true}}`
			if got := strings.TrimSpace(body); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			valid(t, body)
		})
	}
}

// Images and sounds that the model does not take are named, and why they are left out.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	svg, wav := mcp.Image([]byte("<svg>"), "image/svg+xml"), mcp.Audio([]byte("RIFF"), "audio/wav")
	for _, c := range []struct {
		content mcp.Content
		change  func(*openai.Options)
		want    string
	}{
		{mcp.Image(png, "image/png"), func(o *openai.Options) { o.Info.MaxImage = 0 }, "[image, image/png, 16 bytes] [host: it was left out: the model takes no images]"},
		{svg, func(o *openai.Options) { o.BaseURL = "" }, "[image, image/svg+xml, 5 bytes] [host: it was left out: it is no PNG, JPEG, WebP or GIF]"},
		{wav, func(o *openai.Options) { o.MaxAudio = 3 }, "[audio, audio/wav, 4 bytes] [host: it was left out: the model takes sounds of at most 3 bytes]"},
		{mcp.Audio([]byte("OggS"), "audio/ogg"), func(o *openai.Options) { o.MaxAudio = 9 }, "[audio, audio/ogg, 4 bytes] [host: it was left out: it is no WAV or MP3]"},
	} {
		body := sent(t, &host.Request{Messages: []host.Message{{Role: user, Blocks: []host.Block{block(c.content)}}}}, c.change)
		if !strings.Contains(body, `{"role":"user","content":"`+c.want+`"}`) {
			t.Errorf("no %s in %s", c.want, body)
		}
	}
}

// A request that has nothing to answer is not sent.
func TestNothingToAnswer(t *testing.T) {
	t.Parallel()
	at := streams("")
	for _, messages := range [][]host.Message{nil, {says(user, " ")}, {{Role: user, Blocks: []host.Block{result("c1", mcp.Text("x"))}}}} {
		got := show(model(t, at), &host.Request{System: "Be brief.", Messages: messages})
		if got != "error the conversation has no message that a model could answer\n" || len(at.Bodies) != 0 {
			t.Errorf("%s, %d requests", got, len(at.Bodies))
		}
	}
}

// What a stream says of reasoning and calls goes back as it came.
func TestBackAsItCame(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"openrouter-reasoning": `{"role":"assistant","content":"I look it up.","tool_calls":[{"id":"toolu_01","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Bern\"}"}}],"reasoning_details":[{"format":"anthropic-claude-v1","index":0,"signature":"EqoBCkgIARABGAIiQL2/+==","text":"The person wants <b>.","type":"reasoning.text"},{"type":"reasoning.encrypted","data":"gAAAAABo+/==","id":"rs_1","format":"openai-responses-v1","index":1}]}`,
		"llamacpp-calls":       `{"role":"assistant","content":"","tool_calls":[{"id":"5eGxS1qH","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Bern\"}"}}],"reasoning_content":"Weather?"}`,
		"deepseek-calls":       `{"role":"assistant","content":"","tool_calls":[{"id":"call_00_x","type":"function","function":{"name":"get_date","arguments":"{}"}}],"reasoning_content":""}`,
		"vllm-reasoning":       `{"role":"assistant","content":"9.8 is greater","reasoning":"9.8 is greater."}`,
	} {
		stream, err := os.ReadFile("testdata/" + name + ".sse")
		if err != nil {
			t.Fatal(err)
		}
		m := model(t, streams(string(stream)))
		answer := host.Message{Role: assistant}
		var results host.Message
		var text strings.Builder
		for p, err := range m.Generate(t.Context(), hello()) {
			switch {
			case err != nil:
				t.Fatal(err)
			case p.Text != "":
				text.WriteString(p.Text)
			case p.Reasoning != nil:
				answer.Blocks = append(answer.Blocks, host.Block{Reasoning: p.Reasoning})
			case p.Call != nil:
				answer.Blocks = append(answer.Blocks, block(p.Call))
				results.Blocks = append(results.Blocks, result(p.Call.ID, mcp.Text("ok")))
			}
		}
		answer.Blocks = append(answer.Blocks, block(mcp.Text(text.String())))
		results.Role = user
		body := sent(t, &host.Request{Messages: []host.Message{says(user, "Hello"), answer, results}})
		if !strings.Contains(body, want) {
			t.Errorf("%s: %s\nis not in\n%s", name, want, body)
		}
	}
}

// A parameter that the model refuses is left out, and not sent again.
func TestRefusedParameters(t *testing.T) {
	t.Parallel()
	refusal := func(text string) reply {
		return reply{Status: 400, Kind: "application/json", Body: strings.NewReader(fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":"unsupported_parameter"}}`, text))}
	}
	end := func() reply { return reply{Body: strings.NewReader(events(finish("stop"), done))} }
	at := &transport{Replies: []reply{
		refusal("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
		refusal("Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported."),
		refusal("Unsupported parameter: 'stop' is not supported with this model."),
		{Status: 422, Kind: "application/json", Body: strings.NewReader(`{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`)},
		refusal("property 'reasoning_details' is unsupported"),
		refusal("Unrecognized request argument supplied: reasoning_effort"),
		refusal("max_completion_tokens is deprecated"),
		end(), end(),
	}}
	m := model(t, at, func(o *openai.Options) { o.Effort = "low" })
	for range 2 {
		if got := show(m, whole()); got != "stop end\n" {
			t.Fatal(got)
		}
	}
	gone := []string{`"max_tokens":500`, `"temperature":`, `"stop":`, `"stream_options":`, `"reasoning_details":`, `"reasoning_effort":`, `"max_completion_tokens":500`}
	for i, body := range at.Bodies {
		for j, name := range gone {
			want := i <= j
			if j == len(gone)-1 {
				want = i > 0 && i <= j // in the place of max_tokens
			}
			if strings.Contains(body, name) != want {
				t.Errorf("request %d has %s: %v", i, name, !want)
			}
		}
	}
	if len(at.Bodies) != 9 {
		t.Errorf("%d requests", len(at.Bodies))
	}
}

// Other refusals are told, with what to do if it is known.
func TestOtherRefusals(t *testing.T) {
	t.Parallel()
	for text, advice := range map[string]string{
		"registry.ollama.ai/library/llama2:latest does not support tools":                 "; choose a model that can call tools",
		"This model's maximum context length is 8192 tokens. However, you requested 9000": "; /compact makes the conversation shorter",
		"the request exceeds the available context size (4096 tokens)":                    "; /compact makes the conversation shorter",
		"q is not a multimodal model":                                                     "; choose a model that takes images",
		"temperature must be at most 2":                                                   "",
		"'temperature' is not supported, nor is 'top'":                                    "",
	} {
		at := &transport{Replies: []reply{{Status: 400, Kind: "application/json", Body: strings.NewReader(fmt.Sprintf(`{"error":{"message":%q}}`, text))}}}
		want := "error openai refuses the request (status 400): " + text + advice + "\n"
		if got := show(model(t, at), hello()); got != want || len(at.Bodies) != 1 {
			t.Errorf("%d requests: got\n%swant\n%s", len(at.Bodies), got, want)
		}
	}
}

// picky refuses requests with a temperature, and answers others.
type picky struct{}

func (picky) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(events(finish("stop"))))}
	if bytes.Contains(body, []byte(`"temperature"`)) {
		answer.StatusCode = http.StatusBadRequest
		answer.Body = io.NopCloser(strings.NewReader(`{"error":{"message":"temperature is not supported"}}`))
	}
	return answer, nil
}

// Many turns at once learn together.
func TestTurnsAtOnce(t *testing.T) {
	t.Parallel()
	m := model(t, picky{})
	var turns sync.WaitGroup
	for range 16 {
		turns.Go(func() {
			if got := show(m, whole()); got != "stop end\n" {
				t.Error(got)
			}
		})
	}
	turns.Wait()
}

// OpenAI takes GIF, sound, at most four texts that stop, and max_completion_tokens.
func TestKnownServers(t *testing.T) {
	t.Parallel()
	r := hello()
	r.MaxTokens, r.Stop = 7, []string{"a", "b", "c", "d", "e"}
	r.Messages[0].Blocks = append(r.Messages[0].Blocks, block(mcp.Image(gif, "image/gif")), block(mcp.Audio([]byte("x"), "audio/mpeg")))
	for _, c := range []struct{ address, bound, stop, gif string }{
		{"https://api.openai.com/v1", `"max_completion_tokens":7`, `"stop":["a","b","c","d"]`, "data:image/gif;base64,R0lGODlhAQABAA=="},
		{"https://eu.api.openai.com/v1", `"max_completion_tokens":7`, `"stop":["a","b","c","d"]`, "data:image/gif;base64,R0lGODlhAQABAA=="},
		{"https://x.openai.azure.com/openai/v1", `"max_completion_tokens":7`, `"stop":["a","b","c","d"]`, "data:image/gif;base64,R0lGODlhAQABAA=="},
		{"https://openrouter.ai/api/v1", `"max_tokens":7`, `"stop":["a","b","c","d","e"]`, "data:image/gif;base64,R0lGODlhAQABAA=="},
		{"http://127.0.0.1:11434", `"max_tokens":7`, `"stop":["a","b","c","d","e"]`, "it is no PNG, JPEG or WebP"},
		{"https://notapi.openai.com.example/v1", `"max_tokens":7`, `"stop":["a","b","c","d","e"]`, "it is no PNG, JPEG or WebP"},
	} {
		body := sent(t, r, func(o *openai.Options) { o.BaseURL, o.MaxAudio = c.address, 10 })
		for _, want := range []string{c.bound, c.stop, c.gif, `"input_audio":{"data":"eA==","format":"mp3"}`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %s in %s", c.address, want, body)
			}
		}
	}
}
