package filesystem

import (
	"bytes"
	"context"
	"mime"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type fileIn struct {
	Path string `uri:"path"`
}

// resources are the files of the directories, by their URI.
func (s *service) resources() server.Feature {
	return server.Template("file:///{+path}", "file", s.readResource).With(server.TemplateOptions{
		Title:       "File",
		Description: "A file of one of the allowed directories.",
		Complete:    map[string]server.Completer{"path": s.complete},
		List:        s.listResources,
		Watch:       s.watchResource,
	})
}

// absolute is the path that the variable of the template stands for.
func absolute(variable string) string {
	if runtime.GOOS == "windows" {
		return filepath.FromSlash(variable)
	}
	return "/" + variable
}

func (s *service) readResource(ctx context.Context, in fileIn) (mcp.ResourceContents, error) {
	var out mcp.ResourceContents
	d, err := s.directories(ctx)
	if err != nil {
		return out, err
	}
	defer s.dirs.release(d)
	path := absolute(in.Path)
	_, exists, err := d.locate(ctx, path)
	if err != nil && ctx.Err() == nil {
		err = mcp.NewError(mcp.CodeInvalidParams, "%v", err)
	}
	if err != nil {
		return out, err
	}
	if !exists {
		return out, server.ErrNotFound
	}
	data, err := d.readFile(ctx, path, s.opts.MaxRead)
	if err != nil && ctx.Err() == nil {
		err = mcp.NewError(mcp.CodeInvalidParams, "%v", err)
	}
	if err != nil {
		return out, err
	}
	out.MIMEType = mime.TypeByExtension(filepath.Ext(path))
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		out.Text = string(data)
	} else {
		out.Blob = data
	}
	return out, nil
}

// listed reports whether an entry has a name that a list of resources shows.
func (e entry) listed() bool { return !strings.HasPrefix(e.name, ".") && utf8.ValidString(e.name) }

// listResources lists files of the directories, those that are less deep first. Hidden
// files, and what is below hidden directories, can be read but are not listed.
func (s *service) listResources(ctx context.Context) ([]mcp.Resource, error) {
	d := s.dirs.acquire()
	defer s.dirs.release(d)
	var list []mcp.Resource
	var level []place
	for _, dir := range d.list {
		level = append(level, place{dir: dir, rel: ".", abs: dir.real})
	}
	visited := 0
	for len(level) > 0 {
		var below []place
		for _, at := range level {
			entries, _, err := at.entries(ctx, s.opts.MaxEntries-visited)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				continue // what cannot be read is left out
			}
			visited += len(entries)
			for _, e := range entries {
				if err := servers.Ended(ctx); err != nil {
					return nil, err
				}
				p := at.child(e.name)
				switch {
				case !e.listed():
				case e.isDir():
					below = append(below, p)
				case e.kind.IsRegular():
					list = append(list, resource(p))
				}
				if len(list) == s.opts.MaxResources {
					return list, nil
				}
			}
		}
		level = below
	}
	return list, nil
}

func resource(p place) mcp.Resource {
	r := mcp.Resource{URI: fileURI(p.abs), Name: filepath.ToSlash(p.rel), MIMEType: mime.TypeByExtension(filepath.Ext(p.abs))}
	if info, err := p.dir.root.Lstat(p.rel); err == nil {
		r.Size = new(info.Size())
	}
	return r
}

// complete suggests paths: entries of the directory that the value is in, or the allowed
// directories that begin like it.
func (s *service) complete(ctx context.Context, value string, _ map[string]string) ([]string, error) {
	d := s.dirs.acquire()
	defer s.dirs.release(d)
	path := absolute(value)
	var list []string
	for _, dir := range d.list {
		if strings.HasPrefix(dir.name, path) {
			list = append(list, shown(dir.name)+"/")
		}
	}
	parent, prefix := filepath.Split(path)
	p, exists, err := d.locate(ctx, parent)
	if err != nil || !exists {
		return list, servers.Ended(ctx) // nothing to suggest
	}
	entries, _, err := p.entries(ctx, s.opts.MaxEntries)
	if err != nil {
		return list, servers.Ended(ctx) // nothing to suggest
	}
	dirs := len(list)
	for _, e := range entries {
		if err := servers.Ended(ctx); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(e.name, prefix) || !utf8.ValidString(e.name) {
			continue
		}
		name := shown(filepath.Join(parent, e.name))
		if e.isDir() {
			name += "/"
		}
		if !slices.Contains(list[:dirs], name) {
			list = append(list, name)
		}
	}
	return list, nil
}

// shown is a path as the variable of the template has it.
func shown(path string) string { return strings.TrimPrefix(filepath.ToSlash(path), "/") }
