package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-mcp/parley/app/internal/authserver/userauth"
	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
)

// patience is how long a test waits for what must come: on a machine that is busy, too, only a hang lasts so
// long.
const patience = 5 * time.Minute

// clockEnv names a file. Until it is there, no time passes for the program, however busy the machine is.
const clockEnv = "PARLEY_TEST_CLOCK"

// clockOf is the clock of a program that waits for a file.
func clockOf(file string) func() time.Time {
	begun := time.Now()
	return func() time.Time {
		if _, err := os.Stat(file); err != nil {
			return begun
		}
		return time.Now().Add(time.Second)
	}
}

func parley() {
	s := kit.Standard()
	if os.Getenv("PARLEY_TEST_TYPED") == "" {
		s.Flush = nil // scripts give all that is typed at once
	}
	s.SystemRoot = os.Getenv("PARLEY_TEST_SYSTEM")
	s.ModelPorts, s.ModelWait, s.StartWait = testPorts(), testWait("PARLEY_TEST_MODEL_WAIT"), testWait("PARLEY_TEST_START_WAIT")
	if late := os.Getenv(clockEnv); late != "" {
		s.Now = clockOf(late)
	}
	os.Exit(cli.Main(context.Background(), os.Args[1:], s))
}

// TestMain lets the test binary be the program: for scripts, under its own
// name, and for tests that call Main, as the built-in server that Main starts.
func TestMain(m *testing.M) {
	userauth.CheapHashes()
	if slices.Equal(os.Args[1:], []string{"serve", "everything"}) {
		parley()
	}
	testscript.Main(apart{m}, map[string]func(){
		"parley": parley, "fake": fake, "fakebrowser": fakeBrowser, "fakemodel": fakeModel, "actor": actorMain, "echoer": echoerMain,
		"folder-skills": folderSkills, "jotter": jotter, "rewrite": rewrite, "tampered": tampered, "scribe": scribe,
		"villain": villainMain, "workbench": workbench, "interviewer": interviewerMain, "leaker": leakerMain,
	})
}

// apart runs the tests away from what the person at this machine has: their
// settings, tokens, keyring and browser.
type apart struct{ m *testing.M }

func (a apart) Run() int {
	dir, err := os.MkdirTemp("", "parley-test")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is a temporary folder
	for name, value := range map[string]string{"HOME": dir, "XDG_CONFIG_HOME": dir, "DBUS_SESSION_BUS_ADDRESS": "", "BROWSER": "fakebrowser", "DISPLAY": "", "WAYLAND_DISPLAY": ""} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	databasetest.Parallel()
	return a.m.Run()
}

// Proves: FLOW-AUTH, FLOW-TOOL-H, FLOW-RES, FLOW-PROMPT, FLOW-COMPLETE, FLOW-ELICIT-H,
// FLOW-SAMPLE-H, FLOW-ROOTS, FLOW-LOG, PART-HOST, PART-INSPECTOR: see the scripts.
func TestScripts(t *testing.T) {
	racetest.SkipSerial(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.Getenv("WORK")+"/home")
			e.Setenv("XDG_CONFIG_HOME", e.Getenv("WORK")+"/config")
			e.Setenv("BROWSER", "fakebrowser")
			e.Setenv("PARLEY_TEST_START_WAIT", patience.String())
			setModelPorts(t, e)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"freeport": freePort, "serving": serveFlags},
		Condition: func(name string) (bool, error) {
			if name != "race" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return racetest.Enabled, nil
		},
	})
}

// run runs the program with a person who types input at a terminal.
func run(t *testing.T, input string, args ...string) (code int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Main(t.Context(), args, &kit.Streams{
		In: strings.NewReader(input), Out: &stdout, Err: &stderr, InTerminal: true,
	})
	return code, stdout.String(), stderr.String()
}

// Proves: FLOW-TOOL-H. The person decides, and is named as the reason.
func TestConsent(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	for _, test := range []struct {
		input, request string
		says           []string
		questions      int
	}{
		{"y\n", "add 2 and 3", []string{"says:\n    5\n"}, 1},
		{"2\n", "add 2 and 3; then add 4 and 5", []string{"says:\n    5 9\n"}, 1},
		{"y\ny\n", "add 2 and 3; then add 4 and 5", []string{"says:\n    5 9\n"}, 2},
		{"n too large\n", "add 2 and 3", []string{"The reason: too large"}, 1},
		{"", "add 2 and 3", []string{"The input has ended: the question cannot be answered here."}, 1},
	} {
		t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // what is agreed to is kept
		code, out, err := run(t, test.input, "chat", "--server", "math=parley serve everything", test.request)
		if code != 0 {
			t.Errorf("%q for %q: exit code %d\n%s%s", test.input, test.request, code, out, err)
		}
		for _, want := range test.says {
			if !strings.Contains(out, want) {
				t.Errorf("%q for %q: the conversation has no %q\n%s", test.input, test.request, want, out)
			}
		}
		if n := strings.Count(out, "The model wants to call add of server math."); n != test.questions {
			t.Errorf("%q for %q: %d questions, want %d\n%s", test.input, test.request, n, test.questions, out)
		}
	}
}

// On a terminal a stranger's control characters are escaped; elsewhere results
// go as they are (SEC-TOOL-3).
func TestOutputIsEscapedOnTerminals(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		var out bytes.Buffer
		code := cli.Main(t.Context(), []string{"call", "echo", "message=a\x1b[31mb"}, &kit.Streams{
			In: strings.NewReader(""), Out: &out, Err: io.Discard, OutTerminal: terminal,
		})
		want := "a\x1b[31mb\n"
		if terminal {
			want = "a\\u{1b}[31mb\n"
		}
		if code != 0 || out.String() != want {
			t.Errorf("terminal %v: exit code %d and %q, want %q", terminal, code, out.String(), want)
		}
	}
}

// Proves: FLOW-CANCEL, FLOW-PROGRESS. Ctrl-C ends the call; twice, the program.
func TestInterrupt(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	for _, times := range []int{1, 2} {
		interrupts := make(chan os.Signal, times)
		w := new(output)
		go func() {
			w.wait("1 of 100 step", t.Context().Done())
			for range times {
				interrupts <- os.Interrupt
			}
		}()
		code := cli.Main(t.Context(), []string{"call", "trigger-long-running-operation", "duration=20", "steps=100"}, &kit.Streams{
			In: strings.NewReader(""), Out: io.Discard, Err: w, Interrupts: interrupts,
		})
		if code != 130 {
			t.Errorf("interrupted %d times: exit code %d, want 130", times, code)
		}
	}
}

// needNPX skips a test of servers that others wrote where none may be fetched.
func needNPX(t *testing.T) {
	t.Helper()
	if os.Getenv("PARLEY_TEST_NPX") == "" {
		t.Skip("PARLEY_TEST_NPX is not set: no servers from the network")
	}
	if _, err := exec.LookPath("npx"); err != nil {
		t.Skip("npx is not installed")
	}
}

// A server that others wrote serves in a run.
func TestForeignServer(t *testing.T) {
	racetest.SkipSerial(t)
	needNPX(t)
	const foreign = "npx -y @modelcontextprotocol/server-everything@2026.8.31 stdio"
	code, out, err := run(t, "", "run", "--server", foreign, "--allow", "*", "echo message=hello")
	if code != 0 || !regexp.MustCompile(`(?m)^Echo: hello$`).MatchString(out) {
		t.Errorf("exit code %d and %q\n%s", code, out, err)
	}
}
