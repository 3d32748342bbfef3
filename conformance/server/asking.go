package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type sampleIn struct {
	Prompt string `json:"prompt" desc:"What the client's model is asked."`
}

type elicitIn struct {
	Message string `json:"message" desc:"What the person is told."`
}

type account struct {
	Username string `json:"username" desc:"The person's name here."`
	Email    string `json:"email" desc:"The person's mail address." format:"email"`
}

// defaults is a form that need not be filled in at all (SEP-1034).
type defaults struct {
	Name     string  `json:"name" desc:"A name." default:"John Doe"`
	Age      int     `json:"age" desc:"An age." default:"30"`
	Score    float64 `json:"score" desc:"A score." default:"95.5"`
	Status   string  `json:"status" desc:"A state." enum:"active,inactive,pending" default:"active"`
	Verified bool    `json:"verified" desc:"Whether that was verified." default:"true"`
}

// choices is a form with every way to choose (SEP-1330). It is not a Go type,
// because the deprecated titles of an enum have no tag.
func choices() *mcp.ElicitSchema {
	titles := func(word string) []mcp.EnumOption {
		return []mcp.EnumOption{{Const: "value1", Title: "First " + word}, {Const: "value2", Title: "Second " + word}, {Const: "value3", Title: "Third " + word}}
	}
	some := mcp.PrimitiveSchema{Type: "array", Description: "Some of these.", MinItems: new(int64(1)), MaxItems: new(int64(3))}
	untitled, titled := some, some
	untitled.Items = &mcp.EnumItems{Type: "string", Enum: []string{"option1", "option2", "option3"}}
	titled.Items = &mcp.EnumItems{AnyOf: titles("Choice")}
	return &mcp.ElicitSchema{Properties: mcp.Properties{
		{Name: "untitledSingle", Schema: mcp.PrimitiveSchema{
			Type: "string", Description: "One of these.", Enum: []string{"option1", "option2", "option3"},
		}},
		{Name: "titledSingle", Schema: mcp.PrimitiveSchema{
			Type: "string", Description: "One of these, which have titles.", OneOf: titles("Option"),
		}},
		{Name: "legacyEnum", Schema: mcp.PrimitiveSchema{
			Type: "string", Description: "One of these, which have titles of the old kind.",
			Enum: []string{"opt1", "opt2", "opt3"}, EnumNames: []string{"Option One", "Option Two", "Option Three"},
		}},
		{Name: "untitledMulti", Schema: untitled},
		{Name: "titledMulti", Schema: titled},
	}}
}

// askingTools are tools that ask back in one breath, as the revisions with a
// handshake do; roundTools are those that take several rounds.
func askingTools() []server.Feature {
	return []server.Feature{
		server.Tool("test_sampling", "Asks the client's model.", func(ctx context.Context, in sampleIn) (string, error) {
			text, err := sample(ctx, in.Prompt, "")
			if err != nil {
				return "", err
			}
			return "LLM response: " + text, nil
		}),
		server.Tool("test_missing_capability", "Asks the client's model, which not every client has.", func(ctx context.Context, _ mcp.None) (string, error) {
			return sample(ctx, "Say anything.", "")
		}),
		server.Tool("test_elicitation", "Asks the person who they are.", func(ctx context.Context, in elicitIn) (string, error) {
			return elicit[account](ctx, in.Message)
		}),
		server.Tool("test_elicitation_sep1034_defaults", "Shows a form with defaults.", func(ctx context.Context, _ mcp.None) (string, error) {
			return elicit[defaults](ctx, "Please look through these values.")
		}),
		server.Tool("test_elicitation_sep1330_enums", "Shows a form with choices.", func(ctx context.Context, _ mcp.None) (string, error) {
			answer, err := server.ElicitForm(ctx, "Please choose.", choices())
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("Elicitation completed: action=%s, %d fields", answer.Action, len(answer.Content)), nil
		}),
		server.Tool("test_streaming_elicitation", "Reports progress, then asks.", func(ctx context.Context, _ mcp.None) (string, error) {
			if err := server.Progress(ctx, 1, 2, "about to ask"); err != nil {
				return "", err
			}
			return elicit[account](ctx, "Who are you?")
		}),
	}
}

// elicit asks with a form and tells what came back.
func elicit[T any](ctx context.Context, message string) (string, error) {
	answer, err := server.Elicit[T](ctx, message)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Elicitation completed: action=%s, content=%+v", answer.Action, answer.Value), nil
}

// sample asks the client's model for a few words. An empty key lets the
// library name the question.
func sample(ctx context.Context, prompt, key string) (string, error) {
	answer, err := server.Sample(ctx, &mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text(prompt)}}},
		MaxTokens: 100,
	}, &server.AskOptions{Key: key})
	if err != nil {
		return "", err
	}
	var texts []string
	for _, c := range answer.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n"), nil
}
