package cli_test

import (
	"strings"
	"testing"
	"time"
)

// A conversation with servers that send without end. What is shown and kept is bounded, and
// the other server is unharmed.
//
// Proves: SEC-DOS-1, SEC-LOG-1, SEC-TOOL-3, SEC-RES-3.
func TestHostileSizes(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	k := begin(t, "--server", "bad=villain 2025-11-25 large", "--server", "endless=villain "+stateless+" endless",
		"--server", "good=actor "+t.TempDir(), "--logs", "error", "--allow", "*")
	k.until("/tools flood", "1 tool.")
	began := time.Now()
	k.says("bad/flood")
	k.sees("says:\n    flooded", "Done: ")
	seconds := int(time.Since(began)/time.Second) + 2
	if n := strings.Count(k.said.String(), "[bad] "); n < 2 || n > 101*seconds {
		t.Errorf("%d of 30,000 log messages are shown in %d s", n, seconds)
	}
	k.hears("[bad] more than 100 messages in a second")
	k.says("bad/huge")
	k.sees("huge of server bad: done", "more bytes are not shown", "All 9437184 bytes of the result are kept")
	k.sees("Done: ")
	k.says("good/who")
	k.sees("says:\n    parley speaks ")
	k.until("/servers", "more than 10000 items")
	if shown := k.quits(); len(shown) > 1<<20 {
		t.Errorf("%d bytes were shown", len(shown))
	}
}
