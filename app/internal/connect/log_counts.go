package connect

import (
	"sync"
	"time"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// maxLogs is how many log messages of one server are shown in one second.
const maxLogs = 100

// maxLogName bounds the names of loggers and levels that are shown, in bytes.
const maxLogName = 100

// logCounts counts the log messages of each server in the current second. The zero value
// is ready, and may be used by many goroutines.
type logCounts struct {
	mu       sync.Mutex
	byServer map[string]*logCount
}

// A logCount is how many messages came since a time.
type logCount struct {
	since time.Time
	n     int
}

// next counts a message of a server, and returns how many came in this second with it.
func (c *logCounts) next(server string, now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := c.byServer[server]
	if count == nil || now.Sub(count.since) >= time.Second {
		if c.byServer == nil {
			c.byServer = make(map[string]*logCount)
		}
		count = &logCount{since: now}
		c.byServer[server] = count
	}
	count.n++
	return count.n
}

// showLog shows a log message of a server, unless it is one of a flood.
func (o *Output) show(server string, l *mcp.LogParams) {
	switch n := o.counts.next(server, time.Now()); {
	case n == maxLogs+1:
		o.console.Note("[%s] more than %d log messages in one second; the rest of this second is not shown", host.EscapeLine(server), maxLogs)
		return
	case n > maxLogs:
		return
	}
	from := server
	if l.Logger != "" {
		from += " " + kit.Shorten(l.Logger, maxLogName)
	}
	o.console.Note("[%s] %s: %s", host.EscapeLine(from), host.EscapeLine(kit.Shorten(string(l.Level), maxLogName)), kit.OneLine(l.Data))
}
