package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport"
)

// A ServerState is what a server of the host is doing.
//
//	           first need                connected and listed
//	  idle ───────────────▶ starting ──────────────────────────▶ ready
//	   ▲                    │  │  ▲                               │
//	   │ Enable             │  │  │ the pause is over, Retry      │ the connection
//	   │            refused │  │  │                               │ ended
//	disabled                │  └──┼──▶ waiting ◀──────────────────┤
//	   ▲                    │     │    failed                     │ for the 5th
//	   │ Disable            ▼     │                               │ time
//	any state            givenUp ─┘ Retry                         │
//	                        ▲─────────────────────────────────────┘
//
// The eighth failed start in a row leads to givenUp too. Close, Remove, and Apply
// with another entry, lead from every state to closed.
type ServerState uint8

// The states of a server.
const (
	// StateIdle says that the server was not needed yet.
	StateIdle ServerState = iota
	// StateStarting says that the server is connected to, or lists its tools for the
	// first time since.
	StateStarting
	// StateReady says that the server is connected.
	StateReady
	// StateWaiting says that the last attempt failed, or that the connection ended,
	// and that the server is started again after a pause.
	StateWaiting
	// StateGivenUp says that the server is not started again unless Host.Retry says so.
	StateGivenUp
	// StateDisabled says that Host.Disable was called.
	StateDisabled
	// StateClosed says that the host was closed, or the server removed.
	StateClosed
)

var stateNames = [...]string{"idle", "starting", "ready", "waiting", "given up", "disabled", "closed"}

// String returns the state in a word or two.
func (s ServerState) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Bounds of starting a server again.
const (
	firstPause = time.Second // doubles after each failure
	lastPause  = time.Minute
	jitter     = 0.25 // of a pause, in both directions

	maxFailedStarts = 8               // in a row
	maxEarlyEnds    = 5               // connections in a row that ended early
	earlyEnd        = 2 * time.Minute // after becoming ready
)

// errSlow says that a server did not start in time.
var errSlow = errors.New("the server did not answer within the time to connect; start its command by hand to see what it waits for")

// A supervisor keeps one server started while it is in use: from the first need until
// it is given up, disabled, removed or closed, with one goroutine.
//
// On pipes and WebSocket it makes each connection itself, and not the client, which
// would start a process that ends again and again for ever, at each call. Over
// Streamable HTTP, where each request connects by itself, a client stays in use: it
// opens a session again that the server has forgotten, and repeats the request that
// was not carried out for that.
type supervisor struct {
	*link
	set *serverSet

	retry   chan struct{} // has an element when the pause is to end, or the tools are to be listed again
	notices chan struct{} // has an element when the server has said that its tools changed
	// skillNotices has an element when the skills are to be listed again.
	skillNotices chan struct{}

	// What follows is guarded by the set's mutex.

	status   ServerStatus
	client   *client.Client // nil while there is no connection
	tools    []*Tool        // listed last; never written to
	listings int            // ended, in vain or not
	skills   []*Skill       // listed last; never written to
	unlisted bool           // the skills of this connection have not been listed yet
	stop     context.CancelCauseFunc
	done     chan struct{} // closed when the last goroutine has ended; nil: there was none
	closeErr error         // of the last connection that the host ended

	// freshUntil is when the tools are to be listed again as soon as they are needed; zero:
	// when the server says that they changed.
	freshUntil time.Time
}

func newSupervisor(set *serverSet, spec Server) *supervisor {
	s := &supervisor{
		link: &link{host: set.host, spec: spec}, set: set,
		retry: make(chan struct{}, 1), notices: make(chan struct{}, 1), skillNotices: make(chan struct{}, 1),
		status: ServerStatus{Name: spec.Name, Origin: spec.Origin, Since: time.Now()},
	}
	return s
}

// The methods down to unusable are called with the set's mutex held.

// enter changes the state.
func (s *supervisor) enter(state ServerState) {
	if s.status.State != state {
		s.status.State, s.status.Since = state, time.Now()
	}
	if state != StateWaiting {
		s.status.NextTry = time.Time{}
	}
}

// need starts the server if it was not needed before.
func (s *supervisor) need() {
	if s.status.State == StateIdle {
		s.begin()
		s.set.touch()
	}
}

// begin starts the goroutine. What is left of an earlier one ends first.
func (s *supervisor) begin() {
	// Nothing of a caller is in the context: an attempt outlives the call that needed
	// it. While a person is asked to sign in, no time limit of the host runs down.
	ctx, stop := context.WithCancelCause(s.host.limits.pausedFrom(context.Background()))
	before, done := s.done, make(chan struct{})
	s.stop, s.done = stop, done
	s.attempt()
	drain(s.retry)
	s.set.running.Go(func() {
		defer close(done)
		defer stop(nil)
		if before != nil {
			<-before
		}
		s.run(ctx)
	})
}

// attempt notes that an attempt to start begins.
func (s *supervisor) attempt() {
	s.status.Starts++
	s.enter(StateStarting)
}

// attemptsEnded counts the attempts to start that are over.
func (s *supervisor) attemptsEnded() int {
	if s.status.State == StateStarting {
		return s.status.Starts - 1
	}
	return s.status.Starts
}

// leave ends the connection for good, or until the server is enabled.
func (s *supervisor) leave(state ServerState, cause error) {
	s.enter(state)
	s.status.Err = cause
	s.disconnect()
	s.forget()
	if s.stop != nil {
		s.stop(cause)
	}
}

// disconnect notes that there is no connection any more.
func (s *supervisor) disconnect() {
	s.client, s.unlisted = nil, false
	s.status.Version, s.status.OffersSkills = "", false
	s.status.Stale = s.tools != nil
}

// forget forgets the tools.
func (s *supervisor) forget() {
	s.tools, s.skills = nil, nil
	s.status.Tools, s.status.Stale = 0, false
	s.status.Skills, s.status.SkillsErr = 0, nil
}

// replaced returns the supervisor of an entry that takes the place of this one.
func (s *supervisor) replaced(spec Server) *supervisor {
	next := newSupervisor(s.set, spec)
	next.done = s.done
	state := s.status.State
	s.leave(StateClosed, errReplaced)
	switch state {
	case StateDisabled:
		next.status.State, next.status.Err = StateDisabled, ErrDisabled
	case StateStarting, StateReady, StateWaiting, StateGivenUp:
		next.begin()
	case StateIdle, StateClosed:
	}
	return next
}

// settled reports whether the server is ready, or has failed once.
func (s *supervisor) settled() bool {
	switch s.status.State {
	case StateIdle:
		return false
	case StateStarting:
		return s.status.Err != nil
	case StateReady:
		return !s.unlisted
	case StateWaiting, StateGivenUp, StateDisabled, StateClosed:
	}
	return true
}

// unusable says why there is no client.
func (s *supervisor) unusable() *ServerError {
	err := s.status.Err
	if err == nil {
		err = errNotConnected
	}
	if s.status.State == StateWaiting {
		if pause := time.Until(s.status.NextTry); pause > shortWait {
			err = fmt.Errorf("it is started again in %v: %w", pause.Round(time.Second), err)
		}
	}
	return &ServerError{s.spec.Name, s.status.State, err}
}

// errNotConnected says that a server was not started.
var errNotConnected = errors.New("it is not connected")

// drain takes the token out of a channel.
func drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// failures count what went wrong since the server last worked for some time.
type failures struct {
	starts int // in vain, in a row
	ends   int // of connections that ended early, in a row
}

// ended counts the end of a connection that was ready for some time.
func (f *failures) ended(ready time.Duration) {
	f.starts = 0
	f.ends++
	if ready > earlyEnd {
		f.ends = 1
	}
}

// pause returns how long to wait before the next attempt.
func (f *failures) pause() time.Duration {
	return withJitter(doubled(f.starts + f.ends))
}

// hopeless returns err with the reason why the server is not to be started again,
// or nil if it is.
func (f *failures) hopeless(err error) error {
	switch {
	case errors.Is(err, transport.ErrDenied):
		return err // only a person can change that
	case f.starts >= maxFailedStarts:
		return fmt.Errorf("given up after %d attempts to start it in a row; retry when this is corrected: %w", f.starts, err)
	case f.ends >= maxEarlyEnds:
		return fmt.Errorf("given up after it ended %d times within %v of its start; retry when this is corrected: %w", f.ends, earlyEnd, err)
	}
	return nil
}

// doubled is the pause after a number of failures, at least one.
func doubled(failures int) time.Duration {
	return min(firstPause<<min(failures-1, 16), lastPause)
}

// withJitter changes a pause at random, so that many servers do not start at once.
func withJitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 - jitter + 2*jitter*rand.Float64()))
}

// run starts the server, again and again, until ctx ends or there is no hope.
func (s *supervisor) run(ctx context.Context) {
	err := errExited
	defer func() {
		if v := recover(); v != nil {
			err = panicked(s.host.opts.Logger, "the supervisor of a server", v)
		}
		if err != nil {
			s.abandon(ctx, err)
		}
	}()
	var f failures
	for s.runOnce(ctx, &f) {
		s.publish(ctx, s.attempt)
	}
	err = nil
}

// abandon has the server not started again, for a reason.
func (s *supervisor) abandon(ctx context.Context, why error) {
	s.publish(ctx, func() {
		s.disconnect()
		s.forget()
		s.enter(StateGivenUp)
		s.status.Err = why
	})
	s.log("a server is not started again", "err", why)
}

// runOnce makes a connection, waits for its end and for the pause after it. It
// reports whether there is to be another one.
func (s *supervisor) runOnce(ctx context.Context, f *failures) bool {
	cn, err := s.connect(ctx)
	if err != nil {
		f.starts++
	} else {
		defer cn.close()
		var ready time.Time
		ready, err = cn.serve(ctx)
		f.ended(time.Since(ready))
	}
	if ctx.Err() != nil {
		return false
	}
	if last := f.hopeless(err); last != nil {
		s.abandon(ctx, last)
		return false
	}
	pause := f.pause()
	s.publish(ctx, func() {
		s.disconnect()
		s.enter(StateWaiting)
		s.status.Err, s.status.NextTry = err, time.Now().Add(pause)
	})
	s.log("a server will be started again", "err", err, "after", pause)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	if cn != nil {
		cn.close()
	}
	select {
	case <-timer.C:
	case <-s.retry:
		*f = failures{}
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (s *supervisor) log(message string, args ...any) {
	s.host.opts.Logger.With("server", s.spec.Name).Warn(message, args...)
}

// publish changes what the catalog says of the server, unless the server was left
// meanwhile.
func (s *supervisor) publish(ctx context.Context, change func()) {
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	if ctx.Err() == nil {
		change()
		s.set.touch()
	}
}

// A connection is one connection of a supervisor.
type connection struct {
	s    *supervisor
	lost chan error // has an element when the connection ended by itself
	over bool       // it has ended by itself; guarded by the set's mutex

	fresh freshness // of the tools

	client *client.Client // set before serve; guarded by the set's mutex until then
	once   sync.Once      // closes it
}

// connect makes a connection within ConnectTimeout, not counting the time of a person
// who is asked.
func (s *supervisor) connect(ctx context.Context) (*connection, error) {
	cn := &connection{s: s, lost: make(chan error, 1)}
	limit := orDefault(s.spec.ConnectTimeout, s.host.opts.ConnectTimeout)
	limited, cancel := transport.WithTimeout(context.WithValue(ctx, linkKey{}, s.link), limit, errSlow)
	defer cancel()
	o := s.options()
	o.CallTimeout = orDefault(s.spec.CallTimeout, s.host.opts.CallTimeout)
	o.ConnectTimeout = 2 * limit // ours ends first
	o.OnToolsChanged = func(context.Context) { signal(s.notices) }
	o.OnDisconnect = cn.disconnected
	o.Middleware = append(o.Middleware, cn.fresh.noted)
	drain(s.notices) // of an earlier connection
	if s.host.skills != nil {
		o.OnResourcesChanged = func(context.Context) { signal(s.skillNotices) }
		drain(s.skillNotices)
	}
	c, err := s.dial(limited, o)
	if err != nil {
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		return nil, err
	}
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	cn.client = c
	if ctx.Err() == nil && !cn.over {
		s.client, s.status.Version = c, c.Version()
		s.set.touch()
	}
	return cn, nil
}

// dial connects a client with the dialer of the entry.
func (s *supervisor) dial(ctx context.Context, o *client.Options) (c *client.Client, err error) {
	defer recovered(s.host.opts.Logger, "Server.Dialer", &err)
	return client.Connect(ctx, s.spec.Dialer, o)
}

// hangUp closes a client.
func (s *supervisor) hangUp(c *client.Client) (err error) {
	defer recovered(s.host.opts.Logger, "Server.Dialer", &err)
	return c.Close()
}

// disconnected is told of the end of the connection: no caller of Client is given it
// any more.
func (cn *connection) disconnected(err error) {
	s := cn.s
	s.set.mu.Lock()
	cn.over = true
	if cn.client != nil && s.client == cn.client {
		s.client = nil
	}
	s.set.mu.Unlock()
	cn.lost <- err
}

// close ends the connection, and returns when nothing of it is left.
func (cn *connection) close() {
	cn.once.Do(func() {
		err := cn.s.hangUp(cn.client)
		cn.s.set.mu.Lock()
		defer cn.s.set.mu.Unlock()
		if !cn.over {
			cn.s.closeErr = err
		}
	})
}

// serve lists the tools, and again as they change, until the connection or ctx ends.
// It returns since when the server was ready.
func (cn *connection) serve(ctx context.Context) (ready time.Time, err error) {
	s := cn.s
	l := newListings()
	defer l.timer.Stop()
	defer cn.beginSkills(ctx)()
	l.ended(cn.list(ctx))
	ready = time.Now()
	for {
		select {
		case err := <-cn.lost:
			return ready, err
		case <-ctx.Done():
			return ready, context.Cause(ctx)
		case <-s.notices:
			s.markStale(ctx)
			l.noticed()
		case <-s.retry:
			l.requested()
			signal(s.skillNotices)
		case <-l.timer.C:
			l.begin()
			l.ended(cn.list(ctx))
		}
	}
}

// orDefault is a timeout, or the host's if it is not set.
func orDefault(own, general time.Duration) time.Duration {
	if own > 0 {
		return own
	}
	return general
}
