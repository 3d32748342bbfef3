package gogit

import (
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/parley-mcp/parley/mcp"
)

// Contents reads the file at a path of a commit, or the names in the folder there.
func (r *Repository) Contents(rev, name string) ([]byte, []string, error) {
	c, err := r.Find(rev)
	if err != nil {
		return nil, nil, err
	}
	at := c.TreeHash
	for part, rest := splitFirst(name); part != ""; part, rest = splitFirst(rest) {
		list, err := r.entries(at)
		if err != nil {
			return nil, nil, err
		}
		e := entryOf(list, part)
		switch {
		case e == nil:
			return nil, nil, mcp.Errorf("there is no %q in %s", name, rev)
		case e.Mode.IsFile() && rest == "":
			content, err := r.blob(e.Hash)
			return content, nil, err
		case !isTree(e):
			return nil, nil, mcp.Errorf("%q of %s is no file", name, rev)
		}
		at = e.Hash
	}
	list, err := r.entries(at)
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, 0, len(list))
	for _, e := range list {
		if isTree(&e) {
			e.Name += "/"
		}
		names = append(names, e.Name)
	}
	return nil, names, nil
}

// splitFirst cuts a path after its first part.
func splitFirst(name string) (part, rest string) {
	for i := range len(name) {
		if name[i] == '/' {
			return name[:i], name[i+1:]
		}
	}
	return name, ""
}

func entryOf(list []object.TreeEntry, name string) *object.TreeEntry {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

func isTree(e *object.TreeEntry) bool { return e.Mode == filemode.Dir }
