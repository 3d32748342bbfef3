package cli_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
)

// sessionsOf are the sessions that are kept, the one used last first.
func sessionsOf(t *testing.T) []host.SessionInfo {
	t.Helper()
	code, out, said := command(t, "session", "list", "--json")
	var list struct{ Sessions []host.SessionInfo }
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, said)
	}
	return list.Sessions
}

// chatLines carries out the lines of a conversation, with their answers.
func chatLines(t *testing.T, typed ...string) string {
	t.Helper()
	var out, said output
	code := cli.Main(t.Context(), []string{"chat", "--plain", "--allow", "*", "--server", "everything"}, &kit.Streams{
		In: strings.NewReader(strings.Join(append(typed, "/quit", ""), "\n")), Out: &out, Err: &said,
	})
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), said.String())
	}
	return out.String()
}

// One run of the program goes on in several sessions, one after another, each of which has
// what was said in it alone; a session that was left is free.
func TestSessionsInOneRun(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	chatLines(t, "echo message=one")
	first := sessionsOf(t)[0]
	shown := chatLines(t, "/new", "/new", "echo message=two", "/open last", "/open "+first.ID, "echo message=three", "/budget steps=3", "/fork 2", "/open "+first.ID, "/new", "echo message=four",
		"/delete "+first.ID, "/delete last", "/open nothing")
	for _, want := range []string{
		"this session is the one that is open", "This is session " + first.ID + " now: echo message=one.", "The person changed the limits of a run: 3 steps (before: 16)",
		"the session has forks", "It was not deleted: this session is the one that is open", `unknown session "nothing"`,
	} {
		if !strings.Contains(strings.Join(strings.Fields(shown), " "), want) {
			t.Errorf("not shown: %s\n%s", want, shown)
		}
	}
	var logs []string
	for _, s := range sessionsOf(t) {
		_, out, _ := command(t, "session", "export", s.ID)
		logs = append(logs, out)
	}
	if len(logs) != 4 {
		t.Fatalf("%d sessions are kept", len(logs))
	}
	has := func(log string, texts ...string) {
		t.Helper()
		for _, text := range []string{"one", "two", "three", "four"} {
			found, want := strings.Contains(log, "message="+text), strings.Contains(strings.Join(texts, " "), text)
			if found != want {
				t.Errorf("message %s is there: %v, want %v, in\n%s", text, found, want, log)
			}
		}
	}
	has(logs[0], "four")
	for _, log := range logs[1:] {
		switch {
		case strings.Contains(log, "message=two"):
			has(log, "two")
		case strings.Contains(log, "message=three"):
			has(log, "one", "three")
			if !strings.Contains(log, `"kind":"notice"`) {
				t.Error("the log does not say that the limits were changed")
			}
		default: // the fork
			has(log, "one")
		}
	}
}

// A session that was left can be opened elsewhere at once, the one that is open cannot.
func TestSessionIsFree(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	chatLines(t, "echo message=one")
	first := sessionsOf(t)[0]
	in, person := io.Pipe()
	out, said := new(output), new(output)
	go func() {
		ended := t.Context().Done()
		out.wait(`> $`, ended)
		if code, _, err := command(t, "run", "--resume", first.ID, "more"); code != 1 || !strings.Contains(err, "is open in another program") {
			t.Errorf("the session that is open: exit code %d, %s", code, err)
		}
		_, _ = io.WriteString(person, "/new\n")
		out.wait(`This is session (?s:.*)\n> $`, ended)
		if code, _, err := command(t, "run", "--resume", first.ID, "--allow", "*", "echo message=more"); code != 0 {
			t.Errorf("the session that was left: exit code %d, %s", code, err)
		}
		_, _ = io.WriteString(person, "/log everything\n")
		out.wait(`(Log of server everything|has logged nothing)`, ended)
		_, _ = io.WriteString(person, "/quit\n")
	}()
	code := cli.Main(t.Context(), []string{"chat", "--plain", "--resume", first.ID, "--server", "everything"}, &kit.Streams{In: in, Out: out, Err: said, InTerminal: true})
	if code != 0 {
		t.Errorf("exit code %d\n%s%s", code, out.String(), said.String())
	}
}

// What a server writes on standard error is in its log, and its log messages are.
func TestLogOfServer(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	in, person := io.Pipe()
	out, said := new(output), new(output)
	go func() {
		ended := t.Context().Done()
		out.wait(`> $`, ended)
		_, _ = io.WriteString(person, "query\n")
		out.wait(`Done: (?s:.*)\n> $`, ended)
		_, _ = io.WriteString(person, "/log broken\n")
		out.wait(`Log of server broken \(untrusted\), the last \d+ lines:\n(?s:.*)\| line 299\n(?s:.*)\n> $`, ended)
		_, _ = io.WriteString(person, "/log none\n")
		out.wait(`No server is called none; /servers lists them\.`, ended)
		_, _ = io.WriteString(person, "/quit\n")
	}()
	broken := fakeScript(t, "start", "\trepeat 300 stderr line {n}", "tool query Fails.", "\tfail no such table: notes")
	code := cli.Main(t.Context(), []string{"chat", "--plain", "--allow", "*", "--server", "broken=" + broken}, &kit.Streams{In: in, Out: out, Err: said, InTerminal: true})
	if code != 0 {
		t.Errorf("exit code %d\n%s%s", code, out.String(), said.String())
	}
}

// The views of the screen, as a person sees and uses them: another session, a limit that is
// raised, a server's log, a file that is dragged there.
func TestScreenViews(t *testing.T) {
	t.Parallel()
	tmux := os.Getenv(tmuxEnv)
	if tmux == "" {
		t.Skip(tmuxEnv + " names no tmux")
	}
	k := newKillable(t)
	k.file("my notes.txt", "Buy milk.\n")
	if code, out := k.parley("", "run", "--allow", "*", "echo message=before"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	s := newTmuxScreen(t, tmux, k.dir, []string{"parley", "chat", "--motion=false", "--allow", "*", "--server", "everything"})
	s.sees("Write a message").types("echo message=now").keys("Enter").sees("ready ·").sees("Done:")
	s.keys("F3").sees("echo message=before").sees("open here").sees("1 message,")
	s.keys("Down").sees("▸ today").keys("Enter").sees("Session ").sees("before")
	s.keys("F4").sees("steps   2 of 16").keys("+").sees("2 of 32").keys("Escape").sees("The person changed the limits of a run")
	s.keys("F2").sees("everything: ready").keys("Enter").sees("Server everything").keys("Escape").sees("Enter details").keys("Escape").sees("Write a message")
	s.keys("F5").sees("There are no grants").keys("Escape").sees("Write a message")
	s.run("set-buffer", "'"+filepath.Join(k.dir, "my notes.txt")+"'")
	s.run("paste-buffer", "-p")
	s.sees("Tab attaches the file my notes.txt, 10 bytes").keys("Tab").sees("Your next message has it")
	s.types("echo message=later").keys("Enter").sees("later").sees("Done:")
	s.types("/quit").keys("Enter").sees("ENDED 0")
	log := k.log()
	for _, text := range []string{"message=before", "The person changed the limits of a run: 32 steps (before: 16)", "Buy milk.", "message=later"} {
		if !strings.Contains(log, text) {
			t.Errorf("the log has no %s:\n%s", text, log)
		}
	}
	if strings.Contains(log, "message=now") {
		t.Errorf("the log has what was said in the session before:\n%s", log)
	}
}

// Nothing is left of a session that is deleted, neither in a conversation nor by the command.
func TestDeletedSessionLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	chatLines(t, "echo message=one")
	chatLines(t, "echo message=two")
	list := sessionsOf(t)
	chatLines(t, "/delete "+list[0].ID)
	if code, _, said := command(t, "session", "delete", list[1].ID); code != 0 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	held, err := filepath.Glob(filepath.Join(dir, "parley", "open", "*"))
	if err != nil || len(held) != 1 {
		t.Errorf("one session is left, and the files are %q, %v", held, err)
	}
}
