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
)

// Proves: FLOW-CANCEL. An interrupt in a conversation cancels the call, whose handler ends;
// the conversation goes on, and the second interrupt in a row ends it.
func TestInterruptChat(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "calls")
	in, person := io.Pipe()
	interrupts := make(chan os.Signal, 1)
	out := new(output)
	go func() {
		out.wait("hanging", t.Context().Done())
		// No other process closes the calls that run here as interrupted.
		if code, _, said := command(t, "run", "--resume", "last", "more"); code != 1 || !strings.Contains(said, "is open in another program") {
			t.Errorf("going on with an open session: exit code %d, %s", code, said)
		}
		interrupts <- os.Interrupt
		out.wait(`(?s)Cancelling.*\n> $`, t.Context().Done())
		_, _ = io.WriteString(person, "await\n")
		out.wait("says:\n    it has ended", t.Context().Done())
		out.wait(`it has ended\n(?s:.*)\n> $`, t.Context().Done())
		interrupts <- os.Interrupt
		out.wait("Nothing is under way. Interrupt once more to quit", t.Context().Done())
		interrupts <- os.Interrupt
	}()
	said := new(output)
	code := cli.Main(t.Context(), []string{"chat", "--allow", "*", "--server", "jots=jotter " + path, "hang"}, &kit.Streams{
		In: in, Out: out, Err: said, InTerminal: true, Interrupts: interrupts,
	})
	if code != 0 {
		t.Errorf("exit code %d\n%s%s", code, out.String(), said.String())
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "hang began\nhang ended\n" {
		t.Errorf("the server carried out %q (%v)", raw, err)
	}
	_, history, _ := command(t, "history")
	if !strings.Contains(history, "hang of server jots: cancelled") {
		t.Errorf("the history is\n%s", history)
	}
}

// Every server of the files of other clients is listed once, with its file and line.
func TestConfigOfClients(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(home, os.DirFS(filepath.Join("..", "config", "testdata", "home"))); err != nil {
		t.Fatal(err)
	}
	t.Chdir(home)
	for name, value := range map[string]string{"HOME": home, "USERPROFILE": home, "XDG_CONFIG_HOME": filepath.Join(home, ".config")} {
		t.Setenv(name, value)
	}
	code, out, said := command(t, "config", "list", "--json")
	var list struct {
		Servers []struct {
			Name, Client, File string
			Line               int
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, said)
	}
	names, clients := make(map[string]bool), make(map[string]bool)
	for _, s := range list.Servers {
		if names[s.Name] {
			t.Errorf("%s is listed twice", s.Name)
		}
		names[s.Name], clients[s.Client] = true, true
		if raw, err := os.ReadFile(s.File); err != nil || s.Line < 1 || s.Line > strings.Count(string(raw), "\n") {
			t.Errorf("%s is said to be at line %d of %s: %v", s.Name, s.Line, s.File, err)
		}
	}
	for _, client := range []string{"parley", "cursor", "claude-code", "opencode", "goose", "crush", "vscode", "kit", "copilot"} {
		if !clients[client] {
			t.Errorf("no server of %s is listed: %v", client, clients)
		}
	}
}
