package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/host"
)

// answers are long texts of a model, by what they are made of.
var answers = map[string]func(lines int) string{
	"paragraphs": func(lines int) string { return numbered("line %d of the answer\n\n", lines) },
	"code":       func(lines int) string { return "```go\n" + numbered("x := f(%d) // of the answer\n", lines) },
	"list":       func(lines int) string { return numbered("- item %d of the answer\n", lines) },
	"paragraph":  func(lines int) string { return numbered("words of number %d\n", lines) },
	"table":      func(lines int) string { return "| a | b |\n|---|---|\n" + numbered("| %d | b |\n", lines) },
	"one line":   func(lines int) string { return strings.Repeat("word ", 4*lines) },
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// answered is a screen on which an answer is under way.
func answered(tb testing.TB, text string) *screen {
	tb.Helper()
	m := newScreen((&Options{Environ: []string{"TERM=xterm-256color"}}).withDefaults(), &fakeHost{})
	m.base = context.Background
	m.send = func(tea.Msg) {}
	m.start = func(func()) {}
	m.tick = func(time.Duration, tea.Msg) tea.Cmd { return nil }
	m.attach(newFakeSession(user("Hi"), &host.TurnRecord{Step: 1, Model: "clever-1"}), 0)
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.Update(recordsMsg{watch: m.watches, records: []host.Record{
		{N: 1, Body: user("Hi")},
		{N: 2, Body: &host.TurnRecord{Step: 1, Model: "clever-1"}},
		{N: 3, Body: &host.TextRecord{Text: text}},
	}})
	m.View()
	return m
}

// token has the next token of the answer drawn.
func token(m *screen) {
	m.Update(recordsMsg{watch: m.watches, records: []host.Record{{N: 4, Body: &host.TextRecord{Text: "a "}}}})
	m.View()
}

// BenchmarkToken is a token at the end of an answer of 10,000 lines.
func BenchmarkToken(b *testing.B) {
	for name, text := range answers {
		b.Run(name, func(b *testing.B) {
			m := answered(b, text(10_000))
			b.ReportAllocs()
			for b.Loop() {
				token(m)
			}
		})
	}
}

// BenchmarkKey is a key while an answer of 10,000 lines is visible.
func BenchmarkKey(b *testing.B) {
	m := answered(b, answers["paragraphs"](10_000))
	b.ReportAllocs()
	for b.Loop() {
		m.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
		m.View()
		m.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
		m.View()
	}
}

// A token costs what is visible and the end of the answer, and not all that was before: the
// number of lines is several times that of the allocations.
func TestTokenAllocations(t *testing.T) {
	const lines = 80_000
	for name, text := range answers {
		m := answered(t, text(lines))
		if n := testing.AllocsPerRun(20, func() { token(m) }); n > lines/4 {
			t.Errorf("%s: %v allocations for a token after %d lines", name, n, lines)
		}
	}
}
