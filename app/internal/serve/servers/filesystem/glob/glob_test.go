package glob_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/serve/servers/filesystem/glob"
)

// The answers are those of minimatch 10.2.6 with its option dot; interop compares more.
func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern string
		yes, no []string
	}{
		{"*", []string{"a", ".a", "a.b"}, []string{"a/b"}},
		{"*.txt", []string{"a.txt", ".txt"}, []string{"a.txt.b", "d/a.txt"}},
		{"**/*.txt", []string{"a.txt", "d/a.txt", "d/e/.txt"}, []string{"a.md"}},
		{"**", []string{"a", "a/b"}, nil},
		{"a/**", []string{"a/b", "a/b/c"}, []string{"a", "b/a"}},
		{"**/a/**", []string{"a/x", "b/a/x/y"}, []string{"a", "b/a"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"a/x/y/c", "ab"}},
		{"?b", []string{"ab", "éb"}, []string{"b", "aab"}},
		{"[a-c]x", []string{"ax", "cx"}, []string{"dx", "x"}},
		{"[!a-c]x", []string{"dx"}, []string{"ax"}},
		{"[^a]", []string{"b"}, []string{"a"}},
		{"[[:digit:]]*", []string{"1a"}, []string{"a1"}},
		{"[]a]", []string{"]", "a"}, nil},
		{"[a", []string{"[a"}, []string{"a"}},
		{"[z-a]", nil, []string{"z", "a", "-"}},
		{"{a,b{1,2}}.c", []string{"a.c", "b1.c", "b2.c"}, []string{"b.c"}},
		{"{1..3}", []string{"1", "3"}, []string{"4"}},
		{"{01..10..3}", []string{"01", "10"}, []string{"1", "02"}},
		{"{c..a}", []string{"a", "b"}, []string{"d"}},
		{"{a}", []string{"{a}"}, []string{"a"}},
		{"@(a|b*)", []string{"a", "b", "bx"}, []string{"ab", ""}},
		{"+(ab)c", []string{"abc", "ababc"}, []string{"c", "abac"}},
		{"*(a|b)c", []string{"c", "abac"}, []string{"xc"}},
		{"?(a)b", []string{"b", "ab"}, []string{"aab"}},
		{"x!(a|b)", []string{"x", "xc", "xab"}, []string{"xa", "xb"}},
		{"!*.txt", []string{"a.md", "d/a.txt"}, []string{"a.txt"}},
		{"!!a", []string{"a"}, []string{"b"}},
		{"#a", nil, []string{"#a", "a"}},
		{"", nil, []string{"a"}},
		{`\*`, []string{"*"}, []string{"a"}},
		{"a//b", []string{"a/b"}, []string{"ab"}},
		{"x/../a", []string{"a"}, []string{"x/../a"}},
		{"/a", nil, []string{"a"}},
	} {
		p, err := glob.Compile(test.pattern)
		if err != nil {
			t.Errorf("%q: %v", test.pattern, err)
			continue
		}
		for _, path := range test.yes {
			if !matches(t, p, path) {
				t.Errorf("%q does not match %q", test.pattern, path)
			}
		}
		for _, path := range test.no {
			if matches(t, p, path) {
				t.Errorf("%q matches %q", test.pattern, path)
			}
		}
	}
}

// Patterns that stand for too much are refused, and none takes long.
func TestLimits(t *testing.T) {
	for _, bad := range []string{
		strings.Repeat("a", glob.MaxLength+1), "{1..1001}", strings.Repeat("{a,b}", 1500/2), "{1..99999999999999999999}",
		"{" + strings.Repeat("{a,b}{a,b}{a,b}{a,b},", 100) + "}",
	} {
		if _, err := glob.Compile(bad); err == nil {
			t.Errorf("%.60q... is taken", bad)
		}
	}
	for _, slow := range []string{
		strings.Repeat("*a", 500), strings.Repeat("**/", 500) + "b", "+(" + strings.Repeat("+(", 100) + "a" + strings.Repeat(")", 101),
		strings.Repeat("@(a|", 500), "*(a*)*(a*)*(a*)*(a*)*(a*)b",
		"*(*(*(*(a))))b", "+(+(+(a)|+(a))|+(+(a)|+(a)))b", "@(!(!(!(a*)*)*)*)b", "+(!(+(!(+(!(a)))))x)b",
		strings.Repeat("{", 2000) + strings.Repeat("}", 2000),
	} {
		p, err := glob.Compile(slow)
		if err != nil {
			t.Errorf("%.60q...: %v", slow, err)
			continue
		}
		for _, path := range []string{strings.Repeat("a/", 100) + strings.Repeat("a", 255) + "c", strings.Repeat("a", 255) + "c"} {
			if matches(t, p, path) {
				t.Errorf("%.60q... matches", slow)
			}
		}
	}
}

// matches is Match, which must not fail.
func matches(t *testing.T, p *glob.Pattern, path string) bool {
	t.Helper()
	ok, err := p.Match(t.Context(), path)
	if err != nil {
		t.Errorf("%q: %v", path, err)
	}
	return ok
}

// An ending context counts how often it is looked at, and ends after some of them.
type ending struct {
	context.Context //nolint:containedctx // it is a context

	looks, most int
}

func (e *ending) Err() error {
	if e.looks++; e.looks > e.most {
		return context.Canceled
	}
	return nil
}

// Once the context ends, no more alternatives are tried.
func TestMatchEnds(t *testing.T) {
	p, err := glob.Compile("{1..1000}")
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Alternatives(); n != 1000 {
		t.Errorf("%d alternatives", n)
	}
	for most, ok := range map[int]bool{0: false, 5: false, 499: false, 500: true} {
		ctx := &ending{Context: t.Context(), most: most}
		got, err := p.Match(ctx, "548") // the 500th, since they are sorted as texts
		// One look finds the end, and one the cause.
		if got != ok || errors.Is(err, context.Canceled) == ok || ctx.looks > most+2 {
			t.Errorf("after %d looks: %t, %v, %d looks", most, got, err, ctx.looks)
		}
	}
}

// No pattern and no path makes it panic.
func FuzzMatch(f *testing.F) {
	f.Add("{a,[b-]*(x|!(y))}/**/?", "a/b")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		p, err := glob.Compile(pattern)
		if err != nil {
			return
		}
		if first := matches(t, p, path); first != matches(t, p, path) {
			t.Error("two answers")
		}
	})
}
