package client

import "github.com/parley-mcp/parley/internal/revision"

// Revisions is a set of protocol revisions, as server.Revisions is. Sets are joined
// with |. The zero value means [Stateless] wherever an option has this type.
type Revisions uint8

// The sets.
const (
	// Stateless are the revisions in which every request stands for itself, and
	// carries the extensions of its client.
	Stateless = Revisions(revision.Stateless)
	// Handshake are the revisions with a handshake and sessions.
	Handshake = Revisions(revision.Handshake)
	// CoreTasks are those of Handshake in which tasks are part of the protocol,
	// as an experiment.
	CoreTasks = Revisions(revision.CoreTasks)
	// Metadata are the revisions, stateless or not, in which tools, resources and
	// their contents have `_meta`.
	Metadata = Revisions(revision.Metadata)

	// AllRevisions are all of them.
	AllRevisions = Stateless | Handshake
)

// Has reports whether a revision, such as [Client.Version], is in the set. One that is
// not known is in none.
func (r Revisions) Has(version string) bool {
	f, ok := revision.Lookup(version)
	return ok && r.include(f)
}

// overlap reports whether a revision is in both sets.
func (r Revisions) overlap(other Revisions) bool {
	return revision.Set(r).Overlaps(revision.Set(other))
}

func (r Revisions) include(f *revision.Facts) bool { return revision.Set(r).Has(f) }
