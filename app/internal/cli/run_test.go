package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/racetest"
)

// Proves: FLOW-BUDGET, FLOW-CANCEL. Each exit code of run that is documented is that of a run
// which ends so.
func TestRunExitCodes(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	jots := "jots=jotter " + filepath.Join(t.TempDir(), "jots")
	for name, test := range map[string]struct {
		code  int
		says  string
		args  []string
		until string // the interrupt comes when this was said
	}{
		"done":             {0, "", []string{"add 2 and 3"}, ""},
		"no request":       {1, "wrong number of arguments", nil, ""},
		"unknown flag":     {1, "unknown flag", []string{"--nothing", "x"}, ""},
		"no file":          {1, "missing.json", []string{"--config", "missing.json", "x"}, ""},
		"no such session":  {1, "unknown session", []string{"--resume", "nothing", "x"}, ""},
		"budget":           {2, "the budget of 1 steps is spent", []string{"--max-steps", "1", "add 2 and 3"}, ""},
		"consent":          {3, "nobody can be asked here", []string{"toggle-extra-tool"}, ""},
		"a rule that asks": {3, "nobody can be asked here", []string{"--ask", "*", "add 2 and 3"}, ""},
		"unreachable":      {4, "nothing-of-that-name", []string{"--server", "nothing-of-that-name --x", "add 2 and 3"}, ""},
		"all calls failed": {5, "the tool failed", []string{"--allow", "*", "fail reason=x"}, ""},
		"interrupted":      {130, "", []string{"--allow", "*", "--server", jots, "hang"}, "hanging"},
	} {
		interrupts, said := make(chan os.Signal, 1), new(output)
		done := make(chan struct{})
		if test.until != "" {
			go func() {
				said.wait(test.until, done)
				interrupts <- os.Interrupt
			}()
		}
		code := cli.Main(t.Context(), append([]string{"run"}, test.args...), &kit.Streams{
			In: strings.NewReader(""), Out: io.Discard, Err: said, Interrupts: interrupts,
		})
		close(done)
		if code != test.code || !strings.Contains(said.String(), test.says) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", name, code, test.code, test.says, said)
		}
	}
}
