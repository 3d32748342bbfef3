package config

import (
	"slices"
	"strings"
)

// Nearest returns the name that a person may have meant, or empty: one that differs in
// letter case or separators, or by one or two letters. It sorts the known ones.
func Nearest(name string, known []string) string {
	slices.Sort(known)
	best, least := "", 3
	if len(name) < 6 {
		least = 2
	}
	for _, k := range known {
		if plainName(k) == plainName(name) {
			return k
		}
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// plainName is a name without letter case and separators.
func plainName(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// distance is the number of letters to insert, remove, replace or swap with the next to
// make b of a. Names that are long or differ much in length are far apart.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 || len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return 100
	}
	var before, previous, current [41]int
	for j := range len(b) + 1 {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous = previous, current
	}
	return previous[len(b)]
}
