// Package gosdk goes through the script with the official Go SDK,
// github.com/modelcontextprotocol/go-sdk, as server and as client.
package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-mcp/parley/app/interop/script"
)

type none struct{}

type addIn struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

type addOut struct {
	Sum float64 `json:"sum"`
}

type echoIn struct {
	Message string `json:"message"`
}

type failIn struct {
	Reason string `json:"reason"`
}

type stepsIn struct {
	Count int `json:"count"`
}

// NewServer makes a server that offers what the script says.
func NewServer() *mcp.Server {
	watch := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	unwatch := func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	s := mcp.NewServer(&mcp.Implementation{Name: script.Server, Version: "1.0.0"}, &mcp.ServerOptions{
		PageSize:           script.PageSize,
		CompletionHandler:  complete,
		SubscribeHandler:   watch,
		UnsubscribeHandler: unwatch,
	})
	addTools(s)
	addAsking(s)
	addChanging(s)
	addTexts(s)
	return s
}

func addTools(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: script.Add}, func(_ context.Context, _ *mcp.CallToolRequest, in addIn) (*mcp.CallToolResult, addOut, error) {
		return nil, addOut{in.A + in.B}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: script.Echo}, func(_ context.Context, _ *mcp.CallToolRequest, in echoIn) (*mcp.CallToolResult, any, error) {
		return say(in.Message), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: script.Fail}, func(_ context.Context, _ *mcp.CallToolRequest, in failIn) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("cannot: " + in.Reason)
	})
	mcp.AddTool(s, &mcp.Tool{Name: script.Steps}, func(ctx context.Context, req *mcp.CallToolRequest, in stepsIn) (*mcp.CallToolResult, any, error) {
		for i := range in.Count {
			if err := report(ctx, req, float64(i+1), float64(in.Count)); err != nil {
				return nil, nil, err
			}
		}
		return say("done"), nil, nil
	})
	for _, name := range script.Fillers {
		mcp.AddTool(s, &mcp.Tool{Name: name}, nothing)
	}
	stopped := make(chan struct{}, 16)
	mcp.AddTool(s, &mcp.Tool{Name: script.Hang}, func(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		if err := report(ctx, req, 1, 0); err != nil {
			return nil, nil, err
		}
		<-ctx.Done()
		stopped <- struct{}{}
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: script.Stopped}, func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		select {
		case <-stopped:
			return say(script.StoppedText), nil, nil
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	})
}

// addAsking adds the tools that ask, in the manner that the SDK serves in both
// eras: the handler returns what it wants to know.
func addAsking(s *mcp.Server) {
	ask := func(question string) *mcp.ElicitParams {
		return &mcp.ElicitParams{Mode: "form", Message: question, RequestedSchema: json.RawMessage(script.Schema)}
	}
	mcp.AddTool(s, &mcp.Tool{Name: script.AskPerson}, func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		answers := req.Params.InputResponses
		if len(answers) == 0 {
			return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{
				"who": ask(script.WhoQuestion), "team": ask(script.TeamQuestion),
			}}, nil, nil
		}
		who, _ := answers["who"].(*mcp.ElicitResult)
		team, _ := answers["team"].(*mcp.ElicitResult)
		if who == nil || team == nil || req.Params.RequestState != "asked" {
			return nil, nil, errors.New("an answer or the state is missing")
		}
		first, _ := who.Content["answer"].(string)
		second, _ := team.Content["answer"].(string)
		return say(script.Hello(first, second)), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: script.AskModel}, func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		answers := req.Params.InputResponses
		if len(answers) == 0 {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"model": &mcp.CreateMessageParams{
				Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: script.Prompt}}},
				MaxTokens: 50,
			}}}, nil, nil
		}
		switch said := answers["model"].(type) {
		case *mcp.CreateMessageWithToolsResult:
			return say(said.Model + ": " + text(said.Content)), nil, nil
		case *mcp.CreateMessageResult:
			return say(said.Model + ": " + text([]mcp.Content{said.Content})), nil, nil
		}
		return nil, nil, errors.New("the answer of the model is missing")
	})
}

func addChanging(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: script.Grow}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: script.Grown}, nothing)
		return say("grown"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: script.Touch}, func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		err := s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: script.Counter})
		return say("touched"), nil, err
	})
}

func addTexts(s *mcp.Server) {
	reader := func(of func(uri string) string) mcp.ResourceHandler {
		return func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			uri := req.Params.URI
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: of(uri)}}}, nil
		}
	}
	s.AddResource(&mcp.Resource{URI: script.Greeting, Name: "greeting"}, reader(func(string) string { return script.GreetingText }))
	s.AddResource(&mcp.Resource{URI: script.Counter, Name: "counter"}, reader(func(string) string { return script.CounterText }))
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: script.Items, Name: "item"}, reader(func(uri string) string {
		return script.ItemText + uri[strings.LastIndex(uri, "/")+1:]
	}))
	s.AddPrompt(&mcp.Prompt{Name: script.Review, Arguments: []*mcp.PromptArgument{{Name: script.Language, Required: true}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{
				Role: "user", Content: &mcp.TextContent{Text: script.ReviewText(req.Params.Arguments[script.Language])},
			}}}, nil
		})
}

func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := script.Complete(req.Params.Argument.Value)
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}

func nothing(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
	return say("nothing"), nil, nil
}

// report sends progress to the client that asked for it.
func report(ctx context.Context, req *mcp.CallToolRequest, progress, total float64) error {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: progress, Total: total})
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// text is the text of the first content, or nothing.
func text(content []mcp.Content) string {
	if len(content) > 0 {
		if t, ok := content[0].(*mcp.TextContent); ok {
			return t.Text
		}
	}
	return ""
}
