package gogit

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitattributes"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/parley-mcp/parley/mcp"
)

// A conversion says how files differ between the repository and the working tree: the ends of
// their lines. Filters, which are commands, are not run.
type conversion struct {
	stack    []gitattributes.MatchAttribute // the lines, the last of which counts
	macros   map[string][]gitattributes.Attribute
	autocrlf string // core.autocrlf
	eol      string // core.eol
}

// conversion reads the attributes of the working tree and of the repository.
func (r *base) conversion(idx *index.Index) (*conversion, error) {
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
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		var domain []string
		if dir := path.Dir(name); dir != "." {
			domain = strings.Split(dir, "/")
		}
		stack = append(stack, parseAttributes(text, domain)...)
	}
	text, err := readSmall(filepath.Join(r.place.Common, "info", "attributes"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	stack = append(stack, parseAttributes(text, nil)...)
	if len(stack) > maxAttributes {
		return nil, mcp.Errorf("the .gitattributes files of the repository have more than %d lines; use git yourself for it", maxAttributes)
	}
	return &conversion{
		stack:    stack,
		macros:   readMacros(stack),
		autocrlf: cmp.Or(r.conf.get("core.autocrlf"), r.own.get("core.autocrlf")),
		eol:      cmp.Or(r.conf.get("core.eol"), r.own.get("core.eol")),
	}, nil
}

// parseAttributes reads the lines that can be understood. Git passes over the others too: a name that ends in
// a slash or is empty matches no file.
func parseAttributes(text []byte, domain []string) []gitattributes.MatchAttribute {
	var out []gitattributes.MatchAttribute
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		line := classes(strings.TrimSpace(string(line)))
		if strings.HasPrefix(line, `""`) {
			continue
		}
		m, err := gitattributes.ParseAttributesLine(line, domain, domain == nil)
		if err == nil && m.Name != "" && !strings.HasSuffix(m.Name, "/") {
			out = append(out, m)
		}
	}
	return out
}

// attribute is the value of an attribute of a path: "", "set", "unset" or its text. The last line that names
// the attribute, or a macro that has it, is the one that counts.
func (c *conversion) attribute(name, attribute string) string {
	path := strings.Split(name, "/")
	for _, m := range slices.Backward(c.stack) {
		if m.Pattern == nil {
			continue
		}
		if a := c.find(m.Attributes, attribute, maxMacros); a != nil && m.Pattern.Match(path) {
			return value(a)
		}
	}
	return ""
}

const maxMacros = 10 // that are made of each other

// find returns the last of list that is an attribute, or is a macro that has it.
func (c *conversion) find(list []gitattributes.Attribute, attribute string, depth int) gitattributes.Attribute {
	for _, a := range slices.Backward(list) {
		if a.Name() == attribute {
			return a
		}
		if macro := c.macros[a.Name()]; a.IsSet() && depth > 0 && macro != nil {
			if a := c.find(macro, attribute, depth-1); a != nil {
				return a
			}
		}
	}
	return nil
}

func value(a gitattributes.Attribute) string {
	switch {
	case a.IsUnspecified():
		return ""
	case a.IsSet():
		return "set"
	case a.IsUnset():
		return "unset"
	}
	return a.Value()
}

// readMacros returns the attributes of each macro of a stack, and of "binary", which git has from the start.
func readMacros(stack []gitattributes.MatchAttribute) map[string][]gitattributes.Attribute {
	macros := make(map[string][]gitattributes.Attribute)
	own := parseAttributes([]byte("[attr]binary -diff -merge -text\n"), nil)
	for _, m := range append(own, stack...) {
		if m.Pattern == nil {
			macros[m.Name] = m.Attributes
		}
	}
	return macros
}

// text says whether the ends of lines are converted: "set", "auto" or "".
func (c *conversion) text(name string) string {
	switch text := c.attribute(name, "text"); {
	case text == "auto":
		return "auto"
	case text == "unset":
		return ""
	case text != "" || c.attribute(name, "eol") != "":
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
		if IsBinary(content) || crlf() {
			return content
		}
	}
	return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
}

// written is the content of a file of the repository as the working tree has it.
func (c *conversion) written(name string, content []byte) []byte {
	text := c.text(name)
	if text == "" || text == "auto" && (IsBinary(content) || bytes.ContainsRune(content, '\r')) {
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
			return unsupported("%q, which has the attribute %s,", name, a)
		}
	}
	return nil
}
