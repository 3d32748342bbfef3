package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
)

// ResourceOptions are the optional parts of a resource.
type ResourceOptions struct {
	// Title and Description are for people and models. Default none.
	Title, Description string
	// MIMEType is the type of the contents. Default: text/plain for text,
	// application/octet-stream for bytes.
	MIMEType string
	// Size is the size of the contents in bytes, if known.
	Size *int64
	// Annotations are hints for clients. Default none.
	Annotations *mcp.Annotations
	// Icons for people. Default none.
	Icons []mcp.Icon
	// Meta is `_meta` of the definition. Its keys must not be reserved ones.
	Meta mcp.Meta
	// Labels are for Server.Visible. Default none.
	Labels []string
	// Scopes are what a caller must have been granted to read or watch the resource;
	// others get NeedScopes. It is listed all the same, so that clients can
	// ask for them; to hide it is Server.Visible's affair. Default none.
	Scopes []string
	// Cache is the hint for contents. Default: Options.Cache of the server.
	Cache *Cache
	// Watch runs while a client is subscribed, and calls changed when the
	// resource has changed; it returns when ctx ends. One that panics is run
	// again after a pause. Default none: the program calls
	// Server.ResourceUpdated.
	Watch func(ctx context.Context, changed func())
}

// A ResourceFeature is a resource on its way into a server.
type ResourceFeature struct {
	r    *resource
	opts ResourceOptions
	// conflict is the error of options that With was given twice.
	conflict error
}

type resource struct {
	offered
	def   *mcp.Resource
	cache *Cache
	read  func(c *Call) (*mcp.ReadResourceResult, error)
	watch func(ctx context.Context, changed func())
}

func (r *resource) single() Result {
	return &mcp.ListResourcesResult{Resources: []mcp.Resource{*r.def}}
}

func (r *resource) under(s *Server, prefix string) (string, *resource) {
	def := *r.def
	def.URI = mounted(prefix+"+", def.URI)
	return def.URI, &resource{offered: s.mounted(r, prefix+"+"), def: &def, cache: r.cache, read: r.read, watch: r.watch}
}

// With sets options and returns the feature. A later call adds to them: the fields that it sets
// replace earlier values. Setting Labels or Scopes to two different values is an error of
// [Server.Add].
func (f *ResourceFeature) With(o ResourceOptions) *ResourceFeature {
	f.conflict = errors.Join(f.conflict, mergeOptions(&f.opts, o))
	return f
}

// Resource makes a resource that fn reads anew each time. Out is string for
// text, []byte for anything else, mcp.ResourceContents or a slice of them, or
// *mcp.ReadResourceResult. An error that is ErrNotFound, and one made by
// package mcp, reach the peer; others are hidden. It panics if uri is not an
// absolute URI or Out is another type; [NewResource] returns an error.
//
// spec 2026-07-28, server/resources.
func Resource[Out any](uri, name string, fn func(ctx context.Context) (Out, error)) *ResourceFeature {
	return must(NewResource(uri, name, fn))
}

// NewResource is [Resource] with an error in the place of a panic.
func NewResource[Out any](uri, name string, fn func(ctx context.Context) (Out, error)) (*ResourceFeature, error) {
	if err := checkURI(uri); err != nil {
		return nil, fmt.Errorf("resource %q: %w", clip(uri), err)
	}
	if fn == nil {
		return nil, fmt.Errorf("resource %q: %w", uri, errNoFunction)
	}
	if err := checkContentsType(reflect.TypeFor[Out]()); err != nil {
		return nil, fmt.Errorf("resource %q: %w", uri, err)
	}
	r := &resource{def: &mcp.Resource{URI: uri, Name: name}}
	r.read = func(c *Call) (*mcp.ReadResourceResult, error) {
		v, err := fn(c)
		if err != nil {
			return nil, err
		}
		return contents(v)
	}
	return &ResourceFeature{r: r}, nil
}

// Text makes a resource of a text that does not change.
func Text(uri, name, text string) *ResourceFeature {
	return Resource(uri, name, func(context.Context) (string, error) { return text, nil })
}

// checkURI refuses what is no absolute URI, or could mislead a reader.
func checkURI(uri string) error {
	if !utf8.ValidString(uri) {
		return errors.New("the URI is not valid UTF-8")
	}
	for _, r := range uri {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.IsSpace(r) || r == '\\' {
			return fmt.Errorf("the URI holds the character %U", r)
		}
	}
	// Not url.Parse: it refuses escapes in the authority that RFC 3986 allows,
	// such as the value "a b" of the template gh://{owner}/issues.
	scheme, _, ok := strings.Cut(uri, ":")
	if !ok || !uriScheme.MatchString(scheme) {
		return errors.New("the URI has no scheme")
	}
	if _, err := url.PathUnescape(uri); err != nil {
		return errors.New("the URI is not percent-encoded right")
	}
	return nil
}

// uriScheme is RFC 3986, section 3.1.
var uriScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)

func (f *ResourceFeature) check() error {
	return checkOptions("resource "+f.r.def.URI, f.conflict, f.opts.Meta, f.opts.Scopes)
}

func (f *ResourceFeature) register(s *Server, to *addition) error {
	o, def := f.opts, *f.r.def
	// A copy: the same feature may be added again, or to another server.
	r := &resource{def: &def, read: f.r.read}
	d := r.def
	d.Title, d.Description, d.MIMEType = cmp.Or(o.Title, d.Title), cmp.Or(o.Description, d.Description), cmp.Or(o.MIMEType, d.MIMEType)
	d.Size, d.Annotations = cmp.Or(o.Size, d.Size), cmp.Or(o.Annotations, d.Annotations)
	d.Icons, d.Meta = firstSlice(o.Icons, d.Icons), firstMeta(o.Meta, d.Meta)
	r.offered, r.cache, r.watch = s.own(KindResource, d.URI, o.Labels, o.Scopes), o.Cache, o.Watch
	s.warnIcons("resource "+d.URI, d.Icons)
	return added(&to.resources, "resource", d.URI, r)
}

// checkContentsType refuses types that do not become contents.
func checkContentsType(t reflect.Type) error {
	switch t {
	case reflect.TypeFor[string](), reflect.TypeFor[[]byte](), reflect.TypeFor[mcp.ResourceContents](),
		reflect.TypeFor[[]mcp.ResourceContents](), reflect.TypeFor[*mcp.ReadResourceResult](), reflect.TypeFor[mcp.ReadResourceResult]():
		return nil
	}
	return fmt.Errorf("a %v is no contents; use string, []byte, mcp.ResourceContents, a slice of those, or *mcp.ReadResourceResult", t)
}

// contents returns the result that a value becomes.
func contents(v any) (*mcp.ReadResourceResult, error) {
	switch v := v.(type) {
	case string:
		return one(mcp.ResourceContents{Text: v}), nil
	case []byte:
		if v == nil {
			v = []byte{}
		}
		return one(mcp.ResourceContents{Blob: v}), nil
	case mcp.ResourceContents:
		return one(v), nil
	case []mcp.ResourceContents:
		return &mcp.ReadResourceResult{Contents: v}, nil
	case mcp.ReadResourceResult:
		return &v, nil
	case *mcp.ReadResourceResult:
		return ownContents(v)
	}
	return nil, fmt.Errorf("contents of type %T", v) // checkContentsType refuses it
}

// ownContents is a copy of an author's result, which may be shared between reads.
func ownContents(v *mcp.ReadResourceResult) (*mcp.ReadResourceResult, error) {
	if v == nil {
		return nil, errors.New("the resource returned no result")
	}
	own := *v
	return &own, nil
}

func one(c mcp.ResourceContents) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{c}}
}

// found is where a URI leads.
type found struct {
	mime   string
	cache  *Cache
	scopes []string
	at     []mountPoint
	read   func(c *Call) (*mcp.ReadResourceResult, error)
	watch  func(ctx context.Context, changed func())
}

// find looks a URI up: resources first, then directories, then templates, the
// most specific first. What the caller may not see is not found.
func (c *Call) find(uri string) (*found, bool) {
	if over(len(uri), c.srv.limits.MaxURI) || checkURI(uri) != nil {
		return nil, false
	}
	if r, ok := c.srv.resourcesWithoutFiles().byKey[uri]; ok {
		if !c.seesOffered(r) {
			return nil, false
		}
		return &found{mime: r.def.MIMEType, cache: r.cache, scopes: r.item.Scopes, at: r.at, read: r.read, watch: r.watch}, true
	}
	if f, exists := c.findFile(uri); exists {
		return f, f != nil
	}
	if f, exists := c.findTemplate(uri); exists {
		return f, f != nil
	}
	return c.findUnlisted(uri)
}

// CanRead reports whether a resource exists for the caller: it does, and Server.Visible
// does not hide it. It reads nothing, and asks for no scopes.
func (c *Call) CanRead(uri string) bool {
	_, ok := c.find(uri)
	return ok
}

// watch starts the watcher of a resource and returns what ends it.
func (c *Call) watch(uri string) func() {
	f, ok := c.find(uri)
	if !ok || f.watch == nil {
		return nil
	}
	return c.srv.hub.watching(uri, f.watch)
}

// readResource serves resources/read.
//
// spec 2026-07-28, server/resources. Ruling 23: what does not exist is an
// error, never empty contents.
func (c *Call) readResource(p *mcp.ReadResourceParams) (Result, error) {
	f, ok := c.find(p.URI)
	if !ok {
		return nil, c.notFound(p.URI)
	}
	if err := c.granted(f.scopes); err != nil {
		return nil, err
	}
	got, err := c.within(f.at, func(c *Call) (Result, error) { return f.read(c) })
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil, c.notFound(p.URI)
		}
		return nil, err
	}
	res, ok := got.(*mcp.ReadResourceResult)
	if !ok || c.needsInput() {
		return got, nil
	}
	size := 0
	res.Contents = append([]mcp.ResourceContents(nil), res.Contents...)
	for i := range res.Contents {
		rc := &res.Contents[i]
		size += len(rc.Text) + len(rc.Blob)
		c.name(rc, p.URI, f.mime)
	}
	if over(size, c.srv.limits.MaxResource) {
		return nil, tooLarge(c.srv.limits.MaxResource)
	}
	if c.facts.Cacheable && c.Round() == 0 { // Ruling 19: a result that took answers is the caller's alone
		hint := c.srv.opts.Cache
		if f.cache != nil {
			hint = *f.cache
		}
		hint.fill(&res.Cacheable, c.srv.filters() || len(f.scopes) > 0)
	} else if c.facts.Cacheable {
		Cache{}.fill(&res.Cacheable, true)
	}
	return res, nil
}

// name gives contents the URI and type that the author left out.
func (c *Call) name(rc *mcp.ResourceContents, uri, mime string) {
	if rc.URI == "" {
		rc.URI = uri
	}
	switch {
	case rc.MIMEType != "":
	case mime != "":
		rc.MIMEType = mime
	case rc.Blob != nil:
		rc.MIMEType = "application/octet-stream"
	default:
		rc.MIMEType = "text/plain"
	}
}

func tooLarge(limit int) *mcp.Error {
	return mcp.NewError(mcp.CodeTooLarge, "the resource is larger than the limit of %d bytes (Limits.MaxResource)", limit)
}
