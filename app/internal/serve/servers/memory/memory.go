// Package memory is a server that stores facts for a model, as a graph of entities, observations about
// them and relations between them. It stores the graph in one file of JSON lines, which the reference
// server of the same name can read and write too.
package memory

import (
	"cmp"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/server"
)

// GraphURI is the URI of the resource that is the whole graph.
const GraphURI = "memory://knowledge-graph"

// Defaults of Options.
const (
	DefaultMaxFile     = 64 << 20
	DefaultMaxResult   = 48 << 10
	DefaultMaxResource = 4 << 20
	DefaultLockWait    = 10 * time.Second
	DefaultPoll        = time.Second
)

// Options are what is not required of the server. A nil *Options, and each zero field, means the
// default that is told.
type Options struct {
	// Server is what the server is made with. Its texts are replaced. Default: the defaults of
	// package server.
	Server *server.Options
	// ReadOnly leaves out the tools that change the graph. Default false.
	ReadOnly bool
	// WriteScope is a scope that callers must have been granted to use these tools. Default none.
	WriteScope string
	// Confirm has the user asked before something that is there is deleted, by clients that can ask. Default
	// false.
	Confirm bool
	// MaxFile is the most bytes that the file may have: a larger one is not read, and a change that
	// would make it larger is refused. Default 64 MiB.
	MaxFile int
	// MaxResult is the most bytes of compact JSON of entities and relations in one result of a tool,
	// roughly. What does not fit comes in pages. One entity that is larger than that is a page of its own.
	// Default 48 KiB, which as indented text is some 20,000 tokens: hosts refuse or cut larger results.
	MaxResult int
	// MaxResource is the same for a resource, which has no pages: a larger one is refused. Default 4 MiB.
	MaxResource int
	// LockWait is how long a change waits for other processes that use the file. Default 10 s.
	LockWait time.Duration
	// Poll is how often the file is looked at for changes of other processes, while a client is
	// subscribed to the graph. Default 1 s.
	Poll time.Duration
	// SetAside moves lines of the file that cannot be read to a file next to it, with ".rejected" added to
	// the name, the next time that it is read. Default: such lines stay in the file and are reported in
	// the log and in results. A file without any line that can be read is refused.
	SetAside bool
}

const instructions = `This server remembers facts between conversations, in a graph that lasts. Entities have a unique
name, a type and observations, one fact each; relations lead from one entity to another and are
worded in active voice ("works_at"). Look with search_nodes or open_nodes before you create, so that
nothing is remembered twice, and add to what is there with add_observations.`

// New makes the server of the file at path, which is made by the first change if there is none; its
// folder must exist. The file is read when it is needed and when it has changed, and no lock is held
// between requests: several processes may use it at once. It owns nothing that outlives its sessions.
func New(version, path string, o *Options) (*server.Server, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.MaxFile = cmp.Or(opts.MaxFile, DefaultMaxFile)
	opts.MaxResult = cmp.Or(opts.MaxResult, DefaultMaxResult)
	opts.MaxResource = cmp.Or(opts.MaxResource, DefaultMaxResource)
	opts.LockWait = cmp.Or(opts.LockWait, DefaultLockWait)
	opts.Poll = cmp.Or(opts.Poll, DefaultPoll)
	st, err := newStore(path, &opts)
	if err != nil {
		return nil, err
	}
	s := server.New("memory", version, servers.Options(opts.Server, "Memory",
		"Facts that last, as a graph of entities, observations and relations", instructions))
	st.changed = func() { s.ResourceUpdated(GraphURI) }
	s.Add(readingTools(st)...)
	if !opts.ReadOnly {
		scopes := servers.Scopes(opts.WriteScope)
		s.Add(addingTools(st, scopes)...)
		s.Add(deletingTools(st, scopes)...)
	}
	s.Add(resources(st)...)
	return s, nil
}
