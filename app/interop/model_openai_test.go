package interop_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	official "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/parley-mcp/parley/app/internal/model/openai"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A chatServer answers chat completions with one stream, and keeps what was asked.
type chatServer struct {
	*httptest.Server

	body, path, key string
}

func newChatServer(t *testing.T, stream []byte) *chatServer {
	t.Helper()
	s := &chatServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.body, s.path, s.key = string(body), r.URL.Path, r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(stream)
	}))
	t.Cleanup(s.Close)
	return s
}

// A chatTurn is what a client makes of a stream.
type chatTurn struct {
	Text      string
	Calls     []chatCall
	Input     int64
	Output    int64
	CacheRead int64
	Stop      string
	Request   any
	Path, Key string
}

type chatCall struct{ ID, Name, Arguments string }

// chatPNG begins like an image.
const chatPNG = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

// ourTurn lets our client ask.
func ourTurn(t *testing.T, s *chatServer) chatTurn {
	t.Helper()
	m, err := openai.New(&openai.Options{Model: "gpt-5.1", Key: "sk-1", BaseURL: s.URL + "/v1", Effort: "low", Info: host.ModelInfo{MaxImage: 1 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	warm := 0.5
	block := func(c mcp.Content) host.Block { return host.Block{Content: c} }
	use := func(id, city string) host.Block {
		return block(&mcp.ToolUseContent{ID: id, Name: "get_weather", Input: mcp.RawValue(`{"city":"` + city + `"}`)})
	}
	result := func(id, text string) host.Block {
		return block(&mcp.ToolResultContent{ToolUseID: id, Content: mcp.Contents{mcp.Text(text)}})
	}
	turn := chatTurn{}
	for p, err := range m.Generate(t.Context(), &host.Request{
		System: "Be brief.", MaxTokens: 100, Temperature: &warm, Stop: []string{"END"},
		Tools: []host.ToolSpec{{Name: "get_weather", Description: "Tells the <weather>.", InputSchema: mcp.RawValue(`{"type":"object","properties":{"city":{"type":"string"}}}`)}},
		Messages: []host.Message{
			{Role: mcp.RoleUser, Blocks: []host.Block{block(mcp.Text("Where is it?")), block(mcp.Image([]byte(chatPNG), "image/png"))}},
			{Role: mcp.RoleAssistant, Blocks: []host.Block{block(mcp.Text("Two places.")), use("c1", "Zürich"), use("c2", "Bern")}},
			{Role: mcp.RoleUser, Blocks: []host.Block{result("c1", "sunny"), result("c2", "hail")}},
			{Role: mcp.RoleAssistant, Blocks: []host.Block{block(mcp.Text("Sunny and hail."))}},
			{Role: mcp.RoleUser, Blocks: []host.Block{block(mcp.Text("And now?"))}},
		},
	}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case p.Call != nil:
			turn.Calls = append(turn.Calls, chatCall{p.Call.ID, p.Call.Name, string(p.Call.Input)})
		case p.Usage != nil:
			turn.Input, turn.Output, turn.CacheRead = p.Usage.Input, p.Usage.Output, p.Usage.CacheRead
		case p.Stop != "":
			turn.Stop = string(p.Stop)
		}
		turn.Text += p.Text
	}
	return s.asked(t, turn)
}

// asked fills in what the server was asked.
func (s *chatServer) asked(t *testing.T, turn chatTurn) chatTurn {
	t.Helper()
	if err := json.Unmarshal([]byte(s.body), &turn.Request); err != nil {
		t.Fatal(err)
	}
	turn.Path, turn.Key = s.path, s.key
	return turn
}

// officialParams are the same conversation for OpenAI's client.
func officialParams() official.ChatCompletionNewParams {
	call := func(id, city string) official.ChatCompletionMessageToolCallUnionParam {
		return official.ChatCompletionMessageToolCallUnionParam{OfFunction: &official.ChatCompletionMessageFunctionToolCallParam{
			ID:       id,
			Function: official.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "get_weather", Arguments: `{"city":"` + city + `"}`},
		}}
	}
	two := official.AssistantMessage("Two places.")
	two.OfAssistant.ToolCalls = []official.ChatCompletionMessageToolCallUnionParam{call("c1", "Zürich"), call("c2", "Bern")}
	return official.ChatCompletionNewParams{
		Model: "gpt-5.1", MaxTokens: official.Int(100), Temperature: official.Float(0.5), ReasoningEffort: shared.ReasoningEffortLow,
		Stop:          official.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"END"}},
		StreamOptions: official.ChatCompletionStreamOptionsParam{IncludeUsage: official.Bool(true)},
		Tools: []official.ChatCompletionToolUnionParam{official.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "get_weather", Description: official.String("Tells the <weather>."),
			Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
		})},
		Messages: []official.ChatCompletionMessageParamUnion{
			official.SystemMessage("Be brief."),
			official.UserMessage([]official.ChatCompletionContentPartUnionParam{
				official.TextContentPart("Where is it?"),
				official.ImageContentPart(official.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="}),
			}),
			two,
			official.ToolMessage("sunny", "c1"),
			official.ToolMessage("hail", "c2"),
			official.AssistantMessage("Sunny and hail."),
			official.UserMessage("And now?"),
		},
	}
}

// officialChat lets OpenAI's client for Go ask.
func officialChat(ctx context.Context, t *testing.T, s *chatServer) chatTurn {
	t.Helper()
	client := official.NewClient(option.WithAPIKey("sk-1"), option.WithBaseURL(s.URL+"/v1"), option.WithMaxRetries(0))
	stream := client.Chat.Completions.NewStreaming(ctx, officialParams())
	var all official.ChatCompletionAccumulator
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Error("a chunk is not taken")
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	choice := all.Choices[0]
	turn := chatTurn{
		Text:  choice.Message.Content + choice.Message.Refusal,
		Input: all.Usage.PromptTokens, Output: all.Usage.CompletionTokens, CacheRead: all.Usage.PromptTokensDetails.CachedTokens,
		Stop: ourWord(choice.FinishReason, choice.Message.Refusal),
	}
	for _, c := range choice.Message.ToolCalls {
		turn.Calls = append(turn.Calls, chatCall{c.ID, c.Function.Name, ourArguments(c.Function.Arguments)})
	}
	return s.asked(t, turn)
}

// ourWord is the host's word for why a turn ended.
func ourWord(reason, refusal string) string {
	if refusal != "" {
		return "refusal"
	}
	return map[string]string{"stop": "end", "tool_calls": "calls", "length": "length"}[reason]
}

// ourArguments are arguments as the host has them: none are an empty object.
func ourArguments(text string) string {
	if text == "" {
		return "{}"
	}
	return text
}

// chatStreams are streams of the test data of our client that OpenAI's clients read as ours
// does. They differ on purpose in two: calls that share an index (ollama-calls), and the text
// that stopped the answer (vllm-reasoning).
var chatStreams = []string{"openai-text", "openai-calls", "openai-refusal", "openrouter-reasoning", "llamacpp-calls", "lmstudio-text"}

func chatStream(t *testing.T, name string) []byte {
	t.Helper()
	stream, err := os.ReadFile(filepath.Join("..", "internal", "model", "openai", "testdata", name+".sse"))
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// Our client and OpenAI's own for Go send the same, and make the same of an answer.
func TestModelOpenAI(t *testing.T) {
	for _, name := range chatStreams {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, chatStream(t, name))
			theirs := officialChat(bounded(t), t, s)
			ours := ourTurn(t, s)
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("theirs -, ours +:\n%s", diff)
			}
			if ours.Path != "/v1/chat/completions" || ours.Key != "Bearer sk-1" || ours.Stop == "" || ours.Text == "" && ours.Calls == nil {
				t.Errorf("%+v", ours)
			}
		})
	}
}

// OpenAI's client for JavaScript does the same, too.
func TestModelOpenAIJavaScript(t *testing.T) {
	for _, name := range chatStreams {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t, chatStream(t, name))
			params, err := json.Marshal(officialParams())
			if err != nil {
				t.Fatal(err)
			}
			argument, err := json.Marshal(map[string]any{"url": s.URL + "/v1", "key": "sk-1", "params": json.RawMessage(params)})
			if err != nil {
				t.Fatal(err)
			}
			cmd := node(t, "model-openai.mjs")
			cmd.Stdin = strings.NewReader(string(argument))
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var said struct {
				Text, Refusal, Finish    string
				Calls                    []chatCall
				Input, Output, CacheRead int64
			}
			if err := json.Unmarshal(out, &said); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			theirs := chatTurn{
				Text: said.Text + said.Refusal, Calls: said.Calls, Input: said.Input, Output: said.Output, CacheRead: said.CacheRead,
				Stop: ourWord(said.Finish, said.Refusal),
			}
			for i := range theirs.Calls {
				theirs.Calls[i].Arguments = ourArguments(theirs.Calls[i].Arguments)
			}
			theirs = s.asked(t, theirs)
			if diff := cmp.Diff(theirs, ourTurn(t, s)); diff != "" {
				t.Errorf("theirs -, ours +:\n%s", diff)
			}
		})
	}
}
