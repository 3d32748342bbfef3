package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/host"
)

// killsEnv is how often each conversation is killed; default 5.
const killsEnv = "PARLEY_TEST_KILLS"

// A killable is the settings and files of a person whose program is killed.
type killable struct {
	t   *testing.T
	dir string
}

func newKillable(t *testing.T) *killable {
	t.Helper()
	dir, err := os.MkdirTemp("", "parley-kill") //nolint:usetesting // a server may still write into it at the end
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // it is a temporary folder
	return &killable{t, dir}
}

// start starts the program with what is typed at it. It ends with the test at the latest.
func (k *killable) start(typed string, args ...string) (*exec.Cmd, io.ReadCloser, *bytes.Buffer) {
	k.t.Helper()
	cmd := exec.CommandContext(k.t.Context(), "parley", args...)
	cmd.Dir, cmd.Stdin = k.dir, strings.NewReader(typed)
	cmd.Env = append(os.Environ(), "HOME="+k.dir, "XDG_CONFIG_HOME="+k.dir)
	said := new(bytes.Buffer)
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return cmd, out, said
}

// parley runs the program to its end.
func (k *killable) parley(typed string, args ...string) (code int, out string) {
	k.t.Helper()
	cmd, from, said := k.start(typed, args...)
	raw, err := io.ReadAll(from)
	if err != nil {
		k.t.Fatal(err)
	}
	_ = cmd.Wait() // the code tells
	if code = cmd.ProcessState.ExitCode(); code != 0 {
		k.t.Logf("parley %s: exit code %d\n%s%s", strings.Join(args, " "), code, raw, said)
	}
	return code, string(raw)
}

// kill kills the program once it has shown so many bytes, and returns all that it showed.
func (k *killable) kill(after int, typed string, args ...string) string {
	k.t.Helper()
	cmd, from, _ := k.start(typed, args...)
	shown := make([]byte, after)
	n, err := io.ReadFull(from, shown)
	_ = cmd.Process.Kill() // it may have ended
	rest, restErr := io.ReadAll(from)
	_ = cmd.Wait() // it was killed
	if err != nil && n == 0 || restErr != nil {
		k.t.Fatalf("nothing could be read: %v, %v", err, restErr)
	}
	return string(shown[:n]) + string(rest)
}

// carriedOut is how often the server has carried out each call.
func (k *killable) carriedOut() map[string]int {
	k.t.Helper()
	raw, err := os.ReadFile(filepath.Join(k.dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		k.t.Fatal(err)
	}
	counts := make(map[string]int)
	for line := range strings.Lines(string(raw)) {
		counts[strings.TrimSpace(line)]++
	}
	return counts
}

// A logged is what the store has of the session.
type logged struct {
	lines  []string // each record as JSON
	bodies []host.Body
	grants []host.Grant
}

// logged reads the newest session and the grants.
func (k *killable) logged() *logged {
	k.t.Helper()
	l := new(logged)
	code, out := k.parley("", "history", "--json")
	if code != 0 {
		k.t.Fatal("the session cannot be read")
	}
	for line := range strings.Lines(out) {
		var r struct {
			Kind string
			Body json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			k.t.Fatalf("%s: %v", line, err)
		}
		body, err := host.DecodeBody(r.Kind, []byte(r.Body))
		if err != nil {
			k.t.Fatal(err)
		}
		l.lines, l.bodies = append(l.lines, line), append(l.bodies, body)
	}
	code, out = k.parley("", "grants", "--json")
	var grants struct{ Grants []host.Grant }
	if err := json.Unmarshal([]byte(out), &grants); err != nil || code != 0 {
		k.t.Fatalf("%s: %v", out, err)
	}
	l.grants = grants.Grants
	return l
}

// calls returns the starts and the results of calls, which calls the person agreed to, and how
// many answers grant more than one call.
func (l *logged) calls() (started map[string]*host.StartRecord, settled map[string]*host.ResultRecord, approved map[string]bool, granting int) {
	started, settled, approved = make(map[string]*host.StartRecord), make(map[string]*host.ResultRecord), make(map[string]bool)
	asked := make(map[string]string)
	for _, body := range l.bodies {
		switch b := body.(type) {
		case *host.StartRecord:
			started[b.Call] = b
		case *host.ResultRecord:
			settled[b.Call] = b
		case *host.QuestionRecord:
			asked[b.ID] = b.Call
		case *host.AnswerRecord:
			if b.Action != host.Approve {
				continue
			}
			approved[asked[b.Question]] = true
			if b.Offer > 0 {
				granting++
			}
		}
	}
	return started, settled, approved, granting
}

// kills calls fn with points between nothing and all that a conversation shows, each with
// settings of its own.
func kills(t *testing.T, typed string, args []string, fn func(t *testing.T, k *killable, shown string)) {
	t.Helper()
	count := killCount(t, 5)
	code, whole := newKillable(t).parley(typed, args...)
	if code != 0 {
		t.Fatalf("the conversation ends with %d", code)
	}
	for range count {
		point := 1 + rand.IntN(len(whole))
		t.Run(strconv.Itoa(point), func(t *testing.T) {
			k := newKillable(t)
			fn(t, k, k.kill(point, typed, args...))
		})
	}
}

// reopened checks what holds after every kill, once the session was opened again and gone on
// with: no call was repeated, and the audit log is as it was written.
func (k *killable) reopened(before *logged, typed string, args ...string) {
	k.t.Helper()
	args = append(args, "--resume", "last", "--server", "jots=jotter calls", "note text=later")
	if code, _ := k.parley(typed, args...); code != 0 {
		k.t.Error("the session cannot be gone on with")
	}
	after := k.logged()
	for i, line := range before.lines {
		if i >= len(after.lines) || after.lines[i] != line {
			k.t.Fatalf("record %d was %s, and now the session is\n%s", i+1, line, strings.Join(after.lines, ""))
		}
	}
	started, settled, _, granting := after.calls()
	if len(after.grants) != granting {
		k.t.Errorf("there are the grants %v, and the session is\n%s", after.grants, strings.Join(after.lines, ""))
	}
	for call := range started {
		if settled[call] == nil {
			k.t.Errorf("call %s has no end\n%s", call, strings.Join(after.lines, ""))
		}
	}
	counts := k.carriedOut()
	for call, n := range counts {
		if n != 1 {
			k.t.Errorf("%q was carried out %d times", call, n)
		}
	}
	if counts["note later"] != 1 {
		k.t.Errorf("after the kill the server carried out %v", counts)
	}
	if code, out := k.parley("", "audit", "verify"); code != 0 {
		k.t.Errorf("the audit log was changed: %s", out)
	}
}

// A run that is killed loses no record that it showed, and repeats no call.
func TestKilledRun(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	args := []string{"run", "--json", "--allow", "*", "--server", "jots=jotter calls", "note text=one; then post text=two; then note text=three; then inbox; then secret"}
	kills(t, "", args, func(t *testing.T, k *killable, shown string) {
		l := k.logged()
		n := 0
		for line := range strings.Lines(shown) {
			if !strings.HasSuffix(line, "\n") {
				break // it was cut off
			}
			if n >= len(l.lines) || l.lines[n] != line {
				t.Fatalf("%swas shown, and the session is\n%s", line, strings.Join(l.lines, ""))
			}
			n++
		}
		started, settled, _, _ := l.calls()
		if counts := k.carriedOut(); len(counts) > len(started) || len(counts) < len(settled) {
			t.Errorf("the server carried out %v, and the session is\n%s", counts, strings.Join(l.lines, ""))
		}
		k.reopened(l, "", "run", "--allow", "*")
	})
}

var (
	shownStart = regexp.MustCompile(`(?m)^Call (c\d+), .*: sent now`)
	shownEnd   = regexp.MustCompile(`(?m)^Call (c\d+), .*: done\.$`)
	shownGrant = regexp.MustCompile(`From now on allowed: ([^ ]+): `)
)

// A conversation that is killed loses nothing that it showed, no answer and no grant, and
// makes none up.
func TestKilledChat(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	args := []string{"chat", "--server", "jots=jotter calls", "note text=one; then post text=two; then post text=three; then secret; then inbox"}
	// once; the tool from now on; no; once
	kills(t, "y\n2\nn\ny\n", args, func(t *testing.T, k *killable, shown string) {
		l := k.logged()
		started, settled, approved, granting := l.calls()
		session := strings.Join(l.lines, "")
		for _, m := range shownStart.FindAllStringSubmatch(shown, -1) {
			if started[m[1]] == nil {
				t.Errorf("call %s was shown as sent, and the session is\n%s", m[1], session)
			}
		}
		for _, m := range shownEnd.FindAllStringSubmatch(shown, -1) {
			if r := settled[m[1]]; r == nil || r.Outcome != host.OutcomeDone {
				t.Errorf("call %s was shown as done, and the session is\n%s", m[1], session)
			}
		}
		for _, m := range shownGrant.FindAllStringSubmatch(shown, -1) {
			if len(l.grants) != 1 || l.grants[0].ID != m[1] {
				t.Errorf("grant %s was shown, and the grants are %v", m[1], l.grants)
			}
		}
		if len(l.grants) > granting { // fewer until the session is opened again
			t.Errorf("there are the grants %v, and the session is\n%s", l.grants, session)
		}
		for call, start := range started {
			byGrant := len(l.grants) == 1 && strings.HasSuffix(start.Why, "grant "+l.grants[0].ID)
			if !approved[call] && !byGrant {
				t.Errorf("call %s was sent without consent; the session is\n%s", call, session)
			}
		}
		if counts := k.carriedOut(); len(counts) > len(started) || counts["secret"] != 0 {
			t.Errorf("the server carried out %v, and the session is\n%s", counts, session)
		}
		k.reopened(l, "y\n", "chat")
	})
}
