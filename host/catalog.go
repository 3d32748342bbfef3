package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// A ServerStatus is what is known of a server at one moment.
type ServerStatus struct {
	// Name and Origin are those of the Server.
	Name, Origin string
	// State is what the server is doing, and Since is when it began to.
	State ServerState
	Since time.Time
	// Err is why the last attempt to start it failed, why its connection ended, or why
	// its tools could not be listed; nil if all is well, or nothing was tried.
	Err error
	// NextTry is when a server in StateWaiting is started again; zero otherwise.
	NextTry time.Time
	// Starts counts the attempts to start it since it was added.
	Starts int
	// Tools counts the tools in the catalog.
	Tools int
	// OffersSkills says that the server has declared the extension of skills, Skills
	// counts those in the catalog, and SkillsErr is why they could not be listed, or not
	// all of them.
	OffersSkills bool
	Skills       int
	SkillsErr    error
	// Version is the protocol revision in use; empty while there is no connection.
	Version string
	// Problems are the wrong parts of its answers; see client.Client.Problems.
	Problems []client.Problem
	// Stale says that the tools are those of an earlier listing: the server has said
	// that they changed, the time is over for which it said that they stay, it could not
	// list them, or is not connected at the moment.
	Stale bool
}

// A Catalog is the servers and their tools at one moment. It is never written to.
type Catalog struct {
	// Generation grows with each change of what follows.
	Generation uint64
	// Servers are in the order in which they were added.
	Servers []ServerStatus
	// Tools are in order of server and name. Those of a server that is started again
	// stay until it has listed them anew.
	Tools []*Tool
	// Skills are those that the servers list, in order of server and URI, also those that
	// cannot be loaded. A server may have others, which are loaded by their URI.
	Skills []*Skill
	// Down are the servers whose tools are missing, and why. A server that is disabled,
	// or was not needed yet, is none of them.
	Down []*ServerError

	byModelName map[string]*Tool
	shown       []*Tool // those that the model may know of
	index       *index  // of shown
	shownSkills []*Skill
	skillIndex  *index // of shownSkills
}

// Named returns the tool that the model calls by name.
func (c *Catalog) Named(modelName string) (*Tool, bool) {
	t, ok := c.byModelName[modelName]
	return t, ok
}

// flags are what is suspicious about the definition of a tool, beside those of all
// others.
func (c *Catalog) flags(t *Tool) []Flag {
	all := make([]ServerDefinition, len(c.Tools))
	for i, other := range c.Tools {
		all[i] = ServerDefinition{other.Server, other.definition}
	}
	return Flags(ServerDefinition{t.Server, t.definition}, all)
}

// newTools makes the tools of a server in order of name. No two have the same name.
func (h *Host) newTools(l *link, defs []*mcp.Tool) []*Tool {
	spec, server := &l.spec, l.spec.Name
	tools := make([]*Tool, 0, len(defs))
	for _, def := range defs {
		definition := &Definition{Tool: def}
		t := &Tool{
			Server: server, ModelName: modelName(server, def.Name), Def: def,
			owner: l, definition: definition, digest: definition.Digest(), uses: usesOf(def),
			leftOut: len(spec.OnlyTools) > 0 && !matches(def.Name, spec.OnlyTools...),
		}
		t.Hidden = t.leftOut || !t.uses.model || h.opts.Policy.Hides(&policy.Query{Kind: policy.KindTool, Server: server, Name: def.Name})
		tools = append(tools, t)
	}
	slices.SortFunc(tools, func(a, b *Tool) int { return cmp.Compare(a.Def.Name, b.Def.Name) })
	return tools
}

// errStarting says that the tools of a server are missing yet.
var errStarting = errors.New("it is still starting")

// down says why the tools of a server are missing, or nil. The set's mutex is held.
func (s *supervisor) down() *ServerError {
	err := s.status.Err
	switch s.status.State {
	case StateIdle, StateDisabled:
		return nil
	case StateStarting:
		err = cmp.Or(err, errStarting)
	case StateReady:
		if err == nil {
			return nil
		}
	case StateWaiting, StateGivenUp, StateClosed:
	}
	if s.tools != nil {
		return nil
	}
	return &ServerError{s.spec.Name, s.status.State, err}
}

// current returns the catalog of now.
func (set *serverSet) current() *Catalog {
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.catalog != nil {
		return set.catalog
	}
	c := &Catalog{Generation: set.generation}
	for _, s := range set.list {
		if s.client != nil {
			s.status.Problems = s.client.Problems()
		}
		c.Servers = append(c.Servers, s.status)
		c.Tools = append(c.Tools, s.tools...)
		if down := s.down(); down != nil {
			c.Down = append(c.Down, down)
		}
	}
	slices.SortStableFunc(c.Tools, func(a, b *Tool) int { return cmp.Compare(a.Server, b.Server) })
	c.byModelName = make(map[string]*Tool, len(c.Tools))
	var searched []searchable
	for _, t := range c.Tools {
		c.byModelName[t.ModelName] = t
		if !t.Hidden {
			c.shown = append(c.shown, t)
			searched = append(searched, searchable{t.Server, t.Def.Name, t.Def.Title, t.Def.Description, t.Def.InputSchema})
		}
	}
	c.index = newIndex(searched)
	c.addSkills(set.list)
	set.catalog = c
	return c
}

// Catalog returns the servers and tools of now, and starts the servers that were not
// needed yet. It does not wait: what is not there yet comes with a later catalog; see
// [Host.Settle] and [Host.WatchServers].
func (h *Host) Catalog() *Catalog {
	_ = h.Start() // only a host that is closed starts none
	return h.servers.current()
}

// Status returns what is known of each server, in the order in which they were added.
// It starts none.
func (h *Host) Status() []ServerStatus { return slices.Clone(h.servers.current().Servers) }

// errEnough ends Settle.
var errEnough = errors.New("the servers have had their time")

// Settle starts the servers that were not needed yet and waits until each is ready, or
// has failed once, and what servers have said to have changed, or not to stay for so long,
// is listed again; but for atMost at the longest, without the time in which a person is
// asked, and not beyond the end of ctx. It returns the catalog of then.
func (h *Host) Settle(ctx context.Context, atMost time.Duration) *Catalog {
	return h.settle(ctx, atMost, func(*supervisor) bool { return false })
}

// settle is Settle, which also ends when one server is enough.
func (h *Host) settle(ctx context.Context, atMost time.Duration, enough func(s *supervisor) bool) *Catalog {
	set := &h.servers
	ctx, cancel := pausetimer.WithTimeout(ctx, atMost, errEnough)
	defer cancel()
	defer h.limits.add(ctx)()
	_ = h.Start() // only a host that is closed starts none
	h.refresh()
	listings := make(map[*supervisor]int)
	first := true
	_ = set.await(ctx, func() bool { // the catalog tells what is missing
		over := true
		for _, s := range set.list {
			if first && s.status.State == StateReady && s.status.Stale && s.status.Err == nil {
				listings[s] = s.listings + 1
			}
			listing := s.status.State == StateReady && s.listings < listings[s]
			over = over && s.settled() && !listing
		}
		first = false
		return over || slices.ContainsFunc(set.list, enough)
	})
	return set.current()
}

// listed waits until the tools of a server in the catalog are those that it has now, as
// far as it has told, and returns the client of that connection and the tool of a name.
func (h *Host) listed(ctx context.Context, server, tool string) (*client.Client, *Tool, error) {
	set := &h.servers
	spec, _ := h.spec(server)
	ctx, cancel := pausetimer.WithTimeout(ctx, orDefault(spec.ListTimeout, h.opts.ListTimeout), errSlowList)
	defer cancel()
	defer h.limits.add(ctx)()
	var (
		c     *client.Client
		found *Tool
		err   error
	)
	if waitErr := set.await(ctx, func() bool {
		s := set.find(server)
		switch {
		case s == nil:
			err = fmt.Errorf("server %q: %w", server, ErrNoServer)
		case s.status.State == StateStarting, s.status.State == StateReady && s.status.Stale && s.status.Err == nil:
			return false
		case s.status.State != StateReady || s.status.Stale:
			err = s.unusable()
		default:
			c = s.client
			if i := slices.IndexFunc(s.tools, func(t *Tool) bool { return t.Def.Name == tool }); i >= 0 {
				found = s.tools[i]
			}
		}
		return true
	}); waitErr != nil {
		return nil, nil, waitErr
	}
	return c, found, err
}

// WatchServers waits until there is a catalog of a later generation than since, and
// returns it: the one of now, if it is later. It starts no server. The error is that
// of ctx, or [ErrClosed] once the end of the host was told.
func (h *Host) WatchServers(ctx context.Context, since uint64) (*Catalog, error) {
	set := &h.servers
	var closed bool
	if err := set.await(ctx, func() bool {
		closed = set.closed && set.generation <= since
		return closed || set.generation > since
	}); err != nil {
		return nil, err
	}
	if closed {
		return nil, ErrClosed
	}
	return set.current(), nil
}
