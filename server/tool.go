package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// ToolOptions are the optional parts of a tool.
type ToolOptions struct {
	// Title is for people. Default none.
	Title string
	// Annotations are hints, which hosts must not trust. Default none.
	Annotations *mcp.ToolAnnotations
	// Icons for people. Default none.
	Icons []mcp.Icon
	// Meta is `_meta` of the definition. Its keys must not be reserved ones.
	Meta mcp.Meta
	// Labels are for Server.Visible. Default none.
	Labels []string
	// Scopes are what a caller must have been granted to call the tool;
	// others get NeedScopes. It is listed all the same, so that clients can
	// ask for them; to hide it is Server.Visible's affair. Default none.
	Scopes []string
	// Variant returns the definition that the caller of a list is shown, made of
	// def, the one that everybody else sees: a shorter description, an argument
	// less. Its name is that of def, whatever it says. Calls are checked against
	// the schema of the tool itself, so a variant may ask for less and no more.
	// It must be quick, and is called by many goroutines. Lists with such a tool
	// are never shared between callers. Default: all see the same.
	Variant func(ctx context.Context, def mcp.Tool) mcp.Tool
	// Rate is the most calls per second of the tool by each caller, with a
	// burst of ten seconds' worth; [Unlimited] is none. As with Limits.ToolRate
	// it is ten times as high for the anonymous callers of one address, and
	// does not hold for principal.Local. Default Limits.ToolRate.
	Rate float64
	// Timeout is the most time that a call may take, with progress or without;
	// time in which a person is asked does not count. [Unlimited] is none.
	// Default: Limits.CallTimeout and Limits.MaxCallTime.
	Timeout time.Duration
}

// A ToolFeature is a tool on its way into a server.
type ToolFeature struct {
	t    *tool
	opts ToolOptions
}

// tool is a tool as it is served. All that does not depend on a call is made
// at registration.
type tool struct {
	offered
	def  *mcp.Tool
	in   *schema.Compiled
	out  *schema.Compiled // nil without structured output
	row  *row             // of tools/call with the tool's own limits; nil without
	call func(c *Call, arguments mcp.RawValue) (*mcp.CallToolResult, error)
	// variant is the definition for one caller; nil: the same for all.
	variant func(ctx context.Context, def mcp.Tool) mcp.Tool
}

func (t *tool) alone() Result { return &mcp.ListToolsResult{Tools: []mcp.Tool{*t.def}} }

// forCaller is alone as the caller sees it, or nil if all see the same.
func (t *tool) forCaller(c *Call) Result {
	if t.variant == nil {
		return nil
	}
	def := t.variant(c, *t.def)
	def.Name = t.def.Name
	return &mcp.ListToolsResult{Tools: []mcp.Tool{def}}
}

func (t *tool) under(s *Server, prefix string) (string, *tool) {
	def := *t.def
	def.Name = prefix + "_" + def.Name
	return def.Name, &tool{offered: s.mounted(t, prefix+"_"), def: &def, in: t.in, out: t.out, row: t.row, call: t.call, variant: t.variant}
}

// With sets options and returns the feature.
func (f *ToolFeature) With(o ToolOptions) *ToolFeature {
	f.opts = o
	return f
}

// Tool makes a tool of a function. Its input schema is made of In, a struct
// with the tags of package schema; arguments are checked against it before fn
// runs. Out decides the shape of the result:
//
//   - string: text; mcp.Content, []mcp.Content: content; mcp.None: nothing;
//   - *mcp.CallToolResult: all in the author's hands;
//   - mcp.With[T]: structured output of T together with content;
//   - anything else: structured output, with an output schema made of Out,
//     and the same JSON as text.
//
// An error made by package mcp is shown to the model as a failed call, any
// other becomes "internal error" with a reference. Tool panics if the name or
// a type cannot be served: that is a mistake in the program. [NewTool] returns an
// error instead.
//
// spec 2026-07-28, server/tools.
func Tool[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error)) *ToolFeature {
	return must(NewTool(name, description, fn))
}

// NewTool is [Tool] for tools that are made while a program runs: it returns an
// error where Tool panics.
func NewTool[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error)) (*ToolFeature, error) {
	if err := checkToolName(name); err != nil {
		return nil, err
	}
	in, err := schema.For(reflect.TypeFor[In](), nil)
	if err != nil {
		return nil, fmt.Errorf("tool %q: arguments: %w", name, err)
	}
	conv, out, err := outputOf[Out]()
	if err != nil {
		return nil, fmt.Errorf("tool %q: result: %w", name, err)
	}
	t := &tool{def: &mcp.Tool{Name: name, Description: description, InputSchema: in.JSON()}, in: in, out: out}
	if out != nil {
		t.def.OutputSchema = out.JSON()
	}
	t.call = func(c *Call, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
		run := new(struct { // in one piece of memory
			in  In
			out textResult
		})
		if err := in.Decode(arguments, &run.in); err != nil {
			return nil, &argumentError{err}
		}
		res, err := fn(c, run.in)
		if err != nil {
			return nil, err
		}
		run.in = *new(In) // who keeps the result does not keep the arguments
		return conv(res, &run.out)
	}
	return &ToolFeature{t: t}, nil
}

// toolName is what the specification allows (2025-11-25, server/tools).
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

func checkToolName(name string) error {
	if !toolName.MatchString(name) {
		return fmt.Errorf("tool name %q: use 1 to 128 letters, digits, _, - and . (LegalName makes such a name of any text)", clip(name))
	}
	return nil
}

func (f *ToolFeature) check() error {
	return checkOptions("tool "+f.t.def.Name, f.opts.Meta, f.opts.Scopes)
}

func (f *ToolFeature) register(s *Server) {
	o, def := f.opts, *f.t.def
	// A copy: the same feature may be added again, or to another server.
	t := &tool{def: &def, in: f.t.in, out: f.t.out, row: s.toolRow(o), call: f.t.call}
	d := t.def
	d.Title, d.Annotations = cmp.Or(o.Title, d.Title), cmp.Or(o.Annotations, d.Annotations)
	d.Icons, d.Meta = firstSlice(o.Icons, d.Icons), firstMeta(o.Meta, d.Meta)
	t.offered = s.own(KindTool, d.Name, o.Labels, o.Scopes)
	if o.Variant != nil {
		t.variant = o.Variant
		s.varies.Store(true)
	}
	s.warnIcons("tool "+d.Name, d.Icons)
	if secret := t.in.Secretish(); len(secret) > 0 {
		s.log.Warn("tool takes what looks like secrets as arguments, which models and logs will see", "tool", d.Name, "arguments", secret)
	}
	s.tools.put(map[string]*tool{d.Name: t})
	s.hub.listChanged(KindTool)
}

// argumentError says that the arguments do not fit the input schema.
type argumentError struct{ err error }

func (e *argumentError) Error() string { return "invalid arguments: " + e.err.Error() }
func (e *argumentError) Unwrap() error { return e.err }

// callTool serves tools/call.
//
// spec 2026-07-28, server/tools: errors of the tool are results with isError,
// errors of the protocol (an unknown tool) are JSON-RPC errors.
func (c *Call) callTool(p *mcp.CallToolParams) (Result, error) {
	t, ok := c.srv.allTools().byKey[p.Name]
	if !ok || !c.seesOffered(t) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "unknown tool %q", clip(p.Name))
	}
	if err := c.granted(t.item.Scopes); err != nil {
		return nil, err
	}
	arguments := p.Arguments
	if arguments == nil {
		arguments = mcp.RawValue("{}")
	}
	res, err := c.runTool(t, arguments)
	if err != nil {
		return c.toolError(err)
	}
	out, ok := res.(*mcp.CallToolResult)
	if !ok || out == nil {
		return res, nil // middleware or an extension answered in its own way
	}
	if t.out != nil && !out.IsError && !c.waits() {
		if err := t.out.Check(out.StructuredContent); err != nil {
			return c.toolError(fmt.Errorf("tool %s: structured output does not fit its schema: %w", p.Name, err))
		}
	}
	if out.Content == nil {
		out.Content = mcp.Contents{}
	}
	return out, nil
}

// runTool runs a tool, inside the middleware of its own server if it is mounted.
func (c *Call) runTool(t *tool, arguments mcp.RawValue) (Result, error) {
	if len(t.at) == 1 {
		return t.call(c, arguments)
	}
	return c.within(t.at, func(c *Call) (Result, error) { return t.call(c, arguments) })
}

// decodeCallTool decodes the parameters of tools/call, the request that is sent
// most, off the index of the message, without copying the arguments.
func decodeCallTool(c *Call, in *jsonrpc.Incoming) (any, *mcp.RequestMeta, error) {
	p := &c.tool
	for i := range in.Params.Len() {
		name, raw := in.Params.At(i)
		var err error
		switch string(name) {
		case "name":
			err = c.decodeToolName(p, raw)
		case "arguments":
			switch {
			case raw[0] == '{':
				p.Arguments = raw
			case string(raw) != "null": // which is as good as absent (ruling 33)
				err = at("/arguments", errors.New("expected an object"))
			}
		case "_meta":
			err = at("/_meta", c.decodeMeta(raw, &p.Meta))
		case "inputResponses":
			err = at("/inputResponses", wire.Decode(raw, &p.InputResponses))
		case "requestState":
			err = at("/requestState", wire.Decode(raw, &p.RequestState))
		default:
			err = wire.CheckName(name, "name", "arguments", "_meta", "inputResponses", "requestState")
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return p, &p.Meta, nil
}

func (c *Call) decodeToolName(p *mcp.CallToolParams, raw wire.RawValue) error {
	if raw[0] != '"' {
		return at("/name", errors.New("expected a string"))
	}
	// A name that is known need not be copied; none of them needs escapes.
	if t, ok := c.srv.allTools().byKey[string(raw[1:len(raw)-1])]; ok {
		p.Name = t.def.Name
	} else {
		p.Name = wire.Text(raw)
	}
	return nil
}

// at says where in the params an error is, if there is one.
func at(pointer string, err error) error {
	if err == nil {
		return nil
	}
	we, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return &wire.Error{Pointer: pointer, Offset: -1, Reason: err.Error()}
	}
	own := *we
	own.Pointer = pointer + we.Pointer
	return &own
}

// toolError decides between a failed call, which the model sees, and a
// protocol error.
func (c *Call) toolError(err error) (Result, error) {
	var (
		args  *argumentError
		coded *mcp.Error
		nc    *NotCapableError
	)
	switch {
	case c.waits():
		return nil, err // it is discarded
	case errors.As(err, &args):
		if !c.facts.InputErrorsAreResults {
			return nil, mcp.NewError(mcp.CodeInvalidParams, "%v", args)
		}
		return failed(args.Error()), nil
	case errors.As(err, &nc):
		if !c.facts.Handshake {
			return nil, err
		}
		return failed(nc.Error()), nil
	case errors.As(err, &coded):
		if coded.Code != 0 {
			return nil, err
		}
		return failed(coded.Error()), nil
	case isEnd(err) && c.Err() != nil, errors.Is(err, context.Cause(c)) && c.Err() != nil:
		return nil, err
	}
	return failed(c.srv.hide(c, err)), nil
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(text)}, IsError: true}
}

// withContent is mcp.With of any type.
type withContent interface {
	Parts() (value any, content []mcp.Content)
	ValueType() reflect.Type
}

// outputOf says how results of type Out become tool results, and their schema.
// The function is given memory for a result with one text.
func outputOf[Out any]() (func(Out, *textResult) (*mcp.CallToolResult, error), *schema.Compiled, error) {
	t := reflect.TypeFor[Out]()
	if w, ok := reflect.New(t).Elem().Interface().(withContent); ok {
		out, err := schema.For(w.ValueType(), &schema.Options{Output: true})
		return func(v Out, r *textResult) (*mcp.CallToolResult, error) { return r.structured(any(v).(withContent)) }, out, err
	}
	switch t {
	case reflect.TypeFor[string]():
		return func(v Out, r *textResult) (*mcp.CallToolResult, error) { return r.of(any(v).(string)), nil }, nil, nil
	case reflect.TypeFor[mcp.Content](), reflect.TypeFor[[]mcp.Content](),
		reflect.TypeFor[mcp.Contents](), reflect.TypeFor[mcp.None](), reflect.TypeFor[*mcp.CallToolResult]():
		return func(v Out, _ *textResult) (*mcp.CallToolResult, error) { return plain(any(v)) }, nil, nil
	}
	if t.Implements(reflect.TypeFor[mcp.Content]()) {
		return func(v Out, _ *textResult) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: mcp.Contents{any(v).(mcp.Content)}}, nil
		}, nil, nil
	}
	out, err := schema.For(t, &schema.Options{Output: true})
	return func(v Out, r *textResult) (*mcp.CallToolResult, error) { return r.json(v) }, out, err
}

// plain makes a result without structured content.
func plain(v any) (*mcp.CallToolResult, error) {
	switch v := v.(type) {
	case []mcp.Content:
		return &mcp.CallToolResult{Content: v}, nil
	case mcp.Contents:
		return &mcp.CallToolResult{Content: v}, nil
	case mcp.None:
		return &mcp.CallToolResult{Content: mcp.Contents{}}, nil
	case *mcp.CallToolResult:
		if v == nil {
			return nil, errors.New("the tool returned no result")
		}
		own := *v // the author's value may be shared between calls
		return &own, nil
	case mcp.Content:
		return &mcp.CallToolResult{Content: mcp.Contents{v}}, nil
	}
	return nil, errors.New("the tool returned no content")
}

// A textResult is the memory of a result with one text.
type textResult struct {
	result  mcp.CallToolResult
	content [1]mcp.Content
	text    mcp.TextContent
}

// of makes the result.
func (r *textResult) of(text string) *mcp.CallToolResult {
	r.text.Text = text
	r.content[0] = &r.text
	r.result.Content = r.content[:]
	return &r.result
}

// json makes a result with structured content, and the same as text for
// clients of revisions that do not know it.
func (r *textResult) json(v any) (*mcp.CallToolResult, error) {
	raw, err := wire.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	res := r.of(string(raw))
	res.StructuredContent = raw
	return res, nil
}

func (r *textResult) structured(w withContent) (*mcp.CallToolResult, error) {
	v, content := w.Parts()
	res, err := r.json(v)
	if err == nil && len(content) > 0 {
		res.Content = content
	}
	return res, err
}
