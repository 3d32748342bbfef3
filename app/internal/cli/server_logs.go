package cli

import (
	"fmt"
	"io"
	"sync"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/stdio"
)

// serverLogs are the last lines that each server wrote on standard error, and its log
// messages. The zero value is ready, and may be used by many goroutines.
type serverLogs struct {
	mu       sync.Mutex
	byServer map[string]*stderrTail
}

// tail is the log of a server.
func (l *serverLogs) tail(server string) *stderrTail {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byServer == nil {
		l.byServer = make(map[string]*stderrTail)
	}
	if l.byServer[server] == nil {
		l.byServer[server] = new(stderrTail)
	}
	return l.byServer[server]
}

// serverLog are the last lines of a server, the oldest first, without the secrets of this run.
func (p *program) serverLog(server string) []string {
	lines := p.kept.tail(server).all()
	for i, line := range lines {
		lines[i] = p.Masked(line)
	}
	return lines
}

// keepErrors keeps what servers write on standard error, which --verbose shows instead.
func (p *program) keepErrors(servers []host.Server) {
	for i := range servers {
		if d, ok := servers[i].Dialer.(*stdio.CommandDialer); ok && d.Stderr != nil {
			d.Stderr = io.MultiWriter(d.Stderr, p.kept.tail(servers[i].Name))
		}
	}
}

// keepMessages asks servers for log messages, and keeps them.
func (p *program) keepMessages(opts *host.Options) {
	show := opts.OnLog
	opts.OnLog = func(server string, l *mcp.LogParams) {
		if show != nil {
			show(server, l)
		}
		line := kit.Shorten(string(l.Level), maxLogName) + ": "
		if l.Logger != "" {
			line = kit.Shorten(l.Logger, maxLogName) + " " + line
		}
		_, _ = fmt.Fprint(p.kept.tail(server), line+kit.Shorten(string(l.Data), kit.MaxMessage)) // it takes all
	}
}
