package cli

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

// logged is what servers logged about the internal error that text refers to,
// if it does, as lines to follow it. With --verbose it has been shown.
func (p *program) logged(text string) string {
	m := reference.FindStringSubmatch(text)
	if m == nil || p.Verbose {
		return ""
	}
	lines := p.heard.await(m[1])
	if len(lines) == 0 {
		return "\n  The server's log has the error under " + m[1]
	}
	said := "\n  The server's log says:"
	for _, line := range lines {
		said += "\n    | " + host.EscapeLine(kit.Shorten(line, shownBytes))
	}
	return said
}

// A loggedError has what a server logged about it.
type loggedError struct {
	err  error
	said string
}

func (e *loggedError) Error() string { return e.err.Error() }
func (e *loggedError) Unwrap() error { return e.err }

// withLog adds to an error what a server logged about it.
func (p *program) withLog(err error) error {
	if said := p.logged(err.Error()); said != "" {
		return &loggedError{err, said}
	}
	return err
}
