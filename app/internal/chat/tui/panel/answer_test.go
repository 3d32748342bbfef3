package panel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A talk is a ui.Session that asks one question, and the ui.Host of it. What a line does
// not call for that is missing.
type talk struct {
	ui.Session
	ui.Host
	question *host.Question

	mu      sync.Mutex
	records []host.Record
	changed chan struct{}
	answer  *host.Answer
}

func (s *talk) write(bodies ...host.Body) {
	for _, b := range bodies {
		s.records = append(s.records, host.Record{N: int64(len(s.records)) + 1, Time: time.Unix(0, 0), Body: b})
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *talk) ID() string             { return "abc" }
func (s *talk) Info() host.SessionInfo { return host.SessionInfo{ID: "abc"} }

func (s *talk) Model() host.ModelInfo                               { return host.ModelInfo{Name: "scripted"} }
func (s *talk) Context(ctx context.Context) context.Context         { return ctx }
func (s *talk) Cancel()                                             {}
func (s *talk) Catalog() *host.Catalog                              { return &host.Catalog{} }
func (s *talk) Settle(context.Context, time.Duration) *host.Catalog { return s.Catalog() }
func (s *talk) Status() []host.ServerStatus                         { return nil }

func (s *talk) Snapshot() *host.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &host.Snapshot{Info: s.Info(), Records: append([]host.Record{}, s.records...)}
}

func (s *talk) Send(context.Context, host.Input) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(&host.UserRecord{Content: mcp.Contents{mcp.Text("Go.")}}, &host.QuestionRecord{Question: *s.question})
	return nil
}

func (s *talk) Answer(_ context.Context, id string, a host.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil || id != s.question.ID {
		return fmt.Errorf("question %s: %w", id, host.ErrSettled)
	}
	s.answer = &a
	s.write(&host.AnswerRecord{Question: id, Answer: a}, &host.RunEndRecord{Outcome: host.OutcomeDone, Steps: 1})
	return nil
}

func (s *talk) Watch(ctx context.Context, since int64) iter.Seq2[host.Record, error] {
	return func(yield func(host.Record, error) bool) {
		for {
			s.mu.Lock()
			batch, changed := append([]host.Record{}, s.records[since:]...), s.changed
			s.mu.Unlock()
			since += int64(len(batch))
			for _, r := range batch {
				if !yield(r, nil) {
					return
				}
			}
			if len(batch) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(host.Record{}, context.Cause(ctx))
				return
			}
		}
	}
}

// lineAnswer is what a ui.Line gives as the answer when a person types lines.
func lineAnswer(t *testing.T, q *host.Question, lines []string) host.Answer {
	t.Helper()
	s := &talk{question: q, changed: make(chan struct{})}
	in := strings.NewReader("Go.\n" + strings.Join(lines, "\n") + "\n")
	var out bytes.Buffer
	line := ui.NewLine(in, &out, &ui.LineOptions{Echo: true, Face: "terminal"})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := line.Run(ctx, s, s); err != nil {
		t.Fatalf("%v; after:\n%s", err, out.String())
	}
	if s.answer == nil {
		t.Fatalf("the line gave no answer:\n%s", out.String())
	}
	return *s.answer
}

// A decision is how a person decides at a panel, and how at a line.
type decision struct {
	question string
	keys     []string
	lines    []string
}

// chars are the keys of a text.
func chars(text string) []string {
	var keys []string
	for _, r := range text {
		if r == ' ' {
			keys = append(keys, "space")
			continue
		}
		keys = append(keys, string(r))
	}
	return keys
}

// keys joins keys.
func keys(lists ...[]string) []string {
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func ks(names string) []string { return strings.Fields(names) }

func decisions() map[string]decision {
	name := keys(ks("y A d a tab down space tab tab space tab tab tab enter"))
	return map[string]decision{
		"call once":           {"call", ks("y"), []string{"y"}},
		"call by the focus":   {"call", ks("tab enter"), []string{"y"}},
		"call pattern":        {"call", ks("r 1"), []string{"1"}},
		"call tool":           {"call", ks("r down down enter"), []string{"2"}},
		"call server":         {"call", ks("r 3"), []string{"3"}},
		"call for an hour":    {"call", ks("r h 2"), []string{"2h"}},
		"call refused":        {"call", ks("n enter"), []string{"n"}},
		"call refused, why":   {"call", keys(ks("n"), chars(" not now "), ks("enter")), []string{"n not now"}},
		"call back and yes":   {"call", ks("r b n alt+left y"), []string{"y"}},
		"call edited":         {"call", keys(ks("e 1"), ks("ctrl+u"), chars("/tmp/x"), ks("enter b y")), []string{"e path=/tmp/x", "y"}},
		"call edited deep":    {"call", keys(ks("e 3 ctrl+u"), chars("7"), ks("enter b y")), []string{"e /options/mode=7", "y"}},
		"call inserted":       {"call", keys(ks("e i"), chars("new=true"), ks("enter b y")), []string{"e new=true", "y"}},
		"call replaced":       {"call", keys(ks("e i"), chars(`{"path": "/x"}`), ks("enter b y")), []string{`e {"path": "/x"}`, "y"}},
		"call edited twice":   {"call", keys(ks("e i"), chars("a=1"), ks("enter i"), chars("b=2"), ks("enter b y")), []string{"e a=1", "e b=2", "y"}},
		"call edit undone":    {"call", keys(ks("e i"), chars("a=1"), ks("enter b u y")), []string{"e a=1", "u", "y"}},
		"call seen in full":   {"call", ks("f d t y"), []string{"y"}},
		"calls all":           {"calls", ks("y"), []string{"y"}},
		"calls each":          {"calls", ks("o"), []string{"o"}},
		"calls none":          {"calls", keys(ks("n"), chars("no"), ks("enter")), []string{"n no"}},
		"calls granted":       {"calls", ks("r 1"), []string{"1"}},
		"change":              {"change", ks("y"), []string{"y"}},
		"change refused":      {"change", ks("n enter"), []string{"n"}},
		"sample":              {"sample", ks("y"), []string{"y"}},
		"sample other model":  {"sample", ks("m 2 y"), []string{"m 2", "y"}},
		"sample granted":      {"sample", ks("r 1"), []string{"1"}},
		"sample refused":      {"sample", ks("n"), []string{"n"}},
		"sample edited":       {"sample", keys(ks("e i"), chars("maxTokens=50"), ks("enter b y")), []string{"e maxTokens=50", "y"}},
		"sample edited model": {"sample", keys(ks("m down down enter e i"), chars("maxTokens=50"), ks("enter b y")), []string{"m large", "e maxTokens=50", "y"}},
		"sampled":             {"sampled", ks("y"), []string{"y"}},
		"sampled edited":      {"sampled", keys(ks("e i"), chars("stopReason=mine"), ks("enter b y")), []string{"e stopReason=mine", "y"}},
		"sampled refused":     {"sampled", ks("n"), []string{"n"}},
		"form":                {"form", keys(name, ks("y")), []string{"y", "Ada", "2", "", "yes", "", "", "y"}},
		"form declined":       {"form", ks("n"), []string{"n"}},
		"form closed":         {"form", ks("c"), []string{"c"}},
		"form declined late":  {"form", keys(name, ks("n")), []string{"y", "/decline"}},
		"form closed late":    {"form", ks("y tab tab tab tab tab tab c"), []string{"y", "/cancel"}},
		"page":                {"page", ks("y"), []string{"o"}},
		"page declined":       {"page", ks("n"), []string{"n"}},
		"page closed":         {"page", ks("c"), []string{"c"}},
		"roots":               {"roots", ks("3 1 y"), []string{"p 3 1"}},
		"roots all":           {"roots", ks("a y"), []string{"p all"}},
		"roots by arrows":     {"roots", ks("down down space y"), []string{"p 2"}},
		"roots granted":       {"roots", ks("2 r 1"), []string{"a 2"}},
		"roots granted hour":  {"roots", ks("2 r h 1"), []string{"ah 2"}},
		"roots none":          {"roots", ks("n"), []string{"n"}},
		"use":                 {"use", ks("y"), []string{"y"}},
		"use refused":         {"use", ks("n"), []string{"n"}},
		"message":             {"message", ks("y"), []string{"y"}},
		"message refused":     {"message", ks("n"), []string{"n"}},
		"app":                 {"app", ks("y"), []string{"y"}},
		"app granted":         {"app", ks("r 1"), []string{"1"}},
		"app refused":         {"app", ks("n"), []string{"n"}},
		"skill":               {"skill", ks("y"), []string{"y"}},
		"skill refused":       {"skill", keys(ks("n"), chars("why"), ks("enter")), []string{"n why"}},
	}
}

// Every decision gives the answer that ui.Line gives for the same one, byte for byte.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, d := range decisions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := lineAnswer(t, questions()[d.question], d.lines)
			wants(t, sit(t, questions()[d.question]).press(d.keys...), want)
		})
	}
}

// What comes back from the person's editor is what the line's editor gives: shown again,
// and sent after a fresh yes.
func TestEditor(t *testing.T) {
	t.Parallel()
	const text = "\n{\"path\": \"/etc/passwd\",\n \"text\": \"x\"}\n"
	p := sit(t, callQuestion())
	p.panel = panel.New(callQuestion(), p.options(t))
	p.press("e", "w")
	if len(p.opened) != 1 || !strings.Contains(p.opened[0], `"mode": 420`) {
		t.Fatalf("the editor was opened with %q", p.opened)
	}
	p.now = p.now.Add(time.Second)
	if out, cmd := p.panel.Update(panel.EditedMsg{Text: text}); out != (panel.Outcome{}) || cmd != nil {
		t.Fatalf("%+v", out)
	}
	if out, _ := p.panel.Update(keyOf("y")); out.Answer != nil {
		t.Error("a key that was typed while the editor was open answers")
	}
	if shown := p.look(); !strings.Contains(shown, `+ "/etc/passwd"`) || !strings.Contains(shown, "yes, as edited") || strings.Contains(shown, "remember") {
		t.Errorf("it shows:\n%s", shown)
	}
	if out := p.press("y"); out != (panel.Outcome{}) {
		t.Errorf("what was edited counts before its end was shown: %+v", out)
	}
	wants(t, p.press("end", "y"), host.Answer{Action: host.Approve, Edited: mcp.RawValue(strings.TrimSpace(text))})
}

// An editor that fails, gives no JSON, nothing new, or was not opened for this question changes
// nothing.
func TestEditorBad(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		msg  panel.EditedMsg
		want string
	}{
		"fails":   {panel.EditedMsg{Err: errors.New("exit \x1b[2J 1")}, `The editor did not work: exit \u{1b}[2J 1.`},
		"no JSON": {panel.EditedMsg{Text: "path: x"}, "Nothing was changed: the text is no JSON object"},
		"a list":  {panel.EditedMsg{Text: "[1]"}, "Nothing was changed: the text is no JSON object"},
		"empty":   {panel.EditedMsg{}, "Nothing was changed"},
		"same":    {panel.EditedMsg{Text: string(callQuestion().Arguments) + "\n"}, "That changes nothing."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sit(t, callQuestion())
			p.panel = panel.New(callQuestion(), p.options(t))
			p.press("e", "w")
			p.panel.Update(test.msg)
			if shown := p.look(); !strings.Contains(shown, test.want) {
				t.Errorf("%q is not in:\n%s", test.want, shown)
			}
			p.panel.Update(panel.EditedMsg{Text: `{"late":true}`}) // nothing waits for it
			p.press("alt+left")
			wants(t, p.press("y"), host.Answer{Action: host.Approve})
		})
	}
}

// options are those of the person, with an editor.
func (p *person) options(t *testing.T) *panel.Options {
	t.Helper()
	o := p.opts
	o.Edit = func(text string) tea.Cmd { return p.editor(text) }
	return &o
}

// An answer that the session does not take is told, and the question stays.
func TestReject(t *testing.T) {
	t.Parallel()
	p := sit(t, callQuestion())
	wants(t, p.press("y"), host.Answer{Action: host.Approve})
	p.panel.Reject(errors.New("the edited arguments are denied: rule \x1b[31m"))
	if out, _ := p.panel.Update(keyOf("y")); out.Answer != nil {
		t.Error("the key that was typed twice answers")
	}
	if shown := p.look(); !strings.Contains(shown, `That answer does not count: the edited arguments are denied: rule \u{1b}[31m.`) {
		t.Errorf("it shows:\n%s", shown)
	}
	wants(t, p.press("n", "enter"), host.Answer{Action: host.Refuse})
}
