package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/parley-mcp/parley/app/interop/script"
)

// Run goes through the script with the server that t leads to, but for the steps
// to skip. version is the revision to ask for.
func Run(ctx context.Context, t transport.Interface, version string, skip ...string) script.Report {
	events := script.NewEvents()
	return script.Run(ctx, events, skip, func() (script.Client, error) { return connect(ctx, t, version, events) })
}

// Connect makes a client of the server that t leads to. version is
// the revision to ask for.
func Connect(ctx context.Context, t transport.Interface, version string) (script.Client, error) {
	return connect(ctx, t, version, script.NewEvents())
}

// peer is the SDK's client.
type peer struct {
	*client.Client

	info   *mcp.InitializeResult
	events *script.Events
	// progress takes the progress of the call under way.
	progress atomic.Pointer[func(float64)]
	// agreed is told when the server has agreed to send notices.
	agreed chan struct{}
	stop   func()
}

func connect(ctx context.Context, t transport.Interface, version string, events *script.Events) (script.Client, error) {
	p := &peer{events: events, agreed: make(chan struct{}, 1), stop: func() {}}
	asks := handler{events}
	p.Client = client.NewClient(t, client.WithElicitationHandler(asks), client.WithSamplingHandler(asks), client.WithProtocolVersion(version))
	p.OnNotification(p.notified)
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	var req mcp.InitializeRequest
	req.Params.ClientInfo = mcp.Implementation{Name: "mcp-go", Version: "1.2.1"}
	info, err := p.Initialize(ctx, req)
	if err != nil {
		return nil, errors.Join(err, p.Client.Close())
	}
	p.info = info
	return p, nil
}

func (p *peer) notified(n mcp.JSONRPCNotification) {
	fields := n.Params.AdditionalFields
	switch n.Method {
	case "notifications/progress":
		value, ok := fields["progress"].(float64)
		if tell := p.progress.Load(); ok && tell != nil {
			(*tell)(value)
		}
	case "notifications/resources/updated":
		if uri, ok := fields["uri"].(string); ok {
			p.events.Updated(uri)
		}
	case "notifications/tools/list_changed":
		p.events.ToolsChanged()
	case "notifications/subscriptions/acknowledged":
		select {
		case p.agreed <- struct{}{}:
		default:
		}
	}
}

// handler answers what the server asks.
type handler struct{ events *script.Events }

// Elicit answers a question to the person.
func (h handler) Elicit(_ context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action:  mcp.ElicitationResponseActionAccept,
		Content: map[string]any{"answer": h.events.Answer(req.Params.Message)},
	}}, nil
}

// CreateMessage answers for the model.
func (h handler) CreateMessage(_ context.Context, req mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	if len(req.Messages) > 0 {
		h.events.Sample(text(req.Messages[0].Content))
	}
	return &mcp.CreateMessageResult{
		SamplingMessage: mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent(script.Said)},
		Model:           script.Model, StopReason: "endTurn",
	}, nil
}

func (p *peer) Version() string { return p.info.ProtocolVersion }
func (p *peer) Server() string  { return p.info.ServerInfo.Name }

func (p *peer) Tools(ctx context.Context) ([]string, error) {
	list, err := p.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Tools {
		names = append(names, list.Tools[i].Name)
	}
	return names, nil
}

func (p *peer) Call(ctx context.Context, tool string, args any, progress func(float64)) (script.Result, error) {
	var req mcp.CallToolRequest
	req.Params.Name = tool
	req.Params.Arguments = args
	if progress != nil {
		req.Params.Meta = &mcp.Meta{ProgressToken: tool}
		p.progress.Store(&progress)
	}
	r, err := p.CallTool(ctx, req)
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
	var req mcp.ReadResourceRequest
	req.Params.URI = uri
	r, err := p.ReadResource(ctx, req)
	if err != nil {
		return "", err
	}
	for _, c := range r.Contents {
		if t, ok := mcp.AsTextResourceContents(c); ok {
			return t.Text, nil
		}
	}
	return "", fmt.Errorf("%s has no text", uri)
}

// Code distinguishes the two codes that matter: the SDK makes errors of its own
// of them.
func (*peer) Code(err error) int64 {
	switch {
	case errors.Is(err, mcp.ErrResourceNotFound):
		return mcp.RESOURCE_NOT_FOUND
	case errors.Is(err, mcp.ErrInvalidParams):
		return mcp.INVALID_PARAMS
	default:
		return 0
	}
}

func (p *peer) Prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	var req mcp.GetPromptRequest
	req.Params.Name = name
	req.Params.Arguments = args
	r, err := p.GetPrompt(ctx, req)
	if err != nil || len(r.Messages) == 0 {
		return "", err
	}
	return text(r.Messages[0].Content), nil
}

func (p *peer) Complete(ctx context.Context, prompt, argument, typed string) ([]string, error) {
	var req mcp.CompleteRequest
	req.Params.Ref = mcp.PromptReference{Type: "ref/prompt", Name: prompt}
	req.Params.Argument = mcp.CompleteArgument{Name: argument, Value: typed}
	r, err := p.Client.Complete(ctx, req)
	if err != nil {
		return nil, err
	}
	return r.Completion.Values, nil
}

// Subscribe listens for changes of the list of tools too, in the stateless era,
// where the SDK listens once for all, until Close.
func (p *peer) Subscribe(ctx context.Context, uri string) (stop func() error, err error) {
	if !mcp.IsModernProtocol(p.Version()) {
		var req mcp.SubscribeRequest
		req.Params.URI = uri
		if err := p.Client.Subscribe(ctx, req); err != nil {
			return nil, err
		}
		return func() error {
			var req mcp.UnsubscribeRequest
			req.Params.URI = uri
			return p.Unsubscribe(ctx, req)
		}, nil
	}
	filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{uri}}
	if p.stop, err = p.ListenAsync(context.WithoutCancel(ctx), filter, nil); err != nil {
		p.stop = func() {}
		return nil, err
	}
	select {
	case <-p.agreed:
		return func() error { return nil }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *peer) Close() error {
	p.stop()
	return p.Client.Close()
}
