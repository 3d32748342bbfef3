package server

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

var errNoNeeded = errors.New("which the server does not have; add it before the tool, or in the same call")

// A ToolExtension is what an extension adds to a tool, beside ToolOptions, which are
// the author's.
type ToolExtension struct {
	// Meta is added to `_meta` of the definition. The author's own must not have
	// the same keys. Default none.
	Meta mcp.Meta
	// Resource is the URI of a resource that the tool needs. It must be there, as a
	// resource, a template or a file of a directory, when the tool is added, or come
	// in the same call of [Server.Add]; else Add refuses the tool. What happens to it
	// afterwards is not watched. Default none.
	Resource string
	// ResourceType is the MIME type that Resource must have, where it is a resource
	// of its own. Default: any.
	ResourceType string
	// Visible reports whether a caller may see the tool, beside Server.Visible and
	// Extension.Visible and as they do. Lists with such a tool are never shared
	// between callers. Default: all may.
	Visible func(c *Call) bool
	// Result is given what the function of the tool returned, unless that is an
	// error, and may change it. Its error takes the place of the result, as one of
	// the function would. It is called by many goroutines. Default none.
	Result func(c *Call, res *mcp.CallToolResult) error
}

// Extend adds what an extension says of the tool, and returns the feature. With, before
// or after it, does not change that. Several extensions may each call it once.
func (f *ToolFeature) Extend(x ToolExtension) *ToolFeature {
	f.added = append(f.added, x)
	return f
}

// checkExtensions checks what extensions say beside what the author says.
func (f *ToolFeature) checkExtensions() error {
	what := "tool " + f.t.def.Name
	seen := maps.Clone(firstMeta(f.opts.Meta, f.t.def.Meta))
	if seen == nil {
		seen = make(mcp.Meta)
	}
	for _, x := range f.added {
		if err := checkMeta(what, x.Meta); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(x.Meta)) {
			if _, ok := seen[key]; ok {
				return fmt.Errorf("%s: _meta key %s is set twice, by an extension and by the author or another extension; leave one out", what, key)
			}
			seen[key] = x.Meta[key]
		}
	}
	return nil
}

// extend adds what extensions say to the tool that is made of the feature.
func (f *ToolFeature) extend(s *Server, t *tool) {
	if len(f.added) == 0 {
		return
	}
	t.added = slices.Clone(f.added)
	own := maps.Clone(t.def.Meta)
	for _, x := range t.added {
		if own == nil && len(x.Meta) > 0 {
			own = make(mcp.Meta)
		}
		maps.Copy(own, x.Meta)
		if x.Visible != nil {
			s.varies.Store(true)
		}
	}
	t.def.Meta = own
	call := t.call
	t.call = func(c *Call, in *schema.Compiled, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
		res, err := call(c, in, arguments)
		if err != nil || res == nil || c.needsInput() {
			return res, err
		}
		for _, x := range t.added {
			if x.Result == nil {
				continue
			}
			if err := x.Result(c, res); err != nil {
				return nil, fmt.Errorf("tool %s: %w", t.item.Name, err)
			}
		}
		return res, nil
	}
}

// shownTo reports whether no extension of the tool hides it from the caller.
func (t *tool) shownTo(c *Call) bool {
	for _, x := range t.added {
		if x.Visible != nil && !x.Visible(c) {
			return false
		}
	}
	return true
}

// checkNeeds checks that the server has the resources that the tools of an addition
// need, or gets them with it.
func (a *addition) checkNeeds(s *Server) error {
	for _, name := range slices.Sorted(maps.Keys(a.tools)) {
		for _, x := range a.tools[name].added {
			if x.Resource == "" {
				continue
			}
			if err := a.checkNeed(s, x); err != nil {
				return fmt.Errorf("tool %q needs the resource %q, %w", name, clip(x.Resource), err)
			}
		}
	}
	return nil
}

func (a *addition) checkNeed(s *Server, x ToolExtension) error {
	r, ok := a.resources[x.Resource]
	if !ok {
		r, ok = s.resourcesWithoutFiles().byKey[x.Resource]
	}
	if ok {
		if x.ResourceType != "" && r.def.MIMEType != x.ResourceType {
			return fmt.Errorf("which has the type %q; it must be %q", r.def.MIMEType, x.ResourceType)
		}
		return nil
	}
	for _, t := range a.templates {
		if t.matches(x.Resource) {
			return nil
		}
	}
	for _, d := range a.dirs {
		if _, err := d.filePath(x.Resource); err == nil {
			return nil
		}
	}
	if s.hasResource(x.Resource) {
		return nil
	}
	return errNoNeeded
}
