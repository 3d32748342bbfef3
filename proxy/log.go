package proxy

import (
	"cmp"
	"context"
	"log/slog"
	"sync"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// levels are what the upstream server was asked to log.
type levels struct {
	mu  sync.Mutex
	now mcp.LogLevel
}

func (l *levels) init(first mcp.LogLevel) { l.now = cmp.Or(first, mcp.LogInfo) }

// raise asks the upstream server for more if a caller wants more than any did
// before. What a caller does not want is not sent to it.
func (l *levels) raise(ctx context.Context, p *Proxy, want mcp.LogLevel) {
	l.mu.Lock()
	more := want != "" && l.now.AtLeast(want) && want != l.now
	if more {
		l.now = want
	}
	l.mu.Unlock()
	if !more || p.client.Capabilities().Logging == nil || p.opts.Client.OnLog != nil {
		return
	}
	if err := p.client.SetLogLevel(ctx, want); err != nil {
		p.log.Debug("the upstream server does not take a log level", "server", p.name(), "level", string(want), "err", err)
	}
}

// logged tells the caller whose call a log message of the upstream server belongs
// to. If that is not certain, the message may hold what is another person's: then
// it goes to the proxy's log alone.
func (p *Proxy) logged(ctx context.Context, m *mcp.LogParams) {
	if a := p.calls.only(); a != nil {
		if caller := a.caller.Load(); caller != nil {
			send, cancel := context.WithTimeout(caller, noticeTime)
			defer cancel()
			if err := server.Log(send, m.Level, m.Logger, m.Data); err != nil {
				p.log.Debug("a log message was not delivered", "err", err)
			}
			return
		}
	}
	level := slog.LevelDebug
	if m.Level.AtLeast(mcp.LogWarning) {
		level = slog.LevelInfo // what the upstream server finds alarming need not alarm here
	}
	p.log.Log(ctx, level, "a log message of the upstream server", "server", p.name(), "level", string(m.Level), "logger", m.Logger, "data", string(m.Data))
}
