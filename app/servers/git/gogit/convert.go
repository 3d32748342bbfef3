package gogit

import (
	"bytes"
	"cmp"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitattributes"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/parley-mcp/parley/app/servers/git/repo"
	"github.com/parley-mcp/parley/mcp"
)

// A conversion says how files differ between the repository and the working tree: the ends of
// their lines. Filters, which are commands, are not run.
type conversion struct {
	matcher  gitattributes.Matcher
	none     bool   // no file of attributes is there
	autocrlf string // core.autocrlf
	eol      string // core.eol
}

// conversion reads the attributes of the working tree and of the repository.
func (r *Repository) conversion(idx *index.Index) (*conversion, error) {
	var stack []gitattributes.MatchAttribute
	names := []string{".gitattributes"}
	for _, e := range idx.Entries {
		if path.Base(e.Name) == ".gitattributes" && e.Name != ".gitattributes" {
			names = append(names, e.Name)
		}
	}
	for _, name := range names {
		if err := r.ended(); err != nil {
			return nil, err
		}
		text, err := readSettings(r.tree, name)
		if err != nil {
			continue
		}
		var domain []string
		if dir := path.Dir(name); dir != "." {
			domain = strings.Split(dir, "/")
		}
		stack = append(stack, parseAttributes(text, domain)...)
	}
	if text, err := repo.ReadSmall(filepath.Join(r.place.Common, "info", "attributes")); err == nil {
		stack = append(stack, parseAttributes(text, nil)...)
	}
	const most = 50_000 // each file is matched with each of them
	if len(stack) > most {
		return nil, mcp.Errorf("the .gitattributes files of the repository have more than %d lines; use git yourself for it", most)
	}
	return &conversion{
		matcher:  gitattributes.NewMatcher(stack),
		none:     len(stack) == 0,
		autocrlf: cmp.Or(r.conf.Get("core.autocrlf"), r.own.Get("core.autocrlf")),
		eol:      cmp.Or(r.conf.Get("core.eol"), r.own.Get("core.eol")),
	}, nil
}

// parseAttributes reads the lines that can be understood; git passes over others too.
func parseAttributes(text []byte, domain []string) []gitattributes.MatchAttribute {
	var out []gitattributes.MatchAttribute
	for line := range bytes.Lines(text) {
		m, err := gitattributes.ParseAttributesLine(strings.TrimRight(string(line), "\r\n"), domain, false)
		if err == nil && m.Pattern != nil {
			out = append(out, m)
		}
	}
	return out
}

// attribute is the value of an attribute of a path: "", "set", "unset" or its text.
func (c *conversion) attribute(name, attribute string) string {
	if c.none {
		return ""
	}
	found, _ := c.matcher.Match(strings.Split(name, "/"), []string{attribute})
	a, ok := found[attribute]
	switch {
	case !ok || a.IsUnspecified():
		return ""
	case a.IsSet():
		return "set"
	case a.IsUnset():
		return "unset"
	}
	return a.Value()
}

// text says whether the ends of lines are converted: "set", "auto" or "".
func (c *conversion) text(name string) string {
	switch {
	case c.attribute(name, "binary") == "set":
		return ""
	case c.attribute(name, "text") == "auto":
		return "auto"
	case c.attribute(name, "text") == "unset":
		return ""
	case c.attribute(name, "text") != "" || c.attribute(name, "eol") != "":
		return "set"
	case c.autocrlf == "true" || c.autocrlf == "input":
		return "auto"
	}
	return ""
}

// staged is the content of a file as the repository has it. crlf tells whether what is staged now
// has ends of lines that are left alone.
func (c *conversion) staged(name string, content []byte, crlf func() bool) []byte {
	if !bytes.Contains(content, []byte("\r\n")) {
		return content
	}
	switch c.text(name) {
	case "":
		return content
	case "auto":
		if repo.IsBinary(content) || crlf() {
			return content
		}
	}
	return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
}

// written is the content of a file of the repository as the working tree has it.
func (c *conversion) written(name string, content []byte) []byte {
	text := c.text(name)
	if text == "" || text == "auto" && (repo.IsBinary(content) || bytes.ContainsRune(content, '\r')) {
		return content
	}
	eol := c.attribute(name, "eol")
	if eol == "" && c.autocrlf == "true" {
		eol = "crlf"
	}
	if eol == "" && c.autocrlf != "input" {
		eol = c.eol
	}
	if eol == "crlf" || (eol == "" || eol == "native") && runtime.GOOS == "windows" && c.autocrlf != "input" {
		return bytes.ReplaceAll(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}
	return content
}

// unsupported refuses files that git would pass through a command, or change in a way that is
// not known here.
func (c *conversion) unsupported(name string) error {
	if filter := c.attribute(name, "filter"); filter != "" && filter != "unset" {
		return mcp.Errorf("%q has the filter %q in its attributes, and this server runs no filter; use git yourself for it", name, filter)
	}
	for _, a := range []string{"ident", "working-tree-encoding"} {
		if v := c.attribute(name, a); v != "" && v != "unset" {
			return repo.Unsupported("%q, which has the attribute %s,", name, a)
		}
	}
	return nil
}
