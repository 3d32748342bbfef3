package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tmuxEnv names tmux, and switches the tests on that need it.
const tmuxEnv = "PARLEY_TEST_TMUX"

// A scene is a conversation, once in lines through a pipe and once on the screen in tmux. Its
// logs are the same.
type scene struct {
	name string
	// args are those of parley chat; DIR in them is the person's folder.
	args []string
	// lines are typed in the pipe; or pipe types them, where they depend on what is shown.
	lines []string
	pipe  func(p *pipe)
	// screen does the same by keys. The screen has colours in one scene, and none in the others.
	screen func(s *tmuxScreen)
	color  bool
	// prepare, which may be nil, puts files into the person's folder, and begins what the
	// scene needs beside the program; checks checks what was done there.
	prepare, checks func(k *killable)
	// logged are texts that the log has.
	logged []string
}

// scenes are what a person does with questions, prompts and resources.
var scenes = []scene{
	{
		name: "an edited argument", color: true, args: []string{"--server", "jots=jotter DIR/notes", "note text=secret"},
		lines: []string{"e", "text=harmless", "y"},
		screen: func(s *tmuxScreen) {
			s.question("wants to call note of server jots")
			s.keys("e").sees("Go to a value").keys("Down", "Enter").sees("New value of text")
			s.keys("C-u").types("harmless").keys("Enter").sees("Changed.").keys("b").sees("as you edited it").keys("y")
		},
		logged: []string{`"edited":{"text":"harmless"}`, `noted: harmless`},
	},
	{
		name: "a pattern is remembered", args: []string{"--server", "jots=jotter DIR/notes", "note text=one; then note text=one; then note text=two"},
		lines: []string{"1", "n"},
		screen: func(s *tmuxScreen) {
			s.question("wants to call note of server jots")
			s.keys("r").sees("with exactly these arguments").keys("1")
			s.question(`"two"`)
			s.keys("n").sees("Your reason").keys("Enter")
		},
		logged: []string{`"offer":1`, `the person agreed before`, `"outcome":"refused"`},
	},
	{
		name: "a reason", args: []string{"--server", "jots=jotter DIR/notes", "note text=one"},
		lines: []string{"n not on a Sunday"},
		screen: func(s *tmuxScreen) {
			s.question("wants to call note of server jots")
			s.keys("n").sees("Your reason").types("not on a Sunday").keys("Enter")
		},
		logged: []string{`"reason":"not on a Sunday"`, `Do not repeat it. The reason: not on a Sunday`},
	},
	{
		name: "a page that is declined", args: []string{"trigger-url-elicitation"},
		lines: []string{"n"},
		screen: func(s *tmuxScreen) {
			s.question("wants you to visit a page")
			s.keys("n")
		},
		logged: []string{`"action":"refuse"`, `The person did not go there`},
	},
	{
		name: "forms", args: []string{"drop-table table=users"},
		lines: []string{"y", "y", "yes", "y", "y", "too old", "y"},
		screen: func(s *tmuxScreen) {
			s.question("wants to call drop-table")
			s.keys("y")
			s.question("Are you sure?")
			s.keys("y").sees("> ( ) yes").keys("Space").sees("(x) yes").keys("Tab", "Enter").sees("would be sent").keys("y")
			s.question("Why?")
			s.keys("y").sees("[review]").types("too old").keys("Tab", "Enter").sees("would be sent").keys("y")
		},
		logged: []string{`dropped users, because: too old`},
	},
	{
		name: "a sampling that is edited twice", args: []string{`trigger-sampling-request prompt="what is it?"`},
		lines: []string{"e", "/messages/0/content/text=another question", "y", "e", "/content/text=nothing at all", "y"},
		screen: func(s *tmuxScreen) {
			s.question("wants to use the model")
			s.keys("e").sees("Go to a value").keys("Down", "Down", "Down", "Enter").sees("New value of /messages/0/content/text")
			s.keys("C-u").types("another question").keys("Enter").sees("Changed.").keys("b").sees("yes, as edited").keys("y")
			s.question("answer would go to server everything")
			s.keys("e").sees("Go to a value").keys("Down", "Down", "Down", "Enter").sees("New value of /content/text")
			s.keys("C-u").types("nothing at all").keys("Enter").sees("Changed.").keys("b").sees("yes, as edited").keys("y")
		},
		logged: []string{`another question`, `nothing at all`},
	},
	{
		name: "directories", args: []string{"--config", "DIR/roots.jsonc", "--server", "everything", "get-roots-list"},
		lines: []string{"p 2"},
		screen: func(s *tmuxScreen) {
			s.question("in which directories it may work")
			s.keys("Down", "Down", "Space").sees("[x]").keys("y")
		},
		logged: []string{`"roots":["file://DIR/second"]`},
	},
	{
		name: "a prompt with completion", args: []string{"--server", "everything"},
		lines: []string{"/everything:greeting name=Ada"},
		screen: func(s *tmuxScreen) {
			s.sees("Write a message").types("/everything:gree").sees("▸ greeting").keys("Tab").types("name=Ada").keys("Enter")
		},
		logged: []string{`Please greet Ada.`},
	},
	{
		name: "a resource", args: []string{"--server", "everything"},
		lines: []string{"what is in @everything:demo://text ?"},
		screen: func(s *tmuxScreen) {
			s.sees("Write a message").types("what is in @everything:demo://text ?").keys("Enter")
		},
		logged: []string{"This text does not change."},
	},
	{
		name: "the third label", args: []string{"--config", "DIR/labels.jsonc", "inbox; then secret; then post text=hello"},
		lines: []string{"n"},
		screen: func(s *tmuxScreen) {
			s.question("private data and untrusted input")
			s.keys("n").sees("Your reason").keys("Enter")
		},
		logged: []string{`"kind":"label"`, `"outcome":"refused"`},
	},
}

// Proves: each decision is the same whatever face it is made at, and on the screen all is done
// by keys, with nothing that moves and without colour.
func TestTwoFacesOneScript(t *testing.T) {
	t.Parallel()
	tmux := os.Getenv(tmuxEnv)
	if tmux == "" {
		t.Skip(tmuxEnv + " names no tmux")
	}
	for _, sc := range slices.Concat(scenes, longScenes) {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			lines, screen := newKillable(t), newKillable(t)
			for _, k := range []*killable{lines, screen} {
				sc.prepared(k)
			}
			sc.inPipe(lines)
			sc.onScreen(tmux, screen)
			want, got := lines.log(), screen.log()
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("the log of the lines, and of the screen:\n%s", diff)
			}
			for _, text := range sc.logged {
				if !strings.Contains(got, text) {
					t.Errorf("the log has no %s:\n%s", text, got)
				}
			}
			if sc.checks != nil {
				sc.checks(lines)
				sc.checks(screen)
			}
		})
	}
}

// prepared makes the person's folder.
func (sc *scene) prepared(k *killable) {
	k.t.Helper()
	k.file("labels.jsonc", labelsConfig)
	k.file("roots.jsonc", fmt.Sprintf(`{"roots": [%q, %q]}`, filepath.Join(k.dir, "first"), filepath.Join(k.dir, "second")))
	for _, name := range []string{"first", "second"} {
		if err := os.Mkdir(filepath.Join(k.dir, name), 0o700); err != nil {
			k.t.Fatal(err)
		}
	}
	k.file("sketcher", sketcher)
	if sc.prepare != nil {
		sc.prepare(k)
	}
}

// inPipe plays the scene in lines.
func (sc *scene) inPipe(k *killable) {
	k.t.Helper()
	args := append([]string{"chat", "--plain"}, sc.in(k.dir)...)
	if sc.pipe != nil {
		p := newPipe(k, args...)
		sc.pipe(p)
		p.quits()
		return
	}
	if code, out := k.parley(strings.Join(append(sc.lines, "/quit"), "\n")+"\n", args...); code != 0 {
		k.t.Fatalf("exit code %d:\n%s", code, out)
	}
}

// onScreen plays the scene on the screen.
func (sc *scene) onScreen(tmux string, k *killable) {
	k.t.Helper()
	colors := "NO_COLOR=1"
	if sc.color {
		colors = "NO_COLOR="
	}
	s := newTmuxScreen(k.t, tmux, k.dir, append([]string{"env", colors, "parley", "chat", "--motion=false"}, sc.in(k.dir)...))
	sc.screen(s)
	s.sees("ready ·").sees("Done:")
	s.keys("C-u").types("/quit").keys("Enter").sees("ENDED 0")
	if found := colorsIn(s.written()); sc.color != (len(found) > 0) {
		k.t.Errorf("with %s the terminal got the colours %q", colors, found)
	}
}

// in are the arguments for a folder.
func (sc *scene) in(dir string) []string {
	args := make([]string, len(sc.args))
	for i, a := range sc.args {
		args[i] = strings.ReplaceAll(a, "DIR", dir)
	}
	return args
}

const labelsConfig = `{
  "servers": {
    "flows": {
      "command": "jotter",
      "args": ["flows"],
      "toolLabels": {"inbox": ["untrusted-input"], "secret": ["private-data"], "post": ["can-send-out"]},
    },
  },
  "rules": [{"effect": "allow", "server": "flows"}],
}`

func (k *killable) file(name, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// log is the log of the last session without what differs between two runs: times, names that
// were made, the face, and the folder.
func (k *killable) log() string {
	k.t.Helper()
	code, out := k.parley("", "session", "export", "last")
	if code != 0 {
		k.t.Fatalf("exit code %d:\n%s", code, out)
	}
	out = strings.ReplaceAll(out, k.dir, "DIR")
	for _, r := range [][2]string{
		{`"(time|created)":"[^"]*"`, `"$1":""`},
		{`"face":"[^"]*"`, `"face":""`},
		{`127\.0\.0\.1:[0-9]+`, `127.0.0.1`},
		{`"millis":[0-9]+,?`, ``},
		{`\b(g|)[A-Z0-9]{10,}\b`, `$1ID`},
		{`"entry":"[^"]*"`, `"entry":""`},
		{`,\}`, `}`},
	} {
		out = regexp.MustCompile(r[0]).ReplaceAllString(out, r[1])
	}
	return out
}

// A tmuxScreen is a program on a terminal of its own.
type tmuxScreen struct {
	t      *testing.T
	tmux   string
	socket string
	bytes  string // a file with all that the terminal got
}

// newTmuxScreen starts a program on a terminal of 100 columns and 30 rows. It says ENDED and
// its exit code at its end.
func newTmuxScreen(t *testing.T, tmux, dir string, args []string) *tmuxScreen {
	t.Helper()
	s := &tmuxScreen{t, tmux, filepath.Join(dir, "tmux"), filepath.Join(dir, "bytes")}
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	// The program begins once all that it writes is kept.
	command := fmt.Sprintf("'%s' -S '%s' wait-for begin; cd '%s'; HOME='%s' XDG_CONFIG_HOME='%s' %s; echo ENDED $?; cat",
		tmux, s.socket, dir, dir, dir, strings.Join(quoted, " "))
	t.Cleanup(func() { _ = exec.Command(tmux, "-S", s.socket, "kill-server").Run() })
	s.run("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", command)
	s.run("pipe-pane", "cat > '"+s.bytes+"'")
	s.run("wait-for", "-S", "begin")
	return s
}

func (s *tmuxScreen) run(args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), s.tmux, append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// sees waits until a text is on the screen.
func (s *tmuxScreen) sees(text string) *tmuxScreen {
	s.t.Helper()
	waited(s.t, fmt.Sprintf("the screen does not show %q", text), s.shown, func(shown string) bool { return strings.Contains(shown, text) })
	return s
}

// question waits for a question with a text, and goes to it. A person needs longer to read it
// than the 0.4 s in which keys are dropped, and than the 0.7 s after a key that answered.
func (s *tmuxScreen) question(text string) {
	s.t.Helper()
	s.sees("a question waits").keys("Tab").sees(text)
	<-time.After(time.Second)
}

func (s *tmuxScreen) keys(names ...string) *tmuxScreen {
	s.t.Helper()
	for _, name := range names {
		s.run("send-keys", name)
	}
	return s
}

func (s *tmuxScreen) types(text string) *tmuxScreen {
	s.t.Helper()
	s.run("send-keys", "-l", text)
	return s
}
