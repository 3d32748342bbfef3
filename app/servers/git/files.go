package git

import (
	"context"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A fileIn names a file of a commit.
type fileIn struct {
	Ref  string `uri:"ref"`
	Path string `uri:"path"`
}

// files is the template of the files of the one repository, in each of its commits.
func (g *gitServer) files() server.Feature {
	repo := g.Repositories[0]
	read := func(ctx context.Context, in fileIn) (mcp.ResourceContents, error) {
		content, err := g.file(ctx, in)
		if err != nil || isBinary(content) || !utf8.Valid(content) {
			return mcp.ResourceContents{Blob: content}, err
		}
		return mcp.ResourceContents{MIMEType: "text/plain", Text: string(content)}, nil
	}
	return server.Template("git://repository/{ref}/{+path}", "file", read).With(server.TemplateOptions{
		Title:       "File of a commit",
		Description: "A file as it is in a branch, tag or commit; of a folder the names in it.",
		Complete: map[string]server.Completer{
			"ref": func(ctx context.Context, value string, _ map[string]string) (names []string, err error) {
				err = g.with(ctx, repo, func(e engine) error {
					names, err = e.refNames(ctx)
					return err
				})
				return beginning(names, value), err
			},
			"path": func(ctx context.Context, value string, sofar map[string]string) (names []string, err error) {
				dir := path.Dir(value)
				if strings.HasSuffix(value, "/") {
					dir = strings.TrimSuffix(value, "/")
				}
				if dir == "." {
					dir = ""
				}
				ref := sofar["ref"]
				if ref == "" {
					ref = "HEAD"
				}
				if checkRevision("ref", ref) != nil || dir != "" && checkPath(dir) != nil {
					return nil, nil //nolint:nilerr // there is nothing to complete it with
				}
				err = g.with(ctx, repo, func(e engine) error {
					_, list, err := e.contents(ctx, ref, dir)
					for _, name := range list {
						names = append(names, path.Join(dir, name)+name[len(strings.TrimSuffix(name, "/")):])
					}
					return err
				})
				return beginning(names, value), err
			},
		},
	})
}

// file reads a file of a commit, or the names in a folder.
func (g *gitServer) file(ctx context.Context, in fileIn) ([]byte, error) {
	if err := checkRevision("ref", in.Ref); err != nil {
		return nil, err
	}
	if err := checkPath(in.Path); err != nil {
		return nil, err
	}
	var content []byte
	err := g.with(ctx, g.Repositories[0], func(e engine) error {
		text, names, err := e.contents(ctx, in.Ref, in.Path)
		if names != nil {
			text = []byte(strings.Join(names, "\n") + "\n")
		}
		if err == nil && len(text) > g.Limits.Output {
			err = mcp.Errorf("the file has %d bytes, more than %d; raise --max-output if that is what you want", len(text), g.Limits.Output)
		}
		content = text
		return err
	})
	return content, err
}

// checkPath refuses paths that no file of a commit has.
func checkPath(name string) error {
	if err := checkText("path", name); err != nil {
		return err
	}
	if !utf8.ValidString(name) || path.Clean("/"+name) != "/"+strings.TrimSuffix(name, "/") {
		return mcp.Errorf("invalid path %q: it is relative to the repository, without '.', '..' and empty parts", name)
	}
	return nil
}

func beginning(names []string, prefix string) []string {
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			out = append(out, n)
		}
	}
	return out
}
