package interop_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/parley-mcp/parley/app/internal/model/gemini"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

const geminiKey = "AIzaTest-interop"

// A geminiServer answers each request with the next of its streams, and records what it
// was asked.
type geminiServer struct {
	*httptest.Server

	mu      sync.Mutex
	streams []string
	asked   []geminiAsked
}

// A geminiAsked is a request, as far as clients agree on it.
type geminiAsked struct {
	URL, Key string
	Body     map[string]any
}

// newGeminiServer serves streams of testdata of app/internal/model/gemini.
func newGeminiServer(t *testing.T, streams ...string) *geminiServer {
	t.Helper()
	s := &geminiServer{}
	for _, name := range streams {
		data, err := os.ReadFile("../internal/model/gemini/testdata/" + name + ".sse")
		if err != nil {
			t.Fatal(err)
		}
		_, events, _ := strings.Cut(string(data), "\n") // Google's client reads no comments
		s.streams = append(s.streams, events)
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *geminiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := geminiAsked{URL: r.URL.String(), Key: r.Header.Get("X-Goog-Api-Key")}
	if err := json.NewDecoder(r.Body).Decode(&asked.Body); err != nil || len(s.streams) == 0 {
		http.Error(w, "not expected", http.StatusBadRequest)
		return
	}
	s.asked = append(s.asked, asked)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, s.streams[0])
	s.streams = s.streams[1:]
}

// ours is our client of the server.
func (s *geminiServer) ours(t *testing.T, name string) *gemini.Model {
	t.Helper()
	m, err := gemini.New(&gemini.Options{
		Model: name, Key: geminiKey, BaseURL: s.URL + "/v1beta", Client: s.Client(), MaxAudio: 1 << 10,
		Info: host.ModelInfo{MaxImage: 1 << 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// official is Google's client of the server.
func (s *geminiServer) official(t *testing.T) *genai.Client {
	t.Helper()
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: geminiKey, Backend: genai.BackendGeminiAPI, HTTPClient: s.Client(),
		HTTPOptions: genai.HTTPOptions{BaseURL: s.URL, APIVersion: "v1beta"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A geminiTurn is what was read of a turn.
type geminiTurn struct {
	Text, Thought string
	Calls         []geminiCall
	Usage         host.Usage
	Stop          string
}

type geminiCall struct {
	Name string
	Args map[string]any
}

// readOurs reads a turn with our client, and what the conversation has of it then: as the
// host makes it, with IDs of its own.
func readOurs(t *testing.T, m *gemini.Model, r *host.Request) (geminiTurn, host.Message) {
	t.Helper()
	var turn geminiTurn
	said := host.Message{Role: mcp.RoleAssistant}
	text := func(s string) {
		if n := len(said.Blocks) - 1; n >= 0 {
			if last, ok := said.Blocks[n].Content.(*mcp.TextContent); ok {
				last.Text += s
				return
			}
		}
		said.Blocks = append(said.Blocks, host.Block{Content: mcp.Text(s)})
	}
	for p, err := range m.Generate(t.Context(), r) {
		switch {
		case err != nil:
			t.Fatal(err)
		case p.Text != "":
			turn.Text += p.Text
			text(p.Text)
		case p.Reasoning != nil:
			turn.Thought += p.Reasoning.Text
			said.Blocks = append(said.Blocks, host.Block{Reasoning: p.Reasoning})
		case p.Call != nil:
			call := geminiCall{Name: p.Call.Name}
			if err := json.Unmarshal(p.Call.Input, &call.Args); err != nil {
				t.Fatal(err)
			}
			turn.Calls = append(turn.Calls, call)
			own := &mcp.ToolUseContent{ID: "host-" + p.Call.ID, Name: p.Call.Name, Input: p.Call.Input}
			said.Blocks = append(said.Blocks, host.Block{Content: own})
		case p.Usage != nil:
			turn.Usage = *p.Usage
		case p.Stop != "":
			turn.Stop = string(p.Stop)
		}
	}
	return turn, said
}

// A turn that Google's client read.
type geminiOfficial struct {
	turn  geminiTurn
	calls []*genai.FunctionCall
}

func (o *geminiOfficial) add(r *genai.GenerateContentResponse) {
	if u := r.UsageMetadata; u != nil {
		o.turn.Usage = host.Usage{
			Input: int64(u.PromptTokenCount), Output: int64(u.CandidatesTokenCount + u.ThoughtsTokenCount),
			CacheRead: int64(u.CachedContentTokenCount),
		}
	}
	for _, c := range r.Candidates {
		if c.FinishReason != "" {
			o.turn.Stop = string(c.FinishReason)
		}
		if c.Content == nil {
			continue
		}
		for _, p := range c.Content.Parts {
			switch {
			case p.FunctionCall != nil:
				o.calls = append(o.calls, p.FunctionCall)
				o.turn.Calls = append(o.turn.Calls, geminiCall{p.FunctionCall.Name, p.FunctionCall.Args})
			case p.Thought:
				o.turn.Thought += p.Text
			default:
				o.turn.Text += p.Text
			}
		}
	}
}

// Both clients read the same of the same streams.
func TestGeminiReads(t *testing.T) {
	for _, name := range []string{"text", "thinking", "calls", "signed-text"} {
		s := newGeminiServer(t, name, name)
		got, _ := readOurs(t, s.ours(t, "gemini-2.5-flash"), &host.Request{Messages: geminiQuestion().Messages[:1]})
		var official geminiOfficial
		for r, err := range s.official(t).Models.GenerateContentStream(t.Context(), "gemini-2.5-flash", genai.Text("Hi"), nil) {
			if err != nil {
				t.Fatal(name, err)
			}
			official.add(r)
		}
		want := official.turn
		if want.Stop != "STOP" {
			t.Errorf("%s: Google's client read the stop %q", name, want.Stop)
		}
		want.Stop = "end"
		if len(want.Calls) > 0 {
			want.Stop = "calls"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: Google's client (-) and ours (+) read\n%s", name, diff)
		}
	}
}

// geminiQuestion is a request with an image, sound and tools.
func geminiQuestion() *host.Request {
	temperature := 0.25
	return &host.Request{
		System: "Answer <briefly>.",
		Messages: []host.Message{{Role: mcp.RoleUser, Blocks: []host.Block{
			{Content: mcp.Text("What is it like there?")},
			{Content: mcp.Image([]byte("\x89PNG\r\n\x1a\n"), "image/png")},
			{Content: mcp.Audio([]byte("RIFF"), "audio/wav")},
		}}},
		Tools: []host.ToolSpec{
			{Name: "weather__get", Description: "Reads the weather.", InputSchema: mcp.RawValue(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["city"]}`)},
			{Name: "clock__now", Description: "Tells the time.", InputSchema: mcp.RawValue(`{"type":"object","properties":{}}`)},
		},
		MaxTokens: 100, Temperature: &temperature, Stop: []string{"END"},
	}
}

// geminiConfig is the same for Google's client.
func geminiConfig() *genai.GenerateContentConfig {
	temperature, least := float32(0.25), 1.0
	return &genai.GenerateContentConfig{
		SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: "Answer <briefly>."}}},
		Temperature:       &temperature, MaxOutputTokens: 100, StopSequences: []string{"END"},
		ThinkingConfig: &genai.ThinkingConfig{IncludeThoughts: true},
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: "weather__get", Description: "Reads the weather.", Parameters: &genai.Schema{
				Type: genai.TypeObject, Required: []string{"city"},
				Properties: map[string]*genai.Schema{"city": {Type: genai.TypeString}, "days": {Type: genai.TypeInteger, Minimum: &least}},
			}},
			{Name: "clock__now", Description: "Tells the time."},
		}}},
	}
}

// Both clients send the same: the question, and then what the model said with the results of
// its calls, as Google's chat keeps it.
func TestGeminiSends(t *testing.T) {
	for _, name := range []string{"calls", "thinking", "signed-text"} {
		s := newGeminiServer(t, name, "text", name, "text")
		m := s.ours(t, "gemini-3-pro")
		r := geminiQuestion()
		_, said := readOurs(t, m, r)
		r.Messages = append(r.Messages, said, geminiResults(&said))
		readOurs(t, m, r)

		chat, err := s.official(t).Chats.Create(t.Context(), "gemini-3-pro", geminiConfig(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var first geminiOfficial
		question := []genai.Part{{Text: "What is it like there?"}, {InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}, {InlineData: &genai.Blob{MIMEType: "audio/wav", Data: []byte("RIFF")}}}
		for r, err := range chat.SendMessageStream(t.Context(), question...) {
			if err != nil {
				t.Fatal(err)
			}
			first.add(r)
		}
		for _, err := range chat.SendMessageStream(t.Context(), officialResults(first.calls)...) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(s.asked) != 4 {
			t.Fatalf("%s: %d requests", name, len(s.asked))
		}
		for i := range 2 {
			if diff := cmp.Diff(geminiMeaning(s.asked[i+2]), geminiMeaning(s.asked[i])); diff != "" {
				t.Errorf("%s, request %d: Google's client (-) and ours (+) send\n%s", name, i+1, diff)
			}
		}
	}
}

// geminiResults are the results of the calls in a message, the last one first: what is sent
// is in the order of the calls.
func geminiResults(said *host.Message) host.Message {
	results := host.Message{Role: mcp.RoleUser}
	for i := len(said.Blocks) - 1; i >= 0; i-- {
		if use, ok := said.Blocks[i].Content.(*mcp.ToolUseContent); ok {
			results.Blocks = append(results.Blocks, host.Block{Content: &mcp.ToolResultContent{
				ToolUseID: use.ID, IsError: use.Name == "clock__now",
				Content: mcp.Contents{mcp.Text("of " + string(use.Input)), mcp.Image([]byte("\xff\xd8\xff"), "image/jpeg")},
			}})
		}
	}
	if len(results.Blocks) == 0 {
		results.Blocks = []host.Block{{Content: mcp.Text("Go on.")}}
	}
	return results
}

// officialResults are the same for Google's client. The arguments in them are those of the
// streams, which it does not keep byte for byte.
func officialResults(calls []*genai.FunctionCall) []genai.Part {
	if len(calls) == 0 {
		return []genai.Part{{Text: "Go on."}}
	}
	texts := []string{`of {"city":"Paris","days":1.0,"unit":"\u00b0C"}`, `of {"city":"München"}`, `of {}`}
	var parts []genai.Part
	for i, c := range calls {
		of := "output"
		if c.Name == "clock__now" {
			of = "error"
		}
		parts = append(parts, genai.Part{FunctionResponse: &genai.FunctionResponse{
			ID: c.ID, Name: c.Name, Response: map[string]any{of: texts[i]},
			Parts: []*genai.FunctionResponsePart{{InlineData: &genai.FunctionResponseBlob{MIMEType: "image/jpeg", Data: []byte("\xff\xd8\xff")}}},
		}})
	}
	return parts
}

// geminiMeaning makes of a request what it means: Google's clients write types in capitals
// (both are taken), give the instruction a role, leave empty arguments away, and keep each
// event of a stream as a turn of its own, with empty parts; a signed part stays one by itself.
// A part with nothing but a signature is left out: the chat in Go loses it. That ours
// sends it is a test of app/internal/model/gemini.
func geminiMeaning(asked geminiAsked) geminiAsked {
	body := geminiLower(asked.Body).(map[string]any)
	delete(body["systemInstruction"].(map[string]any), "role")
	var turns []any
	for _, turn := range body["contents"].([]any) {
		turn := turn.(map[string]any)
		for _, p := range turn["parts"].([]any) {
			turns = geminiAdd(turns, turn["role"], p.(map[string]any))
		}
	}
	body["contents"] = turns
	asked.Body = body
	return asked
}

// geminiAdd adds a part to the last turn, if it is of the role, and text to the last part, if
// it is of the same kind and neither is signed.
func geminiAdd(turns []any, role any, p map[string]any) []any {
	if p["text"] == nil || p["text"] == "" {
		delete(p, "text")
		if p["functionCall"] == nil && p["functionResponse"] == nil && p["inlineData"] == nil {
			return turns
		}
	}
	if c, ok := p["functionCall"].(map[string]any); ok {
		if args, _ := c["args"].(map[string]any); len(args) == 0 {
			delete(c, "args")
		}
	}
	if len(turns) == 0 || turns[len(turns)-1].(map[string]any)["role"] != role {
		return append(turns, map[string]any{"role": role, "parts": []any{p}})
	}
	turn := turns[len(turns)-1].(map[string]any)
	parts := turn["parts"].([]any)
	last := parts[len(parts)-1].(map[string]any)
	text, isText := last["text"].(string)
	more, isMore := p["text"].(string)
	if isText && isMore && last["thoughtSignature"] == nil && p["thoughtSignature"] == nil && reflect.DeepEqual(last["thought"], p["thought"]) {
		last["text"] = text + more
		return turns
	}
	turn["parts"] = append(parts, p)
	return turns
}

// geminiLower writes the types of schemas in small letters.
func geminiLower(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if s, ok := member.(string); ok && name == "type" {
				v[name] = strings.ToLower(s)
				continue
			}
			v[name] = geminiLower(member)
		}
	case []any:
		for i := range v {
			v[i] = geminiLower(v[i])
		}
	}
	return v
}

// Google's client in TypeScript sends and reads the same as ours.
func TestGeminiTypeScript(t *testing.T) {
	peersDir(t)
	for _, name := range []string{"calls", "thinking", "signed-text"} {
		s := newGeminiServer(t, name, "text", name, "text")
		m := s.ours(t, "gemini-3-pro")
		r := geminiQuestion()
		got, said := readOurs(t, m, r)
		r.Messages = append(r.Messages, said, geminiResults(&said))
		readOurs(t, m, r)

		cmd := node(t, "model-gemini.mjs", s.URL)
		cmd.Env = append(cmd.Env, "GEMINI_API_KEY="+geminiKey)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, errs.Bytes())
		}
		var want geminiTurn
		if err := json.Unmarshal(out, &want); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: Google's client (-) and ours (+) read\n%s", name, diff)
		}
		if len(s.asked) != 4 {
			t.Fatalf("%s: %d requests", name, len(s.asked))
		}
		for i := range 2 {
			if diff := cmp.Diff(geminiMeaning(s.asked[i+2]), geminiMeaning(s.asked[i])); diff != "" {
				t.Errorf("%s, request %d: Google's client (-) and ours (+) send\n%s", name, i+1, diff)
			}
		}
	}
}
