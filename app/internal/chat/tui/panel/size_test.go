package panel_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

var sizes = [][2]int{{80, 24}, {40, 12}, {20, 8}, {20, 5}, {300, 60}, {33, 7}, {120, 10}}

// long are questions with much to show.
func long(t testing.TB) map[string]*host.Question {
	t.Helper()
	args := func(v any) *host.Question {
		raw, err := strictjson.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		q := callQuestion()
		q.Arguments = raw
		return q
	}
	var lines strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&lines, "line %d of it\n", i+1)
	}
	many := make(map[string]int)
	for i := range 3_000 {
		many[fmt.Sprintf("name%d", i)] = i
	}
	form := formQuestion()
	options := form.Form.RequestedSchema.Properties[1].Schema.OneOf
	for i := range 2_000 {
		options = append(options, mcp.EnumOption{Const: fmt.Sprint(i), Title: fmt.Sprintf("Colour %d", i)})
	}
	form.Form.RequestedSchema.Properties[1].Schema.OneOf = options
	roots := rootsQuestion()
	for i := range 100 {
		roots.Roots = append(roots.Roots, mcp.Root{URI: fmt.Sprintf("file:///srv/%d/%s", i, strings.Repeat("deep/", 30))})
	}
	change := changeQuestion()
	change.Tool.Description = strings.Repeat("word ", 20_000)
	name := callQuestion()
	name.Server, name.Name = strings.Repeat("server", 50), strings.Repeat("tool", 50)
	return map[string]*host.Question{
		"megabyte": args(map[string]string{"path": "/tmp/x", "data": strings.Repeat("0123456789abcdef", 1<<16)}),
		"words":    args(map[string]string{"data": strings.Repeat("some words ", 100_000)}),
		"lines":    args(map[string]string{"text": lines.String()}),
		"wide":     args(map[string]string{"text": strings.Repeat("漢字 kanji ", 3_000)}),
		"members":  args(many),
		"form":     form,
		"roots":    roots,
		"change":   change,
		"names":    name,
	}
}

// buttonKey finds the keys of buttons.
var buttonKey = regexp.MustCompile(`\[[a-zA-Z0-9-]+\]`)

// shownButtons are the keys of the buttons in the last lines of a view.
func shownButtons(shown string) string {
	lines := strings.Split(ansi.Strip(shown), "\n")
	i := len(lines)
	for i > 0 && len(strings.Fields(lines[i-1])) > 0 && strings.HasPrefix(strings.TrimLeft(lines[i-1], " >"), "[") {
		i--
	}
	return strings.Join(buttonKey.FindAllString(strings.Join(lines[i:], "\n"), -1), "")
}

// modes are keys that lead to each mode of a question.
var modes = map[string][]string{"question": nil, "full": {"f"}, "difference": {"d"}, "remember": {"r"}, "reason": {"n"}, "edit": {"e"}, "insert": {"e", "i"}, "focus": {"tab", "tab"}}

// The buttons are visible in every size, whatever there is to show and wherever it was scrolled
// to, and everything can be reached.
func TestSizes(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	for name, q := range long(t) {
		for mode, keys := range modes {
			if q.Kind != host.QuestionCall && mode != "question" && mode != "focus" {
				continue
			}
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				p := sit(t, q)
				p.width, p.high = 300, 60
				if q.Kind == host.QuestionCall {
					p.press("end", "f") // seen
				}
				p.press(keys...)
				want := shownButtons(p.panel.View(300, 60))
				if want == "" {
					t.Fatalf("no buttons:\n%s", p.look())
				}
				for _, size := range sizes {
					p.width, p.high = size[0], size[1]
					for _, key := range []string{"ctrl+home", "pgdown", "ctrl+end"} {
						p.panel.Update(keyOf(key))
						shown := p.panel.View(size[0], size[1])
						checkView(t, shown, size[0], size[1])
						if got := shownButtons(shown); got != want {
							t.Errorf("%v after %s: buttons %s, want %s:\n%s", size, key, got, want, ansi.Strip(shown))
						}
					}
				}
			})
		}
	}
}

// Everything is reached by scrolling: the pages of a long text are all of it.
func TestReach(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {40, 12}, {20, 8}} {
		p := sit(t, long(t)["lines"])
		p.width, p.high = size[0], size[1]
		p.press("t")
		p.press("f", "t") // full, as a form
		seen := make(map[string]bool)
		word := regexp.MustCompile(`line \d+ of it`)
		for before, shown := "", p.panel.View(size[0], size[1]); shown != before; {
			for _, line := range word.FindAllString(shown, -1) {
				seen[line] = true
			}
			p.panel.Update(keyOf("pgdown"))
			before, shown = shown, p.panel.View(size[0], size[1])
		}
		if len(seen) != 5_000 {
			t.Errorf("%v: %d lines are reached", size, len(seen))
		}
	}
}

// The status says where one is.
func TestStatus(t *testing.T) {
	t.Parallel()
	p := sit(t, long(t)["lines"])
	p.press("f", "t")
	if shown := p.look(); !regexp.MustCompile(`lines 1-20 of 5,0\d\d; `).MatchString(shown) {
		t.Errorf("it shows:\n%s", shown)
	}
	p.press("ctrl+end")
	if shown := p.look(); !regexp.MustCompile(`lines 4,99\d-5,0\d\d of 5,0\d\d`).MatchString(shown) {
		t.Errorf("it shows:\n%s", shown)
	}
}

// Drawing again costs what is visible, not what there is: allocations of a redraw, and of a
// scrolled one, do not grow with the question.
func TestRedraw(t *testing.T) {
	allocations := func(q *host.Question) float64 {
		p := sit(t, q)
		p.press("f")
		return testing.AllocsPerRun(20, func() {
			p.panel.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
			p.panel.View(80, 24)
		})
	}
	small, big := allocations(callQuestion()), allocations(long(t)["megabyte"])
	if big > 4*small+200 {
		t.Errorf("%v allocations for a redraw of a megabyte, %v for a small question", big, small)
	}
}

// BenchmarkView draws a question with an argument of a megabyte that is scrolled.
func BenchmarkView(b *testing.B) {
	now := time.Unix(0, 0)
	p := panel.New(long(b)["megabyte"], &panel.Options{Theme: style.Dark(), Keys: style.DefaultKeys(), Now: func() time.Time { return now }})
	now = now.Add(time.Second)
	p.Update(keyOf("f"))
	for b.Loop() {
		p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
		p.View(80, 24)
	}
}

// BenchmarkWrap shows the same question in another width each time.
func BenchmarkWrap(b *testing.B) {
	now := time.Unix(0, 0)
	p := panel.New(long(b)["megabyte"], &panel.Options{Theme: style.Dark(), Keys: style.DefaultKeys(), Now: func() time.Time { return now }})
	now = now.Add(time.Second)
	p.Update(keyOf("f"))
	width := 0
	for b.Loop() {
		width++
		p.View(40+width%80, 24)
	}
}

// BenchmarkNew makes a panel for a question with an argument of a megabyte.
func BenchmarkNew(b *testing.B) {
	q := long(b)["megabyte"]
	for b.Loop() {
		panel.New(q, &panel.Options{})
	}
}
