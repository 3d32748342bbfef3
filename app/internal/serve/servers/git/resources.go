package git

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git/gogit"
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
	repository := g.Repositories[0]
	read := func(ctx context.Context, in fileIn) (mcp.ResourceContents, error) {
		content, err := g.file(ctx, in)
		if err != nil || gogit.IsBinary(content) || !utf8.Valid(content) {
			return mcp.ResourceContents{Blob: content}, err
		}
		return mcp.ResourceContents{MIMEType: "text/plain", Text: string(content)}, nil
	}
	return server.Template("git://repository/{ref}/{+path}", "file", read).With(server.TemplateOptions{
		Title:       "File of a commit",
		Description: "A file as it is in a branch, tag or commit; of a folder the names in it.",
		Complete: map[string]server.Completer{
			"ref": func(ctx context.Context, value string, _ map[string]string) (names []string, err error) {
				err = g.with(ctx, repository, func(r *gogit.Repository) error {
					names, err = r.Refs()
					return err
				})
				return beginning(names, value), err
			},
			"path": func(ctx context.Context, value string, sofar map[string]string) (names []string, err error) {
				folder, _ := path.Split(value)
				dir := strings.TrimSuffix(folder, "/")
				ref := cmp.Or(sofar["ref"], "HEAD")
				if gogit.CheckRevision("ref", ref) != nil || dir != "" && gogit.CheckPath(dir) != nil {
					return nil, nil //nolint:nilerr // there is nothing to complete it with
				}
				err = g.with(ctx, repository, func(r *gogit.Repository) error {
					_, list, err := r.Contents(ref, dir)
					for _, name := range list {
						names = append(names, folder+name)
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
	if err := gogit.CheckRevision("ref", in.Ref); err != nil {
		return nil, err
	}
	if err := gogit.CheckPath(in.Path); err != nil {
		return nil, err
	}
	var content []byte
	err := g.with(ctx, g.Repositories[0], func(r *gogit.Repository) error {
		text, names, err := r.Contents(in.Ref, in.Path)
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

// beginning are the names that begin with prefix.
func beginning(names []string, prefix string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) })
}
