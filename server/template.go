package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/uritemplate"
)

// TemplateOptions are the optional parts of a resource template.
type TemplateOptions struct {
	// Title and Description are for people and models. Default none.
	Title, Description string
	// MIMEType is the type of all resources of the template. Default: as for Resource.
	MIMEType string
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
	// CompleteRaw answers completions of the variables that Complete does not
	// name, for gateways. Its Ref is the template as its own server knows it.
	// Default none.
	CompleteRaw RawCompleter
	// List gives the resources of the template that resources/list shows, for
	// the caller of ctx: those that exist. URIs that the template does not
	// match, or that another resource has, are left out. Such lists are never
	// shared between callers, and Server.ResourcesChanged says that they
	// changed. Default: none is shown.
	List func(ctx context.Context) ([]mcp.Resource, error)
	// Watch runs while a client is subscribed to uri; see ResourceOptions.
	Watch func(ctx context.Context, uri string, changed func())
}

// A TemplateFeature is a resource template on its way into a server.
type TemplateFeature struct {
	t    *template
	opts TemplateOptions
	// conflict is the error of options that With was given twice.
	conflict error
}

type template struct {
	offered
	def      *mcp.ResourceTemplate
	cache    *Cache
	compiled *uritemplate.Template
	complete completers
	read     func(c *Call, uri string, values uritemplate.Values) (*mcp.ReadResourceResult, error)
	watch    func(ctx context.Context, uri string, changed func())
	list     func(ctx context.Context) ([]mcp.Resource, error)
	prefix   string // what mounting put in front
}

func (t *template) single() Result {
	return &mcp.ListResourceTemplatesResult{ResourceTemplates: []mcp.ResourceTemplate{*t.def}}
}

func (t *template) under(s *Server, prefix string) (string, *template) {
	def := *t.def
	def.URITemplate = mounted(prefix+"+", def.URITemplate)
	return def.URITemplate, &template{
		offered: s.mounted(t, prefix+"+"), def: &def, cache: t.cache, compiled: t.compiled, complete: t.complete,
		read: t.read, watch: t.watch, list: t.list, prefix: prefix + "+" + t.prefix,
	}
}

// With sets options and returns the feature. A later call adds to them: the fields that it sets
// replace earlier values. Setting Labels or Scopes to two different values is an error of
// [Server.Add].
func (f *TemplateFeature) With(o TemplateOptions) *TemplateFeature {
	f.conflict = errors.Join(f.conflict, mergeOptions(&f.opts, o))
	return f
}

// Template makes a family of resources of an RFC 6570 URI template. V is a
// struct whose fields have tags such as `uri:"owner"`; its values are decoded
// once and hold no "/", "\", control character or ".." unless the template
// says so with {+name}. Out is as for Resource. It panics if template, V or
// Out cannot be served; [NewTemplate] returns an error.
//
// spec 2026-07-28, server/resources: resource templates.
func Template[V, Out any](uriTemplate, name string, fn func(ctx context.Context, v V) (Out, error)) *TemplateFeature {
	return must(NewTemplate(uriTemplate, name, fn))
}

// NewTemplate is [Template] with an error in the place of a panic.
func NewTemplate[V, Out any](uriTemplate, name string, fn func(ctx context.Context, v V) (Out, error)) (*TemplateFeature, error) {
	t, decode, err := typedTemplate(uriTemplate, name, fn == nil, reflect.TypeFor[V](), reflect.TypeFor[Out]())
	if err != nil {
		return nil, err
	}
	t.read = func(c *Call, _ string, values uritemplate.Values) (*mcp.ReadResourceResult, error) {
		var v V
		if err := decode(values, &v); err != nil {
			return nil, err
		}
		out, err := fn(c, v)
		if err != nil {
			return nil, err
		}
		return contents(out)
	}
	return &TemplateFeature{t: t}, nil
}

// typedTemplate returns a template without its function, from the types of its variables and its contents,
// and what decodes variables into a pointer and validates them. It is not generic, so it is compiled once and
// not for each template.
func typedTemplate(uriTemplate, name string, noFunction bool, variables, out reflect.Type) (*template, func(uritemplate.Values, any) error, error) {
	compiled, err := uritemplate.Parse(uriTemplate)
	if err != nil {
		return nil, nil, fmt.Errorf("resource %w", err)
	}
	if noFunction {
		return nil, nil, fmt.Errorf("resource template %q: %w", uriTemplate, errNoFunction)
	}
	binder, err := uritemplate.Bind(variables, compiled)
	if err != nil {
		return nil, nil, fmt.Errorf("resource template %q: %w", uriTemplate, err)
	}
	if err := checkContentsType(out); err != nil {
		return nil, nil, fmt.Errorf("resource template %q: %w", uriTemplate, err)
	}
	validate := validatorOf(variables)
	t := &template{def: &mcp.ResourceTemplate{URITemplate: uriTemplate, Name: name}, compiled: compiled}
	return t, func(values uritemplate.Values, at any) error {
		err := binder.Decode(values, at)
		if err == nil && validate != nil {
			err = validate(at)
		}
		if err != nil {
			return mcp.NewError(mcp.CodeInvalidParams, "the URI does not fit the template %s: %v", uriTemplate, err)
		}
		return nil
	}, nil
}

func (f *TemplateFeature) check() error {
	for name := range f.opts.Complete {
		if !slices.Contains(f.t.compiled.Variables(), name) {
			return fmt.Errorf("template %s: completion for %q, which is no variable of it", f.t.def.URITemplate, name)
		}
	}
	return checkOptions("template "+f.t.def.URITemplate, f.conflict, f.opts.Meta, f.opts.Scopes)
}

func (f *TemplateFeature) register(s *Server, to *addition) error {
	o, def := f.opts, *f.t.def
	// A copy: the same feature may be added again, or to another server.
	t := &template{def: &def, compiled: f.t.compiled, read: f.t.read}
	d := t.def
	d.Title, d.Description, d.MIMEType = cmp.Or(o.Title, d.Title), cmp.Or(o.Description, d.Description), cmp.Or(o.MIMEType, d.MIMEType)
	d.Annotations, d.Icons, d.Meta = cmp.Or(o.Annotations, d.Annotations), firstSlice(o.Icons, d.Icons), firstMeta(o.Meta, d.Meta)
	t.offered, t.cache = s.own(KindTemplate, d.URITemplate, o.Labels, o.Scopes), o.Cache
	t.watch, t.complete = o.Watch, completers{o.Complete, o.CompleteRaw}
	if t.list = o.List; t.list != nil {
		s.varies.Store(true)
	}
	s.warnIcons("template "+d.URITemplate, d.Icons)
	return added(&to.templates, "template", d.URITemplate, t)
}

// ResourcesChanged tells clients that the list of resources changed, for lists
// that come from TemplateOptions.List. It may be called at any time.
func (s *Server) ResourcesChanged() { s.hub.listChanged(KindResource) }

// withListed adds the resources that templates list for the caller.
func (c *Call) withListed(snap *snapshot[*resource]) (*snapshot[*resource], error) {
	items := snap.byKey
	templates := c.srv.allTemplates()
	for _, k := range templates.keys { // sorted, so that it is always the same one that lists a URI
		t := templates.byKey[k]
		if t.list == nil || !c.seesOffered(t) {
			continue
		}
		defs, err := t.list(c)
		if err != nil {
			return nil, err
		}
		if len(items) == len(snap.byKey) {
			items = maps.Clone(items)
			if items == nil {
				items = make(map[string]*resource)
			}
		}
		for _, def := range defs {
			if _, ok := t.compiled.Match(def.URI); !ok || checkURI(def.URI) != nil {
				c.srv.log.Warn("a listed resource does not fit its template", "template", t.def.URITemplate, "uri", clip(def.URI))
				continue
			}
			o := offered{item: Item{Kind: KindResource, Name: def.URI, Labels: t.item.Labels, Scopes: t.item.Scopes}, at: t.at, texts: new(encodings)}
			def.URI, def.MIMEType = mounted(t.prefix, def.URI), cmp.Or(def.MIMEType, t.def.MIMEType)
			if _, taken := items[def.URI]; !taken {
				items[def.URI] = &resource{offered: o, def: &def}
			}
		}
	}
	if len(items) == len(snap.byKey) {
		return snap, nil
	}
	return &snapshot[*resource]{generation: snap.generation, keys: slices.Sorted(maps.Keys(items)), byKey: items}, nil
}

// matches reports whether a URI is of the template, where it is offered.
func (t *template) matches(uri string) bool {
	inner, ok := unmounted(t.prefix, uri)
	if ok {
		_, ok = t.compiled.Match(inner)
	}
	return ok
}

// findTemplate finds the most specific template that a URI matches. What a
// template has and the caller may not see exists, and is nil.
func (c *Call) findTemplate(uri string) (*found, bool) {
	var (
		best   *template
		values uritemplate.Values
	)
	snap := c.srv.allTemplates()
	for _, k := range snap.keys { // sorted, so that equals are decided stably
		t := snap.byKey[k]
		inner, ok := unmounted(t.prefix, uri)
		if !ok {
			continue
		}
		v, ok := t.compiled.Match(inner)
		if ok && (best == nil || t.compiled.Specificity() > best.compiled.Specificity()) {
			best, values = t, v
		}
	}
	if best == nil {
		return nil, false
	}
	if !c.seesOffered(best) {
		return nil, true
	}
	inner, _ := unmounted(best.prefix, uri)
	if !c.seesAt(Item{Kind: KindResource, Name: inner, Labels: best.item.Labels, Scopes: best.item.Scopes}, best.at) {
		return nil, true
	}
	f := &found{mime: best.def.MIMEType, cache: best.cache, scopes: best.item.Scopes, at: best.at}
	f.read = func(c *Call) (*mcp.ReadResourceResult, error) { return best.read(c, inner, values) }
	if best.watch != nil {
		f.watch = func(ctx context.Context, changed func()) { best.watch(ctx, inner, changed) }
	}
	return f, true
}
