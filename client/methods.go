package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// CallTool calls a tool with arguments that encode to a JSON object (a
// struct, a map, raw JSON), or nil. A failure of the tool is in the result,
// not in the error. If the structured content does not fit the output schema
// that the tool was listed with, CallTool removes it, adds its text to the
// content, and reports a [Problem].
func (c *Client) CallTool(ctx context.Context, name string, args any, o *CallOptions) (*mcp.CallToolResult, error) {
	r, err := c.callTool(ctx, name, args, o)
	if err != nil {
		return nil, err
	}
	wrong := c.tools.check(name, r)
	if wrong == nil {
		return r, nil
	}
	c.Report(ctx, &Problem{Method: mcp.MethodToolsCall, Subject: name, Place: "/structuredContent", Effect: Changed, Why: wrong.Error()})
	if untold := r.Untold(); untold != nil {
		r.Content = append(r.Content, mcp.Text(noteText(untold, wrong)))
	}
	r.StructuredContent = nil
	return r, nil
}

// callTool is CallTool without a look at the output schema.
func (c *Client) callTool(ctx context.Context, name string, args any, o *CallOptions) (*mcp.CallToolResult, error) {
	raw, err := arguments(args)
	if err != nil {
		return nil, fmt.Errorf("arguments of tool %q: %w", name, err)
	}
	k, err := c.newCall(mcp.MethodToolsCall, name, nil, o)
	if err != nil {
		return nil, err
	}
	k.args, k.params = raw, (*toolParams)(k)
	var r mcp.CallToolResult
	if err := k.do(ctx, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// check compares a result with what the tool promised (spec 2026-07-28,
// server/tools: clients SHOULD validate structured results against the
// schema).
func (b *toolCache) check(name string, r *mcp.CallToolResult) error {
	e := b.lookup(name)
	if e == nil || e.out == nil || r.IsError {
		return nil
	}
	if r.StructuredContent == nil {
		return fmt.Errorf("%w: the tool promises structured content and gave none", ErrOutput)
	}
	if err := e.out.Check(r.StructuredContent); err != nil {
		return fmt.Errorf("%w: %w", ErrOutput, err)
	}
	return nil
}

// Call calls a tool and decodes its result into Out: the structured content,
// or the text if Out is string. [mcp.None] takes nothing, [mcp.CallToolResult],
// or a pointer to it, everything, [mcp.Contents] the content, and [mcp.Content]
// or one of its types the only block of it. A tool that gives no structured
// content is taken to give JSON as text. The error is a [ToolError] if the tool
// failed, and an [ErrOutput] if it gave something else than Out takes.
func Call[Out any](ctx context.Context, c *Client, tool string, args any, o ...*CallOptions) (Out, error) {
	var opts *CallOptions
	if len(o) > 0 {
		opts = o[0]
	}
	var none Out
	r, err := c.callTool(ctx, tool, args, opts)
	if err != nil {
		return none, err
	}
	if err := c.tools.check(tool, r); err != nil {
		return none, fmt.Errorf("%s %q: %w", mcp.MethodToolsCall, tool, err)
	}
	return decodeOutput[Out](tool, r)
}

// DecodeResult decodes a result of tools/call that did not come as the answer of the
// request, such as the one of a task, into Out, as [Call] does: what breaks an output
// schema that the tool was listed with is an [ErrOutput], what is no result of a tool
// an [ErrMalformed]. It sends nothing.
func DecodeResult[Out any](c *Client, tool string, raw mcp.RawValue) (Out, error) {
	var none Out
	k, err := c.newCall(mcp.MethodToolsCall, tool, nil, nil)
	if err != nil {
		return none, err
	}
	o, err := wire.ParseObject(raw, wire.Limits{})
	if err != nil {
		return none, k.wrap(fmt.Errorf("%w: %w", ErrMalformed, err))
	}
	switch typ, err := resultType(o); {
	case err != nil:
		return none, k.wrap(err)
	case typ != mcp.ResultComplete:
		return none, k.wrap(fmt.Errorf("%w: %.64q", ErrResultType, typ))
	}
	var r mcp.CallToolResult
	if err := k.decodeResult(c.known(), o, &r); err != nil {
		return none, err
	}
	if err := c.tools.check(tool, &r); err != nil {
		return none, k.wrap(err)
	}
	return decodeOutput[Out](tool, &r)
}

// Decode decodes a result of a method of the core that [Client.Request] returned as raw
// JSON, in the negotiated revision. It leaves out or replaces wrong parts, and reports each as a
// [Problem], as for any other request. The error is an [ErrMalformed]. It sends nothing.
func (c *Client) Decode(ctx context.Context, method string, raw mcp.RawValue, out mcp.Result) error {
	s := c.known()
	if _, err := c.readResult(ctx, s.shape, method, "", raw, out); err != nil {
		return fmt.Errorf("%s: %w: %w", method, ErrMalformed, err)
	}
	return nil
}

// decodeOutput decodes what a tool gave.
func decodeOutput[Out any](tool string, r *mcp.CallToolResult) (Out, error) {
	var out Out
	if r.IsError {
		return out, &ToolError{Tool: tool, Result: r}
	}
	switch v := any(&out).(type) {
	case *string:
		if !hasText(r) {
			return out, fmt.Errorf("tool %q: %w: there is no text in it, but %s", tool, ErrOutput, parts(r))
		}
		*v = textOf(r)
		return out, nil
	case *mcp.None:
		return out, nil
	case *mcp.CallToolResult:
		*v = *r
		return out, nil
	case **mcp.CallToolResult:
		*v = r
		return out, nil
	case *mcp.Contents:
		*v = r.Content
		return out, nil
	case *[]mcp.Content:
		*v = r.Content
		return out, nil
	}
	if block, ok, asked := onlyBlock[Out](r); ok {
		return block, nil
	} else if asked {
		return out, fmt.Errorf("tool %q: %w: it is not one %s, but %s; mcp.CallToolResult takes everything", tool, ErrOutput, strings.Trim(fmt.Sprintf("%T", &out), "*"), parts(r))
	}
	raw := r.StructuredContent
	if raw == nil {
		raw = wire.RawValue(textOf(r))
		if err := wire.Valid(raw, wire.Limits{}); err != nil {
			return out, fmt.Errorf("tool %q: %w: it has neither structured content nor JSON as text, but %s", tool, ErrOutput, parts(r))
		}
	}
	if err := wire.Decode(raw, &out); err != nil {
		return out, fmt.Errorf("tool %q: %w: %w", tool, ErrOutput, err)
	}
	return out, nil
}

// onlyBlock returns the content of a result that has one block, if that is an
// Out; asked says that Out is a type of content.
func onlyBlock[Out any](r *mcp.CallToolResult) (block Out, ok, asked bool) {
	_, asked = any(&block).(*mcp.Content)
	for _, kind := range []any{block, &block} { // a pointer to a type of content, or the type
		if _, is := kind.(mcp.Content); is {
			asked = true
		}
	}
	if !asked || len(r.Content) != 1 {
		return block, false, asked
	}
	if only, same := any(r.Content[0]).(*Out); same {
		return *only, true, true
	}
	block, ok = any(r.Content[0]).(Out)
	return block, ok, true
}

// hasText reports whether there is text in a result, if only an empty one.
func hasText(r *mcp.CallToolResult) bool {
	return slices.ContainsFunc(r.Content, func(c mcp.Content) bool {
		_, ok := c.(*mcp.TextContent)
		return ok
	})
}

// maxParts is how many parts of a result an error names.
const maxParts = 8

// parts says what a result consists of.
func parts(r *mcp.CallToolResult) string {
	var list []string
	for _, content := range r.Content[:min(len(r.Content), maxParts)] {
		list = append(list, strings.TrimPrefix(fmt.Sprintf("%T", content), "*"))
	}
	if len(r.Content) > maxParts {
		list = append(list, "more")
	}
	if r.StructuredContent != nil {
		list = append(list, "structured content")
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// textOf joins the text of a result.
func textOf(r *mcp.CallToolResult) string {
	if len(r.Content) == 1 {
		if t, ok := r.Content[0].(*mcp.TextContent); ok {
			return t.Text
		}
	}
	var parts []string
	for _, content := range r.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// usualArguments is set aside for the arguments of a tool.
const usualArguments = 128

// arguments encodes what a tool is called with, without line breaks.
func arguments(args any) (wire.RawValue, error) {
	if raw, ok := args.(wire.RawValue); args == nil || ok && len(raw) == 0 {
		return nil, nil
	}
	raw, err := wire.Append(make([]byte, 0, usualArguments), args)
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 || raw[0] != '{' {
		_, err = wire.ParseObject(raw, wire.Limits{}) // says what it is
	} else {
		err = wire.Valid(raw, wire.Limits{})
	}
	if err != nil {
		return nil, err
	}
	return raw, nil
}

// ReadResource reads a resource. What does not exist is an error.
func (c *Client) ReadResource(ctx context.Context, uri string, o *CallOptions) (*mcp.ReadResourceResult, error) {
	return request[mcp.ReadResourceResult](ctx, c, mcp.MethodResourcesRead, uri, &mcp.ReadResourceParams{URI: uri}, o)
}

// GetPrompt gets the messages of a prompt.
func (c *Client) GetPrompt(ctx context.Context, name string, args map[string]string, o *CallOptions) (*mcp.GetPromptResult, error) {
	return request[mcp.GetPromptResult](ctx, c, mcp.MethodPromptsGet, name, &mcp.GetPromptParams{Name: name, Arguments: args}, o)
}

// Complete asks for values of an argument of a prompt or resource template.
// The params are not written to.
func (c *Client) Complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.Completion, error) {
	if p == nil {
		return nil, errors.New("client: Complete: nil params")
	}
	clean := *p
	clean.RequestBase = mcp.RequestBase{}
	r, err := request[mcp.CompleteResult](ctx, c, mcp.MethodComplete, "", &clean, nil)
	if err != nil {
		return nil, err
	}
	if n := len(r.Completion.Values); n > mcp.MaxCompletions {
		c.log.Warn("the server gave more completions than it may", "values", n)
		r.Completion.Values = r.Completion.Values[:mcp.MaxCompletions]
		r.Completion.HasMore = true
	}
	return &r.Completion, nil
}

// Ping asks whether the server is there: with ping, or in revisions without
// it with server/discover.
func (c *Client) Ping(ctx context.Context) error {
	method := mcp.MethodPing
	if !c.session().facts.Has(method) {
		method = mcp.MethodDiscover
	}
	k, err := c.newCall(method, "", nil, &CallOptions{NoCache: true})
	if err != nil {
		return err
	}
	return k.do(ctx, nil)
}

// SetLogLevel says from which level on the server should send logs.
func (c *Client) SetLogLevel(ctx context.Context, level mcp.LogLevel) error {
	if !level.Valid() {
		return fmt.Errorf("set log level: %.32q is no level", string(level))
	}
	if err := c.offers(ctx, mcp.CapLogging); err != nil {
		return fmt.Errorf("set log level: %w", err)
	}
	return c.session().era.setLevel(ctx, c, level)
}

// RootsChanged tells the server that the roots have changed, in revisions that
// know of it; in others, where servers ask each time, it does nothing.
func (c *Client) RootsChanged(ctx context.Context) error {
	if c.opts.OnRoots == nil {
		return fmt.Errorf("roots changed: %w: this client has no OnRoots", ErrNotCapable)
	}
	if !c.session().facts.Has(mcp.NotifyRootsListChanged) {
		return nil
	}
	return c.Notify(ctx, mcp.NotifyRootsListChanged, nil)
}

// request is one call whose result is an R.
func request[R any](ctx context.Context, c *Client, method, target string, params any, o *CallOptions) (*R, error) {
	k, err := c.newCall(method, target, params, o)
	if err != nil {
		return nil, err
	}
	var r R
	if err := k.do(ctx, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// Request sends a request of any method, for extensions. Params encode to an
// object, or are nil; they are not written to. The result is decoded into
// result; a *[mcp.RawValue] takes it as it came, nil takes nothing. In the
// stateless era the protocol's members of _meta are added, and methods of the
// core are driven as usual; params that carry inputResponses or requestState
// already begin there. Those of Options.Extensions are driven as these say; see
// [CallMethod]. Of any other nothing is known: the server need not have declared
// it, and over HTTP no Mcp-Name is sent.
func (c *Client) Request(ctx context.Context, method string, params, result any, o *CallOptions) error {
	k, err := c.newCall(method, "", nil, o)
	if err != nil {
		return err
	}
	if err := k.take(params); err != nil {
		return fmt.Errorf("%s: params: %w", method, err)
	}
	return k.do(ctx, result)
}

// take splits params into what the protocol deals with and the rest.
func (k *call) take(params any) error {
	if params == nil {
		return nil
	}
	raw, err := wire.Marshal(params)
	if err != nil {
		return err
	}
	o, err := wire.ParseObject(raw, wire.Limits{})
	if err != nil {
		return err
	}
	asks := k.row != nil && k.row.Asks
	rest := []byte{'{'}
	for name, value := range o.All() {
		switch {
		case name == "_meta":
			err = k.takeMeta(value)
		case name == "inputResponses" && asks:
			err = wire.Decode(value, &k.round().responses)
		case name == "requestState" && asks:
			err = wire.Decode(value, &k.round().state)
		default:
			rest = append(appendMember(rest, 1, name), value...)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	k.text = append(rest, '}')
	k.params = k.text
	if name := k.targetMember(); name != "" {
		if value, ok := o.Member(name); ok {
			_ = wire.Decode(value, &k.target) // the server says what is wrong with it
		}
		k.args, _ = o.Member("arguments")
	}
	return nil
}

// targetMember is the member of params that names what is asked for, or "".
func (k *call) targetMember() string {
	if k.row != nil {
		return k.row.Target
	}
	if own := k.ofExtension(); own != nil {
		return own.Target
	}
	return ""
}

// round returns what the caller answered by itself.
func (k *call) round() *round {
	if k.first == nil {
		k.first = &round{}
	}
	return k.first
}

// takeMeta adds the caller's members of _meta. Keys of the core are refused.
func (k *call) takeMeta(raw wire.RawValue) error {
	o, err := wire.ParseObject(raw, wire.Limits{})
	if err != nil {
		return err
	}
	meta := make(map[string]mcp.RawValue, o.Len()+len(k.opts.Meta))
	for name, value := range o.All() {
		if err := mcp.ValidMetaKey(name); err != nil {
			return err
		}
		switch name {
		case mcp.MetaProgressToken, mcp.MetaProtocolVersion, mcp.MetaClientInfo, mcp.MetaClientCapabilities,
			mcp.MetaLogLevel, mcp.MetaSubscriptionID, mcp.MetaTraceParent, mcp.MetaTraceState, mcp.MetaBaggage:
			return fmt.Errorf("key %q is set by the client itself", name)
		}
		meta[name] = value
	}
	for name, value := range k.opts.Meta {
		meta[name] = value
	}
	k.opts.Meta = meta
	return nil
}

// Notify sends a notification of any method, for extensions. Params encode to
// an object, or are nil.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	cn, err := c.live(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	s := cn.session()
	row, known := mcp.Lookup(method)
	if known && (!s.facts.Has(method) || row.From == mcp.FromServer || !c.caps.Has(row.Capability)) {
		return fmt.Errorf("%s: %w", method, ErrNotCapable)
	}
	m := &jsonrpc.Outgoing{Method: method}
	if params != nil {
		down, err := s.shape.DownParams(method, params)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		m.Params = jsonrpc.JSON(down)
	}
	var route transport.Route
	if cn.link.Traits().Routes {
		route = s.era.route(&call{c: c, method: method})
	}
	if err := cn.link.Post(ctx, m, route); err != nil {
		if ctx.Err() == nil && errors.Is(err, transport.ErrClosed) {
			cn.unreached(err)
		}
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}
