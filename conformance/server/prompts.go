package main

import (
	"context"
	"fmt"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type twoArgs struct {
	Arg1 string `json:"arg1" desc:"The first argument."`
	Arg2 string `json:"arg2" desc:"The second argument."`
}

type embedArgs struct {
	ResourceURI string `json:"resourceUri" desc:"The URI of the resource to embed."`
}

type subject struct {
	Context string `json:"context"`
}

// prompts are the messages to begin a conversation with.
func prompts() []server.Feature {
	return []server.Feature{
		server.Prompt("test_simple_prompt", "Has no arguments.", func(context.Context, mcp.None) (string, error) {
			return "This is a simple prompt for testing.", nil
		}),
		server.Prompt("test_prompt_with_arguments", "Has two arguments.", func(_ context.Context, a twoArgs) (string, error) {
			return fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a.Arg1, a.Arg2), nil
		}).With(server.PromptOptions{
			Complete: map[string]server.Completer{"arg1": server.Choices("paris", "park", "party")},
		}),
		server.Prompt("test_prompt_with_embedded_resource", "Brings a resource along.", func(_ context.Context, a embedArgs) ([]mcp.PromptMessage, error) {
			return messages(mcp.Embed(mcp.ResourceContents{
				URI: a.ResourceURI, MIMEType: "text/plain", Text: "Embedded resource content for testing.",
			}), "Please process the embedded resource above."), nil
		}),
		server.Prompt("test_prompt_with_image", "Brings an image along.", func(context.Context, mcp.None) ([]mcp.PromptMessage, error) {
			return messages(mcp.Image(picture(), "image/png"), "Please analyze the image above."), nil
		}),
		server.Prompt("test_input_required_result_prompt", "Asks before it says anything.", func(ctx context.Context, _ mcp.None) (string, error) {
			answer, err := server.Elicit[subject](ctx, "What context should the prompt use?", &server.AskOptions{Key: "user_context"})
			if err != nil {
				return "", err
			}
			return "Please go on with: " + answer.Value.Context, nil
		}),
	}
}

// messages are two messages of the user: a thing, and what to do with it.
func messages(thing mcp.Content, task string) []mcp.PromptMessage {
	return []mcp.PromptMessage{
		{Role: mcp.RoleUser, Content: thing},
		{Role: mcp.RoleUser, Content: mcp.Text(task)},
	}
}
