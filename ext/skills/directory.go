package skills

import (
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// directoryParams are the params of resources/directory/read.
type directoryParams struct {
	URI    string  `json:"uri"`
	Cursor *string `json:"cursor,omitzero"`
}

// directoryResult is the result of resources/directory/read. The specification asks for
// no cache hints; clients of others want them.
type directoryResult struct {
	mcp.ResultBase
	mcp.Cacheable
	mcp.Page

	Resources []*mcp.Resource `json:"resources"`
}

// directory serves resources/directory/read.
//
// SEP-2640, Reading Directories.
func (c *Catalog) directory(call *server.Call, p directoryParams) (*directoryResult, error) {
	now := c.now.Load()
	children, ok := now.dirs[p.URI]
	if !ok {
		if now.files[p.URI] != nil && call.CanRead(p.URI) {
			return nil, mcp.NewError(mcp.CodeInvalidParams, "%q is a file, not a directory; read it with resources/read", clip(p.URI))
		}
		return nil, mcp.NewError(mcp.CodeInvalidParams, "there is no directory %q; directories are written without a slash at the end", clip(p.URI))
	}
	if !now.sees(call, p.URI) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "there is no directory %q; directories are written without a slash at the end", clip(p.URI))
	}
	visible := slices.DeleteFunc(slices.Clone(children), func(r *mcp.Resource) bool { return !now.sees(call, r.URI) })
	list, next, err := server.Paginate(call, visible, func(r *mcp.Resource) string { return r.URI }, p.Cursor)
	if err != nil {
		return nil, err
	}
	return &directoryResult{Page: next, Resources: append([]*mcp.Resource{}, list...)}, nil
}

// sees reports whether the caller may see a child of a directory: a file, or a directory
// with one that it may see. An empty directory is seen with the skill that it is in.
func (s *snapshot) sees(call *server.Call, uri string) bool {
	if s.files[uri] != nil {
		return call.CanRead(uri)
	}
	children := s.dirs[uri]
	if len(children) == 0 {
		return call.CanRead(s.skillOf(uri))
	}
	return slices.ContainsFunc(children, func(r *mcp.Resource) bool { return s.sees(call, r.URI) })
}

// skillOf is the URI of the SKILL.md of the nearest skill that a directory is in.
func (s *snapshot) skillOf(dir string) string {
	for s.byURI[dir+"/"+skillFile] == nil && strings.Contains(dir, "/") {
		dir = dir[:strings.LastIndexByte(dir, '/')]
	}
	return dir + "/" + skillFile
}
