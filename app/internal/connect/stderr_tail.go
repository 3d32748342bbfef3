package connect

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
)

// Bounds of what is kept of the logs of servers, and shown of them.
const (
	keptLines  = 200
	keptBytes  = 256 << 10
	shownLines = 5
	shownBytes = 1 << 10 // of each line
	// logDelay is how long a line may come after the answer that it explains:
	// they come by different streams.
	logDelay = 500 * time.Millisecond
)

// reference is how servers name an internal error, in its text and in their log.
var reference = regexp.MustCompile(`\(ref ([0-9A-F]{6})\)`)

// Output is what the servers of a command write besides their answers: lines on standard error and log
// messages. It is safe for concurrent use.
type Output struct {
	console *kit.Console
	heard   stderrTail // lines of all servers on standard error
	kept    serverLogs // lines and log messages of each server
	counts  logCounts  // of log messages that were shown
}

// WithoutReference returns the text of an error without the reference to a server's log.
func WithoutReference(text string) string {
	return strings.TrimSpace(reference.ReplaceAllString(text, ""))
}

// A stderrTail keeps the last lines that servers write on standard error, which
// are not shown without --verbose, for errors that refer to them.
type stderrTail struct {
	mu    sync.Mutex
	lines []string
	size  int
	more  chan struct{} // closed when a line comes; nil while nothing waits
}

// Write takes one line, as stdio.CommandDialer.Stderr gets them.
func (m *stderrTail) Write(line []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := strings.TrimSuffix(string(line), "\n")
	m.lines = append(m.lines, text)
	m.size += len(text) + 1
	for len(m.lines) > keptLines || m.size > keptBytes {
		m.size -= len(m.lines[0]) + 1
		m.lines = m.lines[1:]
	}
	if m.more != nil {
		close(m.more)
		m.more = nil
	}
	return len(line), nil
}

// all are the lines that are kept.
func (m *stderrTail) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.lines)
}

// naming returns the last lines that hold a text, and what tells of further
// lines.
func (m *stderrTail) naming(text string) (found []string, more <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	if m.more == nil {
		m.more = make(chan struct{})
	}
	return found[max(0, len(found)-shownLines):], m.more
}

// await is naming for a text that may be about to come.
func (m *stderrTail) await(text string) []string {
	late := time.NewTimer(logDelay)
	defer late.Stop()
	for {
		found, more := m.naming(text)
		if len(found) > 0 {
			return found
		}
		select {
		case <-more:
		case <-late.C:
			return nil
		}
	}
}

// Logged is what servers logged about the internal error that text refers to,
// if it does, as lines to follow it. With --verbose it has been shown.
func (o *Output) Logged(text string) string {
	m := reference.FindStringSubmatch(text)
	if m == nil || o.console.Verbose {
		return ""
	}
	lines := o.heard.await(m[1])
	if len(lines) == 0 {
		return "\n  The server's log has the error under " + m[1]
	}
	said := "\n  From the server's log:"
	for _, line := range lines {
		said += "\n    | " + host.EscapeLine(kit.Shorten(line, shownBytes))
	}
	return said
}

// A LoggedError has what a server logged about it.
type LoggedError struct {
	Err  error
	Said string
}

func (e *LoggedError) Error() string { return e.Err.Error() }
func (e *LoggedError) Unwrap() error { return e.Err }

// WithLog adds to an error what a server logged about it.
func (o *Output) WithLog(err error) error {
	if said := o.Logged(err.Error()); said != "" {
		return &LoggedError{err, said}
	}
	return err
}
