// Package mcpgo goes through the script with github.com/mark3labs/mcp-go, as
// server and as client.
package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/parley-mcp/parley/app/interop/script"
)

type addOut struct {
	Sum float64 `json:"sum"`
}

// NewServer makes a server that offers what the script says.
func NewServer() *server.MCPServer {
	var watch watchers
	hooks := &server.Hooks{}
	hooks.AddBeforeAny(watch.asked)
	hooks.AddOnUnregisterSession(watch.gone)
	s := server.NewMCPServer(script.Server, "1.0.0",
		server.WithToolCapabilities(true),
		server.WithResourceCapabilities(true, true),
		server.WithPromptCapabilities(true),
		server.WithElicitation(),
		server.WithCompletions(),
		server.WithPromptCompletionProvider(completer{}),
		server.WithPaginationLimit(script.PageSize),
		server.WithHooks(hooks),
		server.WithRecovery(),
	)
	s.EnableSampling()
	addTools(s)
	addCancelling(s)
	addAsking(s)
	s.AddTool(mcp.NewTool(script.Grow), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddTool(mcp.NewTool(script.Grown), nothing)
		return mcp.NewToolResultText("grown"), nil
	})
	s.AddTool(mcp.NewTool(script.Touch), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		watch.tell(script.Counter)
		return mcp.NewToolResultText("touched"), nil
	})
	addTexts(s)
	return s
}

// watchers are the sessions that watch the counter: the SDK leaves it to its
// users to remember them.
type watchers struct{ all sync.Map }

// asked notes sessions that ask for changes, in the manner of each era.
func (w *watchers) asked(ctx context.Context, _ any, method mcp.MCPMethod, _ any) {
	if method == mcp.MethodResourcesSubscribe || method == mcp.MethodSubscriptionsListen {
		session := server.ClientSessionFromContext(ctx)
		w.all.Store(session, session.NotificationChannel())
	}
}

func (w *watchers) gone(_ context.Context, session server.ClientSession) { w.all.Delete(session) }

// tell sends the notice that a resource has changed.
func (w *watchers) tell(uri string) {
	for _, c := range w.all.Range {
		n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
		n.Method = "notifications/resources/updated"
		n.Params.AdditionalFields = map[string]any{"uri": uri}
		select {
		case c.(chan<- mcp.JSONRPCNotification) <- n:
		default: // it does not read
		}
	}
}

func addTools(s *server.MCPServer) {
	s.AddTool(mcp.NewTool(script.Add, mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required()), mcp.WithOutputSchema[addOut]()),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultStructuredOnly(addOut{req.GetFloat("a", 0) + req.GetFloat("b", 0)}), nil
		})
	s.AddTool(mcp.NewTool(script.Echo, mcp.WithString("message", mcp.Required())),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(req.GetString("message", "")), nil
		})
	s.AddTool(mcp.NewTool(script.Fail, mcp.WithString("reason", mcp.Required())),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultError("cannot: " + req.GetString("reason", "")), nil
		})
	s.AddTool(mcp.NewTool(script.Steps, mcp.WithNumber("count", mcp.Required())),
		func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			count := req.GetInt("count", 0)
			for i := range count {
				if err := report(ctx, s, req, float64(i+1), float64(count)); err != nil {
					return nil, err
				}
			}
			return mcp.NewToolResultText("done"), nil
		})
	for _, name := range script.Fillers {
		s.AddTool(mcp.NewTool(name), nothing)
	}
}

func addCancelling(s *server.MCPServer) {
	stopped := make(chan struct{}, 16)
	s.AddTool(mcp.NewTool(script.Hang), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := report(ctx, s, req, 1, 0); err != nil {
			return nil, err
		}
		<-ctx.Done()
		stopped <- struct{}{}
		return nil, ctx.Err()
	})
	s.AddTool(mcp.NewTool(script.Stopped), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-stopped:
			return mcp.NewToolResultText(script.StoppedText), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

// addAsking adds the tools that ask, in the manner that the SDK serves in both
// eras: the handler returns what it wants to know.
func addAsking(s *server.MCPServer) {
	ask := func(question string) mcp.ElicitationParams {
		return mcp.ElicitationParams{Mode: mcp.ElicitationModeForm, Message: question, RequestedSchema: json.RawMessage(script.Schema)}
	}
	said := func(r *mcp.ElicitationResult) string {
		content, _ := r.Content.(map[string]any)
		answer, _ := content["answer"].(string)
		return answer
	}
	s.AddTool(mcp.NewTool(script.AskPerson), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answers := req.Params.InputResponses
		if len(answers) == 0 {
			return server.NewInputRequestBuilder("asked").Elicit("who", ask(script.WhoQuestion)).Elicit("team", ask(script.TeamQuestion)).ToolResult(), nil
		}
		who, team := server.ElicitationResponse(answers, "who"), server.ElicitationResponse(answers, "team")
		if who == nil || team == nil || req.Params.RequestState != "asked" {
			return nil, errors.New("an answer or the state is missing")
		}
		return mcp.NewToolResultText(script.Hello(said(who), said(team))), nil
	})
	s.AddTool(mcp.NewTool(script.AskModel), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answers := req.Params.InputResponses
		if len(answers) == 0 {
			return server.NewInputRequestBuilder("").Sample("model", mcp.CreateMessageParams{
				Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(script.Prompt)}},
				MaxTokens: 50,
			}).ToolResult(), nil
		}
		model := server.SamplingResponse(answers, "model")
		if model == nil {
			return nil, errors.New("the answer of the model is missing")
		}
		return mcp.NewToolResultText(model.Model + ": " + text(model.Content)), nil
	})
}

func addTexts(s *server.MCPServer) {
	reader := func(of func(uri string) string) func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			uri := req.Params.URI
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: of(uri)}}, nil
		}
	}
	s.AddResource(mcp.NewResource(script.Greeting, "greeting"), reader(func(string) string { return script.GreetingText }))
	s.AddResource(mcp.NewResource(script.Counter, "counter"), reader(func(string) string { return script.CounterText }))
	s.AddResourceTemplate(mcp.NewResourceTemplate(script.Items, "item"), reader(func(uri string) string {
		return script.ItemText + uri[strings.LastIndex(uri, "/")+1:]
	}))
	s.AddPrompt(mcp.NewPrompt(script.Review, mcp.WithArgument(script.Language, mcp.RequiredArgument())),
		func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return mcp.NewGetPromptResult("", []mcp.PromptMessage{
				mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(script.ReviewText(req.Params.Arguments[script.Language]))),
			}), nil
		})
}

// completer completes the argument of the prompt.
type completer struct{}

// CompletePromptArgument gives the languages that begin with what was typed.
func (completer) CompletePromptArgument(_ context.Context, _ string, a mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	values := script.Complete(a.Value)
	return &mcp.Completion{Values: values, Total: len(values)}, nil
}

func nothing(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText("nothing"), nil
}

// report sends progress to the client that asked for it.
func report(ctx context.Context, s *server.MCPServer, req mcp.CallToolRequest, progress, total float64) error {
	if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
		return nil
	}
	return s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
		"progressToken": req.Params.Meta.ProgressToken, "progress": progress, "total": total,
	})
}

// text is the text of a content, or of the first of several, or nothing.
func text(content any) string {
	switch c := content.(type) {
	case mcp.TextContent:
		return c.Text
	case *mcp.TextContent:
		return c.Text
	case []mcp.Content:
		if len(c) > 0 {
			return text(c[0])
		}
	case map[string]any:
		t, _ := c["text"].(string)
		return t
	}
	return ""
}
