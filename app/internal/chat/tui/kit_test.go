package tui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/app/internal/ui/uitest"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

var update = flag.Bool("update", false, "write the screens in testdata anew")

// A fakeSession is a session without a host: the test writes its records.
type fakeSession struct {
	uitest.Limits

	mu        sync.Mutex
	records   []host.Record
	live      []host.Record // progress
	changed   chan struct{}
	busy      bool
	sent      []host.Input
	sendErr   error
	answers   []host.Answer
	answerErr error
	cancels   int
	cancelled []string
	forks     []int64
	ended     bool
}

func newFakeSession(bodies ...host.Body) *fakeSession {
	s := &fakeSession{changed: make(chan struct{})}
	s.write(bodies...)
	return s
}

func (s *fakeSession) write(bodies ...host.Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bodies {
		if _, ok := b.(*host.ProgressRecord); ok {
			s.live = append(s.live, host.Record{Time: time.Now(), Body: b})
			continue
		}
		s.records = append(s.records, host.Record{N: int64(len(s.records)) + 1, Time: time.Now(), Body: b})
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *fakeSession) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.write()
}

func (s *fakeSession) ID() string             { return "ABC" }
func (s *fakeSession) Info() host.SessionInfo { return host.SessionInfo{ID: "ABC", Title: "A talk"} }

func (s *fakeSession) Model() host.ModelInfo {
	return host.ModelInfo{Name: "clever-1", Provider: "acme"}
}
func (s *fakeSession) SetModel(host.Model) error                   { return nil }
func (s *fakeSession) Context(ctx context.Context) context.Context { return ctx }
func (s *fakeSession) Compact(context.Context) error               { return nil }
func (s *fakeSession) Fork(_ context.Context, at int64) (ui.Session, error) {
	s.mu.Lock()
	s.forks = append(s.forks, at)
	records := slices.Clone(s.records[:at])
	s.mu.Unlock()
	f := newFakeSession()
	f.records = records
	return f, nil
}

func (s *fakeSession) Snapshot() *host.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := &host.Snapshot{Info: s.Info(), Records: slices.Clone(s.records), Busy: s.busy}
	open := make(map[string]*host.Question)
	for _, r := range s.records {
		switch b := r.Body.(type) {
		case *host.QuestionRecord:
			open[b.ID] = &b.Question
		case *host.AnswerRecord:
			delete(open, b.Question)
		}
	}
	for _, q := range open {
		snap.Questions = append(snap.Questions, q)
	}
	return snap
}

func (s *fakeSession) Watch(ctx context.Context, since int64) iter.Seq2[host.Record, error] {
	return func(yield func(host.Record, error) bool) {
		told := 0
		for {
			s.mu.Lock()
			batch := slices.Clone(s.records[min(since, int64(len(s.records))):])
			batch = append(batch, s.live[told:]...)
			told = len(s.live)
			since = int64(len(s.records))
			changed, ended := s.changed, s.ended
			s.mu.Unlock()
			for _, r := range batch {
				if !yield(r, nil) {
					return
				}
			}
			if ended {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (s *fakeSession) Send(_ context.Context, in host.Input) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, in)
	return s.sendErr
}

func (s *fakeSession) Answer(_ context.Context, question string, a host.Answer) error {
	s.mu.Lock()
	err := s.answerErr
	if err == nil {
		s.answers = append(s.answers, a)
	}
	s.mu.Unlock()
	if err == nil {
		s.write(&host.AnswerRecord{Question: question, Answer: a})
	}
	return err
}

func (s *fakeSession) Cancel() {
	s.mu.Lock()
	s.cancels++
	s.mu.Unlock()
}

func (s *fakeSession) CancelCall(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelled = append(s.cancelled, call)
	return call == "c1"
}

// A fakeHost has servers that the test sets.
type fakeHost struct {
	status  []host.ServerStatus
	retried []string
	prompts []*mcp.Prompt
	values  []string
	grants  []host.Grant
	tools   []*host.Tool
}

func (h *fakeHost) Catalog() *host.Catalog                              { return &host.Catalog{Servers: h.status, Tools: h.tools} }
func (h *fakeHost) Settle(context.Context, time.Duration) *host.Catalog { return h.Catalog() }
func (h *fakeHost) Status() []host.ServerStatus                         { return h.status }
func (h *fakeHost) Grants(context.Context) ([]host.Grant, error)        { return h.grants, nil }
func (h *fakeHost) Revoke(_ context.Context, id string) error {
	for i := range h.grants {
		if h.grants[i].ID == id {
			h.grants[i].Revoked = time.Now()
			return nil
		}
	}
	return host.ErrNoGrant
}

func (h *fakeHost) Retry(server string) error {
	if server == "gone" {
		return errors.New("it was removed")
	}
	h.retried = append(h.retried, server)
	return nil
}
func (h *fakeHost) Prompts(context.Context, string) ([]*mcp.Prompt, error) { return h.prompts, nil }
func (h *fakeHost) Complete(context.Context, string, *mcp.CompleteParams) (*mcp.Completion, error) {
	return &mcp.Completion{Values: h.values}, nil
}

// A kit drives a screen without a terminal.
type kit struct {
	t       *testing.T
	m       *screen
	session *fakeSession
	host    *fakeHost
	msgs    chan tea.Msg
	quit    bool
	updates int
}

// drive calls f with a screen of so many columns and lines, in a bubble with a clock of
// its own.
func drive(t *testing.T, width, height int, opts *Options, s *fakeSession, f func(k *kit)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.changed = make(chan struct{}) // of this bubble
		ctx, cancel := context.WithCancel(t.Context())
		var tasks sync.WaitGroup
		if opts == nil {
			opts = &Options{}
		}
		opts.Environ = append(opts.Environ, "TERM=xterm-256color")
		k := &kit{t: t, session: s, host: &fakeHost{}, msgs: make(chan tea.Msg)}
		k.host.status = []host.ServerStatus{
			{Name: "files", State: host.StateReady, Tools: 3, Version: "v1", Origin: "parley.jsonc"},
			{Name: "mail", State: host.StateWaiting, Err: errors.New("the process ended with status 1")},
		}
		k.m = newScreen(opts.withDefaults(), k.host)
		k.m.send = func(msg tea.Msg) {
			select {
			case k.msgs <- msg:
			case <-ctx.Done():
			}
		}
		k.m.base = func() context.Context { return ctx }
		k.m.start = func(f func()) { tasks.Go(f) }
		k.m.tick = func(time.Duration, tea.Msg) tea.Cmd { return nil }
		k.m.attach(s, opts.Since)
		k.update(tea.WindowSizeMsg{Width: width, Height: height})
		k.settle()
		f(k)
		cancel()
		tasks.Wait()
	})
}

// update gives the screen a message, and carries out what it asks for.
func (k *kit) update(msg tea.Msg) {
	k.updates++
	_, cmd := k.m.Update(msg)
	k.m.View() // as the program does
	k.carryOut(cmd)
}

func (k *kit) carryOut(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, c := range msg {
			k.carryOut(c)
		}
	case tea.QuitMsg:
		k.quit = true
	}
}

// settle takes messages until none come any more.
func (k *kit) settle() {
	for idle := 0; idle < 2; {
		synctest.Wait()
		select {
		case msg := <-k.msgs:
			k.update(msg)
			idle = 0
		default:
			idle++
			time.Sleep(frame)
		}
	}
}

// write adds records, and waits until they are shown.
func (k *kit) write(bodies ...host.Body) {
	k.session.write(bodies...)
	k.settle()
}

// press presses keys: names such as "ctrl+k", or characters.
func (k *kit) press(keys ...string) {
	k.t.Helper()
	for _, name := range keys {
		k.update(keyOf(k.t, name))
	}
	k.settle()
}

// each presses keys one after another, and waits after each for what comes of it.
func (k *kit) each(keys ...string) {
	k.t.Helper()
	for _, name := range keys {
		k.press(name)
	}
}

// typed types a text, a character at a time.
func (k *kit) typed(text string) {
	for _, r := range text {
		k.update(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	k.settle()
}

// paste pastes a text.
func (k *kit) paste(text string) {
	k.update(tea.PasteMsg{Content: text})
	k.settle()
}

// codes are the keys that are no characters.
var codes = map[string]rune{
	"enter": tea.KeyEnter, "tab": tea.KeyTab, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "pgup": tea.KeyPgUp,
	"pgdown": tea.KeyPgDown, "f1": tea.KeyF1, "f2": tea.KeyF2, "f3": tea.KeyF3, "f4": tea.KeyF4, "f5": tea.KeyF5, "home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace,
}

func keyOf(t *testing.T, name string) tea.KeyPressMsg {
	t.Helper()
	var msg tea.KeyPressMsg
	rest := name
	for prefix, mod := range map[string]tea.KeyMod{"ctrl+": tea.ModCtrl, "alt+": tea.ModAlt, "shift+": tea.ModShift} {
		if after, ok := strings.CutPrefix(rest, prefix); ok {
			rest, msg.Mod = after, msg.Mod|mod
		}
	}
	if code, ok := codes[rest]; ok {
		msg.Code = code
	} else {
		msg.Code = []rune(rest)[0]
		if msg.Mod == 0 {
			msg.Text = rest
		}
	}
	if msg.String() != name {
		t.Fatalf("the key %q is called %q", name, msg.String())
	}
	return msg
}

// lines are the lines of the screen without styles.
func (k *kit) lines() []string {
	return strings.Split(ansi.Strip(k.m.View().Content), "\n")
}

// screen is what is visible, without styles and blanks at the ends of lines.
func (k *kit) screen() string {
	lines := k.lines()
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// want fails unless the texts are visible.
func (k *kit) want(texts ...string) {
	k.t.Helper()
	got := k.screen()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			k.t.Fatalf("%q is not on the screen:\n%s", text, got)
		}
	}
}

// never fails if one of the texts is visible.
func (k *kit) never(texts ...string) {
	k.t.Helper()
	got := k.screen()
	for _, text := range texts {
		if strings.Contains(got, text) {
			k.t.Fatalf("%q is on the screen:\n%s", text, got)
		}
	}
}

// golden compares the screen with one in testdata.
func (k *kit) golden(name string) {
	k.t.Helper()
	k.sound()
	compare(k.t, name+".txt", k.screen())
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (go test -update writes it anew): the screen is\n%swant\n%s", path, got, want)
	}
}

// styled are the sequences that our styles write.
var styled = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// sound fails unless the screen has its size and nothing but text and styles.
func (k *kit) sound() {
	k.t.Helper()
	content := k.m.View().Content
	lines := strings.Split(content, "\n")
	if len(lines) != k.m.height {
		k.t.Fatalf("%d lines on a screen of %d", len(lines), k.m.height)
	}
	for i, line := range lines {
		if w := ansi.StringWidth(line); w > k.m.width {
			k.t.Fatalf("line %d has %d columns of %d: %q", i+1, w, k.m.width, line)
		}
		plain := styled.ReplaceAllString(line, "")
		if escaped := host.EscapeLine(plain); escaped != plain {
			k.t.Fatalf("line %d has what can harm: %q", i+1, plain)
		}
	}
	if c := k.m.View().Cursor; c != nil && (c.X < 0 || c.Y < 0 || c.X >= k.m.width || c.Y >= k.m.height) {
		k.t.Fatalf("the cursor is at %d, %d on a screen of %d x %d", c.X, c.Y, k.m.width, k.m.height)
	}
}

// question asks whether a tool may be called.
func question(id, call string) *host.QuestionRecord {
	return &host.QuestionRecord{Question: host.Question{
		ID: id, Kind: host.QuestionCall, Server: "files", Call: call, Name: "write_file", Why: "no rule matches",
		Tool:      &mcp.Tool{Name: "write_file", Description: "Writes a file."},
		Arguments: mcp.RawValue(`{"path":"/tmp/a","text":"hello"}`),
	}}
}

// user is what the person said.
func user(text string) *host.UserRecord {
	return &host.UserRecord{Content: mcp.Contents{mcp.Text(text)}}
}

// call is a call of the model.
func call(id string) *host.CallRecord {
	return &host.CallRecord{ID: id, ModelName: "files_write_file", Server: "files", Tool: "write_file", Arguments: mcp.RawValue(`{"path":"/tmp/a","text":"hello"}`)}
}

// talk is a conversation with a call that is done and an answer.
func talk() []host.Body {
	return []host.Body{
		user("Write hello into /tmp/a, please."),
		&host.TurnRecord{Step: 1, Model: "clever-1"},
		call("c1"),
		&host.TurnEndRecord{Stop: host.StopCalls, Usage: host.Usage{Input: 812, Output: 40}},
		&host.StartRecord{Call: "c1", Arguments: mcp.RawValue(`{"path":"/tmp/a","text":"hello"}`), Why: "a rule allows it"},
		&host.ResultRecord{Call: "c1", Outcome: host.OutcomeDone, Content: mcp.Contents{mcp.Text("5 bytes written")}, Millis: 1200},
		&host.TurnRecord{Step: 2, Model: "clever-1"},
		&host.TextRecord{Text: "I wrote *hello*:\n\n- into `/tmp/a`\n- as [you](https://example.com/x) asked\n\n```sh\ncat /tmp/a\n```\n"},
		&host.TurnEndRecord{Stop: host.StopEnd, Usage: host.Usage{Input: 900, Output: 60}},
		&host.RunEndRecord{Outcome: host.OutcomeDone, Steps: 2, Calls: 1},
	}
}

// must is a theme by its name.
func must(name string) *style.Theme {
	theme, err := style.Named(name)
	if err != nil {
		panic(fmt.Sprint(err))
	}
	return theme
}
