package archtest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/archtest"
)

const seeWords = ": see docs/decisions/0053-words.md"

func TestWords(t *testing.T) {
	refused := []archtest.Word{
		{Text: "patience"}, {Text: "giveUp"}, {Text: "carrier", But: []string{"Carrier"}}, {Text: "turn", Package: "server"},
	}
	tests := map[string]struct {
		file, text string
		want       []string
	}{
		"comment":           {"a/a.go", "package a\n\n// My Patience ends.", []string{`a/a.go:3: the word "patience"` + seeWords}},
		"plural":            {"a/a.go", "package a // carriers", []string{`a/a.go:1: the word "carrier"` + seeWords}},
		"name":              {"a/a.go", "package a\nvar patience int", []string{`a/a.go:2: the word "patience"` + seeWords}},
		"part of a name":    {"a/a.go", "package a\nfunc f() { leakPatience := 1; _ = leakPatience }", []string{`a/a.go:2: the word "patience"` + seeWords, `a/a.go:2: the word "patience"` + seeWords}},
		"two words":         {"a/a.go", "package a\nvar x struct{ giveUpTime int }", []string{`a/a.go:2: the word "giveUp"` + seeWords}},
		"two other words":   {"a/a.go", "package a\nvar upGive, give, giveUpper int // give up", nil},
		"part of a word":    {"a/a.go", "package a\nvar impatiences, xcarrier int // impatience", nil},
		"text":              {"a/a.go", "package a\nconst s = \"patience\"", nil},
		"but":               {"a/a.go", "package a\n// A Carrier is public.\ntype Carrier int", nil},
		"test":              {"a/a_test.go", "package a // patience", nil},
		"declared":          {"server/a.go", "package server\ntype x struct{ turn int }", []string{`server/a.go:2: the word "turn"` + seeWords}},
		"method":            {"server/a.go", "package server\ntype x interface{ turn() }", []string{`server/a.go:2: the word "turn"` + seeWords}},
		"local":             {"server/a.go", "package server // in turn\nfunc f(turn int) { _ = turn }", nil},
		"declared apart":    {"client/a.go", "package client\ntype turn int", nil},
		"initials":          {"a/a.go", "package a\nvar maxHTTPPatience int", []string{`a/a.go:2: the word "patience"` + seeWords}},
		"an ending initial": {"a/a.go", "package a\nvar patienceHTTP int", []string{`a/a.go:2: the word "patience"` + seeWords}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, tree(t, map[string]string{test.file: test.text}).Words(refused), test.want...)
		})
	}
}

// Each word of the list is refused: a file that has them all is full of problems.
func TestRefusedWords(t *testing.T) {
	for _, w := range archtest.RefusedWords {
		pkg := w.Package
		if pkg == "" {
			pkg = "mcp"
		}
		found := tree(t, map[string]string{pkg + "/a.go": "package a\nvar " + w.Text + " int"}).Words(archtest.RefusedWords)
		if !slices.ContainsFunc(found, func(p archtest.Problem) bool { return strings.Contains(p.Text, `"`+w.Text+`"`) }) {
			t.Errorf("%q in %s is no problem: %v", w.Text, pkg, found)
		}
	}
}

func TestWidth(t *testing.T) {
	wide := strings.Repeat("word ", 22) + "x" // 111 characters
	fits := strings.TrimSpace(strings.Repeat("word ", 22))
	page := strings.Join([]string{
		fits, wide, "- " + wide, "| " + wide + " |", "# " + wide, "```", wide, "```", "    " + wide,
		"see https://example.org/" + strings.Repeat("a", 90), "<!-- measured: begin -->", wide, "<!-- measured: end -->", wide,
	}, "\n")
	got, err := archtest.Load(repository(map[string]string{
		"README.md":               page,
		"node_modules/x/a.md":     wide,
		"docs/guide/a.md":         "ü" + strings.Repeat("ü", 109),
		"server/a.go":             "package server\n\n// " + wide + "\nvar a = 1 // short\n\n/*\n" + wide + "\n*/\n",
		"server/a_test.go":        "package server\n\n//nolint:x // " + wide + "\n\n// " + wide,
		"server/testdata/page.md": wide,
		"server/e_test.go":        "package server\n\n// Output:\n// " + wide + "\n\n// As in\n//\n//\t" + wide,
	}))
	if err != nil {
		t.Fatal(err)
	}
	problems, err := got.Width()
	if err != nil {
		t.Fatal(err)
	}
	const text = ": a line of prose with more than 110 characters: wrap it near column 100"
	expect(
		t, problems,
		"server/a.go:3"+text, "server/a.go:7"+text, "server/a_test.go:5"+text,
		"README.md:2"+text, "README.md:3"+text, "README.md:14"+text,
	)
}
