package dev

import (
	"log/slog"
	"sync"

	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
)

// maxRounds is how many calls of one process may wait for an answer of their client.
const maxRounds = 4096

// A generation is one process and its proxy, or a server that stands for one that did not start.
//
//	current --Restart--> ending --no request is under way, or Drain is over--> expired
type generation struct {
	proxy  *proxy.Proxy // nil of a server that stands for one
	server *server.Server

	ending  chan struct{} // closed when another process is the current one
	expired chan struct{} // closed when requests under way are given up

	mu     sync.Mutex
	under  int             // requests under way
	over   bool            // no call waits for an answer any more
	rounds map[string]bool // states of calls that asked something: whether they wait for the answer
	quiet  chan struct{}   // closed when nothing is under way; nil while nobody waits for that
}

func newGeneration(p *proxy.Proxy) *generation {
	g := &generation{proxy: p, ending: make(chan struct{}), expired: make(chan struct{}), rounds: make(map[string]bool)}
	if p != nil {
		g.server = p.Server()
	}
	return g
}

// placeholder stands for a process that did not start.
func placeholder(name string) *generation {
	g := newGeneration(nil)
	g.server = server.New(name, "0", &server.Options{
		Instructions: "The server did not start yet: it offers nothing until what is wrong with it is mended.",
		DeclareTools: true, DeclarePrompts: true, DeclareResources: true,
	})
	return g
}

// begin notes that a request is under way.
func (g *generation) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under++
}

// done notes that it is not any more.
func (g *generation) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under--
	g.tell()
}

// asks notes that a call was answered with a question: the next round of it brings the state.
func (g *generation) asks(state string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.rounds) < maxRounds {
		g.rounds[state] = !g.over
	}
}

// answered reports whether a state is one of this process, whose call then waits for no answer.
func (g *generation) answered(state string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, own := g.rounds[state]
	if own {
		g.rounds[state] = false
	}
	return own
}

// idle is closed when no request is under way and none waits for an answer.
func (g *generation) idle() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.quiet = make(chan struct{})
	quiet := g.quiet
	g.tell()
	return quiet
}

// abandoned is closed when no request is under way. No answer to a question is waited for any more.
func (g *generation) abandoned() <-chan struct{} {
	g.mu.Lock()
	g.over = true
	for state := range g.rounds {
		g.rounds[state] = false
	}
	g.mu.Unlock()
	return g.idle()
}

// tell closes quiet if it is time. g.mu is held.
func (g *generation) tell() {
	if g.quiet == nil || g.under > 0 {
		return
	}
	for _, waits := range g.rounds {
		if waits {
			return
		}
	}
	close(g.quiet)
	g.quiet = nil
}

// close ends the process.
func (g *generation) close(log *slog.Logger) {
	if g.proxy == nil {
		return
	}
	if err := g.proxy.Close(); err != nil {
		log.Info("a process did not end in good order", "err", err)
	}
}
