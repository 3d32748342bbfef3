package connect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/kit"
)

// The memory of what servers log has bounds, and so has what is shown of it.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	var m stderrTail
	for n := range 1000 {
		_, _ = fmt.Fprintf(&m, "ref=%d\n", n)
	}
	if found, _ := m.naming("ref="); len(m.lines) != keptLines || !slices.Equal(found, []string{"ref=995", "ref=996", "ref=997", "ref=998", "ref=999"}) {
		t.Errorf("%d lines are kept, found %q", len(m.lines), found)
	}
	long := strings.Repeat("x", 5000)
	for range 100 {
		_, _ = fmt.Fprintln(&m, long)
	}
	size := 0
	for _, line := range m.lines {
		size += len(line) + 1
	}
	if size != m.size || size > keptBytes || size < keptBytes-2*len(long) {
		t.Errorf("%d bytes are kept, counted as %d", size, m.size)
	}
	_, _ = fmt.Fprintln(&m, "ABCDEF "+long)
	p := New(&kit.Console{})
	p.Output.heard.lines = m.lines
	if said := p.Output.Logged("internal error (ref ABCDEF)"); len(said) > shownBytes+100 || !strings.Contains(said, "ABCDEF xxx") {
		t.Errorf("shown is %q", said)
	}
}

// A line that comes after the answer is waited for, but not for ever.
func TestMemoryWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(&kit.Console{})
		time.AfterFunc(logDelay/2, func() { _, _ = fmt.Fprintln(&p.Output.heard, "other") })
		time.AfterFunc(logDelay-1, func() { _, _ = fmt.Fprintln(&p.Output.heard, "late ABCDEF") })
		if got, want := p.Output.Logged("x (ref ABCDEF)"), "\n  From the server's log:\n    | late ABCDEF"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		start := time.Now()
		if got := p.Output.Logged("x (ref 123456)"); !strings.Contains(got, "log has the error under 123456") || time.Since(start) != logDelay {
			t.Errorf("%q after %v", got, time.Since(start))
		}
		start = time.Now()
		p.Verbose = true
		for _, text := range []string{"x (ref ABCDEF)", "no reference"} {
			if got := p.Output.Logged(text); got != "" || time.Since(start) != 0 {
				t.Errorf("%q: %q after %v", text, got, time.Since(start))
			}
		}
	})
}
