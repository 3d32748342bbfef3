package connect

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

// Of returns the last lines of a server, the oldest first, without the secrets of this run.
func (o *Output) Of(server string) []string {
	lines := o.kept.tail(server).all()
	for i, line := range lines {
		lines[i] = o.console.Masked(line)
	}
	return lines
}

// KeepErrors keeps what servers write on standard error, which --verbose shows instead.
func (o *Output) KeepErrors(servers []host.Server) {
	for i := range servers {
		if d, ok := servers[i].Dialer.(*stdio.CommandDialer); ok && d.Stderr != nil {
			d.Stderr = io.MultiWriter(d.Stderr, o.kept.tail(servers[i].Name))
		}
	}
}

// KeepMessages asks servers for log messages, and keeps them.
func (o *Output) KeepMessages(opts *host.Options) {
	show := opts.OnLog
	opts.OnLog = func(server string, l *mcp.LogParams) {
		if show != nil {
			show(server, l)
		}
		line := kit.Shorten(string(l.Level), maxLogName) + ": "
		if l.Logger != "" {
			line = kit.Shorten(l.Logger, maxLogName) + " " + line
		}
		_, _ = fmt.Fprint(o.kept.tail(server), line+kit.Shorten(string(l.Data), kit.MaxMessage)) // it takes all
	}
}
