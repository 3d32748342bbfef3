package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"unicode"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// PromptOptions are the optional parts of a prompt.
type PromptOptions struct {
	// Title is for people. Default none.
	Title string
	// Icons for people. Default none.
	Icons []mcp.Icon
	// Meta is `_meta` of the definition. Its keys must not be reserved ones.
	Meta mcp.Meta
	// Labels are for Server.Visible. Default none.
	Labels []string
	// Scopes are what a caller must have been granted to get the prompt or
	// complete its arguments; others get NeedScopes. It is listed all the same, so that clients can
	// ask for them; to hide it is Server.Visible's affair. Default none.
	Scopes []string
	// Complete suggests values of arguments, by name. Default: the values of the
	// tag enum, for arguments that have it.
	Complete map[string]Completer
	// CompleteRaw answers completions of the arguments that Complete does not
	// name, for gateways. Its Ref is the prompt as its own server knows it.
	// Default none.
	CompleteRaw RawCompleter
}

// A PromptFeature is a prompt on its way into a server.
type PromptFeature struct {
	p    *prompt
	opts PromptOptions
	// conflict is the error of options that With was given twice.
	conflict error
}

type prompt struct {
	offered
	def      *mcp.Prompt
	complete completers
	kinds    map[string]string    // JSON type of each argument
	enums    map[string]Completer // of arguments with an enum
	get      func(c *Call, arguments mcp.RawValue) (*mcp.GetPromptResult, error)
	raw      func(c *Call, arguments map[string]string) (*mcp.GetPromptResult, error) // in the place of get
}

func (p *prompt) single() Result { return &mcp.ListPromptsResult{Prompts: []mcp.Prompt{*p.def}} }

func (p *prompt) under(s *Server, prefix string) (string, *prompt) {
	def := *p.def
	def.Name = prefix + "_" + def.Name
	return def.Name, &prompt{offered: s.mounted(p, prefix+"_"), def: &def, complete: p.complete, kinds: p.kinds, get: p.get, raw: p.raw}
}

// names are the prompt's arguments.
func (p *prompt) names() []string {
	var out []string
	for _, a := range p.def.Arguments {
		out = append(out, a.Name)
	}
	return out
}

// With sets options and returns the feature. A later call adds to them: the fields that it sets
// replace earlier values. Setting Labels or Scopes to two different values is an error of
// [Server.Add].
func (f *PromptFeature) With(o PromptOptions) *PromptFeature {
	f.conflict = errors.Join(f.conflict, mergeOptions(&f.opts, o))
	return f
}

// Prompt makes a prompt of a function. Args is a struct whose fields are the
// arguments, with the tags of package schema, or mcp.None; what a client sends
// is checked before fn runs, and is data: put it into messages, never into a
// template's code. Out is string for one message of the user,
// mcp.PromptMessage or a slice of them, or *mcp.GetPromptResult. It panics if
// a type cannot be served; [NewPrompt] returns an error.
//
// spec 2026-07-28, server/prompts.
func Prompt[Args, Out any](name, description string, fn func(ctx context.Context, args Args) (Out, error)) *PromptFeature {
	return must(NewPrompt(name, description, fn))
}

// NewPrompt is [Prompt] with an error in the place of a panic.
func NewPrompt[Args, Out any](name, description string, fn func(ctx context.Context, args Args) (Out, error)) (*PromptFeature, error) {
	p, decode, err := typedPrompt(name, description, fn == nil, reflect.TypeFor[Args](), reflect.TypeFor[Out]())
	if err != nil {
		return nil, err
	}
	p.get = func(c *Call, arguments mcp.RawValue) (*mcp.GetPromptResult, error) {
		var args Args
		if err := decode(arguments, &args); err != nil {
			return nil, err
		}
		v, err := fn(c, args)
		if err != nil {
			return nil, err
		}
		return messages(v)
	}
	return &PromptFeature{p: p}, nil
}

// typedPrompt returns a prompt without its function, from the types of its arguments and its messages, and
// what decodes arguments into a pointer and validates them. It is not generic, so it is compiled once and not
// for each prompt.
func typedPrompt(name, description string, noFunction bool, args, out reflect.Type) (*prompt, func(mcp.RawValue, any) error, error) {
	if name == "" {
		return nil, nil, errors.New("prompt: the name is empty")
	}
	if noFunction {
		return nil, nil, fmt.Errorf("prompt %q: %w", name, errNoFunction)
	}
	in, err := schema.For(args, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("prompt %q: arguments: %w", name, err)
	}
	if in.Type() != "object" || args.Kind() == reflect.Map {
		return nil, nil, fmt.Errorf("prompt %q: arguments: type %s does not name them; use a struct, mcp.None for none, or RawPrompt for those known at run time only", name, args)
	}
	p := &prompt{def: &mcp.Prompt{Name: name, Description: description}}
	if err := p.readArguments(in.JSON()); err != nil {
		return nil, nil, fmt.Errorf("prompt %q: arguments: %w", name, err)
	}
	if err := checkMessages(out); err != nil {
		return nil, nil, fmt.Errorf("prompt %q: %w", name, err)
	}
	validate := validatorOf(args)
	return p, func(arguments mcp.RawValue, at any) error {
		err := in.Decode(arguments, at)
		if err == nil && validate != nil {
			err = validate(at)
		}
		if err != nil {
			return mcp.NewError(mcp.CodeInvalidParams, "invalid arguments of prompt %s: %v", name, err)
		}
		return nil
	}, nil
}

// readArguments reads the arguments of a prompt off the schema of their type.
// Those with an enum complete by it.
func (p *prompt) readArguments(raw mcp.RawValue) error {
	var s struct {
		Required   []string     `json:"required"`
		Properties mcp.RawValue `json:"properties"`
	}
	if err := wire.Decode(raw, &s); err != nil {
		return err
	}
	if s.Properties == nil {
		return nil
	}
	o, err := wire.ParseObject(s.Properties, wire.Limits{})
	if err != nil {
		return err
	}
	p.kinds, p.enums = make(map[string]string), make(map[string]Completer)
	for name, def := range o.All() {
		var d struct {
			Type        string   `json:"type"`
			Title       string   `json:"title"`
			Description string   `json:"description"`
			Enum        []any    `json:"enum"`
			OneOf       []choice `json:"oneOf"`
		}
		if err := wire.Decode(def, &d); err != nil {
			return fmt.Errorf("argument %q: %w", name, err)
		}
		switch d.Type {
		case "string", "integer", "number", "boolean":
		default:
			return fmt.Errorf("argument %q: arguments of prompts are strings, numbers or booleans, not %q", name, d.Type)
		}
		for _, c := range d.OneOf {
			d.Enum = append(d.Enum, c.Const)
		}
		if len(d.Enum) > 0 {
			p.enums[name] = choicesOf(d.Enum)
		}
		p.kinds[name] = d.Type
		p.def.Arguments = append(p.def.Arguments, mcp.PromptArgument{
			Name: name, Title: d.Title, Description: d.Description, Required: slices.Contains(s.Required, name),
		})
	}
	return nil
}

// A choice is a value of an enum with a title.
type choice struct {
	Const any `json:"const"`
}

// choicesOf completes by the values of an enum.
func choicesOf(enum []any) Completer {
	var values []string
	for _, v := range enum {
		values = append(values, fmt.Sprint(v))
	}
	return Choices(values...)
}

func (f *PromptFeature) check() error {
	for name := range f.opts.Complete {
		if _, ok := f.p.kinds[name]; !ok {
			return fmt.Errorf("prompt %s: completion for %q, which is no argument of it", f.p.def.Name, name)
		}
	}
	return checkOptions("prompt "+f.p.def.Name, f.conflict, f.opts.Meta, f.opts.Scopes)
}

func (f *PromptFeature) register(s *Server, to *addition) error {
	o, def := f.opts, *f.p.def
	// A copy: the same feature may be added again, or to another server.
	p := &prompt{def: &def, kinds: f.p.kinds, get: f.p.get, raw: f.p.raw}
	d := p.def
	d.Title, d.Icons, d.Meta = cmp.Or(o.Title, d.Title), firstSlice(o.Icons, d.Icons), firstMeta(o.Meta, d.Meta)
	p.offered, p.complete = s.own(KindPrompt, d.Name, o.Labels, o.Scopes), completers{maps.Clone(f.p.enums), o.CompleteRaw}
	if p.complete.byName == nil {
		p.complete.byName = o.Complete
	} else {
		maps.Copy(p.complete.byName, o.Complete)
	}
	s.warnIcons("prompt "+d.Name, d.Icons)
	return added(&to.prompts, "prompt", d.Name, p)
}

// getPrompt serves prompts/get.
//
// spec 2026-07-28, server/prompts: an unknown prompt and invalid arguments are
// -32602.
func (c *Call) getPrompt(params *mcp.GetPromptParams) (Result, error) {
	p, ok := c.srv.allPrompts().byKey[params.Name]
	if !ok || !c.seesOffered(p) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "unknown prompt %q", clip(params.Name))
	}
	if err := c.granted(p.item.Scopes); err != nil {
		return nil, err
	}
	arguments, err := c.promptJSON(p, params.Arguments)
	if err != nil {
		return nil, err
	}
	res, err := c.within(p.at, func(c *Call) (Result, error) {
		if p.raw != nil {
			return p.raw(c, params.Arguments)
		}
		return p.get(c, arguments)
	})
	if err != nil {
		return nil, err
	}
	out, ok := res.(*mcp.GetPromptResult)
	if !ok || c.needsInput() {
		return res, nil
	}
	for i, m := range out.Messages {
		if err := checkContents([]mcp.Content{m.Content}); err != nil {
			return nil, fmt.Errorf("prompt %s: message %d: %w", p.def.Name, i+1, err)
		}
	}
	if out.Description == "" {
		out.Description = p.def.Description
	}
	return out, nil
}

// promptJSON makes JSON of the strings a client sends as arguments, checked
// for length and control characters (SEC-PROMPT-1).
func (c *Call) promptJSON(p *prompt, arguments map[string]string) (mcp.RawValue, error) {
	raw := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(arguments)) {
		kind, ok := p.kinds[name]
		if !ok {
			return nil, mcp.NewError(mcp.CodeInvalidParams, "unknown argument %q of prompt %s: it takes %q", clip(name), p.def.Name, p.names())
		}
		v := arguments[name]
		if over(len(v), c.srv.limits.MaxArgument) {
			return nil, mcp.NewError(mcp.CodeInvalidParams, "argument %q of prompt %s is longer than %d bytes (Limits.MaxArgument)", name, p.def.Name, c.srv.limits.MaxArgument)
		}
		for _, r := range v {
			if unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
				return nil, mcp.NewError(mcp.CodeInvalidParams, "argument %q of prompt %s holds the control character %U", name, p.def.Name, r)
			}
		}
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(wire.AppendString(raw, name), ':')
		if kind != "string" && wire.Valid([]byte(v), wire.Limits{}) == nil {
			raw = append(raw, v...)
			continue
		}
		raw = wire.AppendString(raw, v)
	}
	return append(raw, '}'), nil
}

// checkMessages refuses types that do not become messages.
func checkMessages(t reflect.Type) error {
	switch t {
	case reflect.TypeFor[string](), reflect.TypeFor[mcp.PromptMessage](), reflect.TypeFor[[]mcp.PromptMessage](),
		reflect.TypeFor[*mcp.GetPromptResult](), reflect.TypeFor[mcp.GetPromptResult]():
		return nil
	}
	return fmt.Errorf("a %v is no message; use string, mcp.PromptMessage, a slice of those, or *mcp.GetPromptResult", t)
}

// messages returns the result that a value becomes.
func messages(v any) (*mcp.GetPromptResult, error) {
	switch v := v.(type) {
	case string:
		m := mcp.PromptMessage{Role: mcp.RoleUser, Content: mcp.Text(v)}
		return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{m}}, nil
	case mcp.PromptMessage:
		return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{v}}, nil
	case []mcp.PromptMessage:
		return &mcp.GetPromptResult{Messages: v}, nil
	case mcp.GetPromptResult:
		return &v, nil
	case *mcp.GetPromptResult:
		return ownPrompt(v)
	}
	return nil, fmt.Errorf("messages of type %T", v) // checkMessages refuses it
}

// ownPrompt is a copy of an author's result, which may be shared between calls.
func ownPrompt(v *mcp.GetPromptResult) (*mcp.GetPromptResult, error) {
	if v == nil {
		return nil, errors.New("the prompt returned no result")
	}
	own := *v
	return &own, nil
}
