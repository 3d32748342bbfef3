package revision

import "slices"

// A Set is a set of revisions, named by what they have in common. Packages server
// and client each have a public type of it; zero means Stateless there and here.
type Set uint8

// The sets.
const (
	Stateless Set = 1 << iota // without a handshake
	Handshake
	CoreTasks // those of Handshake that have tasks
	Metadata  // those in which definitions and contents have `_meta`
)

// Has reports whether a revision is in the set.
func (s Set) Has(f *Facts) bool {
	if s == 0 {
		s = Stateless
	}
	return s&SetOf(f) != 0
}

// Overlaps reports whether a revision is in both sets.
func (s Set) Overlaps(other Set) bool {
	return slices.ContainsFunc(All(), func(f *Facts) bool { return s.Has(f) && other.Has(f) })
}

// SetOf is the union of the sets that a revision is in.
func SetOf(f *Facts) Set {
	set := Handshake
	if !f.Handshake {
		set = Stateless
	}
	if f.Handshake && f.Tasks {
		set |= CoreTasks
	}
	if f.MetaEverywhere {
		set |= Metadata
	}
	return set
}
