package panel_test

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// After a panel appears, and after it gets the keys again, keys are dropped until there was none
// for 400 ms.
func TestGrace(t *testing.T) {
	t.Parallel()
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(0, 0)
			p := panel.New(q, &panel.Options{Theme: style.NoColor(), Keys: style.DefaultKeys(), Now: func() time.Time { return now }})
			before := p.View(80, 24)
			for _, after := range []time.Duration{0, time.Millisecond, 398 * time.Millisecond} {
				now = now.Add(after)
				for _, key := range []string{"y", "n", "c", "a", "r", "1", "tab", "enter", "esc", "f", "down", "space"} {
					if out, cmd := p.Update(keyOf(key)); out != (panel.Outcome{}) || cmd != nil {
						t.Fatalf("%s counts after %v: %+v", key, after, out)
					}
				}
				p.Update(tea.PasteMsg{Content: "y"})
				p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
			}
			if p.View(80, 24) != before {
				t.Errorf("keys that were dropped have changed it:\n%s", p.View(80, 24))
			}
			now = now.Add(time.Millisecond) // 400 ms
			p.Focus()
			for range 10 {
				now = now.Add(399 * time.Millisecond)
				if out, _ := p.Update(keyOf("esc")); out.Aside {
					t.Error("a key counts 399 ms after Focus, or after one that was dropped")
				}
			}
			now = now.Add(399 * time.Millisecond)
			p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
			now = now.Add(time.Millisecond)
			if out, _ := p.Update(keyOf("esc")); !out.Aside {
				t.Error("a key does not count 400 ms after the last one")
			}
		})
	}
}

// Escape puts aside in every mode, decides nothing, and what was typed is kept.
func TestEscape(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		question string
		keys     []string
		kept     string
	}{
		"question": {"call", nil, "[y] yes"},
		"offers":   {"call", ks("r down"), "> 1  from now on"},
		"reason":   {"call", keys(ks("n"), chars("too long")), "> too long"},
		"edit":     {"call", ks("e 1 backspace x"), "notes.txx"},
		"form":     {"form", keys(ks("y"), chars("Ada")), "> Ada"},
		"review":   {"form", ks("y A d a tab tab tab space tab tab tab enter"), "This would be sent"},
		"models":   {"sample", ks("m down"), "> 1  small"},
		"roots":    {"roots", ks("1"), "[x] 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sit(t, questions()[test.question])
			p.press(test.keys...)
			if out := p.press("esc"); !out.Aside || out.Answer != nil {
				t.Fatalf("escape: %+v", out)
			}
			p.panel.Focus()
			if shown := p.look(); !strings.Contains(shown, test.kept) {
				t.Errorf("%q is not in:\n%s", test.kept, shown)
			}
		})
	}
}

// With the focus on nothing, Enter and space do nothing, in every question.
func TestNothingByDefault(t *testing.T) {
	t.Parallel()
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sit(t, q)
			before := p.look()
			if out := p.press("enter", "space", "enter", "ctrl+j"); out != (panel.Outcome{}) {
				t.Errorf("%+v", out)
			}
			if after := p.look(); after != before {
				t.Errorf("it shows now:\n%s", after)
			}
			if strings.Contains(before, ">[") {
				t.Errorf("a button has the focus:\n%s", before)
			}
		})
	}
}

// A paste never answers: it goes into a line, without its newlines, or is told.
func TestPaste(t *testing.T) {
	t.Parallel()
	for name, q := range questions() {
		p := sit(t, q)
		for _, text := range []string{"y", "y\n", "\r", "1", strings.Repeat("y\n", 100_000)} {
			if out, _ := p.panel.Update(tea.PasteMsg{Content: text}); out != (panel.Outcome{}) {
				t.Errorf("%s: %q: %+v", name, text, out)
			}
		}
		if shown := p.look(); !strings.Contains(shown, "not taken for an answer") {
			t.Errorf("%s shows:\n%s", name, shown)
		}
	}
	p := sit(t, callQuestion())
	p.press("n")
	p.panel.Update(tea.PasteMsg{Content: "not\r\nnow\x1b[2J\u202e\n"})
	wants(t, p.press("enter"), host.Answer{Action: host.Refuse, Reason: "not now[2J\u202e"})
	p = sit(t, callQuestion())
	p.press("n")
	p.panel.Update(tea.PasteMsg{Content: strings.Repeat("x", 1<<20)})
	if shown := p.look(); !strings.Contains(shown, "The line is full: it holds at most 65,536 bytes.") {
		t.Errorf("it shows:\n%s", shown)
	}
}

// A key that is held down, several characters at once, and other keys do not answer.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	p := sit(t, callQuestion())
	held := keyOf("y")
	held.IsRepeat = true
	enter := keyOf("enter")
	enter.IsRepeat = true
	p.press("tab")
	for _, msg := range []tea.Msg{
		held, enter,
		tea.KeyPressMsg{Text: "enter"},
		tea.KeyPressMsg{Text: "yy"},
		tea.KeyPressMsg{Text: "esc"},
		keyOf("ctrl+y"), keyOf("alt+y"),
		tea.KeyReleaseMsg{Code: 'y', Text: "y"},
		tea.MouseClickMsg{Button: tea.MouseLeft},
		nil,
		tea.WindowSizeMsg{Width: 1, Height: 1},
	} {
		if out, cmd := p.panel.Update(msg); out != (panel.Outcome{}) || cmd != nil {
			t.Errorf("%#v: %+v", msg, out)
		}
	}
	capital := keyOf("Y")
	out, _ := p.panel.Update(capital)
	wants(t, out, host.Answer{Action: host.Approve})
}

// Keys can be changed, and the panel shows those.
func TestKeys(t *testing.T) {
	t.Parallel()
	k, err := style.NewKeys(map[string][]string{"approve": {"ctrl+y"}, "refuse": {"x"}})
	if err != nil {
		t.Fatal(err)
	}
	p := sit(t, callQuestion(), func(o *panel.Options) { o.Keys = k })
	if shown := p.look(); !strings.Contains(shown, "[Ctrl-Y] yes") || !strings.Contains(shown, "[x] no") {
		t.Errorf("it shows:\n%s", shown)
	}
	if out := p.press("y", "n"); out != (panel.Outcome{}) {
		t.Errorf("the old keys count: %+v", out)
	}
	wants(t, p.press("ctrl+y"), host.Answer{Action: host.Approve})
	var approve, aside bool
	for _, a := range p.panel.Help() {
		approve = approve || a.Name == style.Approve && a.Keys[0] == "ctrl+y"
		aside = aside || a.Name == style.Aside
	}
	if !approve || !aside {
		t.Errorf("the help: %+v", p.panel.Help())
	}
}

// Nobody agrees to what was not shown: a question that is cut is shown in full first. It can
// be refused at once.
func TestCut(t *testing.T) {
	t.Parallel()
	long := map[string]func(q *host.Question){
		"argument":    func(q *host.Question) { q.Arguments = mcp.RawValue(`{"a":"` + strings.Repeat("x", 2_100) + `"}`) },
		"lines":       func(q *host.Question) { q.Arguments = mcp.RawValue(`{"a":"` + strings.Repeat(`x\n`, 2_100) + `"}`) },
		"many":        func(q *host.Question) { q.Arguments = mcp.RawValue(`[` + strings.Repeat("1,", 2_100) + `1]`) },
		"description": func(q *host.Question) { q.Tool.Description = strings.Repeat("It is good. ", 100) },
	}
	for name, change := range long {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := callQuestion()
			change(q)
			p := sit(t, q)
			if out := p.press("y", "r", "tab", "enter"); out != (panel.Outcome{}) {
				t.Fatalf("%+v", out)
			}
			if shown := p.look(); !strings.Contains(shown, "Press End first: not all of it was shown yet.") {
				t.Errorf("it shows:\n%s", shown)
			}
			wants(t, p.press("n", "enter"), host.Answer{Action: host.Refuse})
			p = sit(t, q)
			if name == "lines" || name == "many" { // full, they have many pages
				if out := p.press("f", "pgdown", "y", "r"); out != (panel.Outcome{}) {
					t.Fatalf("what is below was not shown: %+v", out)
				}
				p = sit(t, q)
			}
			wants(t, p.press("end", "y"), host.Answer{Action: host.Approve})
			p = sit(t, q)
			wants(t, p.press("f", "end", "r", "1"), host.Answer{Action: host.Approve, Offer: 1})
		})
	}
}

// What is wrong is told at its place, and nothing is decided.
func TestWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		question string
		keys     []string
		want     string
	}{
		"no root":         {"roots", ks("y"), "No directory is picked."},
		"no root to keep": {"roots", ks("r 1"), "No directory is picked."},
		"edit nothing":    {"call", ks("e 1 enter"), "That changes nothing."},
		"edit no value":   {"call", ks("e i x enter"), "Nothing was changed: write a JSON value, or NAME=VALUE, or /A/B=VALUE."},
		"edit no place":   {"call", keys(ks("e i"), chars("/options/tags/9=x"), ks("enter")), "Nothing was changed: the list has no item 9"},
		"required":        {"form", ks("y tab tab tab tab tab tab enter"), "2 fields need another value."},
		"one required":    {"form", ks("y A d a tab tab tab tab tab tab enter"), "One field needs another value."},
		"beside":          {"form", ks("y tab tab tab tab tab tab enter"), "Wrong: it is required"},
		"beside options":  {"form", ks("y tab tab tab tab tab tab enter"), "Wrong: it is required: choose with the space key"},
		"date":            {"form", keys(ks("y tab tab tab tab"), chars("1815"), ks("tab")), "Wrong: please enter a date as year-month-day"},
		"secret":          {"form", ks("y tab tab tab tab tab"), "WARNING: this looks like a secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sit(t, questions()[test.question])
			p.high = 40
			if out := p.press(test.keys...); out != (panel.Outcome{}) {
				t.Fatalf("%+v", out)
			}
			if shown := p.look(); !strings.Contains(shown, test.want) {
				t.Errorf("%q is not in:\n%s", test.want, shown)
			}
		})
	}
}

// The domain of an address is marked, with and without colours.
func TestDomain(t *testing.T) {
	t.Parallel()
	for _, theme := range []*style.Theme{style.Dark(), style.Light(), style.NoColor()} {
		p := sit(t, pageQuestion(), func(o *panel.Options) { o.Theme = theme })
		if shown := p.panel.View(80, 24); !strings.Contains(shown, theme.Domain.Render("evil.example")) {
			t.Errorf("%s: %q", theme.Name, shown)
		}
	}
}
