package mcptest

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"
)

// leakTimeout is how long goroutines may take to end after a test.
const leakTimeout = time.Minute

// NoLeaks fails the test if, after all its clean-ups registered later, more
// goroutines are there than when NoLeaks was called. Goroutines that are on
// their way out get a minute, which a busy machine may need. It cannot tell the
// goroutines of tests that run in parallel from those of this one, so call it in
// tests that do not.
func NoLeaks(t testing.TB) {
	t.Helper()
	before := make(map[string]bool)
	for _, g := range goroutines() {
		before[g.id] = true
	}
	t.Cleanup(func() {
		t.Helper()
		deadline := time.Now().Add(leakTimeout)
		for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
			left := leftovers(before)
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("%d goroutines left behind:\n\n%s", len(left), strings.Join(left, "\n\n"))
				return
			}
			time.Sleep(pause) // a bounded poll: the runtime tells of no other way
		}
	})
}

// leftovers are the stacks of goroutines that were not there before.
func leftovers(before map[string]bool) []string {
	var left []string
	for _, g := range goroutines() {
		if !before[g.id] && !g.harness() {
			left = append(left, g.stack)
		}
	}
	return left
}

// A goroutine is one paragraph of the runtime's list.
type goroutine struct{ id, stack string }

// harness reports whether the goroutine belongs to package testing, or to the
// runtime's own machinery, rather than to what is tested.
func (g goroutine) harness() bool {
	for _, own := range []string{
		"testing.(*T).Run(", "testing.tRunner.func", "testing.runFuzzing", "os/signal.loop",
		"runtime.ensureSigM", "runtime.goexit0", "mcptest.goroutines(",
	} {
		if strings.Contains(g.stack, own) {
			return true
		}
	}
	return false
}

// goroutines lists what runs now.
func goroutines() []goroutine {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	var all []goroutine
	for paragraph := range bytes.SplitSeq(buf, []byte("\n\n")) {
		stack := string(paragraph)
		id, _, ok := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		if ok {
			all = append(all, goroutine{id: id, stack: stack})
		}
	}
	return all
}
