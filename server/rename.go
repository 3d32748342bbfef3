package server

import (
	"maps"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// The results of a mounted server name its resources as it knows them. A client
// of the server that it is mounted in reaches them with the prefix of the mount.
//
// The prefix is added to every URI that the mounted server offers: a resource, a
// file of a directory, a match of a template. Other URIs stay, so that a link to
// https://example.com/ still works. Each mount does this after the middleware of
// its mounted server has run. Structured content and texts are not searched,
// because nothing identifies the URIs in them. Each link in a result costs a
// look-up; results without links cost nothing. A URI that the server offers only
// later is not renamed.

// renaming puts prefix in front of the URIs of resources of s in the results of
// next. URIs of others stay as they are, and what the author returned is not
// changed.
func (s *Server) renaming(next Func, prefix string) Func {
	return func(c *Call) (Result, error) {
		res, err := next(c)
		r := renamer{s, prefix}
		switch res := res.(type) {
		case *mcp.CallToolResult:
			if res != nil {
				res.Content = renameAll(res.Content, r.content)
			}
		case *mcp.GetPromptResult:
			if res != nil {
				res.Messages = renameAll(res.Messages, r.message)
			}
		case *mcp.ReadResourceResult:
			if res != nil {
				res.Contents = renameAll(res.Contents, r.contents)
			}
		}
		return res, err
	}
}

// renameAll renames the items of a list, in a copy if there is anything to rename.
func renameAll[S ~[]E, E any](list S, rename func(E) (E, bool)) S {
	copied := false
	for i, item := range list {
		item, changed := rename(item)
		if changed && !copied {
			list, copied = slices.Clone(list), true
		}
		if changed {
			list[i] = item
		}
	}
	return list
}

// A renamer renames the resources of a mounted server.
type renamer struct {
	s      *Server
	prefix string
}

func (r renamer) content(c mcp.Content) (mcp.Content, bool) {
	switch c := c.(type) {
	case *mcp.ResourceLink:
		if c != nil && r.s.hasResource(c.URI) {
			own := *c
			own.URI = mounted(r.prefix, c.URI)
			return &own, true
		}
	case *mcp.EmbeddedResource:
		if c != nil {
			if contents, changed := r.contents(c.Resource); changed {
				own := *c
				own.Resource = contents
				return &own, true
			}
		}
	}
	return c, false
}

func (r renamer) message(m mcp.PromptMessage) (mcp.PromptMessage, bool) {
	content, changed := r.content(m.Content)
	m.Content = content
	return m, changed
}

func (r renamer) contents(rc mcp.ResourceContents) (mcp.ResourceContents, bool) {
	if rc.URI == "" || !r.s.hasResource(rc.URI) {
		return rc, false
	}
	rc.URI = mounted(r.prefix, rc.URI)
	return rc, true
}

// pageScheme is that of pages which show the results of tools. Hosts look for it,
// so it stays in front.
//
// SEP-1865 (apps): the URI of a page begins with ui://.
const pageScheme = "ui://"

// mounted is what a URI of a mounted server is called; prefix ends in "+".
func mounted(prefix, uri string) string {
	if rest, ok := strings.CutPrefix(uri, pageScheme); ok {
		return pageScheme + prefix + rest
	}
	return prefix + uri
}

// unmounted is the URI that mounted was given, if it has the prefix.
func unmounted(prefix, uri string) (string, bool) {
	if rest, ok := strings.CutPrefix(uri, pageScheme); ok {
		rest, ok = strings.CutPrefix(rest, prefix)
		return pageScheme + rest, ok
	}
	return strings.CutPrefix(uri, prefix)
}

// Where the `_meta` of a tool names the page that shows its results: a member of
// metaUI, and in older servers a key of its own.
const (
	metaUI      = "ui"
	metaPage    = "resourceUri"
	metaPageOld = "ui/resourceUri"
)

// mountedPages renames the pages that the `_meta` of a tool names, in a copy. What
// it cannot read stays as it is.
func mountedPages(prefix string, m mcp.Meta) mcp.Meta {
	own, copied := m, false
	set := func(key string, value any) {
		raw, err := wire.Marshal(value)
		if err != nil {
			return
		}
		if !copied {
			own, copied = maps.Clone(m), true
		}
		own[key] = raw
	}
	var page string
	if raw, ok := m[metaPageOld]; ok && wire.Decode(raw, &page) == nil {
		set(metaPageOld, mounted(prefix, page))
	}
	var ui map[string]mcp.RawValue
	if raw, ok := m[metaUI]; ok && wire.Decode(raw, &ui) == nil && wire.Decode(ui[metaPage], &page) == nil {
		if name, err := wire.Marshal(mounted(prefix, page)); err == nil {
			ui[metaPage] = name
			set(metaUI, ui)
		}
	}
	return own
}

// hasResource reports whether a URI is one that s offers, whether the caller may see it or not.
func (s *Server) hasResource(uri string) bool {
	if over(len(uri), s.limits.MaxURI) || checkURI(uri) != nil {
		return false
	}
	if _, ok := s.resourcesWithoutFiles().byKey[uri]; ok {
		return true
	}
	for _, d := range s.allDirs().byKey {
		if _, err := d.filePath(uri); err == nil {
			return true
		}
	}
	for _, t := range s.allTemplates().byKey {
		if t.matches(uri) {
			return true
		}
	}
	// Clients fetch links to the web by themselves, unless a list names them.
	return s.readsUnlisted() && !strings.HasPrefix(uri, "https:") && !strings.HasPrefix(uri, "http:")
}
