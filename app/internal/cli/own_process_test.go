package cli_test

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
)

// ownProcessEnv names the test that a process was started for.
const ownProcessEnv = "PARLEY_TEST_OWN_PROCESS"

// ownTest is the test that this process was started for, or "". The variable is not for the processes
// that this one starts.
var ownTest = func() string {
	name := os.Getenv(ownProcessEnv)
	if err := os.Unsetenv(ownProcessEnv); err != nil {
		panic(err)
	}
	return name
}()

// ranInOwnProcess is for tests that cannot run beside others in one process, since they change its
// environment or count its goroutines. It runs such a test in a process of its own, with a folder of
// settings of its own, beside other tests, and returns true when it has ended. In that process it
// returns false, and the test goes on:
//
//	if ranInOwnProcess(t) {
//		return
//	}
//
// What lets the test be skipped comes before, so that no process is started for nothing. Tests in which
// something is short-lived, such as a token, stay alone. With the race detector all do: programs are so
// slow then that those beside each other starve.
func ranInOwnProcess(t *testing.T) bool {
	t.Helper()
	if racetest.Enabled {
		return false
	}
	switch ownTest {
	case "":
	case t.Name():
		return false
	default: // a pattern with | matches others, too; a process for each would start more without end
		t.Skip("this process is for another test")
	}
	t.Parallel()
	name := "^" + regexp.QuoteMeta(t.Name()) + "$"
	if _, inner, ok := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); ok {
		name += "/" + inner
	}
	args := []string{"-test.v", "-test.run=" + name}
	for _, f := range []string{"test.short", "test.skip", "test.parallel"} {
		args = append(args, "-"+f+"="+flag.Lookup(f).Value.String())
	}
	if end, ok := t.Deadline(); ok {
		// It ends before this one, which would leave it behind.
		args = append(args, "-test.timeout="+(time.Until(end)*9/10).String())
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), ownProcessEnv+"="+t.Name())
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	switch {
	case err != nil:
		t.Errorf("in a process of its own: %v", err)
	case strings.Contains(string(out), "\n--- SKIP: "+t.Name()+" "):
		t.Skip("in a process of its own: skipped")
	case !strings.Contains(string(out), "\n--- PASS: "+t.Name()+" "):
		t.Error("a process of its own did not run this test")
	}
	return true
}
