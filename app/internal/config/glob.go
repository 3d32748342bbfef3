package config

import (
	"slices"
	"strings"

	"github.com/parley-mcp/parley/policy"
)

// This file translates the globs of other clients ("*" is any characters, "?" is one where the client
// has it) into those of package policy, which matches them. The translation needs residuals and overlap,
// for which package policy has no use; matches is one more question to residuals.

// residuals returns globs for the rests of all texts that begin with prefix and match g.
func residuals(g, prefix string, question bool) []string {
	states := []int{0}
	for i := range len(prefix) {
		var next []int
		add := func(k int) {
			if !slices.Contains(next, k) {
				next = append(next, k)
			}
		}
		for _, k := range closure(g, states) {
			switch {
			case k == len(g):
			case g[k] == '*':
				add(k)
			case g[k] == prefix[i] || g[k] == '?' && question:
				add(k + 1)
			}
		}
		states = next
	}
	var rests []string
	for _, k := range states {
		if g[k:] == "*" {
			return []string{"*"}
		}
		if !slices.Contains(rests, g[k:]) {
			rests = append(rests, g[k:])
		}
	}
	return rests
}

// closure adds the states after stars that match nothing.
func closure(g string, states []int) []int {
	all := slices.Clone(states)
	for i := 0; i < len(all); i++ {
		if k := all[i]; k < len(g) && g[k] == '*' && !slices.Contains(all, k+1) {
			all = append(all, k+1)
		}
	}
	return all
}

// overlap reports whether a text matches both globs, in which "*" and "?" are wildcards.
func overlap(a, b string) bool {
	// row[j] says whether the rests of a from i and of b from j have a text in common.
	row := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		above := row
		row = make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && a[i] == '*':
				row[j] = above[j] || j < len(b) && row[j+1]
			case j < len(b) && b[j] == '*':
				row[j] = row[j+1] || i < len(a) && above[j]
			case i < len(a) && j < len(b):
				row[j] = (a[i] == b[j] || a[i] == '?' || b[j] == '?') && above[j+1]
			}
		}
	}
	return row[0]
}

// matches reports whether a text matches a glob in which only "*" is a wildcard.
func matches(g, s string) bool {
	return slices.ContainsFunc(residuals(g, s, false), func(rest string) bool { return strings.Trim(rest, "*") == "" })
}

// policyGlob writes a glob of another client as one of package policy. Clients write
// characters that models do not take as "_": in a rule that restricts it stands for any
// character, so that a tool cannot get around the rule by its spelling.
func policyGlob(g string, question, restricts bool) string {
	var b strings.Builder
	for _, c := range g {
		switch {
		case c == '*', c == '?' && question:
			b.WriteRune(c)
		case c == '_' && restricts:
			b.WriteByte('?')
		default:
			b.WriteString(policy.Quote(string(c)))
		}
	}
	return b.String()
}
