package ours

import (
	"context"
	"errors"
	"time"

	"github.com/parley-mcp/parley/app/interop/script"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// Run goes through the script with the server that dialer leads to, but for the
// steps to skip. version is the only revision that may be used; none means that
// all may.
func Run(ctx context.Context, dialer transport.Dialer, version string, skip ...string) script.Report {
	events := script.NewEvents()
	return script.Run(ctx, events, skip, func() (script.Client, error) { return connect(ctx, dialer, version, events) })
}

// Connect makes a client of the server that dialer leads to. version is
// the only revision that may be used; none means that
// all may.
func Connect(ctx context.Context, dialer transport.Dialer, version string) (script.Client, error) {
	return connect(ctx, dialer, version, script.NewEvents())
}

// peer is our client.
type peer struct{ *client.Client }

func connect(ctx context.Context, dialer transport.Dialer, version string, events *script.Events) (script.Client, error) {
	o := &client.Options{
		Eras:          client.NewEraMemory(),
		DiscoverProbe: time.Minute, // a server that is slow to start is not an old one
		OnElicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(answer{events.Answer(q.Params.Message)})
		},
		OnSample: func(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			if len(p.Messages) > 0 {
				events.Sample(text(p.Messages[0].Content))
			}
			return &mcp.CreateMessageResult{
				Model: script.Model, Role: mcp.RoleAssistant, Content: mcp.Contents{mcp.Text(script.Said)}, StopReason: "endTurn",
			}, nil
		},
		OnToolsChanged:    func(context.Context) { events.ToolsChanged() },
		OnResourceUpdated: func(_ context.Context, uri string) { events.Updated(uri) },
	}
	if version != "" {
		o.Versions = []string{version}
	}
	c, err := client.Connect(ctx, dialer, o)
	if err != nil {
		return nil, err
	}
	return peer{c}, nil
}

func (p peer) Server() string {
	if s := p.Client.Server(); s != nil {
		return s.Name
	}
	return ""
}

func (p peer) Tools(ctx context.Context) ([]string, error) {
	var names []string
	for tool, err := range p.Client.Tools(ctx) {
		if err != nil {
			return names, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

func (p peer) Call(ctx context.Context, tool string, args any, progress func(float64)) (script.Result, error) {
	o := &client.CallOptions{}
	if progress != nil {
		o.OnProgress = func(done, _ float64, _ string) { progress(done) }
	}
	r, err := p.CallTool(ctx, tool, args, o)
	if err != nil {
		return script.Result{}, err
	}
	return script.Result{Text: text(r.Content), Structured: r.StructuredContent, Failed: r.IsError}, nil
}

func (p peer) Read(ctx context.Context, uri string) (string, error) {
	r, err := p.ReadResource(ctx, uri, nil)
	if err != nil || len(r.Contents) == 0 {
		return "", err
	}
	return r.Contents[0].Text, nil
}

func (peer) Code(err error) int64 {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return refused.Code
	}
	return 0
}

func (p peer) Prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	r, err := p.GetPrompt(ctx, name, args, nil)
	if err != nil || len(r.Messages) == 0 {
		return "", err
	}
	return text(mcp.Contents{r.Messages[0].Content}), nil
}

func (p peer) Complete(ctx context.Context, prompt, argument, typed string) ([]string, error) {
	r, err := p.Client.Complete(ctx, &mcp.CompleteParams{
		Ref:      mcp.PromptRef(prompt),
		Argument: mcp.CompletionArgument{Name: argument, Value: typed},
	})
	if err != nil {
		return nil, err
	}
	return r.Values, nil
}

func (p peer) Subscribe(ctx context.Context, uri string) (stop func() error, err error) {
	s, err := p.Client.Subscribe(ctx, uri)
	if err != nil {
		return nil, err
	}
	return s.Close, nil
}
