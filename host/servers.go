package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/transport"
)

// A Server says how to reach a server, and what the person thinks of it.
type Server struct {
	// Name is the person's name for the server. It is part of the identity of
	// its tools, of rules and of what the model sees.
	Name string
	// Key stands for all that the entry says, such as a digest of it: Host.Apply leaves
	// a server alone whose name and key stay the same. Without one the entry counts as
	// changed at each Apply.
	Key string
	// Dialer makes the connection.
	Dialer transport.Dialer
	// Origin says where the entry comes from, for people.
	Origin string
	// Dir is the absolute path of the folder at which the server begins relative paths in
	// arguments, without symbolic links, for rules: see policy.Query.Dir. Default: unknown, so
	// that no rule that allows matches relative paths, and each that restricts does.
	Dir string
	// Trusted lets the server's instructions reach the model.
	Trusted bool
	// Labels say what the server deals with: untrusted input, private data, or
	// that it can send data out. ToolLabels are those of single tools beside them.
	Labels     []policy.Label
	ToolLabels []ToolLabels
	// BuiltIn says that the server comes with the program: that its definitions change with
	// a new version is not asked about.
	BuiltIn bool
	// OnlyTools are globs of the tools that may be used, as in policy.Rule. Default all.
	OnlyTools []string
	// Versions are the protocol revisions that may be spoken. Default all.
	Versions []string
	// ConnectTimeout, ListTimeout and CallTimeout take the place of those of Options.
	ConnectTimeout, ListTimeout, CallTimeout time.Duration
}

// ToolLabels are the labels of the tools whose names match a glob, as in policy.Rule.
type ToolLabels struct {
	Tools  string
	Labels []policy.Label
}

// A ServerError says that a server cannot be used.
type ServerError struct {
	// Server is its name.
	Server string
	// State is what the server was doing.
	State ServerState
	// Err says what was being done, why it was in vain, and what to do.
	Err error
}

// Error names the server and the reason.
func (e *ServerError) Error() string { return fmt.Sprintf("server %q: %v", e.Server, e.Err) }

// Unwrap returns the reason.
func (e *ServerError) Unwrap() error { return e.Err }

// Errors of hosts, for errors.Is.
var (
	// ErrClosed says that the host was closed.
	ErrClosed = errors.New("host is closed")
	// ErrNoServer says that no server has the name.
	ErrNoServer = errors.New("no such server")
	// ErrDisabled says that the server was disabled; Host.Enable lets it be used again.
	ErrDisabled = errors.New("the server is disabled; enable it to use it")
)

// Why a server's connection is ended by the host.
var (
	errRemoved  = errors.New("the server was removed")
	errReplaced = errors.New("the entry of the server has changed")
)

// A serverSet is the servers of a host. Its mutex guards what its supervisors have
// published, too.
type serverSet struct {
	host *Host

	mu         sync.Mutex
	list       []*supervisor // in the order of the entries; replaced, never written to
	generation uint64
	changed    chan struct{} // closed at the next change
	catalog    *Catalog      // of this generation, or nil
	closed     bool
	running    sync.WaitGroup // the goroutines of supervisors
}

// touch tells that something has changed. The mutex is held.
func (set *serverSet) touch() {
	set.generation++
	set.catalog = nil
	close(set.changed)
	set.changed = make(chan struct{})
}

// problem publishes that a part of an answer was wrong.
func (set *serverSet) problem() {
	set.mu.Lock()
	defer set.mu.Unlock()
	set.touch()
}

// find returns the server called name, or nil. The mutex is held.
func (set *serverSet) find(name string) *supervisor {
	for _, s := range set.list {
		if s.spec.Name == name {
			return s
		}
	}
	return nil
}

// await waits until done, which is called with the mutex held at first and after
// each change, or ctx ends.
func (set *serverSet) await(ctx context.Context, done func() bool) error {
	for {
		set.mu.Lock()
		over := done()
		changed := set.changed
		set.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// check says what is wrong with an entry.
func (s *Server) check() error {
	if s.Name == "" || s.Dialer == nil {
		return errors.New("a server needs a name and a dialer")
	}
	globs := slices.Clone(s.OnlyTools)
	for _, t := range s.ToolLabels {
		globs = append(globs, t.Tools)
	}
	for _, glob := range globs {
		if _, err := policy.New([]policy.Rule{{Effect: policy.Allow, Name: glob}}); err != nil {
			return fmt.Errorf("server %q: %w", s.Name, err)
		}
	}
	if s.ConnectTimeout < 0 || s.ListTimeout < 0 || s.CallTimeout < 0 {
		return fmt.Errorf("server %q: a timeout is negative; give a length of time, or 0 for the default", s.Name)
	}
	return nil
}

// pinServer names the server in the keys of pins: another entry of the same name is
// another server.
func (s *Server) pinServer() string {
	if s.Key == "" {
		return s.Name
	}
	sum := sha256.Sum256([]byte(s.Key))
	return s.Name + " " + hex.EncodeToString(sum[:8])
}

// matches reports whether a name matches one of the globs, which must be valid.
func matches(name string, globs ...string) bool {
	var rules []policy.Rule
	for _, glob := range globs {
		rules = append(rules, policy.Rule{Effect: policy.Allow, Name: glob})
	}
	p, err := policy.New(rules)
	return err == nil && p.Decide(&policy.Query{Kind: policy.KindTool, Name: name}).Effect == policy.Allow
}

// Add adds a server. It is connected when it is first needed.
func (h *Host) Add(s Server) error {
	if err := s.check(); err != nil {
		return err
	}
	set := &h.servers
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.closed {
		return ErrClosed
	}
	if set.find(s.Name) != nil {
		return fmt.Errorf("server %q: the name is taken", s.Name)
	}
	set.list = append(slices.Clone(set.list), newSupervisor(set, s))
	set.touch()
	return nil
}

// Changes are what Apply did, by the names of servers.
type Changes struct {
	Added, Changed, Removed, Kept []string
}

// Apply makes the given servers those of the host. A server whose name and key are
// the same keeps its connection and its state. One whose entry has changed is ended,
// and started again if it was in use; one that is not in the list is removed; a new
// one is connected when it is first needed. What is disabled stays so. With an error
// nothing has changed.
func (h *Host) Apply(servers []Server) (Changes, error) {
	var changes Changes
	names := make(map[string]bool, len(servers))
	for i := range servers {
		s := &servers[i]
		if err := s.check(); err != nil {
			return changes, fmt.Errorf("entry %d: %w", i+1, err)
		}
		if names[s.Name] {
			return changes, fmt.Errorf("entry %d: server %q: the name is taken; give each server a name of its own", i+1, s.Name)
		}
		names[s.Name] = true
	}
	set := &h.servers
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.closed {
		return changes, ErrClosed
	}
	list := make([]*supervisor, 0, len(servers))
	for _, s := range servers {
		old := set.find(s.Name)
		switch {
		case old == nil:
			changes.Added = append(changes.Added, s.Name)
			list = append(list, newSupervisor(set, s))
		case s.Key != "" && s.Key == old.spec.Key:
			changes.Kept = append(changes.Kept, s.Name)
			list = append(list, old)
		default:
			changes.Changed = append(changes.Changed, s.Name)
			list = append(list, old.replaced(s))
		}
	}
	for _, old := range set.list {
		if !names[old.spec.Name] {
			changes.Removed = append(changes.Removed, old.spec.Name)
			old.leave(StateClosed, errRemoved)
		}
	}
	set.list = list
	set.touch()
	return changes, nil
}

// Remove ends a server's connection and forgets the server. What is left of it ends
// in the background.
func (h *Host) Remove(name string) error {
	return h.withServer(name, func(s *supervisor) {
		s.leave(StateClosed, errRemoved)
		s.set.list = slices.DeleteFunc(slices.Clone(s.set.list), func(other *supervisor) bool { return other == s })
	})
}

// Disable ends a server's connection, and lets nothing start it until Enable.
func (h *Host) Disable(name string) error {
	return h.withServer(name, func(s *supervisor) { s.leave(StateDisabled, ErrDisabled) })
}

// Enable lets a server that was disabled be used again: it is connected when it is
// next needed. On any other server it does nothing.
func (h *Host) Enable(name string) error {
	return h.withServer(name, func(s *supervisor) {
		if s.status.State == StateDisabled {
			s.status.Err = nil
			s.enter(StateIdle)
		}
	})
}

// Retry starts a server now: one that was given up, that waits for its next attempt,
// or that was not needed yet. One that is connected has its tools listed again. It
// does not wait. A server that is disabled is left so, with an error.
func (h *Host) Retry(name string) error {
	var err error
	return errors.Join(h.withServer(name, func(s *supervisor) {
		switch s.status.State {
		case StateIdle, StateGivenUp:
			s.begin()
		case StateWaiting, StateReady:
			signal(s.retry)
		case StateDisabled:
			err = s.unusable()
		case StateStarting, StateClosed:
		}
	}), err)
}

// withServer changes a server.
func (h *Host) withServer(name string, change func(s *supervisor)) error {
	set := &h.servers
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.closed {
		return ErrClosed
	}
	s := set.find(name)
	if s == nil {
		return fmt.Errorf("server %q: %w", name, ErrNoServer)
	}
	change(s)
	set.touch()
	return nil
}

// Servers returns the names of the servers, in the order in which they were added.
func (h *Host) Servers() []string {
	names := make([]string, 0)
	for _, s := range h.all() {
		names = append(names, s.spec.Name)
	}
	return names
}

// shortWait is the longest that Client waits for the next attempt to start a server.
const shortWait = 2 * time.Second

// Client returns the client of a server. It starts the server if need be, and waits
// for that server alone, also while one that has ended is started again, unless the
// next attempt is more than 2 s away. The error is a *ServerError, which says what
// state the server is in and what to do, or that of ctx. The client belongs to the
// host: do not close it. It is of one connection: when that has ended, its calls fail
// with client.ErrDisconnected, and Client returns another.
func (h *Host) Client(ctx context.Context, server string) (*client.Client, error) {
	defer h.limits.add(ctx)()
	set := &h.servers
	var (
		c     *client.Client
		of    *supervisor
		known int // attempts that ended before
		err   error
	)
	waitErr := set.await(ctx, func() bool {
		s := set.find(server)
		if s == nil {
			err = fmt.Errorf("server %q: %w", server, ErrNoServer)
			return true
		}
		if s != of {
			of, known = s, s.attemptsEnded()
			s.need()
		}
		switch s.status.State {
		case StateStarting, StateReady:
			c = s.client
			return c != nil
		case StateWaiting:
			if s.attemptsEnded() == known && time.Until(s.status.NextTry) <= shortWait {
				return false
			}
		case StateIdle: // enabled again
			s.need()
			return false
		case StateGivenUp, StateDisabled, StateClosed:
		}
		err = s.unusable()
		return true
	})
	if waitErr != nil {
		return nil, waitErr
	}
	return c, err
}

// Start starts the servers that are idle, all of them or those named. It does not wait.
func (h *Host) Start(names ...string) error {
	set := &h.servers
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.closed {
		return ErrClosed
	}
	for _, name := range names {
		if set.find(name) == nil {
			return fmt.Errorf("server %q: %w", name, ErrNoServer)
		}
	}
	for _, s := range set.list {
		if len(names) == 0 || slices.Contains(names, s.spec.Name) {
			s.need()
		}
	}
	return nil
}

// closeTimeout bounds Close. A client is polite to its server for ten seconds.
const closeTimeout = 30 * time.Second

// closeServers ends all connections at once, for Close.
func (h *Host) closeServers() error {
	set := &h.servers
	set.mu.Lock()
	if !set.closed {
		set.closed = true
		for _, s := range set.list {
			s.leave(StateClosed, ErrClosed)
		}
		set.touch()
	}
	list := set.list
	set.mu.Unlock()
	ended := make(chan struct{})
	go func() { // ends when the last supervisor has
		defer close(ended)
		set.running.Wait()
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	var errs []error
	for _, s := range list {
		switch {
		case !isClosed(s.done):
			errs = append(errs, &ServerError{s.spec.Name, StateClosed, fmt.Errorf("a handler has not returned %v after the host was closed", closeTimeout)})
		case s.closeErr != nil:
			errs = append(errs, &ServerError{s.spec.Name, StateClosed, s.closeErr})
		}
	}
	return errors.Join(errs...)
}

// all returns the servers of now.
func (h *Host) all() []*supervisor {
	h.servers.mu.Lock()
	defer h.servers.mu.Unlock()
	return h.servers.list
}

// isClosed reports whether a channel is closed; nil counts as that.
func isClosed(c <-chan struct{}) bool {
	if c == nil {
		return true
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// signal leaves a token in a channel that holds one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// spec returns the entry of a server.
func (h *Host) spec(server string) (Server, bool) {
	h.servers.mu.Lock()
	defer h.servers.mu.Unlock()
	if s := h.servers.find(server); s != nil {
		return s.spec, true
	}
	return Server{}, false
}

// clientOf is Client with the entry of the server that the connection is of.
func (h *Host) clientOf(ctx context.Context, server string) (*client.Client, *Server, error) {
	c, err := h.Client(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	set := &h.servers
	set.mu.Lock()
	defer set.mu.Unlock()
	s := set.find(server)
	if s == nil || s.client != c {
		return nil, nil, fmt.Errorf("server %q was started anew meanwhile; try again", server)
	}
	return c, &s.spec, nil
}

// origin says where the entry of a server comes from.
func (h *Host) origin(server string) string {
	spec, _ := h.spec(server)
	return spec.Origin
}

// labels are the flow labels of a tool. If tool is empty, they are those of all that a
// server has, for what is not a tool.
func (h *Host) labels(server, tool string) []policy.Label {
	spec, _ := h.spec(server)
	labels := spec.Labels
	for _, t := range spec.ToolLabels {
		if tool == "" || matches(tool, t.Tools) {
			labels = slices.Concat(labels, t.Labels)
		}
	}
	return labels
}
