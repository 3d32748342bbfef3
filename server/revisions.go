package server

import "github.com/parley-mcp/parley/internal/revision"

// Revisions is a set of protocol revisions, named by what they have in common, so
// that an extension needs no dates and serves revisions to come. Sets are joined
// with |. The zero value means [Stateless] wherever an option has this type.
type Revisions uint8

// The sets.
const (
	// Stateless are the revisions in which every request stands for itself,
	// and a client declares its extensions with each.
	Stateless = Revisions(revision.Stateless)
	// Handshake are the revisions with a handshake and sessions.
	Handshake = Revisions(revision.Handshake)
	// CoreTasks are those of Handshake in which tasks are part of the protocol,
	// as an experiment. Before them there are none, and after them tasks are
	// an extension.
	CoreTasks = Revisions(revision.CoreTasks)
	// Metadata are the revisions, stateless or not, in which tools, resources and
	// their contents have `_meta`. In older ones it is left out.
	Metadata = Revisions(revision.Metadata)

	// AllRevisions are all of them.
	AllRevisions = Stateless | Handshake
)

// include reports whether a revision is in the set.
func (r Revisions) include(f *revision.Facts) bool { return revision.Set(r).Has(f) }

// overlap reports whether a revision is in both sets.
func (r Revisions) overlap(other Revisions) bool {
	return revision.Set(r).Overlaps(revision.Set(other))
}

// Revisions are the sets that the revision of the request is in.
func (c *Call) Revisions() Revisions { return Revisions(revision.SetOf(c.facts)) }
