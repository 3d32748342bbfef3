package interop_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	official "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-mcp/parley/app/internal/model/anthropic"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A messagesServer answers the Messages API with one stream, and keeps what was asked.
type messagesServer struct {
	*httptest.Server

	request             any
	path, key, revision string
}

func newMessagesServer(t *testing.T, stream []byte) *messagesServer {
	t.Helper()
	s := &messagesServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if err := json.Unmarshal(body, &s.request); err != nil {
			t.Errorf("the request is no JSON: %v", err)
		}
		s.path, s.key, s.revision = r.URL.Path, r.Header.Get("X-Api-Key"), r.Header.Get("Anthropic-Version")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(stream)
	}))
	t.Cleanup(s.Close)
	return s
}

// A messagesTurn is what a client sends, and what it makes of a stream.
type messagesTurn struct {
	Request             any
	Path, Key, Revision string

	Text                         string
	Calls                        []messagesCall
	Reasoning                    []any
	Input, Output, Read, Written int64
	Stop                         string
}

type messagesCall struct {
	ID, Name string
	Input    any
}

// asked fills in what the server was asked.
func (s *messagesServer) asked(turn messagesTurn) messagesTurn {
	turn.Request, turn.Path, turn.Key, turn.Revision = s.request, s.path, s.key, s.revision
	return turn
}

const (
	messagesImage  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	messagesSchema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`
)

// decoded is JSON as a value.
func decoded(t *testing.T, data string) (v any) {
	t.Helper()
	if data == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Errorf("%v in %s", err, data)
	}
	return v
}

// ourMessages lets our client ask.
func ourMessages(t *testing.T, s *messagesServer) messagesTurn {
	t.Helper()
	m, err := anthropic.New(&anthropic.Options{Model: "claude-test-1", Key: "sk-1", BaseURL: s.URL, Thinking: anthropic.ThinkingAdaptive, Effort: "low"})
	if err != nil {
		t.Fatal(err)
	}
	block := func(c mcp.Content) host.Block { return host.Block{Content: c} }
	use := func(id, city string) host.Block {
		return block(&mcp.ToolUseContent{ID: id, Name: "weather", Input: mcp.RawValue(`{"city":"` + city + `"}`)})
	}
	thought := func(data string) host.Block {
		return host.Block{Reasoning: &host.Reasoning{Provider: anthropic.Provider + "@" + strings.TrimPrefix(s.URL, "http://"), Data: mcp.RawValue(data)}}
	}
	turn := messagesTurn{}
	for p, err := range m.Generate(t.Context(), &host.Request{
		System: "Be brief.", MaxTokens: 3000, Stop: []string{"END"},
		Tools: []host.ToolSpec{{Name: "weather", Description: "Tells the <weather>.", InputSchema: mcp.RawValue(messagesSchema)}},
		Messages: []host.Message{
			{Role: mcp.RoleUser, Blocks: []host.Block{block(mcp.Text("Where is it?")), block(mcp.Image([]byte(messagesImage), "image/png"))}},
			{Role: mcp.RoleAssistant, Blocks: []host.Block{
				thought(`{"type":"thinking","thinking":"Two <places> & more","signature":"EqQB+/=="}`), thought(`{"type":"redacted_thinking","data":"Emw="}`),
				block(mcp.Text("Two places.")), use("c1", "Zürich"), use("c2", "Bern"),
			}},
			{Role: mcp.RoleUser, Blocks: []host.Block{
				block(&mcp.ToolResultContent{ToolUseID: "c1", Content: mcp.Contents{mcp.Text("sunny")}}),
				block(&mcp.ToolResultContent{ToolUseID: "c2", Content: mcp.Contents{mcp.Text("no answer")}, IsError: true}),
			}},
		},
	}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case p.Call != nil:
			turn.Calls = append(turn.Calls, messagesCall{p.Call.ID, p.Call.Name, decoded(t, string(p.Call.Input))})
		case p.Reasoning != nil:
			turn.Reasoning = append(turn.Reasoning, decoded(t, string(p.Reasoning.Data)))
		case p.Usage != nil:
			turn.Input, turn.Output, turn.Read, turn.Written = p.Usage.Input, p.Usage.Output, p.Usage.CacheRead, p.Usage.CacheWrite
		case p.Stop != "":
			turn.Stop = string(p.Stop)
		}
		turn.Text += p.Text
	}
	return s.asked(turn)
}

// officialMessages lets Anthropic's client ask the same.
func officialMessages(t *testing.T, s *messagesServer) messagesTurn {
	t.Helper()
	keep := official.NewCacheControlEphemeralParam()
	image := official.NewImageBlockBase64("image/png", base64.StdEncoding.EncodeToString([]byte(messagesImage)))
	image.OfImage.CacheControl = keep
	failed := official.NewToolResultBlock("c2", "no answer", true)
	failed.OfToolResult.CacheControl = keep
	fine := official.NewToolResultBlock("c1", "sunny", false)
	fine.OfToolResult.IsError = param.Opt[bool]{} // false is the default
	city := func(name string) map[string]string { return map[string]string{"city": name} }
	client := official.NewClient(option.WithBaseURL(s.URL), option.WithAPIKey("sk-1"), option.WithMaxRetries(0))
	stream := client.Messages.NewStreaming(t.Context(), official.MessageNewParams{
		Model: "claude-test-1", MaxTokens: 3000, StopSequences: []string{"END"},
		System:       []official.TextBlockParam{{Text: "Be brief.", CacheControl: keep}},
		Thinking:     official.ThinkingConfigParamUnion{OfAdaptive: &official.ThinkingConfigAdaptiveParam{Display: "summarized"}},
		OutputConfig: official.OutputConfigParam{Effort: "low"},
		Tools: []official.ToolUnionParam{{OfTool: &official.ToolParam{
			Name: "weather", Description: official.String("Tells the <weather>."), CacheControl: keep,
			InputSchema: official.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}}, Required: []string{"city"}},
		}}},
		Messages: []official.MessageParam{
			official.NewUserMessage(official.NewTextBlock("Where is it?"), image),
			official.NewAssistantMessage(
				official.NewThinkingBlock("EqQB+/==", "Two <places> & more"), official.NewRedactedThinkingBlock("Emw="), official.NewTextBlock("Two places."),
				official.NewToolUseBlock("c1", city("Zürich"), "weather"), official.NewToolUseBlock("c2", city("Bern"), "weather")),
			official.NewUserMessage(fine, failed),
		},
	})
	defer func() { _ = stream.Close() }()
	var message official.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return s.asked(officialMessage(t, &message))
}

// officialMessage is what Anthropic's client has read.
func officialMessage(t *testing.T, message *official.Message) messagesTurn {
	t.Helper()
	u := message.Usage
	turn := messagesTurn{
		Input: u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens, Output: u.OutputTokens,
		Read: u.CacheReadInputTokens, Written: u.CacheCreationInputTokens,
		Stop: map[official.StopReason]string{"end_turn": "end", "tool_use": "calls", "stop_sequence": "sequence"}[message.StopReason],
	}
	for _, b := range message.Content {
		switch b.Type {
		case "text":
			turn.Text += b.Text
		case "tool_use":
			turn.Calls = append(turn.Calls, messagesCall{b.ID, b.Name, decoded(t, string(b.Input))})
		case "thinking":
			turn.Reasoning = append(turn.Reasoning, map[string]any{"type": "thinking", "thinking": b.Thinking, "signature": b.Signature})
		case "redacted_thinking":
			turn.Reasoning = append(turn.Reasoning, map[string]any{"type": "redacted_thinking", "data": b.Data})
		}
	}
	return turn
}

// Our client sends what Anthropic's sends, and reads what it reads.
func TestModelAnthropic(t *testing.T) {
	for _, name := range []string{"text", "calls", "thinking", "sequence", "nothing"} {
		t.Run(name, func(t *testing.T) {
			stream, err := os.ReadFile(filepath.Join("..", "internal", "model", "anthropic", "testdata", name+".sse"))
			if err != nil {
				t.Fatal(err)
			}
			ours := ourMessages(t, newMessagesServer(t, stream))
			theirs := officialMessages(t, newMessagesServer(t, stream))
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("- Anthropic's client, + ours:\n%s", diff)
			}
			t.Run("TypeScript", func(t *testing.T) {
				s := newMessagesServer(t, stream)
				theirs := typescriptMessages(t, s)
				if diff := cmp.Diff(theirs, ours, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("- Anthropic's client, + ours:\n%s", diff)
				}
			})
		})
	}
}

// typescriptMessages lets Anthropic's TypeScript client ask the same.
func typescriptMessages(t *testing.T, s *messagesServer) messagesTurn {
	t.Helper()
	out, err := node(t, "model-anthropic.mjs", s.URL).Output()
	if err != nil {
		text := ""
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			text = string(exit.Stderr)
		}
		t.Fatalf("model-anthropic.mjs: %v\n%s", err, text)
	}
	var turn messagesTurn
	if err := json.Unmarshal(out, &turn); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	turn = s.asked(turn)
	// It speaks a newer version of the API, whose requests and streams are the same here, and
	// sends the key in another header.
	// https://platform.claude.com/docs/en/api/migration-2026-10-21
	if turn.Revision == anthropicVersion {
		t.Error("the TypeScript client sends our version of the API: compare it, and the key")
	}
	turn.Revision, turn.Key = anthropicVersion, "sk-1"
	return turn
}

// anthropicVersion is the version of the API that our client and the Go client speak.
const anthropicVersion = "2023-06-01"

// A real server answers, if one is configured.
func TestModelAnthropicReal(t *testing.T) {
	name := os.Getenv("PARLEY_TEST_ANTHROPIC_MODEL")
	if name == "" {
		t.Skip("PARLEY_TEST_ANTHROPIC_MODEL, _URL and _KEY name no server")
	}
	m, err := anthropic.New(&anthropic.Options{Model: name, Key: os.Getenv("PARLEY_TEST_ANTHROPIC_KEY"), BaseURL: os.Getenv("PARLEY_TEST_ANTHROPIC_URL")})
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for p, err := range m.Generate(t.Context(), &host.Request{
		System:   "Call the tool. Say nothing.",
		Tools:    []host.ToolSpec{{Name: "weather", Description: "Tells the weather of a city.", InputSchema: mcp.RawValue(messagesSchema)}},
		Messages: []host.Message{{Role: mcp.RoleUser, Blocks: []host.Block{{Content: mcp.Text("What is the weather in Bern?")}}}},
	}) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Call != nil {
			calls = append(calls, p.Call.Name+string(p.Call.Input))
		}
		if p.Usage != nil && (p.Usage.Input == 0 || p.Usage.Output == 0) {
			t.Errorf("usage %+v", *p.Usage)
		}
	}
	if len(calls) != 1 || !strings.Contains(calls[0], "Bern") {
		t.Errorf("it called %q", calls)
	}
}
