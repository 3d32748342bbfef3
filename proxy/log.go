package proxy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// levelPause is the time after which a level is asked for again that the upstream
// server gave no answer to.
const levelPause = time.Minute

// levels are what the upstream server was asked to log.
type levels struct {
	turn chan struct{} // holds an element while the level is set

	mu    sync.Mutex
	now   mcp.LogLevel
	after time.Time // nothing is asked for before
}

func (l *levels) init(first mcp.LogLevel) {
	l.turn, l.now = make(chan struct{}, 1), cmp.Or(first, mcp.LogInfo)
}

// raise asks the upstream server for more if a caller wants more than any did
// before. What a caller does not want is not sent to it.
func (l *levels) raise(ctx context.Context, p *Proxy, want mcp.LogLevel) {
	if !l.more(want) || p.client.Capabilities().Logging == nil || p.opts.Client.OnLog != nil {
		return
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return
	}
	if !l.more(want) {
		return
	}
	set, cancel := context.WithTimeout(p.ctx, noticeTime) // others want it too, so ctx does not end it
	defer cancel()
	err := p.client.SetLogLevel(set, want)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		p.log.Debug("the upstream server does not take a log level", "server", p.name(), "level", string(want), "err", err)
	}
	_, answered := errors.AsType[*jsonrpc.Error](err)
	_, refused := errors.AsType[*client.RetryError](err)
	if err != nil && (!answered || refused) {
		l.after = time.Now().Add(levelPause)
		return
	}
	l.now = want
}

// more reports whether a level is to be asked for.
func (l *levels) more(want mcp.LogLevel) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return want != "" && l.now.AtLeast(want) && want != l.now && !time.Now().Before(l.after)
}

// logged tells the caller whose call a log message of the upstream server belongs
// to; which of the caller's calls it is, is not known. If the caller is not certain, the
// message may hold what is another person's: then it goes to the proxy's log alone.
func (p *Proxy) logged(ctx context.Context, m *mcp.LogParams) {
	if a := p.calls.likely(); a != nil && a.caller.Load() != nil {
		if !a.step(step{log: m}) {
			p.log.Debug("a log message was not delivered: the caller reads slowly", "server", p.name())
		}
		return
	}
	level := slog.LevelDebug
	if m.Level.AtLeast(mcp.LogWarning) {
		level = slog.LevelInfo // what the upstream server finds alarming need not alarm here
	}
	p.log.Log(ctx, level, "a log message of the upstream server", "server", p.name(), "level", string(m.Level), "logger", m.Logger, "data", string(m.Data))
}
