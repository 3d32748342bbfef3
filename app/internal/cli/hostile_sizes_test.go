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
	if ranInOwnProcess(t) {
		return
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	k := begin(t, "--server", "bad=villain 2025-11-25 large", "--server", "endless=villain "+stateless+" endless",
		"--server", "good=actor "+t.TempDir(), "--logs", "error", "--allow", "*")
	var began time.Time
	late := time.Now().Add(patience)
	for { // each message waits for servers that are still starting, but not for ever
		began = time.Now()
		k.says("bad/flood")
		if done := k.wait(k.out, k.at, "Done: "); strings.Contains(k.out.String()[k.at:done], "says:\n    flooded") {
			break
		} else if began.After(late) {
			t.Fatalf("the server bad does not start:\n%s", k.out)
		}
	}
	seconds := int(time.Since(began)/time.Second) + 2
	if n := strings.Count(k.said.String(), "[bad] "); n < 2 || n > 101*seconds {
		t.Errorf("%d of 30,000 log messages are shown in %d s", n, seconds)
	}
	k.hears("[bad] more than 100 log messages in one second")
	k.says("bad/huge")
	k.sees("huge of server bad: done", "more bytes are not shown", "All 9437184 bytes of the result are kept")
	k.sees("Done: ")
	k.says("good/who")
	k.sees("says:\n    parley speaks ")
	for late = time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		k.says("/tools who")
		k.sees("1 tool.")
		k.says("/servers")
		k.sees("Server endless ")
		if shown := k.out.String()[k.at:]; strings.Contains(shown, "more than 10000 items") {
			break
		} else if time.Now().After(late) {
			t.Fatalf("a list without an end is not given up:\n%s", shown)
		}
	}
	if shown := k.quits(); len(shown) > 1<<20 {
		t.Errorf("%d bytes were shown", len(shown))
	}
}
