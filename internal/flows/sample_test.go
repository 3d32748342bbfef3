package flows_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// Proves: FLOW-SAMPLE-P
func TestFLOW_SAMPLE_P(t *testing.T) {
	half := 0.5
	build := with(server.Tool("think", "Asks the client's model.", func(ctx context.Context, _ mcp.None) (string, error) {
		r, err := server.Sample(ctx, &mcp.CreateMessageParams{
			Messages:         []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("two plus two?")}}},
			SystemPrompt:     "be brief",
			MaxTokens:        7,
			Temperature:      &half,
			ModelPreferences: &mcp.ModelPreferences{Hints: []mcp.ModelHint{{Name: "small"}}, SpeedPriority: &half},
			StopSequences:    []string{"."},
			Metadata:         raw(`{"k":1}`),
			IncludeContext:   mcp.IncludeNone,
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %s %s %s", r.Role, r.Model, r.StopReason, r.Content[0].(*mcp.TextContent).Text), nil
	}))
	var got *mcp.CreateMessageParams
	o := &client.Options{OnSample: func(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		got = p
		return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: mcp.Contents{mcp.Text("four")}, Model: "m1", StopReason: mcp.StopEndTurn}, nil
	}}
	mcptest.EachEra(t, build, o, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		said, err := client.Call[string](t.Context(), c, "think", nil)
		if err != nil || said != "assistant m1 endTurn four" {
			t.Errorf("%q, %v", said, err)
		}
		if got.SystemPrompt != "be brief" || got.MaxTokens != 7 || *got.Temperature != half || got.ModelPreferences.Hints[0].Name != "small" ||
			got.StopSequences[0] != "." || string(got.Metadata) != `{"k":1}` || got.Messages[0].Content[0].(*mcp.TextContent).Text != "two plus two?" {
			t.Errorf("the model was asked %+v", got)
		}
	})
}

// Proves: FLOW-SAMPLE-P. Ruling 17: a refusal is error -1 in the handshake
// era; in the modern one the call ends with the client, and is not retried.
func TestFLOW_SAMPLE_P_Refused(t *testing.T) {
	runs := 0
	build := with(server.Tool("think", "Asks the client's model.", func(ctx context.Context, _ mcp.None) (string, error) {
		runs++
		_, err := server.Sample(ctx, &mcp.CreateMessageParams{
			Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("?")}}}, MaxTokens: 1,
		})
		if errors.Is(err, server.ErrRefused) {
			return "the user said no", nil
		}
		return "", err
	}))
	for name, why := range map[string]error{"refused": client.ErrRefused, "wrapped": fmt.Errorf("not now: %w", client.ErrRefused)} {
		o := &client.Options{OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return nil, why }}
		t.Run(name, func(t *testing.T) {
			mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
				runs = 0
				said, err := client.Call[string](t.Context(), c, "think", nil)
				if era.Version == newest {
					if !errors.Is(err, client.ErrInputRefused) || !errors.Is(err, client.ErrRefused) || runs != 1 {
						t.Errorf("%q, %v after %d runs", said, err, runs)
					}
				} else if err != nil || said != "the user said no" {
					t.Errorf("%q, %v", said, err)
				}
			})
		})
	}
	broken := &client.Options{OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		return nil, errors.New("key sk-123 is invalid")
	}}
	mcptest.EachEra(t, build, broken, func(t *testing.T, era mcptest.Era, c *client.Client) {
		r, err := c.CallTool(t.Context(), "think", nil, nil)
		if era.Version == newest {
			if !errors.Is(err, client.ErrInputRefused) {
				t.Errorf("%+v, %v", r, err)
			}
		} else if err != nil || !r.IsError {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// Proves: FLOW-SAMPLE-P: tools in sampling, from 2025-11-25 on, and only if the
// client declared it.
func TestFLOW_SAMPLE_P_Tools(t *testing.T) {
	var failed error
	build := with(server.Tool("agent", "Has the client's model use a tool.", func(ctx context.Context, _ mcp.None) (string, error) {
		failed = nil
		p := &mcp.CreateMessageParams{
			Messages:   []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("weather?")}}},
			MaxTokens:  10,
			Tools:      []mcp.Tool{{Name: "weather", InputSchema: raw(`{"type":"object"}`)}},
			ToolChoice: &mcp.ToolChoice{Mode: mcp.ToolChoiceRequired},
		}
		r, err := server.Sample(ctx, p, &server.AskOptions{Key: "first"})
		if err != nil {
			failed = err
			return "", err
		}
		use := r.Content[1].(*mcp.ToolUseContent)
		p2 := *p
		p2.ToolChoice = nil
		p2.Messages = append(p2.Messages[:1:1],
			mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: r.Content},
			mcp.SamplingMessage{Role: mcp.RoleUser, Content: mcp.Contents{&mcp.ToolResultContent{ToolUseID: use.ID, Content: mcp.Contents{mcp.Text("rain")}}}},
		)
		if r, err = server.Sample(ctx, &p2, &server.AskOptions{Key: "second"}); err != nil {
			return "", err
		}
		return r.Content[0].(*mcp.TextContent).Text, nil
	}))
	model := func(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		r := &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", StopReason: mcp.StopEndTurn}
		if len(p.Messages) == 1 && len(p.Tools) == 1 && p.ToolChoice.Mode == mcp.ToolChoiceRequired {
			r.StopReason = mcp.StopToolUse
			r.Content = mcp.Contents{mcp.Text("let me see"), &mcp.ToolUseContent{ID: "u1", Name: p.Tools[0].Name, Input: raw(`{"city":"Oslo"}`)}}
			return r, nil
		}
		result, ok := p.Messages[2].Content[0].(*mcp.ToolResultContent)
		if !ok || result.ToolUseID != "u1" {
			return nil, errors.New("the result does not belong to the use")
		}
		r.Content = mcp.Contents{mcp.Text("it is " + result.Content[0].(*mcp.TextContent).Text)}
		return r, nil
	}
	mcptest.EachEra(t, build, &client.Options{OnSample: model, SampleTools: true}, func(t *testing.T, era mcptest.Era, c *client.Client) {
		said, err := client.Call[string](t.Context(), c, "agent", nil)
		if since(era.Version, autumn) {
			if err != nil || said != "it is rain" {
				t.Errorf("%q, %v", said, err)
			}
		} else if err == nil || !errors.Is(failed, server.ErrNotCapable) {
			t.Errorf("%q, %v; the handler got %v", said, err, failed)
		}
	})
	mcptest.EachEra(t, build, &client.Options{OnSample: model}, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		if said, err := client.Call[string](t.Context(), c, "agent", nil); err == nil || !errors.Is(failed, server.ErrNotCapable) {
			t.Errorf("without the capability: %q, %v; the handler got %v", said, err, failed)
		}
	})
}

// Proves: FLOW-SAMPLE-P: several blocks before 2025-11-25 become one, or an error for
// the handler.
func TestFLOW_SAMPLE_P_Blocks(t *testing.T) {
	build := with(server.Tool("blocks", "Sends blocks.", func(ctx context.Context, in struct {
		Image bool `json:"image"`
	},
	) (string, error) {
		content := mcp.Contents{mcp.Text("one"), mcp.Text("two")}
		if in.Image {
			content = append(content, mcp.Image([]byte{1}, "image/png"))
		}
		_, err := server.Sample(ctx, &mcp.CreateMessageParams{Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: content}}, MaxTokens: 1})
		return "ok", err
	}))
	blocks := 0
	o := &client.Options{OnSample: func(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		blocks = len(p.Messages[0].Content)
		return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: mcp.Contents{mcp.Text("x")}, Model: "m"}, nil
	}}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		for _, image := range []bool{false, true} {
			blocks = 0
			_, err := client.Call[string](t.Context(), c, "blocks", map[string]any{"image": image})
			switch {
			case since(era.Version, autumn):
				if err != nil || blocks < 2 {
					t.Errorf("image %v: %d blocks, %v", image, blocks, err)
				}
			case image:
				if err == nil {
					t.Error("text and image became one block")
				}
			case err != nil || blocks != 1:
				t.Errorf("texts: %d blocks, %v", blocks, err)
			}
		}
	})
}
