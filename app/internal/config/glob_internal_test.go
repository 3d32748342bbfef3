package config

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// texts are all texts of an alphabet up to a length.
func texts(alphabet string, length int) []string {
	all := []string{""}
	for from := 0; length > 0; length-- {
		end := len(all)
		for _, s := range all[from:end] {
			for _, c := range alphabet {
				all = append(all, s+string(c))
			}
		}
		from = end
	}
	return all
}

func compile(g string, question bool) *regexp.Regexp {
	g = strings.ReplaceAll(regexp.QuoteMeta(g), `\*`, `.*`)
	if question {
		g = strings.ReplaceAll(g, `\?`, `.`)
	}
	return regexp.MustCompile("^(?s:" + g + ")$")
}

// The rests that a glob leaves of a prefix match what the glob matches, and nothing else.
func TestResiduals(t *testing.T) {
	t.Parallel()
	subjects := texts("a_", 4)
	for _, g := range texts("a_*?", 4) {
		for _, question := range []bool{false, true} {
			whole := compile(g, question)
			for _, prefix := range []string{"", "a", "_", "a_", "a_a"} {
				var rests []*regexp.Regexp
				for _, rest := range residuals(g, prefix, question) {
					rests = append(rests, compile(rest, question))
				}
				for _, s := range subjects {
					got := slices.ContainsFunc(rests, func(r *regexp.Regexp) bool { return r.MatchString(s) })
					if want := whole.MatchString(prefix + s); got != want {
						t.Fatalf("%q after %q, question %v: %q is %v, want %v", g, prefix, question, s, got, want)
					}
				}
			}
			if !question {
				for _, s := range subjects {
					if matches(g, s) != whole.MatchString(s) {
						t.Fatalf("matches(%q, %q) is %v", g, s, matches(g, s))
					}
				}
			}
		}
	}
}

// Two globs overlap if a text matches both.
func TestOverlap(t *testing.T) {
	t.Parallel()
	globs, subjects := texts("ab*?", 3), texts("ab", 6)
	matched := map[string]map[string]bool{}
	for _, g := range globs {
		matched[g] = map[string]bool{}
		pattern := compile(g, true)
		for _, s := range subjects {
			if pattern.MatchString(s) {
				matched[g][s] = true
			}
		}
	}
	for _, a := range globs {
		for _, b := range globs {
			want := false
			for s := range matched[a] {
				want = want || matched[b][s]
			}
			if got := overlap(a, b); got != want {
				t.Fatalf("overlap(%q, %q) is %v", a, b, got)
			}
		}
	}
}

// The nearest name is found whatever the order of the names.
func TestNearest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"comand": "command", "COMMAND": "command", "cmmand": "command", "args": "args", "agrs": "args", "ar": "", "": ""} {
		for _, known := range [][]string{{"command", "args"}, {"args", "command"}} {
			if got := Nearest(name, known); got != want {
				t.Errorf("%q: %q, want %q", name, got, want)
			}
		}
	}
}
