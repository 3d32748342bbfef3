package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
	"honnef.co/go/tools/unused"
)

// An exception is a kind of finding that is none in some files.
type exception struct {
	path    *regexp.Regexp // matches the file's path, relative to the root
	linters string         // separated by blanks
	text    *regexp.Regexp // matches the text
}

var anything = regexp.MustCompile("")

var exceptions = []exception{
	// A table of cases is long, and cases look alike; a test may stop a process that it started, and print.
	{path: regexp.MustCompile(`_test\.go$`), linters: "dupl forbidden funlen gocognit noctx exported", text: anything},
	// A test that closes what it is done with has nothing to do with an error.
	{path: regexp.MustCompile(`_test\.go$|^examples/`), linters: "errcheck", text: regexp.MustCompile(`\.Close is not checked$`)},
	// Twenty-six kinds of types, of which code that walks one means a few.
	{path: anything, linters: "exhaustive", text: regexp.MustCompile(`missing cases .*reflect\.`)},
	// What the newest revision deprecates is still offered to older peers, and tested; the marks are for
	// those who write new code. The SDKs of others are spoken to in every era.
	{path: anything, linters: "staticcheck", text: regexp.MustCompile(`^SA1019: .*(github.com/parley-mcp/parley|modelcontextprotocol/go-sdk|mark3labs/mcp-go)`)},
	// Programs speak through their main packages; examples are as short as users write them.
	{path: regexp.MustCompile(`/cmd/|^(bench|conformance|release|lint|examples)/`), linters: "forbidden", text: anything},
}

// applies reports whether e holds for f.
func (e *exception) applies(f finding) bool {
	return slices.Contains(strings.Fields(e.linters), f.linter) && e.path.MatchString(f.file) && e.text.MatchString(f.text)
}

// A comment is a nolint comment.
type comment struct {
	finding      // where it is
	linters      []string
	first, last  int // the lines that it covers
	used, broken bool
}

// A report collects the findings of one module.
type report struct {
	root      string
	deps      bool
	fset      *token.FileSet
	generated map[string]bool
	comments  map[string][]*comment // by file
	mu        sync.Mutex            // guards found, and comment.used
	found     []finding
}

var nolint = regexp.MustCompile(`^//nolint(:\S*)?(.*)$`)

// newReport reads the nolint comments of packages.
func newReport(root string, deps bool, list []*packages.Package) *report {
	r := &report{root: root, deps: deps, generated: make(map[string]bool), comments: make(map[string][]*comment)}
	for _, p := range list {
		r.fset = p.Fset
		for _, file := range p.Syntax {
			name := relative(root, p.Fset.File(file.FileStart).Name())
			if _, seen := r.comments[name]; seen {
				continue
			}
			r.generated[name] = ast.IsGenerated(file)
			r.comments[name] = []*comment{}
			for _, group := range file.Comments {
				for _, c := range group.List {
					if m := nolint.FindStringSubmatch(c.Text); m != nil {
						r.comments[name] = append(r.comments[name], r.read(file, c, name, m[1], m[2]))
					}
				}
			}
		}
	}
	return r
}

// read reads one nolint comment. It covers its own line, or the next one if it is alone on it, and the
// statements and declarations that begin there.
func (r *report) read(file *ast.File, c *ast.Comment, name, names, reason string) *comment {
	at := r.fset.Position(c.Pos())
	d := &comment{finding: finding{file: name, line: at.Line, col: at.Column, linter: "nolint"}, first: at.Line + 1, last: at.Line + 1}
	d.linters = strings.Split(strings.TrimPrefix(names, ":"), ",")
	known := func(name string) bool {
		return slices.ContainsFunc(linters, func(l linter) bool { return l.name == name })
	}
	switch {
	case !strings.HasPrefix(strings.TrimSpace(reason), "// "):
		d.text, d.broken = "a nolint comment has a reason: //nolint:NAME // REASON", true
	case slices.ContainsFunc(d.linters, func(name string) bool { return !known(name) }):
		d.text, d.broken = fmt.Sprintf("unknown linter in %q", names), true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		if _, ok := n.(*ast.File); ok {
			return true
		}
		if _, ok := n.(*ast.CommentGroup); !ok && n.Pos() < c.Pos() && r.fset.Position(n.Pos()).Line == at.Line {
			d.first = at.Line // code before it
		}
		return true
	})
	if d.first == at.Line {
		d.last = at.Line
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		if _, ok := n.(*ast.File); !ok && r.fset.Position(n.Pos()).Line == d.first {
			d.last = max(d.last, r.fset.Position(n.End()).Line)
		}
		return true
	})
	return d
}

// add adds what an analyzer found in a package.
func (r *report) add(linter string, action *checker.Action) {
	for _, d := range action.Diagnostics {
		text := d.Message
		if linter == "staticcheck" {
			text = action.Analyzer.Name + ": " + text
		}
		r.find(linter, r.fset.Position(d.Pos), text)
	}
	if result, ok := action.Result.(unused.Result); ok {
		type spot struct {
			file, name string
			line       int
		}
		used := make(map[spot]bool) // an embedded type and its field are one
		for _, object := range result.Used {
			used[spot{object.Position.Filename, object.Name, object.Position.Line}] = true
		}
		for _, object := range result.Unused {
			if object.Kind != "type param" && !used[spot{object.Position.Filename, object.Name, object.Position.Line}] {
				r.find(linter, object.Position, fmt.Sprintf("%s %s is unused", object.Kind, object.Name))
			}
		}
	}
}

// find adds one finding, unless an exception or a comment allows it.
func (r *report) find(linter string, at token.Position, text string) {
	f := finding{file: relative(r.root, at.Filename), line: at.Line, col: at.Column, linter: linter, text: text}
	if !strings.HasSuffix(f.file, ".go") || r.generated[f.file] {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.comments[f.file] {
		if slices.Contains(d.linters, linter) && d.first <= f.line && f.line <= d.last {
			d.used = true
			return
		}
	}
	for i := range exceptions {
		if exceptions[i].applies(f) {
			return
		}
	}
	r.found = append(r.found, f)
}

// findings returns all findings, and the nolint comments that are wrong or allow nothing.
func (r *report) findings() []finding {
	for _, list := range r.comments {
		for _, d := range list {
			needed := d.used || !r.deps && slices.Contains(d.linters, "staticcheck") // SA1019 needs dependencies
			if !d.broken && !needed {
				d.text, d.broken = "the nolint comment allows nothing", true
			}
			if d.broken {
				r.found = append(r.found, d.finding)
			}
		}
	}
	return r.found
}
