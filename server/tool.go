package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
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
	// Rate is the most calls per second of the tool by each caller, with a
	// burst of ten seconds' worth; [Unlimited] is none. As with Limits.ToolRate
	// it is ten times as high for the anonymous callers of one address, and
	// does not hold for principal.Local. Default Limits.ToolRate.
	Rate float64
	// Timeout is the most time that a call may take, with progress or without;
	// time in which a person is asked does not count. [Unlimited] is none.
	// Default: Limits.CallTimeout and Limits.MaxCallTime.
	Timeout time.Duration
	// InputSchema is advertised and checked in the place of the schema made of
	// the tool's type, for what is known only at run time: the values of an
	// enum, a better description. What fits it is decoded into the type; members
	// that the type does not know are ignored. Its type is "object". Default:
	// the schema of the type or the definition.
	InputSchema mcp.RawValue
	// OutputSchema is the same for structured results, which are checked
	// against it. Default: the schema of the type or the definition.
	OutputSchema mcp.RawValue
	// Types are the schemas of Go types in the arguments and the result that
	// cannot say theirs themselves; see package schema. Default none.
	Types map[reflect.Type]mcp.RawValue
	// Variant returns the definition that the caller of a list is shown, made of
	// def, the one that all other callers see: a shorter description, an argument
	// less. def is the variant's own, to be changed and returned. The name stays
	// that of the tool, whatever the variant says. Calls are checked against
	// the schema of the tool itself, so a variant may ask for less and no more.
	// A variant that panics, or whose definition cannot be shown, leaves the tool
	// out of the caller's list, and the caller's calls of it are refused: nothing
	// else defines which tool this caller can use. The log has the reason, at most
	// once in ten seconds for each tool. Calls of the tool call Variant too. It
	// must be quick, and is called by many goroutines. Lists with such a tool
	// are never shared between callers. Default: all see the same.
	Variant func(ctx context.Context, def mcp.Tool) mcp.Tool
}

// A ToolFeature is a tool on its way into a server.
type ToolFeature struct {
	t    *tool
	opts ToolOptions
	// conflict is the error of options that With was given twice.
	conflict error
	added    []ToolExtension
}

// tool is a tool as it is served. All that does not depend on a call is made
// at registration.
type tool struct {
	offered
	def  *mcp.Tool
	in   *schema.Compiled
	out  *schema.Compiled // nil without structured output
	row  *row             // of tools/call with the tool's own limits; nil without
	call func(c *Call, in *schema.Compiled, arguments mcp.RawValue) (*mcp.CallToolResult, error)
	// infer makes the schemas anew of the types of a typed tool; nil for others.
	infer func(types map[reflect.Type]mcp.RawValue) (in, out *schema.Compiled, err error)
	// variant is the definition for one caller; nil: the same for all.
	variant func(ctx context.Context, def mcp.Tool) mcp.Tool
	faults  *throttle // lines about the variant; nil without one
	added   []ToolExtension
}

func (t *tool) single() Result { return &mcp.ListToolsResult{Tools: []mcp.Tool{*t.def}} }

// forCaller is alone as the caller sees it, or nil if all see the same.
func (t *tool) forCaller(c *Call) (_ Result, err error) {
	if t.variant == nil {
		return nil, nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the variant panicked: %v\n%s", v, debug.Stack())
		}
	}()
	def := t.variant(c, cloned(t.def))
	def.Name = t.def.Name
	if !bytes.Equal(def.InputSchema, t.def.InputSchema) {
		// One that is not of an object makes clients refuse the whole list.
		o, err := wire.ParseObject(def.InputSchema, wire.Limits{Depth: maxDefinitionDepth})
		if err != nil {
			return nil, fmt.Errorf("the variant's input schema: %w", err)
		}
		if kind, _ := o.Member("type"); string(kind) != `"object"` {
			return nil, errors.New(`the variant's input schema: its type must be "object"`)
		}
	}
	if def.OutputSchema != nil && !bytes.Equal(def.OutputSchema, t.def.OutputSchema) {
		if _, err := wire.ParseObject(def.OutputSchema, wire.Limits{Depth: maxDefinitionDepth}); err != nil {
			return nil, fmt.Errorf("the variant's output schema: %w", err)
		}
	}
	return &mcp.ListToolsResult{Tools: []mcp.Tool{def}}, nil
}

// usable reports whether there is a definition of the tool for the caller. If not,
// the log is told why, now and then.
func (t *tool) usable(c *Call) bool {
	if t.variant == nil {
		return true
	}
	_, err := definition(c, toolsListing, t)
	if err != nil {
		t.reportFault(c, err)
	}
	return err == nil
}

func (t *tool) reportFault(c *Call, err error) {
	if n, _ := t.faults.take(time.Now()); n > 0 {
		c.srv.log.ErrorContext(c, "tool left out: its definition for this caller cannot be shown", "tool", t.def.Name, "err", err, "times", n)
	}
}

// cloned is a definition that shares no memory with def, at the depth where a
// variant changes it.
func cloned(def *mcp.Tool) mcp.Tool {
	own := *def
	own.InputSchema, own.OutputSchema = slices.Clone(def.InputSchema), slices.Clone(def.OutputSchema)
	own.Icons, own.Meta = slices.Clone(def.Icons), maps.Clone(def.Meta)
	if def.Annotations != nil {
		annotations := *def.Annotations
		own.Annotations = &annotations
	}
	return own
}

func (t *tool) under(s *Server, prefix string) (string, *tool) {
	def := *t.def
	copied := *t
	copied.offered, copied.def = s.mounted(t, prefix+"_"), &def
	def.Name = mountedTool(copied.at[len(copied.at)-1].prefix, t.item.Name)
	def.Meta = mountedPages(prefix+"+", def.Meta)
	return def.Name, &copied
}

// With sets options and returns the feature. A later call adds to them: the fields that it sets
// replace earlier values. Setting Labels, Scopes, Rate, Timeout, Variant or one of the schemas to
// two different values is an error of [Server.Add].
func (f *ToolFeature) With(o ToolOptions) *ToolFeature {
	f.conflict = errors.Join(f.conflict, mergeOptions(&f.opts, o))
	return f
}

// Tool makes a tool of a function. Its input schema is made of In, a struct
// with the tags of package schema; arguments are checked against it before fn
// runs, and so is its method Validate() error if it has one, whose error the model
// sees. Out decides the shape of the result:
//
//   - string: text; mcp.Content, *mcp.ImageContent and the like, and slices of
//     them: content; mcp.None: nothing;
//   - *mcp.CallToolResult or mcp.CallToolResult: all in the author's hands;
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
	conv, result := outputOf[Out]()
	t, err := typedTool(name, description, fn == nil, reflect.TypeFor[In](), result)
	if err != nil {
		return nil, err
	}
	validate := validatorOf(reflect.TypeFor[In]())
	t.call = func(c *Call, in *schema.Compiled, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
		run := new(struct { // in one piece of memory
			in  In
			out textResult
		})
		if err := in.Decode(arguments, &run.in); err != nil {
			return nil, &argumentError{err}
		}
		if validate != nil {
			if err := validate(&run.in); err != nil {
				return nil, &argumentError{err}
			}
		}
		res, err := fn(c, run.in)
		if err != nil {
			return nil, err
		}
		run.in = *new(In) // keeping the result does not keep the arguments
		out, err := conv(res, &run.out)
		if errors.Is(err, wire.ErrUTF8) {
			return nil, c.notUTF8(err)
		}
		return out, err
	}
	return &ToolFeature{t: t}, nil
}

// typedTool returns a tool without its function, from the types of its arguments and of its structured
// result, nil for none. It is not generic, so it is compiled once and not for each tool.
func typedTool(name, description string, noFunction bool, arguments, result reflect.Type) (*tool, error) {
	if err := checkToolName(name); err != nil {
		return nil, err
	}
	if noFunction {
		return nil, fmt.Errorf("tool %q: %w", name, errNoFunction)
	}
	if result != nil {
		if err := checkResult(result); err != nil {
			return nil, fmt.Errorf("tool %q: result: %w", name, err)
		}
	}
	t := &tool{def: &mcp.Tool{Name: name, Description: description}}
	t.infer = func(types map[reflect.Type]mcp.RawValue) (in, out *schema.Compiled, err error) {
		if in, err = argumentsOf(arguments, types); err != nil {
			return nil, nil, fmt.Errorf("tool %q: arguments: %w", name, err)
		}
		if result == nil {
			return in, nil, nil
		}
		if out, err = schema.For(result, &schema.Options{Output: true, Types: types}); err != nil {
			return nil, nil, fmt.Errorf("tool %q: result: %w", name, err)
		}
		return in, out, nil
	}
	var err error
	t.in, t.out, err = t.infer(nil)
	return t, err
}

// isToolName reports whether the specification allows a name (2025-11-25, server/tools).
func isToolName(name string) bool {
	const most, letters = 128, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
	return name != "" && len(name) <= most && strings.Trim(name, letters) == ""
}

func checkToolName(name string) error {
	if !isToolName(name) {
		return fmt.Errorf("tool name %q: use 1 to 128 letters, digits, _, - and . (LegalName makes such a name of any text)", clip(name))
	}
	return nil
}

func (f *ToolFeature) check() error {
	if _, _, err := f.schemas(); err != nil {
		return err
	}
	if err := checkOptions("tool "+f.t.def.Name, f.conflict, f.opts.Meta, f.opts.Scopes); err != nil {
		return err
	}
	return f.checkExtensions()
}

// schemas are those of the tool, as its options change them.
func (f *ToolFeature) schemas() (in, out *schema.Compiled, err error) {
	o, name := &f.opts, f.t.def.Name
	in, out = f.t.in, f.t.out
	if len(o.Types) > 0 && f.t.infer != nil {
		if in, out, err = f.t.infer(o.Types); err != nil {
			return nil, nil, err
		}
	}
	if o.InputSchema != nil {
		if in, err = in.Edit(o.InputSchema, nil); err != nil {
			return nil, nil, fmt.Errorf("tool %q: InputSchema: %w", name, err)
		}
	}
	if o.OutputSchema != nil {
		if out == nil && f.t.infer != nil {
			return nil, nil, fmt.Errorf("tool %q: OutputSchema: its result type has no structured output", name)
		}
		if out, err = schema.Compile(o.OutputSchema, &schema.Limits{IgnoreHeaders: true}); err != nil {
			return nil, nil, fmt.Errorf("tool %q: OutputSchema: %w", name, err)
		}
	}
	return in, out, nil
}

func (f *ToolFeature) register(s *Server, to *addition) error {
	o, def := f.opts, *f.t.def
	// A copy: the same feature may be added again, or to another server.
	t := &tool{def: &def, row: s.toolRow(o), call: f.t.call}
	d := t.def
	t.in, t.out, _ = f.schemas() // check has seen the error
	if d.InputSchema = t.in.JSON(); t.out != nil {
		d.OutputSchema = t.out.JSON()
	}
	d.Title, d.Annotations = cmp.Or(o.Title, d.Title), cmp.Or(o.Annotations, d.Annotations)
	d.Icons, d.Meta = firstSlice(o.Icons, d.Icons), firstMeta(o.Meta, d.Meta)
	t.offered = s.own(KindTool, d.Name, o.Labels, o.Scopes)
	if o.Variant != nil {
		t.variant, t.faults = o.Variant, new(throttle)
		s.varies.Store(true)
	}
	f.extend(s, t)
	s.warnIcons("tool "+d.Name, d.Icons)
	if secret := t.in.SecretMembers(); len(secret) > 0 {
		s.log.Warn("tool takes what looks like secrets as arguments, which models and logs will see", "tool", d.Name, "arguments", secret)
	}
	return added(&to.tools, "tool", d.Name, t)
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
	if !t.usable(c) {
		return nil, mcp.NewError(mcp.CodeInternalError, "tool %q has no usable definition for this caller; the log of the server says why", clip(p.Name))
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
	if err := checkContents(out.Content); err != nil && !c.needsInput() {
		return c.toolError(fmt.Errorf("tool %s: %w", p.Name, err))
	}
	if t.out != nil && !out.IsError && !c.needsInput() {
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
		return t.call(c, t.in, arguments)
	}
	return c.within(t.at, func(c *Call) (Result, error) { return t.call(c, t.in, arguments) })
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
// protocol error. What would be hidden is for Options.MapError to see first.
func (c *Call) toolError(err error) (Result, error) {
	res, shown := c.shownByTool(err)
	if shown == nil && res == nil {
		if m := c.mapError(err); m != nil {
			err = m
			res, shown = c.shownByTool(err)
		}
	}
	if shown == nil && res == nil {
		res = failed(c.srv.concealError(c, err))
	}
	return res, shown
}

// shownByTool is toolError for errors that are not hidden; for those it returns
// nothing.
func (c *Call) shownByTool(err error) (Result, error) {
	var (
		args  *argumentError
		coded *mcp.Error
		nc    *NotCapableError
		left  *peerGoneError
	)
	switch {
	case c.needsInput(), errors.As(err, &left):
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
	return nil, nil
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(text)}, IsError: true}
}
