package gogit

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/parley-mcp/parley/mcp"
)

// Contents reads the file at a path of a commit, or the names in the folder there.
func (r *base) Contents(rev, name string) ([]byte, []string, error) {
	c, err := r.Find(rev)
	if err != nil {
		return nil, nil, err
	}
	at, rest := c.TreeHash, name
	for rest != "" {
		list, err := r.entries(at)
		if err != nil {
			return nil, nil, err
		}
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		i := slices.IndexFunc(list, func(e treeEntry) bool { return e.Name == part })
		switch {
		case i < 0:
			return nil, nil, mcp.Errorf("there is no %q in %s", name, rev)
		case list[i].Mode.IsFile() && rest == "":
			content, err := r.blob(list[i].Hash)
			return content, nil, err
		case list[i].Mode != filemode.Dir:
			return nil, nil, mcp.Errorf("%q of %s is not a file", name, rev)
		}
		at = list[i].Hash
	}
	list, err := r.entries(at)
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, 0, len(list))
	for _, e := range list {
		if e.Mode == filemode.Dir {
			e.Name += "/"
		}
		names = append(names, e.Name)
	}
	return nil, names, nil
}
