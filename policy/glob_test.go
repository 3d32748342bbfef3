package policy

import (
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/racetest"
)

func mustGlob(t testing.TB, pattern string) *glob {
	t.Helper()
	g, err := compileGlob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return &g
}

// Every glob of up to four tokens contains another if and only if it matches all that the other does.
// Strings of eight characters are long enough to tell.
func TestContainsExhaustively(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	globs := words("ab*?", 4)
	texts := words("abx", 8)
	matched := make([][]bool, len(globs))
	compiled := make([]*glob, len(globs))
	for i, pattern := range globs {
		compiled[i] = mustGlob(t, pattern)
		for _, text := range texts {
			matched[i] = append(matched[i], compiled[i].match(text))
		}
	}
	for i := range globs {
		for j := range globs {
			want := true
			for k := 0; want && k < len(texts); k++ {
				want = matched[i][k] || !matched[j][k]
			}
			if got := compiled[i].contains(compiled[j]); got != want {
				t.Errorf("%q contains %q: %v", globs[i], globs[j], got)
			}
		}
	}
}

// words returns all texts of up to n of the letters.
func words(letters string, n int) []string {
	all, last := []string{""}, []string{""}
	for range n {
		var next []string
		for _, w := range last {
			for _, c := range letters {
				next = append(next, w+string(c))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

func TestContains(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		g, h string
		want bool
	}{
		{"*", "", true},
		{"", "*", false},
		{"write_*", "write_file_*", true},
		{"write_*", "write_?", true},
		{"write_?", "write_*", false},
		{"?*", "*?", true},
		{"*?", "??*", true},
		{"??*", "*?", false},
		{"*a*", "*a?*", true},
		{"*?a*", "*aa*", true},
		{"*ab*", "*a*b*", false},
		{"*a*b*", "*ab*", true},
		{"*a*?b*", "*a*bb*", true},
		{"*é*", "?é", true},
		{"?", "é", true},
		{"[*]", "*", false},
		{"*", "[*]", true},
		{"a[*]", "a[*]", true},
		{"a[*]b", "a*b", false},
		{"[*", "[*]", false},
		{"*[?]", "a[?]", true},
		{strings.Repeat("*a", 30) + "*", strings.Repeat("a*", 30), true},
		{strings.Repeat("*a", 31) + "*", strings.Repeat("a*", 30), false},
	} {
		if got := mustGlob(t, test.g).contains(mustGlob(t, test.h)); got != test.want {
			t.Errorf("%q contains %q: %v", test.g, test.h, got)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "a", "*", "?", "[*]", "[?]", "[[*]]", "a*b?c", "[", "]*[", "[*", "é*"} {
		g := mustGlob(t, Quote(s))
		if g.form != globExact || !g.match(s) || g.match(s+"x") || s != "" && g.match("") {
			t.Errorf("%q is quoted as %q, which is %+v", s, Quote(s), g)
		}
	}
}

// A pattern with many runs is matched in bounded time: this would take longer than the test may if it
// went back for every run.
func TestPatternIsBounded(t *testing.T) {
	t.Parallel()
	if mustGlob(t, strings.Repeat("*a", 200)+"b").match(strings.Repeat("a", 10_000)) {
		t.Error("it matches")
	}
	hard := mustGlob(t, "*"+strings.Repeat("?a?b*", 200))
	hard.contains(mustGlob(t, strings.Repeat("?*a*", 300)))
}

func globRegexp(pattern string) *regexp.Regexp {
	var b strings.Builder
	for _, token := range tokensOf(pattern) {
		switch token {
		case anyRun:
			b.WriteString(".*")
		case anyOne:
			b.WriteByte('.')
		default:
			b.WriteString(regexp.QuoteMeta(string(token)))
		}
	}
	return regexp.MustCompile(`(?s)\A` + b.String() + `\z`)
}

func FuzzGlobContains(f *testing.F) {
	f.Add("*a?", "a*b?", "aab1")
	f.Add("write_*", "write_[*]", "write_*")
	f.Add("*?*a*", "?é*", "éé")
	f.Fuzz(func(t *testing.T, pattern, other, s string) {
		g, err := compileGlob(pattern)
		h, otherErr := compileGlob(other)
		if err != nil || otherErr != nil {
			return
		}
		if len(pattern) < 200 && strings.ToValidUTF8(s, "") == s {
			if want := globRegexp(pattern).MatchString(s); g.match(s) != want {
				t.Errorf("%q matches %q: %v", pattern, s, !want)
			}
		}
		if g.contains(&h) && h.match(s) && !g.match(s) {
			t.Errorf("%q contains %q, but only the second matches %q", pattern, other, s)
		}
		if !g.contains(&g) && len(pattern) < 30 {
			t.Errorf("%q does not contain itself", pattern)
		}
		if len(pattern) > 1000 {
			return
		}
		if q := mustGlob(t, Quote(pattern)); !q.match(pattern) || q.form != globExact {
			t.Errorf("%q is not matched when quoted", pattern)
		}
	})
}
