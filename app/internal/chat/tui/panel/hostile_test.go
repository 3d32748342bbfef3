package panel_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/ui/uitest"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// forged is what a stranger writes to look like the program.
const forged = "\nasked because: you trust this server\n [y] yes  [n] no \nlines 1-2 of 9999"

func hostileTexts() map[string]string { return uitest.Texts(forged, 150) }

// hostile is a question of a kind with a text in every place.
func hostile(t testing.TB, kind host.QuestionKind, text string) *host.Question {
	t.Helper()
	q := new(host.Question)
	uitest.Fill(t, q, text)
	q.Kind, q.Why = kind, "no rule matches"
	for i := range q.Form.RequestedSchema.Properties {
		q.Form.RequestedSchema.Properties[i].Name += strings.Repeat("x", i)
		q.Form.RequestedSchema.Properties[i].Schema.Type = []string{"string", "array"}[i%2]
	}
	return q
}

var kinds = []host.QuestionKind{
	host.QuestionCall, host.QuestionCalls, host.QuestionChange, host.QuestionSample, host.QuestionSampled, host.QuestionForm, host.QuestionPage,
	host.QuestionRoots, host.QuestionUse, host.QuestionApp, host.QuestionMessage, host.QuestionSkill, host.QuestionSignIn,
	"\x1b[2Jnew",
}

// Attack: texts of strangers with escapes, reversed and hidden characters, wide ones, and
// lines that look like the program's, in every place of every question and in every mode. No
// control character is shown but those of styles, and every forged line is marked.
func TestHostile(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	for name, text := range hostileTexts() {
		for _, kind := range kinds {
			t.Run(name+" "+strings.TrimPrefix(string(kind), "\x1b[2J"), func(t *testing.T) {
				t.Parallel()
				q := hostile(t, kind, text)
				sizes := [][2]int{{80, 24}, {40, 12}, {20, 8}}
				for i, keys := range []string{"", "f", "f t", "d", "f r", "n x", "e", "e 1 x", "m down", "y", "y down x tab tab tab", "1", "tab right"} {
					p := sit(t, q, func(o *panel.Options) { o.Last, o.Theme = mcp.RawValue(`{"a":1}`), style.Dark() })
					p.width, p.high = sizes[i%3][0], sizes[i%3][1]
					for _, key := range ks(keys) {
						if p.press(key).Answer != nil {
							break
						}
					}
					checkForged(t, p.look())
					p.press("ctrl+end")
					checkForged(t, p.look())
				}
			})
		}
	}
}

// checkForged fails if a line that a stranger wrote stands at the edge as one of the program.
// The rest of a sentence is further right than that.
func checkForged(t *testing.T, shown string) {
	t.Helper()
	lines := strings.Split(shown, "\n")
	for i, line := range lines {
		line = strings.TrimPrefix(strings.TrimPrefix(line, "> "), "  ")
		button := i < len(lines)-8 && strings.HasPrefix(strings.TrimPrefix(line, " "), "[y] yes  [n] no")
		if button || strings.HasPrefix(line, "asked because: you trust") || strings.HasPrefix(line, "lines 1-2 of 9999") {
			t.Fatalf("a forged line is not marked:\n%s", shown)
		}
	}
}

// Without colours nothing is lost: the words are those of a view with colours, and no
// colour is set.
func TestNoColor(t *testing.T) {
	t.Parallel()
	for name, q := range questions() {
		for _, theme := range []*style.Theme{style.Dark(), style.Light()} {
			plain := sit(t, q)
			coloured := sit(t, q, func(o *panel.Options) { o.Theme = theme })
			for _, keys := range []string{"", "tab", "f", "d", "r", "e", "down"} {
				plain.press(ks(keys)...)
				coloured.press(ks(keys)...)
				a, b := plain.panel.View(80, 24), coloured.panel.View(80, 24)
				if ansi.Strip(a) != ansi.Strip(b) {
					t.Errorf("%s %q: without colours:\n%s\nwith:\n%s", name, keys, a, b)
				}
				for _, code := range strings.Split(a, "\x1b[")[1:] {
					code, _, _ = strings.Cut(code, "m")
					for n := range strings.SplitSeq(code, ";") {
						if !slices.Contains([]string{"", "0", "1", "3", "4", "7"}, n) {
							t.Fatalf("%s: a style other than bold, italic, underlined and reversed: %q", name, code)
						}
					}
				}
			}
		}
	}
}
