package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/uritemplate"
)

// Foreign features are those of another server, which a gateway passes on. Their
// definitions are offered as that server gave them, also where an author of this
// one is held to more: names with spaces, `_meta` keys that the specification
// reserves. What a client sends is bounded and well formed, and is checked
// against the definition by that server alone.

// ForeignTool makes a tool of another server's definition. fn gets the arguments
// as the client sent them, an object; neither they nor its result are checked
// against the schemas, which may be of any dialect. The error says why the
// definition cannot be offered: an input schema that is not one of an object, a
// name that is misleading.
func ForeignTool(def mcp.Tool, fn func(ctx context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error)) (*ToolFeature, error) {
	if err := checkForeignName(def.Name); err != nil {
		return nil, fmt.Errorf("tool: %w", err)
	}
	if fn == nil {
		return nil, fmt.Errorf("tool %q: %w", def.Name, errNoFunction)
	}
	return toolOf(def, fn, true)
}

// ForeignPrompt makes a prompt of another server's definition. fn gets the
// arguments as the client sent them, each bounded by Limits.MaxArgument.
func ForeignPrompt(def mcp.Prompt, fn func(ctx context.Context, arguments map[string]string) (*mcp.GetPromptResult, error)) (*PromptFeature, error) {
	if err := checkForeignName(def.Name); err != nil {
		return nil, fmt.Errorf("prompt: %w", err)
	}
	if fn == nil {
		return nil, fmt.Errorf("prompt %q: %w", def.Name, errNoFunction)
	}
	p := &prompt{def: &def, kinds: make(map[string]string)}
	for _, a := range def.Arguments {
		p.kinds[a.Name] = "string"
	}
	p.raw = func(c *Call, arguments map[string]string) (*mcp.GetPromptResult, error) {
		res, err := fn(c, arguments)
		if err != nil {
			return nil, err
		}
		return ownPrompt(res)
	}
	return &PromptFeature{p: p}, nil
}

// ForeignResource makes a resource of another server's definition.
func ForeignResource(def mcp.Resource, fn func(ctx context.Context, uri string) (*mcp.ReadResourceResult, error)) (*ResourceFeature, error) {
	plain := def
	plain.Meta = nil
	f, err := NewRawResource(plain, fn)
	if err != nil {
		return nil, err
	}
	f.r.def.Meta = def.Meta
	return f, nil
}

// ForeignTemplate makes a resource template of another server's definition.
func ForeignTemplate(def mcp.ResourceTemplate, fn func(ctx context.Context, uri string, variables uritemplate.Values) (*mcp.ReadResourceResult, error)) (*TemplateFeature, error) {
	plain := def
	plain.Meta = nil
	f, err := NewRawTemplate(plain, fn)
	if err != nil {
		return nil, err
	}
	f.t.def.Meta = def.Meta
	return f, nil
}

// maxForeignName is the longest name of another server's tool or prompt, in bytes.
const maxForeignName = 256

// checkForeignName refuses names that a reader or a header could take for others.
func checkForeignName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > maxForeignName:
		return fmt.Errorf("the name %q is longer than %d bytes", clip(name), maxForeignName)
	case !utf8.ValidString(name), strings.ContainsAny(name, `"\`), strings.ContainsFunc(name, isMisleading):
		return fmt.Errorf("the name %q holds a quote, a backslash or a character that is not shown", clip(name))
	}
	return nil
}

func isMisleading(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// A Reader reads resources by URI, whatever the lists say.
type Reader struct {
	// Read reads a resource. ErrNotFound says that there is none.
	Read func(ctx context.Context, uri string) (*mcp.ReadResourceResult, error)
	// Watch runs while a client is subscribed to uri; see ResourceOptions.
	Watch func(ctx context.Context, uri string, changed func())
}

// ReadUnlisted serves the URIs that no resource, directory or template of the
// server has: for gateways, and for links to what no list names. Visible is asked
// for such a URI too, as a resource without labels. It panics after the first
// request.
func (s *Server) ReadUnlisted(r Reader) {
	s.mustBeNew("ReadUnlisted")
	s.unlisted = &r
}

// findUnlisted finds who reads a URI that nothing else has: the server itself, or
// the mounted one whose prefix it carries.
func (c *Call) findUnlisted(uri string) (*found, bool) {
	r, inner, at := c.srv.reader(uri)
	if r == nil || checkURI(inner) != nil || !c.seesAt(Item{Kind: KindResource, Name: inner}, at) {
		return nil, false
	}
	f := &found{at: at}
	f.read = func(c *Call) (*mcp.ReadResourceResult, error) {
		res, err := r.Read(c, inner)
		if err != nil {
			return nil, err
		}
		return ownContents(res)
	}
	if r.Watch != nil {
		f.watch = func(ctx context.Context, changed func()) { r.Watch(ctx, inner, changed) }
	}
	return f, true
}

// reader returns who reads an unlisted URI, as what, and where it is offered.
func (s *Server) reader(uri string) (*Reader, string, []mountPoint) {
	for _, m := range s.mounts {
		inner, ok := unmounted(m.prefix+"+", uri)
		if !ok {
			continue
		}
		if r, inner, at := m.srv.reader(inner); r != nil {
			return r, inner, s.mountedAt(at, m.prefix+"+")
		}
	}
	if s.unlisted == nil {
		return nil, "", nil
	}
	return s.unlisted, uri, []mountPoint{{srv: s}}
}

// readsUnlisted reports whether any URI may lead somewhere.
func (s *Server) readsUnlisted() bool {
	for _, m := range s.mounts {
		if m.srv.readsUnlisted() {
			return true
		}
	}
	return s.unlisted != nil
}
