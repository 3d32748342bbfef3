package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// Options are what is not required of a Runner. A nil *Options, and each zero field, means the default
// that is told.
type Options struct {
	// Name is what clients are told of a server that did not start. Default "server".
	Name string
	// StartTime is how long a process may take to answer and to list what it offers, with all that is
	// built before. Default 2 min.
	StartTime time.Duration
	// WaitTime is how long requests wait for a process that is starting; then the one before gets them.
	// Default 30 s.
	WaitTime time.Duration
	// Drain is how long requests under way may go on at the process before. Default 10 s.
	Drain time.Duration
	// StopFirst ends the process before when its requests have ended, and starts the new one after
	// that: for servers that hold a port, a lock or a file alone. Meanwhile requests wait until the new
	// one serves, whatever WaitTime is; if it does not start, nothing is offered until one does.
	StopFirst bool
	// Probe is how long a process may be silent to the first request before it is taken for one of the
	// handshake era. Default 15 s: some build themselves first.
	Probe time.Duration
	// Report is told, in a line, what happens to processes. Default: nobody is.
	Report func(text string)
	// Logger logs what no client is told. Default: none.
	Logger *slog.Logger
}

// ErrNotStarted is wrapped by errors of a process that did not start.
var ErrNotStarted = errors.New("the server did not start")

// A Runner starts processes of a server, one after the other, and serves the current one. Start comes
// first; Restart is called by one goroutine at a time.
type Runner struct {
	opts  Options
	start func(stderr func(io.Writer) io.Writer) transport.Dialer
	front *proxy.Proxy

	life context.Context //nolint:containedctx // the life of the runner, which ends requests and old processes
	end  context.CancelCauseFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	dials    int         // how many connections a start may need
	current  *generation // never nil after Start
	all      map[*generation]struct{}
	starting chan struct{} // closed when the start that goes on has ended; nil if none does
	count    int           // of processes that served
}

// New makes a Runner for a command.
func New(command *stdio.CommandDialer, o *Options) *Runner {
	stderr := command.Stderr
	return newRunner(func(filter func(io.Writer) io.Writer) transport.Dialer {
		d := *command
		if stderr != nil {
			d.Stderr = filter(stderr)
		}
		return &d
	}, o)
}

func newRunner(start func(stderr func(io.Writer) io.Writer) transport.Dialer, o *Options) *Runner {
	r := &Runner{start: start, dials: maxDials, all: make(map[*generation]struct{})}
	if o != nil {
		r.opts = *o
	}
	r.opts.Name = cmp.Or(r.opts.Name, "server")
	r.opts.StartTime = cmp.Or(r.opts.StartTime, 2*time.Minute)
	r.opts.WaitTime = cmp.Or(r.opts.WaitTime, 30*time.Second)
	r.opts.Drain = cmp.Or(r.opts.Drain, 10*time.Second)
	r.opts.Probe = cmp.Or(r.opts.Probe, 15*time.Second)
	if r.opts.Report == nil {
		r.opts.Report = func(string) {}
	}
	r.opts.Logger = cmp.Or(r.opts.Logger, slog.New(slog.DiscardHandler))
	r.life, r.end = context.WithCancelCause(context.Background())
	return r
}

// Start starts the first process and makes Server. That the process does not start is reported and no
// error: Server then offers nothing until a Restart succeeds. After an error, Close is still to be
// called.
func (r *Runner) Start(ctx context.Context) error {
	p, err := r.attempt(ctx)
	g := newGeneration(p)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		r.opts.Report(fmt.Sprintf("%v; it is started again when a file changes", err))
		g = placeholder(r.opts.Name)
	default:
		r.count++
	}
	r.mu.Lock()
	r.current = g
	r.all[g] = struct{}{}
	r.mu.Unlock()
	r.front, err = proxy.Connect(ctx, (*dialer)(r), &proxy.Options{
		Server: r.declared(), Logger: r.opts.Logger,
	})
	if err != nil {
		return fmt.Errorf("serving the server: %w", err)
	}
	return nil
}

// declared are the options of servers that may offer anything later: clients are told the capabilities
// once.
func (r *Runner) declared() server.Options {
	return server.Options{DeclareTools: true, DeclarePrompts: true, DeclareResources: true, Logger: r.opts.Logger}
}

// Server is what clients are to be served.
func (r *Runner) Server() *server.Server { return r.front.Server() }

// Restart starts a new process and has it serve in the place of the current one, which ends once its
// requests have. If the new one does not start, the error wraps ErrNotStarted, and nothing changes,
// but with Options.StopFirst, where the current one has ended before.
func (r *Runner) Restart(ctx context.Context) error {
	started := make(chan struct{})
	r.mu.Lock()
	r.starting = started
	r.mu.Unlock()
	if r.opts.StopFirst {
		r.mu.Lock()
		before := r.replace(placeholder(r.opts.Name))
		r.mu.Unlock()
		r.retire(ctx, before)
	}
	p, err := r.attempt(ctx)
	r.mu.Lock()
	r.starting = nil
	if err == nil {
		before := r.replace(newGeneration(p))
		r.count++
		r.wg.Go(func() { r.retire(r.life, before) })
	}
	count := r.count
	r.mu.Unlock()
	close(started)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		r.opts.Report(fmt.Sprintf("the server runs again (process %d)", count))
	case r.isPlaceholder():
		r.opts.Report(fmt.Sprintf("%v; it is started again when a file changes", err))
	default:
		r.opts.Report(fmt.Sprintf("%v; the process before goes on serving", err))
	}
	return err
}

// replace makes another process the current one, and returns the one before, which is to be retired.
// r.mu is held.
func (r *Runner) replace(g *generation) (before *generation) {
	before = r.current
	r.current = g
	r.all[g] = struct{}{}
	close(before.ending)
	return before
}

func (r *Runner) isPlaceholder() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current.proxy == nil
}

// attempt starts a process and connects to it.
func (r *Runner) attempt(ctx context.Context) (*proxy.Proxy, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.opts.StartTime, fmt.Errorf("it did not answer within %v", r.opts.StartTime))
	defer cancel()
	r.mu.Lock()
	d := &startDialer{most: r.dials}
	r.mu.Unlock()
	d.Dialer = r.start(d.filter)
	p, err := proxy.Connect(ctx, d, &proxy.Options{
		Client:  client.Options{DiscoverProbe: r.opts.Probe, ConnectTimeout: r.opts.StartTime},
		Server:  r.declared(),
		MaxKept: maxKept, MaxKeptPerPrincipal: maxKept,
		Logger: r.opts.Logger,
	})
	if err != nil {
		r.mu.Lock()
		r.dials = maxDials // next time: it may be another server then
		r.mu.Unlock()
		cause := context.Cause(ctx)
		ended, exited := errors.AsType[*stdio.ExitError](err)
		switch {
		case cause != nil:
			err = cause
		case exited: // the rest says how the connection was made
			err = ended
		}
		return nil, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	r.mu.Lock()
	r.dials = d.started()
	r.mu.Unlock()
	return p, nil
}

// maxKept is how many calls of a process with a handshake wait for the answers of stateless clients:
// they are all of the person who works on it.
const maxKept = 256

// retire ends a process once its requests have ended, and those that do not after Options.Drain, or
// with ctx.
func (r *Runner) retire(ctx context.Context, g *generation) {
	late := time.NewTimer(r.opts.Drain)
	defer late.Stop()
	select {
	case <-g.idle():
	case <-late.C:
	case <-ctx.Done():
	case <-r.life.Done():
	}
	r.mu.Lock()
	delete(r.all, g)
	r.mu.Unlock()
	close(g.expired)
	<-g.abandoned() // requests end before the process, whose end would be their answer
	g.close(r.opts.Logger)
}

// Close ends everything: requests, and all processes. It returns when nothing is left of them.
func (r *Runner) Close() error {
	r.end(errClosed)
	var err error
	if r.front != nil {
		err = r.front.Close()
	}
	r.wg.Wait()
	r.mu.Lock()
	left := r.current
	r.mu.Unlock()
	if left != nil {
		left.close(r.opts.Logger)
	}
	return err
}

var errClosed = errors.New("the server is about to end")
