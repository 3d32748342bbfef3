package gemini_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/model/gemini"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// png, jpeg and wav are the beginnings of such files.
var (
	png  = []byte("\x89PNG\r\n\x1a\n")
	jpeg = []byte("\xff\xd8\xff\xe0")
	wav  = []byte("RIFF\x00\x00\x00\x00WAVE")
)

// thought is reasoning of a provider.
func thought(of, text, data string) host.Block {
	return host.Block{Reasoning: &host.Reasoning{Provider: of, Text: text, Data: mcp.RawValue(data)}}
}

// conversation is one with everything in it.
func conversation() *host.Request {
	temperature := 0.5
	return &host.Request{
		System: "Answer <briefly> & well.",
		Messages: []host.Message{
			blocks(mcp.RoleUser, mcp.Text("What is this?"), mcp.Image(png, "image/png"), mcp.Image([]byte("GIF89a"), "image/gif"), mcp.Audio(wav, "audio/x-wav")),
			{Role: mcp.RoleAssistant, Blocks: []host.Block{
				thought("gemini@models.example", "Two places.", `{"kind":"thought"}`),
				thought("anthropic", "Of another.", `{"signature":"x"}`),
				{Content: mcp.Text("One moment. ")},
				thought("gemini@models.example", "", `{"kind":"call","thoughtSignature":"RW5jcnlwdGVkK2EvYg==","id":"k9x1"}`),
				{Content: use("c4", "weather__get", `{"city":"Paris","days":1.0}`)},
				thought("gemini@models.example", "", `{"kind":"call","id":"k9x2"}`),
				{Content: use("c5", "weather__get", `{"city":"München"}`)},
				thought("gemini@models.example", "", `{"kind":"call","id":"k9x3"}`),
				{Content: use("c6", "7zip__list", `{}`)},
			}},
			blocks(mcp.RoleUser,
				&mcp.ToolResultContent{ToolUseID: "c5", Content: mcp.Contents{mcp.Text("no such place")}, IsError: true},
				result("c4", mcp.Text("sunny"), mcp.Image(jpeg, "image/jpeg"), mcp.Link("file:///a.txt", "a"), mcp.Audio(wav, "audio/wav"),
					mcp.Embed(mcp.ResourceContents{URI: "file:///b.txt", Text: "the text of b"})),
				&mcp.ToolResultContent{ToolUseID: "c6", StructuredContent: mcp.RawValue(`{"n":1.50,"of":["a"]}`)}),
			{Role: mcp.RoleAssistant, Blocks: []host.Block{
				{Content: mcp.Text("It is sunny.")},
				thought("gemini@models.example", "", `{"kind":"text","thoughtSignature":"TGFzdA==","bytes":6}`),
			}},
			says(mcp.RoleUser, "Thanks. And tomorrow?"),
		},
		Tools: []host.ToolSpec{
			{Name: "weather__get", Description: "Reads the weather.", InputSchema: mcp.RawValue(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["city"]}`)},
			{Name: "_7zip__list", InputSchema: mcp.RawValue(`{"type":"object","properties":{}}`)},
		},
		MaxTokens: 1000, Temperature: &temperature, Stop: []string{"END", "", "B", "C", "D", "E", "F"},
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	low := 512
	for _, test := range []struct {
		file   string
		change func(*gemini.Options)
	}{
		{"request-gemini3.json", func(o *gemini.Options) { o.ThinkingLevel, o.MaxAudio = "low", 100 }},
		{"request-gemini2.json", func(o *gemini.Options) { o.Model, o.ThinkingBudget = "models/gemini-2.5-flash", &low }},
		{"request-gemini20.json", named("gemini-2.0-flash")},
		{"request-gemma.json", named("gemma-3-27b-it")},
	} {
		t.Run(test.file, func(t *testing.T) {
			t.Parallel()
			at := streams(events(finish("STOP")))
			m := model(t, at, test.change)
			golden(t, test.file, sent(t, m, at, conversation()))
			if want := "https://models.example/v1beta/models/" + m.Info().Name + ":streamGenerateContent?alt=sse"; at.URLs[0] != want {
				t.Error("asked", at.URLs[0])
			}
			if at.Headers[0].Get(keyHeader) != testKey {
				t.Errorf("the key was sent as %q", at.Headers[0].Get(keyHeader))
			}
		})
	}
}

// What a model said goes back as it came, byte for byte, with what it said it with.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"calls", "thinking", "signed-text"} {
		text, err := os.ReadFile("testdata/" + name + ".sse")
		if err != nil {
			t.Fatal(err)
		}
		at := streams(string(text), events(finish("STOP")))
		m := model(t, at)
		messages := answered(t, m)
		sent(t, m, at, &host.Request{Messages: messages})
		var body struct {
			Contents []struct {
				Parts []json.RawMessage `json:"parts"`
			} `json:"contents"`
		}
		if err := json.Unmarshal([]byte(at.Bodies[1]), &body); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, p := range body.Contents[1].Parts {
			got.WriteString(string(p) + "\n")
		}
		want := map[string]string{
			"calls": `{"text":"I look both up.","thought":true}
{"text":"One moment. "}
{"functionCall":{"id":"k9x1","name":"weather__get","args":{"city":"Paris","days":1.0,"unit":"\u00b0C"}},"thoughtSignature":"RW5jcnlwdGVkK2EvYg=="}
{"functionCall":{"id":"k9x2","name":"weather__get","args":{"city":"München"}}}
{"functionCall":{"id":"k9x3","name":"clock__now","args":{}}}
`,
			"thinking": `{"text":"**Reading the question**\n\nIt asks for a sum.","thought":true}
{"text":"It is 42."}
{"text":"","thoughtSignature":"Ck9uZS90ZXh0L3NpZ25hdHVyZQ=="}
`,
			"signed-text": `{"text":"Hm.","thought":true,"thoughtSignature":"VGhvdWdodA=="}
{"text":"The first part, "}
{"text":"ünd the end","thoughtSignature":"TGFzdA=="}
{"text":"."}
`,
		}[name]
		if got.String() != want {
			t.Errorf("%s: sent\n%s\nwant\n%s", name, got.String(), want)
		}
	}
}

// answered is the conversation after a turn, made as the host makes it: text that follows
// text is one block, calls get IDs of the host's own, and have a result.
func answered(t *testing.T, m *gemini.Model) []host.Message {
	t.Helper()
	said := host.Message{Role: mcp.RoleAssistant}
	results := host.Message{Role: mcp.RoleUser}
	for p, err := range m.Generate(t.Context(), hello()) {
		n := len(said.Blocks) - 1
		switch {
		case err != nil:
			t.Fatal(err)
		case p.Text != "":
			if n >= 0 {
				if last, ok := said.Blocks[n].Content.(*mcp.TextContent); ok {
					last.Text += p.Text
					continue
				}
			}
			said.Blocks = append(said.Blocks, host.Block{Content: mcp.Text(p.Text)})
		case p.Reasoning != nil:
			said.Blocks = append(said.Blocks, host.Block{Reasoning: p.Reasoning})
		case p.Call != nil:
			id := "c" + p.Call.ID
			said.Blocks = append(said.Blocks, host.Block{Content: use(id, p.Call.Name, string(p.Call.Input))})
			results.Blocks = append(results.Blocks, host.Block{Content: result(id, mcp.Text("done"))})
		}
	}
	return append(hello().Messages, said, results)
}

// What a provider would refuse is mended or left out.
func TestMended(t *testing.T) {
	t.Parallel()
	const hi = `{"role":"user","parts":[{"text":"Hi"}]}`
	user := says(mcp.RoleUser, "Hi")
	for _, test := range []struct {
		name     string
		messages []host.Message
		want     string
	}{
		{"two of the user", []host.Message{user, says(mcp.RoleUser, "there")}, `[{"role":"user","parts":[{"text":"Hi"},{"text":"there"}]}]`},
		{"empty texts", []host.Message{says(mcp.RoleUser, "", "Hi"), says(mcp.RoleAssistant, ""), says(mcp.RoleUser, "")}, `[` + hi + `]`},
		{
			"two of the model, the last one",
			[]host.Message{user, says(mcp.RoleAssistant, "A"), says(mcp.RoleAssistant, "B")},
			`[` + hi + `,{"role":"model","parts":[{"text":"A"},{"text":"B"}]},{"role":"user","parts":[{"text":"[host: go on]"}]}]`,
		},
		{
			"the model first",
			[]host.Message{says(mcp.RoleAssistant, "A"), user},
			`[{"role":"user","parts":[{"text":"[host: the beginning of the conversation is left out]"}]},{"role":"model","parts":[{"text":"A"}]},` + hi + `]`,
		},
		{"a result without its call", []host.Message{user, blocks(mcp.RoleUser, result("c9", mcp.Text("x")))}, `[` + hi + `]`},
		{
			"a call without its result",
			[]host.Message{user, blocks(mcp.RoleAssistant, use("c1", "f", "{}"))},
			`[` + hi + `,{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"error":"there is no result of this call"}}}]}]`,
		},
		{
			"two calls with one ID, and arguments that are none",
			[]host.Message{
				user, blocks(mcp.RoleAssistant, use("c1", "f", `[1]`), use("c1", "g", `{"a":`)),
				blocks(mcp.RoleUser, result("c1", mcp.Text("1")), result("c1", mcp.Text("2")), mcp.Text("Go on")),
			},
			`[` + hi + `,{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"g","response":{"output":"2"}}},{"text":"Go on"}]}]`,
		},
		{
			"images that it does not take",
			[]host.Message{blocks(mcp.RoleUser, mcp.Image(make([]byte, 2000), "image/png"), mcp.Image(nil, "image/png"), mcp.Audio(wav, "audio/wav"))},
			`[{"role":"user","parts":[{"text":"[image, image/png, 2000 bytes] [host: left out: the model takes 1 to 1024 bytes]"},` +
				`{"text":"[image, image/png, 0 bytes] [host: left out: the model takes 1 to 1024 bytes]"},` +
				`{"text":"[audio, audio/wav, 12 bytes] [host: left out: the model takes no sound]"}]}]`,
		},
		{
			"reasoning that is none",
			[]host.Message{
				user, {Role: mcp.RoleAssistant, Blocks: []host.Block{
					thought("gemini@models.example", "x", `null`), thought("gemini@models.example", "", `{"kind":"thought"}`), thought("gemini@models.example", "x", `"?"`),
					{},
					thought("gemini@models.example", "", `{"kind":"text","thoughtSignature":"QQ==","bytes":99}`),
					{Content: mcp.Text("é")},
					thought("gemini@models.example", "", `{"kind":"text","thoughtSignature":"Qg==","bytes":1}`),
					{Content: mcp.Image(png, "image/png")},
				}}, user,
			},
			`[` + hi + `,{"role":"model","parts":[{"text":"","thoughtSignature":"QQ=="},{"text":"é","thoughtSignature":"Qg=="},{"text":"[image, image/png, 8 bytes]"}]},` + hi + `]`,
		},
	} {
		if got := contents(t, test.messages, named("gemini-2.5-pro")); got != test.want {
			t.Errorf("%s: sent\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// A model that asks for signatures gets a stand-in for calls that another model made, but
// only since the person said something.
func TestCallsOfOthers(t *testing.T) {
	t.Parallel()
	call := func(id string) host.Message {
		return blocks(mcp.RoleAssistant, use(id, "f", "{}"), use(id+"b", "f", "{}"))
	}
	results := func(id string) host.Message {
		return blocks(mcp.RoleUser, result(id, mcp.Text("r")), result(id+"b", mcp.Text("r")))
	}
	messages := []host.Message{says(mcp.RoleUser, "Hi"), call("c1"), results("c1"), says(mcp.RoleUser, "On"), call("c2"), results("c2"), call("c3"), results("c3")}
	const standIn = `"thoughtSignature":"skip_thought_signature_validator"`
	for name, want := range map[string]int{"gemini-3-pro": 2, "gemini-flash-latest": 2, "gemini-2.5-pro": 0, "gemma-4": 0} {
		got := contents(t, messages, named(name))
		if n := strings.Count(got, standIn); n != want {
			t.Errorf("%s: %d stand-ins in %s", name, n, got)
		}
		if before, _, _ := strings.Cut(got, `"On"`); strings.Contains(before, standIn) {
			t.Errorf("%s: a stand-in before what the person said: %s", name, got)
		}
	}
}

func TestNothingToSend(t *testing.T) {
	t.Parallel()
	at := streams("")
	got := show(model(t, at), &host.Request{System: "x", Messages: []host.Message{says(mcp.RoleUser, "")}})
	if got != "error the request to gemini has nothing in it: neither a text nor a result\n" || len(at.URLs) != 0 {
		t.Error(got, at.URLs)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	budget := 0
	for _, test := range []struct {
		o    gemini.Options
		want string
	}{
		{gemini.Options{}, "no model is named"},
		{gemini.Options{Model: "models/"}, "no model is named"},
		{gemini.Options{Model: "a/b:c"}, `"a/b:c" names no model`},
		{gemini.Options{Model: "m", Key: "two\nlines"}, "the key has a blank"},
		{gemini.Options{Model: "m", Key: testKey, BaseURL: "http://example.com"}, "sent in the clear"},
		{gemini.Options{Model: "m", BaseURL: "nowhere"}, "the base URL"},
		{gemini.Options{Model: "m", ThinkingLevel: "low", ThinkingBudget: &budget}, "exclude each other"},
	} {
		_, err := gemini.New(&test.o)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), testKey) {
			t.Errorf("%+v: %v", test.o, err)
		}
	}
	m, err := gemini.New(&gemini.Options{Model: " models/gemini-2.5-pro ", Info: host.ModelInfo{Window: 5}})
	if err != nil {
		t.Fatal(err)
	}
	if i := m.Info(); i.Name != "gemini-2.5-pro" || i.Provider != "gemini" || i.Window != 5 || i.Schemas.Keywords == nil {
		t.Errorf("%+v", i)
	}
}

// Schemas go into the field that takes them, byte for byte.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ schema, field string }{
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, "parameters"},
		{`{"type":"object","properties":{"a":{"type":"array","items":{}}}}`, "parametersJsonSchema"},
		{`{"type":"object","properties":{"a":{"type":"array"}}}`, "parametersJsonSchema"},
		{`{"type":"object","properties":{"a":{"description":"any"}}}`, "parametersJsonSchema"},
		{`{"type":"object","properties":{"a":{"type":"object"}}}`, "parametersJsonSchema"},
		{`{"type":"object","properties":{"b":{"anyOf":[{"type":"string"},{"nullable":true}]}}}`, "parametersJsonSchema"},
		{`{"type":"object","properties":{"a":{"type":["string","null"]},"b":true}}`, "parametersJsonSchema"},
		{`{"type":"object","properties":{}}`, ""},
		{`{"type":"object"}`, ""},
		{`null`, ""},
		{``, ""},
	} {
		at := streams(events(finish("STOP")))
		r := hello()
		r.Tools = []host.ToolSpec{{Name: "f", Description: "Does it.", InputSchema: mcp.RawValue(test.schema)}}
		sent(t, model(t, at), at, r)
		want := `"tools":[{"functionDeclarations":[{"name":"f","description":"Does it."}]}]`
		if test.field != "" {
			want = `"description":"Does it.","` + test.field + `":` + test.schema + `}]}]`
		}
		if !strings.Contains(at.Bodies[0], want) {
			t.Errorf("%s: %s", test.schema, at.Bodies[0])
		}
	}
}

// One model is asked for.
func TestWindow(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"name":"models/gemini-3-pro","inputTokenLimit":1048576,"outputTokenLimit":65536}`: 1048576,
		`{}`: 0, `{"inputTokenLimit":-1}`: 0,
	} {
		at := answers(200, body)
		o := &gemini.Options{Model: "models/gemini-3-pro", Key: testKey, Client: &http.Client{Transport: at}}
		got, err := gemini.Window(t.Context(), o)
		if got != want || err != nil || at.URLs[0] != gemini.DefaultBaseURL+"/models/gemini-3-pro" || at.Headers[0].Get(keyHeader) != testKey {
			t.Errorf("%s: %d, %v from %v", body, got, err, at.URLs)
		}
	}
	at := answers(503, `{}`)
	if got, err := gemini.Window(t.Context(), &gemini.Options{Model: "m", Key: testKey, Client: &http.Client{Transport: at}}); got != 0 || err == nil || len(at.URLs) != 1 {
		t.Errorf("%d, %v, %d requests", got, err, len(at.URLs))
	}
}
