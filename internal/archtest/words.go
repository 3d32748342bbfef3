package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A Word is refused in Go files that are no tests.
type Word struct {
	// Text is the word. In a name it is the whole name or one of the words that
	// the name is made of: "pace" is in paceTime, not in space.
	Text string
	// Package is empty for a word that is refused everywhere, in comments and in
	// names. Otherwise the word is an ordinary one, and refused as a whole name
	// that this package declares: a type, function, method, field, constant or
	// variable.
	Package string
	// But are names that have the word and are allowed.
	But []string
}

// RefusedWords are the words that the repository has given up for a term that
// the specification, net/http or the standard library uses. What to say instead
// is in docs/decisions/0053-words.md.
var RefusedWords = []Word{
	{Text: "whoever"},
	{Text: "patience"},
	{Text: "passage"},
	{Text: "posting"},
	{Text: "farewell"},
	{Text: "parcel"},
	{Text: "mailbox"},
	{Text: "overtake"},
	{Text: "strand"},
	{Text: "restraint"},
	{Text: "prover"},
	{Text: "giveUp"},
	{Text: "openList"},
	{Text: "lateList"},
	{Text: "carrier", But: []string{"HeaderCarrier", "TextMapCarrier"}}, // of OpenTelemetry
	{Text: "signin", Package: "app/userauth"},
	{Text: "open", Package: "transport/streamable"},
	{Text: "part", Package: "transport/streamable"},
	{Text: "look", Package: "transport/streamable"},
	{Text: "turn", Package: "transport/frame"},
	{Text: "pace", Package: "transport/frame"},
	{Text: "board", Package: "server"},
	{Text: "leave", Package: "server"},
	{Text: "alone", Package: "server"},
	{Text: "driver", Package: "server"},
	{Text: "hold", Package: "schema"},
	{Text: "clause", Package: "schema"},
	{Text: "want", Package: "oauth/login"},
	{Text: "doubt", Package: "oauth/login"},
	{Text: "futile", Package: "oauth/login"},
	{Text: "keeper", Package: "oauth/login"},
	{Text: "record", Package: "oauth/login"},
	{Text: "Face", Package: "transport/web"},
	{Text: "Gate", Package: "transport/web"},
	{Text: "spot", Package: "transport/web"},
	{Text: "Telling", Package: "transport/web"},
	{Text: "Place", Package: "transport/web"},
	{Text: "Clock", Package: "transport"},
	{Text: "Waiting", Package: "transport"},
	{Text: "gate", Package: "transport"},
	{Text: "gate", Package: "transport/mem"},
	{Text: "lender", Package: "schema"},
	{Text: "refuser", Package: "schema"},
	{Text: "spoken", Package: "client"},
	{Text: "untold", Package: "client"},
	{Text: "outgrown", Package: "client"},
	{Text: "trip", Package: "oauth/issuer"},
	{Text: "departure", Package: "oauth/issuer"},
	{Text: "look", Package: "oauth/internal/jwt"},
	{Text: "typist", Package: "app/cli"},
	{Text: "turns", Package: "proxy"},
}

// Words reports words of the list in comments and names. Tests are exempt.
func (t *Tree) Words(refused []Word) []Problem {
	var found []Problem
	for _, w := range refused {
		in := w.pattern()
		for _, src := range t.sources {
			if src.test || w.Package != "" && w.Package != src.pkg {
				continue
			}
			for _, at := range w.places(src.file, in) {
				found = append(found, t.at(at, "the word %q: see docs/decisions/0053-words.md", w.Text))
			}
		}
	}
	return found
}

// pattern matches the word in a comment.
func (w Word) pattern() *regexp.Regexp {
	if w.words() > 1 {
		return regexp.MustCompile(`\b` + w.Text + `\b`)
	}
	return regexp.MustCompile(`(?i)\b` + w.Text + `s?\b`)
}

func (w Word) words() int { return len(nameWords(w.Text)) }

// places are where a file has the word.
func (w Word) places(f *ast.File, in *regexp.Regexp) []token.Pos {
	var found []token.Pos
	if w.Package != "" {
		for _, name := range declared(f) {
			if name.Name == w.Text {
				found = append(found, name.Pos())
			}
		}
		return found
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			for _, hit := range in.FindAllString(c.Text, -1) {
				if !slices.Contains(w.But, hit) {
					found = append(found, c.Pos())
				}
			}
		}
	}
	for n := range ast.Preorder(f) {
		if name, ok := n.(*ast.Ident); ok && !slices.Contains(w.But, name.Name) && w.inName(name.Name) {
			found = append(found, name.Pos())
		}
	}
	return found
}

// inName reports whether a name has the word among the words it is made of.
func (w Word) inName(name string) bool {
	if len(name) < len(w.Text) {
		return false
	}
	all, want := nameWords(name), nameWords(w.Text)
	for i := range all {
		if i+len(want) <= len(all) && slices.Equal(all[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

// nameWords splits a name at its capitals: "maxHTTPBody" is max, http, body.
func nameWords(name string) []string {
	var words []string
	runes := []rune(name)
	begin := 0
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || unicode.IsUpper(runes[i]) &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			words = append(words, strings.ToLower(string(runes[begin:i])))
			begin = i
		}
	}
	return words
}

// declared are the names that a file declares for its package: types, functions,
// methods, fields, constants and variables.
func declared(f *ast.File) []*ast.Ident {
	var names []*ast.Ident
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					names = append(names, spec.Names...)
				case *ast.TypeSpec:
					names = append(names, spec.Name)
					names = append(names, members(spec.Type)...)
				}
			}
		}
	}
	return names
}

// members are the fields or methods that a type lists.
func members(typ ast.Expr) []*ast.Ident {
	var list *ast.FieldList
	switch typ := typ.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return nil
	}
	var names []*ast.Ident
	for _, field := range list.List {
		names = append(names, field.Names...)
	}
	return names
}
