package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-mcp/parley/app/interop/script"
)

// Run goes through the script with the server that t leads to, but for the steps
// to skip. version is the revision to ask for; none means the newest.
func Run(ctx context.Context, t mcp.Transport, version string, skip ...string) script.Report {
	events := script.NewEvents()
	return script.Run(ctx, events, skip, func() (script.Client, error) { return connect(ctx, t, version, events) })
}

// Connect makes a client of the server that t leads to. version is
// the revision to ask for.
func Connect(ctx context.Context, t mcp.Transport, version string) (script.Client, error) {
	return connect(ctx, t, version, script.NewEvents())
}

// peer is the SDK's client.
type peer struct {
	*mcp.ClientSession

	// progress takes the progress of the call under way.
	progress atomic.Pointer[func(float64)]
}

func connect(ctx context.Context, t mcp.Transport, version string, events *script.Events) (script.Client, error) {
	p := &peer{}
	c := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1.8.0"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": events.Answer(req.Params.Message)}}, nil
		},
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			if len(req.Params.Messages) > 0 {
				events.Sample(text([]mcp.Content{req.Params.Messages[0].Content}))
			}
			return &mcp.CreateMessageResult{
				Model: script.Model, Role: "assistant", Content: &mcp.TextContent{Text: script.Said}, StopReason: "endTurn",
			}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			if tell := p.progress.Load(); tell != nil {
				(*tell)(req.Params.Progress)
			}
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { events.ToolsChanged() },
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			events.Updated(req.Params.URI)
		},
	})
	session, err := c.Connect(ctx, t, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	p.ClientSession = session
	return p, nil
}

func (p *peer) Version() string { return p.InitializeResult().ProtocolVersion }

func (p *peer) Server() string {
	if info := p.InitializeResult().ServerInfo; info != nil {
		return info.Name
	}
	return ""
}

func (p *peer) Tools(ctx context.Context) ([]string, error) {
	var names []string
	for tool, err := range p.ClientSession.Tools(ctx, nil) {
		if err != nil {
			return names, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

func (p *peer) Call(ctx context.Context, tool string, args any, progress func(float64)) (script.Result, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	if progress != nil {
		params.SetProgressToken(tool)
		p.progress.Store(&progress)
	}
	r, err := p.CallTool(ctx, params)
	if err != nil {
		return script.Result{}, err
	}
	result := script.Result{Text: text(r.Content), Failed: r.IsError}
	if r.StructuredContent != nil {
		result.Structured, err = json.Marshal(r.StructuredContent)
	}
	return result, err
}

func (p *peer) Read(ctx context.Context, uri string) (string, error) {
	r, err := p.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil || len(r.Contents) == 0 {
		return "", err
	}
	return r.Contents[0].Text, nil
}

func (*peer) Code(err error) int64 {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return refused.Code
	}
	return 0
}

func (p *peer) Prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	r, err := p.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
	if err != nil || len(r.Messages) == 0 {
		return "", err
	}
	return text([]mcp.Content{r.Messages[0].Content}), nil
}

func (p *peer) Complete(ctx context.Context, prompt, argument, typed string) ([]string, error) {
	r, err := p.ClientSession.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: prompt},
		Argument: mcp.CompleteParamsArgument{Name: argument, Value: typed},
	})
	if err != nil {
		return nil, err
	}
	return r.Completion.Values, nil
}

func (p *peer) Subscribe(ctx context.Context, uri string) (stop func() error, err error) {
	if err := p.ClientSession.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
		return nil, err
	}
	return func() error { return p.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}) }, nil
}
