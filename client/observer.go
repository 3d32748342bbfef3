package client

import (
	"sync"
	"time"
)

// An Observer is told of the sessions of a client, for metrics. Each function may
// be nil. They are called one at a time for one session, must be quick, and must
// not call the client. A panic of one is logged.
type Observer struct {
	// SessionOpened is told of a session once its revision is negotiated. A client
	// that loses its connection opens another. Self-contained requests over
	// HTTP, as in the stateless revision, belong to no session.
	SessionOpened func(s SessionInfo)
	// SessionEnded is told once of each session that SessionOpened was told of.
	// cause is ErrClosed if this client ended it, else why its connection ended.
	SessionEnded func(s SessionInfo, cause error)
}

// SessionInfo describes a session.
type SessionInfo struct {
	// Version is the protocol revision.
	Version string
	// Opened is when it began.
	Opened time.Time
}

// A sessionReports is what observers were told of a connection.
type sessionReports struct {
	mu    sync.Mutex
	open  bool // they know of it, and not of its end
	ended bool // the connection has ended
	info  SessionInfo
}

// begun tells observers that the connection is a session.
func (cn *conn) begun() {
	s := cn.session()
	if len(cn.c.opts.Observers) == 0 || !s.facts.Handshake && cn.link.Traits().Routes {
		return
	}
	cn.life.mu.Lock()
	defer cn.life.mu.Unlock()
	if cn.life.ended {
		return
	}
	cn.life.open, cn.life.info = true, SessionInfo{Version: s.facts.Version, Opened: time.Now()}
	for i := range cn.c.opts.Observers {
		if f := cn.c.opts.Observers[i].SessionOpened; f != nil {
			_ = cn.c.guard("Observer", func() { f(cn.life.info) })
		}
	}
}

// finished tells observers that a session has ended.
func (cn *conn) finished(cause error) {
	if cn.c.ctx.Err() != nil {
		cause = ErrClosed // of Close
	}
	cn.life.mu.Lock()
	defer cn.life.mu.Unlock()
	cn.life.ended = true
	if !cn.life.open {
		return
	}
	cn.life.open = false
	for i := range cn.c.opts.Observers {
		if f := cn.c.opts.Observers[i].SessionEnded; f != nil {
			_ = cn.c.guard("Observer", func() { f(cn.life.info, cause) })
		}
	}
}
