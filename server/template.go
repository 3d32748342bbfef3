package server

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/uritemplate"
)

// TemplateOptions are the optional parts of a resource template.
type TemplateOptions struct {
	// Title and Description are for people and models. Default none.
	Title, Description string
	// MIME is the type of all resources of the template. Default: as for Resource.
	MIME string
	// Annotations are hints for clients. Default none.
	Annotations *mcp.Annotations
	// Icons for people. Default none.
	Icons []mcp.Icon
	// Meta is `_meta` of the definition. Its keys must not be reserved ones.
	Meta mcp.Meta
	// Labels are for Server.Visible. Default none.
	Labels []string
	// Scopes are what a caller must have been granted to complete variables,
	// and to read or watch resources of the template; others get NeedScopes.
	// It is listed all the same, so that clients can ask for them; to hide it
	// is Server.Visible's affair. Default none.
	Scopes []string
	// Cache is the hint for contents. Default: Options.Cache of the server.
	Cache *Cache
	// Complete suggests values of variables, by name. Default none.
	Complete map[string]Completer
	// Watch runs while somebody is subscribed to uri; see ResourceOptions.
	Watch func(ctx context.Context, uri string, changed func())
}

// A TemplateFeature is a resource template on its way into a server.
type TemplateFeature struct {
	t    *template
	opts TemplateOptions
}

type template struct {
	offered
	def      *mcp.ResourceTemplate
	cache    *Cache
	compiled *uritemplate.Template
	complete map[string]Completer
	read     func(c *Call, values uritemplate.Values) (*mcp.ReadResourceResult, error)
	watch    func(ctx context.Context, uri string, changed func())
	prefix   string // what mounting put in front
}

func (t *template) alone() Result {
	return &mcp.ListResourceTemplatesResult{ResourceTemplates: []mcp.ResourceTemplate{*t.def}}
}

func (t *template) under(s *Server, prefix string) (string, *template) {
	def := *t.def
	def.URITemplate = prefix + "+" + def.URITemplate
	return def.URITemplate, &template{
		offered: s.mounted(t, prefix+"+"), def: &def, cache: t.cache, compiled: t.compiled, complete: t.complete,
		read: t.read, watch: t.watch, prefix: prefix + "+" + t.prefix,
	}
}

// With sets options and returns the feature.
func (f *TemplateFeature) With(o TemplateOptions) *TemplateFeature {
	f.opts = o
	return f
}

// Template makes a family of resources of an RFC 6570 URI template. V is a
// struct whose fields have tags such as `uri:"owner"`; its values are decoded
// once and hold no "/", "\", control character or ".." unless the template
// says so with {+name}. Out is as for Resource. It panics if template, V or
// Out cannot be served.
//
// spec 2026-07-28, server/resources: resource templates.
func Template[V, Out any](uriTemplate, name string, fn func(ctx context.Context, v V) (Out, error)) *TemplateFeature {
	compiled, err := uritemplate.Parse(uriTemplate)
	if err != nil {
		panic(fmt.Sprintf("server.Template %q: %v", uriTemplate, err))
	}
	binder, err := uritemplate.Bind(reflect.TypeFor[V](), compiled)
	if err != nil {
		panic(fmt.Sprintf("server.Template %q: %v", uriTemplate, err))
	}
	conv := contentsOf[Out](uriTemplate)
	t := &template{def: &mcp.ResourceTemplate{URITemplate: uriTemplate, Name: name}, compiled: compiled}
	t.read = func(c *Call, values uritemplate.Values) (*mcp.ReadResourceResult, error) {
		var v V
		if err := binder.Decode(values, &v); err != nil {
			return nil, mcp.NewError(mcp.CodeInvalidParams, "the URI does not fit the template %s: %v", uriTemplate, err)
		}
		out, err := fn(c, v)
		if err != nil {
			return nil, err
		}
		return conv(out)
	}
	return &TemplateFeature{t: t}
}

func (f *TemplateFeature) register(s *Server, to *adding) {
	o, def := f.opts, *f.t.def
	// A copy: the same feature may be added again, or to another server.
	t := &template{def: &def, compiled: f.t.compiled, read: f.t.read}
	d := t.def
	d.Title, d.Description, d.MIMEType = o.Title, o.Description, o.MIME
	d.Annotations, d.Icons, d.Meta = o.Annotations, o.Icons, o.Meta
	t.offered, t.cache = s.own(KindTemplate, d.URITemplate, o.Labels, o.Scopes), o.Cache
	t.watch, t.complete = o.Watch, o.Complete
	for name := range o.Complete {
		if !slices.Contains(t.compiled.Variables(), name) {
			panic(fmt.Sprintf("server: template %s: completion for %q, which is no variable of it", d.URITemplate, name))
		}
	}
	mustBeOwnMeta("template "+d.URITemplate, o.Meta)
	mustBeScopes("template "+d.URITemplate, o.Scopes)
	s.warnIcons("template "+d.URITemplate, o.Icons)
	added(&to.templates, "template", d.URITemplate, t)
}

// findTemplate finds the most specific template that a URI matches.
func (c *Call) findTemplate(uri string) (*found, bool) {
	var (
		best   *template
		values uritemplate.Values
	)
	snap := c.srv.allTemplates()
	for _, k := range snap.keys { // sorted, so that equals are decided stably
		t := snap.byKey[k]
		inner, ok := strings.CutPrefix(uri, t.prefix)
		if !ok {
			continue
		}
		v, ok := t.compiled.Match(inner)
		if ok && (best == nil || t.compiled.Specificity() > best.compiled.Specificity()) {
			best, values = t, v
		}
	}
	if best == nil || !c.seesOffered(best) {
		return nil, false
	}
	inner, _ := strings.CutPrefix(uri, best.prefix)
	if !c.seesAt(Item{Kind: KindResource, Name: inner, Labels: best.item.Labels, Scopes: best.item.Scopes}, best.at) {
		return nil, false
	}
	f := &found{mime: best.def.MIMEType, cache: best.cache, scopes: best.item.Scopes, at: best.at}
	f.read = func(c *Call) (*mcp.ReadResourceResult, error) { return best.read(c, values) }
	if best.watch != nil {
		f.watch = func(ctx context.Context, changed func()) { best.watch(ctx, inner, changed) }
	}
	return f, true
}

// A Completer suggests values for an argument of a prompt or a variable of a
// template. value is what has been typed; sofar holds the other arguments, as
// far as they are known. Suggestions must be authorized for the caller
// (SEC-COMP-1); the first 100 are sent.
type Completer func(ctx context.Context, value string, sofar map[string]string) ([]string, error)

// Choices makes a Completer of a fixed list: it suggests those that begin with
// what has been typed.
func Choices(values ...string) Completer {
	return func(_ context.Context, value string, _ map[string]string) ([]string, error) {
		var out []string
		for _, v := range values {
			if strings.HasPrefix(v, value) {
				out = append(out, v)
			}
		}
		return out, nil
	}
}

// complete serves completion/complete.
//
// spec 2026-07-28, server/utilities/completion: at most 100 values.
func (c *Call) complete(p *mcp.CompleteParams) (Result, error) {
	completers, arguments, at, err := c.completers(&p.Ref)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(arguments, p.Argument.Name) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "unknown argument %q: one of %q", clip(p.Argument.Name), arguments)
	}
	if over(len(p.Argument.Value), c.srv.limits.MaxArgument) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "argument %q is longer than %d bytes (Limits.MaxArgument)", p.Argument.Name, c.srv.limits.MaxArgument)
	}
	res := &mcp.CompleteResult{Completion: mcp.Completion{Values: []string{}}}
	complete := completers[p.Argument.Name]
	if complete == nil {
		return res, nil
	}
	var sofar map[string]string
	if p.Context != nil {
		sofar = p.Context.Arguments
	}
	var values []string
	_, err = c.within(at, func() (Result, error) {
		var err error
		values, err = complete(c, p.Argument.Value, sofar)
		return res, err
	})
	if err != nil {
		return nil, err
	}
	total := int64(len(values))
	res.Completion.Total = &total
	res.Completion.HasMore = len(values) > mcp.MaxCompletions
	if len(values) > 0 {
		res.Completion.Values = values[:min(len(values), mcp.MaxCompletions)]
	}
	return res, nil
}

// completers finds what a completion refers to.
func (c *Call) completers(ref *mcp.CompletionRef) (map[string]Completer, []string, []place, error) {
	switch ref.Type {
	case mcp.RefPrompt:
		p, ok := c.srv.allPrompts().byKey[ref.Name]
		if ok && c.seesOffered(p) {
			return p.complete, p.names(), p.at, c.granted(p.item.Scopes)
		}
		return nil, nil, nil, mcp.NewError(mcp.CodeInvalidParams, "unknown prompt %q", clip(ref.Name))
	case mcp.RefResource:
		t, ok := c.srv.allTemplates().byKey[ref.URI]
		if ok && c.seesOffered(t) {
			return t.complete, t.compiled.Variables(), t.at, c.granted(t.item.Scopes)
		}
		return nil, nil, nil, mcp.NewError(mcp.CodeInvalidParams, "unknown resource template %q", clip(ref.URI))
	}
	return nil, nil, nil, mcp.NewError(mcp.CodeInvalidParams, "unknown ref type %q: use %s or %s", clip(ref.Type), mcp.RefPrompt, mcp.RefResource)
}

// completes reports whether anything of the server completes.
func (s *Server) completes() bool {
	for _, p := range s.allPrompts().byKey {
		if len(p.complete) > 0 {
			return true
		}
	}
	for _, t := range s.allTemplates().byKey {
		if len(t.complete) > 0 {
			return true
		}
	}
	return false
}
