package interop_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	messages "github.com/anthropics/anthropic-sdk-go"
	messagesoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	completions "github.com/openai/openai-go/v3"
	completionsoption "github.com/openai/openai-go/v3/option"
	"google.golang.org/genai"

	"github.com/parley-mcp/parley/app/internal/model/anthropic"
	"github.com/parley-mcp/parley/app/internal/model/gemini"
	"github.com/parley-mcp/parley/app/internal/model/modeltest"
	"github.com/parley-mcp/parley/app/internal/model/openai"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A recordedTurn is what a client makes of a stream that a provider sent.
type recordedTurn struct {
	Text                     string
	Calls                    []recordedCall
	Input, Output, CacheRead int64
	Calling, Failed          bool // it ended with calls, or with an error
}

type recordedCall struct {
	Name  string
	Input any
}

// recordedReaders read a stream at an address with our client, and with the provider's for Go.
var recordedReaders = map[string]struct {
	ours   func(url string, c *http.Client) (host.Model, error)
	theirs func(t *testing.T, url string) recordedTurn
}{
	"anthropic": {
		func(url string, c *http.Client) (host.Model, error) {
			return anthropic.New(&anthropic.Options{Model: "m", Key: "sk-recorded", BaseURL: url, Client: c})
		}, recordedAnthropic,
	},
	"openai": {
		func(url string, c *http.Client) (host.Model, error) {
			return openai.New(&openai.Options{Model: "m", Key: "sk-recorded", BaseURL: url + "/v1", Client: c})
		}, recordedOpenAI,
	},
	"gemini": {
		func(url string, c *http.Client) (host.Model, error) {
			return gemini.New(&gemini.Options{Model: "gemini-3-pro", Key: "sk-recorded", BaseURL: url + "/v1beta", Client: c})
		}, recordedGemini,
	},
}

// Streams that providers really sent are read as the providers' own clients read them. They are
// other people's recordings, and are not in the repository: PARLEY_TEST_MODEL_STREAMS names a
// folder that has them as anthropic/*.sse, openai/*.sse and gemini/*.sse.
func TestModelRecorded(t *testing.T) {
	dir := os.Getenv("PARLEY_TEST_MODEL_STREAMS")
	if dir == "" {
		t.Skip("PARLEY_TEST_MODEL_STREAMS names no folder of recorded streams")
	}
	for provider, read := range recordedReaders {
		files, err := filepath.Glob(filepath.Join(dir, provider, "*.sse"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no streams, %v", provider, err)
		}
		for _, file := range files {
			t.Run(provider+"/"+strings.TrimSuffix(filepath.Base(file), ".sse"), func(t *testing.T) {
				stream, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = w.Write(stream)
				}))
				defer s.Close()
				ask := func(c *http.Client) recordedTurn {
					m, err := read.ours(s.URL, c)
					if err != nil {
						t.Fatal(err)
					}
					return recordedOurs(t, m)
				}
				ours := ask(s.Client())
				for i, in := range recordedSplits(stream) {
					at := &modeltest.Transport{Replies: []modeltest.Reply{{Body: in}}}
					if diff := cmp.Diff(ours, ask(&http.Client{Transport: at})); diff != "" {
						t.Fatalf("split %d, whole -, split +:\n%s", i, diff)
					}
				}
				theirs := read.theirs(t, s.URL)
				if diff := cmp.Diff(theirs, ours, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("theirs -, ours +:\n%s", diff)
				}
			})
		}
	}
}

// recordedSplits are the readers of a stream byte by byte, and for a short one in two pieces at
// each place.
func recordedSplits(stream []byte) []io.Reader {
	const short = 3 << 10
	if len(stream) > short {
		return []io.Reader{iotest.OneByteReader(bytes.NewReader(stream))}
	}
	return modeltest.Splits(stream)
}

func recordedOurs(t *testing.T, m host.Model) recordedTurn {
	t.Helper()
	var turn recordedTurn
	question := host.Message{Role: mcp.RoleUser, Blocks: []host.Block{{Content: mcp.Text("Hi")}}}
	for p, err := range m.Generate(t.Context(), &host.Request{Messages: []host.Message{question}}) {
		switch {
		case err != nil:
			turn.Failed = true
		case p.Call != nil:
			turn.Calls = append(turn.Calls, recordedCall{p.Call.Name, decoded(t, string(p.Call.Input))})
		case p.Usage != nil:
			turn.Input, turn.Output, turn.CacheRead = p.Usage.Input, p.Usage.Output, p.Usage.CacheRead
		case p.Stop != "":
			turn.Calling = p.Stop == host.StopCalls
		}
		turn.Text += p.Text
	}
	return turn
}

// arguments are those of a call; none are an empty object.
func arguments(t *testing.T, text string) any {
	t.Helper()
	return decoded(t, ourArguments(strings.TrimSpace(text)))
}

func recordedAnthropic(t *testing.T, url string) recordedTurn {
	t.Helper()
	client := messages.NewClient(messagesoption.WithBaseURL(url), messagesoption.WithAPIKey("sk-recorded"), messagesoption.WithMaxRetries(0))
	stream := client.Messages.NewStreaming(t.Context(), messages.MessageNewParams{
		Model: "m", MaxTokens: 100, Messages: []messages.MessageParam{messages.NewUserMessage(messages.NewTextBlock("Hi"))},
	})
	defer func() { _ = stream.Close() }()
	var message messages.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if message.StopReason == messages.StopReasonPauseTurn {
		t.Skip("the answer waits for tools that the provider runs itself, which our client asks for none of")
	}
	u := message.Usage
	turn := recordedTurn{
		Input: u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadInputTokens,
		Calling: message.StopReason == messages.StopReasonToolUse, Failed: stream.Err() != nil,
	}
	for _, b := range message.Content {
		switch b.Type {
		case "text":
			turn.Text += b.Text
		case "tool_use":
			turn.Calls = append(turn.Calls, recordedCall{b.Name, arguments(t, string(b.Input))})
		}
	}
	turn.Text += message.StopDetails.Explanation // which ours says where the model refuses
	return turn
}

func recordedOpenAI(t *testing.T, url string) recordedTurn {
	t.Helper()
	client := completions.NewClient(completionsoption.WithAPIKey("sk-recorded"), completionsoption.WithBaseURL(url+"/v1"), completionsoption.WithMaxRetries(0))
	stream := client.Chat.Completions.NewStreaming(t.Context(), completions.ChatCompletionNewParams{
		Model: "m", Messages: []completions.ChatCompletionMessageParamUnion{completions.UserMessage("Hi")},
	})
	defer func() { _ = stream.Close() }()
	var all completions.ChatCompletionAccumulator
	var u completions.CompletionUsage
	for stream.Next() {
		chunk := stream.Current()
		if chunk.JSON.Usage.Valid() {
			u = chunk.Usage // the sum is wrong where a server tells it twice
		}
		if !all.AddChunk(chunk) {
			t.Skip("OpenAI's client takes no chunks of several answers in one stream")
		}
		if len(chunk.Choices) > 0 && strings.HasPrefix(chunk.Choices[0].Delta.JSON.Content.Raw(), "[") {
			t.Skip("OpenAI's client takes no list of parts, which Mistral sends")
		}
	}
	turn := recordedTurn{Input: u.PromptTokens, Output: u.CompletionTokens, CacheRead: u.PromptTokensDetails.CachedTokens, Failed: stream.Err() != nil}
	if reasoning := u.CompletionTokensDetails.ReasoningTokens; u.TotalTokens == u.PromptTokens+u.CompletionTokens+reasoning {
		turn.Output += reasoning // xAI
	}
	if len(all.Choices) == 0 {
		return turn
	}
	choice := all.Choices[0]
	turn.Text, turn.Calling = choice.Message.Content+choice.Message.Refusal, len(choice.Message.ToolCalls) > 0
	for _, c := range choice.Message.ToolCalls {
		turn.Calls = append(turn.Calls, recordedCall{c.Function.Name, arguments(t, c.Function.Arguments)})
	}
	return turn
}

func recordedGemini(t *testing.T, url string) recordedTurn {
	t.Helper()
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: "sk-recorded", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url, APIVersion: "v1beta"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var turn recordedTurn
	for r, err := range client.Models.GenerateContentStream(t.Context(), "gemini-3-pro", genai.Text("Hi"), nil) {
		if err != nil {
			turn.Failed = true
			break
		}
		var part geminiOfficial
		part.add(r)
		turn.Text += part.turn.Text
		for _, c := range part.turn.Calls {
			args, err := json.Marshal(c.Args)
			if err != nil {
				t.Fatal(err)
			}
			turn.Calls = append(turn.Calls, recordedCall{c.Name, arguments(t, strings.Replace(string(args), "null", "", 1))})
		}
		if u := r.UsageMetadata; u != nil {
			turn.Input, turn.Output, turn.CacheRead = int64(u.PromptTokenCount+u.ToolUsePromptTokenCount), int64(u.CandidatesTokenCount+u.ThoughtsTokenCount), int64(u.CachedContentTokenCount)
		}
	}
	turn.Calling = len(turn.Calls) > 0
	return turn
}
