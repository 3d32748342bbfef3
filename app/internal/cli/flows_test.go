package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/transport/streamable"
)

// A stage is a conversation with an actor.
type stage struct {
	*talk
	version string
	overURL bool
	visits  atomic.Int64 // of the page that the actor wants to be visited
	began   time.Time
}

// flows are what a person does in one conversation. Those of other tests are named in
// the comments of these.
var flows = []struct {
	name   string
	legacy bool // not in the stateless revision
	since  string
	play   func(s *stage)
}{
	{"init", false, "", (*stage).init},
	{"resources", false, "", (*stage).resources},
	{"tools", false, "", (*stage).tools},
	{"prompts", false, "", (*stage).prompts},
	{"sampling", false, "", (*stage).sampling},
	{"forms", false, "2025-06-18", (*stage).forms},
	{"pages", false, "2025-11-25", (*stage).pages},
	{"roots", false, "", (*stage).roots},
	{"list changed", false, "", (*stage).listChanged},
	{"progress", false, "", (*stage).progress},
	{"cancel", false, "", (*stage).cancel},
	{"logs", false, "", (*stage).logs},
	{"ping", true, "", (*stage).ping},
}

// Each flow as a person has it in parley chat, with a server over pipes and over HTTP.
//
// Proves: FLOW-INIT-H, FLOW-RES-H, FLOW-SUB-H, FLOW-TOOL-H, FLOW-PROMPT-H, FLOW-COMPLETE-H,
// FLOW-SAMPLE-H, FLOW-ELICIT-H, FLOW-ROOTS-H, FLOW-LIST-CHANGED-H, FLOW-PROGRESS-H,
// FLOW-CANCEL-H, FLOW-LOG-H, FLOW-PING-H, SEC-ELICIT-1, SEC-ELICIT-2, SEC-ROOTS-1,
// SEC-SAMPLE-1, SEC-PROG-1, SEC-LOG-1, SEC-INIT-1.
func TestFlows(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	for _, version := range versions {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(version+" "+transport, func(t *testing.T) {
				s := newStage(t, version, transport == "http")
				for _, f := range flows {
					if version < f.since || version == stateless && f.legacy {
						continue
					}
					f.play(s)
				}
				s.quits()
			})
		}
	}
}

// newStage begins a conversation with an actor in a revision.
func newStage(t *testing.T, version string, overURL bool) *stage {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s := &stage{version: version, overURL: overURL, began: time.Now()}
	dir := t.TempDir()
	entry := map[string]any{"command": "actor", "args": []string{dir}}
	if overURL {
		entry = map[string]any{"url": serveActor(t, dir)}
	}
	page := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.visits.Add(1) }))
	t.Cleanup(page.Close)
	write(t, filepath.Join(dir, "page.txt"), page.URL+"/a/very/long/path/"+strings.Repeat("x", 200)+"?code=1#end")
	var roots []string
	for _, name := range []string{"alpha", "beta"} {
		root := filepath.Join(dir, name)
		if err := os.Mkdir(root, 0o700); err != nil {
			t.Fatal(err)
		}
		roots = append(roots, root)
	}
	config := filepath.Join(dir, "parley.jsonc")
	raw, err := json.Marshal(map[string]any{
		"servers": map[string]any{"actor": entry}, "roots": roots,
		"rules": []map[string]any{{"effect": "allow", "server": "actor", "kind": "tool"}, {"effect": "ask", "server": "actor", "name": "note"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, string(raw))
	s.talk = begin(t, "--config", config, "--protocol", version, "--logs", "warning")
	return s
}

// write writes a file.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serveActor serves an actor over HTTP until the test ends.
func serveActor(t *testing.T, dir string) (url string) {
	t.Helper()
	s := newActor(dir)
	endpoint := streamable.NewHandler(s, nil)
	web := httptest.NewServer(endpoint)
	t.Cleanup(func() {
		web.Close()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Log(err)
		}
	})
	return web.URL
}

// init: who the server is told that it talks to, in which revision, and what the person sees
// of the connection.
func (s *stage) init() {
	s.says("who")
	s.sees("says:\n    parley speaks " + s.version)
	s.says("/servers")
	s.sees("Server actor", ": ready, 14 tools")
}

// resources: a text, one of a template, what does not exist; and each time what the resource
// is now, without a subscription.
func (s *stage) resources() {
	s.says("xyzzy @actor:memo://now")
	s.sees("resource memo://now of server actor", "| the note is first", "Done: ")
	s.says("note text=second")
	s.answers("y")
	s.sees("says:\n    noted: second")
	s.says("xyzzy @actor:memo://now")
	s.sees("resource memo://now of server actor", "| the note is second", "Done: ")
	s.says("xyzzy @actor:memo://old/1999")
	s.sees("| what was noted in 1999", "Done: ")
	s.says("xyzzy @actor:memo://none")
	s.sees("It was not sent: ", "memo://none")
}

// tools: a call that the person agrees to, one that they change, one that they refuse.
func (s *stage) tools() {
	s.says("note text=one")
	s.sees("The model wants to call note of server actor.", `"text": "one"`)
	s.answers("y")
	s.sees("sent now", "says:\n    noted: one")
	s.says("note text=two")
	s.answers("e text=three")
	s.answers("y")
	s.sees("sent now with your arguments", "says:\n    noted: three")
	s.says("note text=four")
	s.answers("n not four")
	s.sees("The reason: not four")
	s.says("xyzzy @actor:memo://now")
	s.sees("| the note is three", "Done: ")
}

// prompts: a prompt whose argument is asked for and completed by the server.
func (s *stage) prompts() {
	s.says("/prompts")
	s.sees("/actor:poem topic=")
	s.says("/actor:poem")
	s.sees("Your value for topic")
	s.types("?s")
	s.sees("value 1 (untrusted): sea", "value 2 (untrusted): sun")
	s.types("1")
	s.sees("prompt poem of server actor", "| Who wrote of the sea?", "Done: ")
}

// sampling: both halves changed; the second refused; the first refused.
func (s *stage) sampling() {
	s.says("consult")
	s.sees("Server actor wants to use the model.", "| What is new?")
	s.answers("e /messages/0/content/text=What is old?")
	s.answers("y")
	s.sees("The model's answer would go to server actor.", "It was asked: What is old?")
	s.answers("e /content/text=Nothing.")
	s.answers("y")
	s.sees("says:\n    it answered: Nothing.")
	for _, words := range [][]string{{"y", "n"}, {"n"}} {
		s.says("consult")
		for _, word := range words {
			s.answers(word)
		}
		s.sees("consult of server actor: ", "Done: ")
	}
	if n := lines(s.out.String(), "    it answered:"); n != 1 {
		s.t.Errorf("%d answers went to the server, want 1:\n%s", n, s.out)
	}
}

// forms: one that is filled in with a mistake first, one declined, one closed.
func (s *stage) forms() {
	s.says("form")
	s.sees("Server actor asks you for something.", "| Who are you?")
	s.answers("y")
	s.sees("Your value for name")
	s.types("A")
	s.sees("at least 2 characters", "Your value for name")
	s.types("Ada")
	s.sees("Your value for age")
	s.types("200")
	s.sees("Your value for age")
	s.types("36")
	s.sees("Send it?")
	s.types("y")
	s.sees("says:\n    accept: Ada is 36")
	s.says("form")
	s.answers("n")
	s.sees("says:\n    decline: ")
	s.says("form")
	s.answers("c")
	s.sees("says:\n    cancel: ")
}

// pages: the whole address is shown, and the program never goes there.
func (s *stage) pages() {
	address := "/a/very/long/path/" + strings.Repeat("x", 200) + "?code=1#end"
	for _, step := range []struct{ answer, says string }{{"n", "agreed: false"}, {"o", "agreed: true"}} {
		s.says("page")
		s.sees("Server actor wants you to visit a page.", address)
		s.answers(step.answer)
		s.sees("says:\n    " + step.says)
	}
	if n := s.visits.Load(); n != 0 {
		s.t.Errorf("the page was fetched %d times", n)
	}
}

// roots: the person picks one of two, once for the session.
func (s *stage) roots() {
	s.says("where")
	s.sees("Server actor wants to know in which directories it may work.", "directory 2: file:///")
	s.answers("p 2")
	s.sees("says:\n    directories: beta\n")
	s.says("where")
	s.sees("says:\n    directories: beta\n")
	if n := strings.Count(s.out.String(), "\nServer actor wants to know in which"); n != 1 {
		s.t.Errorf("the person was asked %d times for directories", n)
	}
}

// listChanged: the model can call a tool that was not there when the conversation began.
func (s *stage) listChanged() {
	s.says("blossom")
	s.sees("Done: ")
	if strings.Contains(s.out.String(), "in bloom") {
		s.t.Error("there is a tool before it is made")
	}
	s.says("grow; then relisted")
	s.sees("listed again", "Done: ")
	s.says("blossom")
	s.sees("says:\n    in bloom")
}

// progress: thousands of reports are a line in a second for each call, and none after its
// result. That one is shown while a call goes on, cancel sees.
func (s *stage) progress() {
	from := s.at
	began := time.Now()
	s.says("steps")
	s.sees("says:\n    all steps done")
	most := int(time.Since(began)/time.Second) + 2
	shown := s.out.String()[from:]
	_, after, _ := strings.Cut(shown, "steps of server actor: done")
	if lines(after, " *Call .*: at ") > 0 {
		s.t.Errorf("progress after the result:\n%s", shown)
	}
	if n := lines(shown, " *Call .*steps of server actor: at "); n > most {
		s.t.Errorf("%d lines of progress in %v", n, time.Since(began))
	}
}

// cancel: the handler's context ends, and what it returns afterwards is no result.
func (s *stage) cancel() {
	s.says("hang")
	s.sees("hang of server actor: sent now", "hang of server actor: at 1 of 2")
	s.interrupts <- os.Interrupt
	s.sees("Cancelling", "hang of server actor: cancelled", "it may have had effects", "Cancelled: ")
	s.says("await")
	s.sees("says:\n    it has ended")
	s.says("/history")
	s.sees("hang of server actor: cancelled")
	if strings.Contains(s.out.String(), "too late") {
		s.t.Errorf("there is a result of what was cancelled:\n%s", s.out)
	}
}

// logs: those of the level that was asked for and above, escaped.
func (s *stage) logs() {
	s.says("chatter")
	s.sees("says:\n    it was said")
	levels := []string{"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"}
	for i, level := range levels {
		line := `[actor diary\u{1b}[2J] ` + level + ": "
		if i <= slices.Index(levels, "warning") {
			s.hears(line)
		} else if strings.Contains(s.said.String(), line) {
			s.t.Errorf("a log message of level %s is shown", level)
		}
	}
}

// ping: the program answers a server that asks whether it is there.
func (s *stage) ping() {
	s.says("probe")
	s.sees("says:\n    the client is there")
}
