package server

import (
	"slices"

	"github.com/parley-mcp/parley/internal/revision"
)

// Revisions is a set of protocol revisions, named by what they have in common, so
// that an extension needs no dates and serves revisions to come. Sets are joined
// with |. The zero value means [Stateless] wherever an option has this type.
type Revisions uint8

// The sets.
const (
	// Stateless are the revisions in which every request stands for itself,
	// and a client declares its extensions with each.
	Stateless Revisions = 1 << iota
	// Handshake are the revisions with a handshake and sessions.
	Handshake
	// CoreTasks are those of Handshake in which tasks are part of the protocol,
	// as an experiment. Before them there are none, and after them tasks are
	// an extension.
	CoreTasks

	// AllRevisions are all of them.
	AllRevisions = Stateless | Handshake
)

// include reports whether a revision is in the set.
func (r Revisions) include(f *revision.Facts) bool {
	if r == 0 {
		r = Stateless
	}
	return r&revisionsOf(f) != 0
}

// overlap reports whether a revision is in both sets.
func (r Revisions) overlap(other Revisions) bool {
	return slices.ContainsFunc(revision.All(), func(f *revision.Facts) bool { return r.include(f) && other.include(f) })
}

// revisionsOf are the sets that a revision is in.
func revisionsOf(f *revision.Facts) Revisions {
	switch {
	case !f.Handshake:
		return Stateless
	case f.Tasks:
		return Handshake | CoreTasks
	}
	return Handshake
}

// Revisions are the sets that the revision of the request is in.
func (c *Call) Revisions() Revisions { return revisionsOf(c.facts) }
