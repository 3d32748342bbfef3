package panel_test

import (
	"testing"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/mcp"
)

// Panels as a person sees them without colours, at 80x24.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, sit(t, q).look())
		})
	}
}

// Panels after some keys.
func TestGoldenAfterKeys(t *testing.T) {
	t.Parallel()
	last := func(o *panel.Options) {
		o.Last = mcp.RawValue(`{"path":"/home/ada/notes.txt","text":"Dear Eve,\n\nthank you.\n","old":1}`)
	}
	for name, test := range map[string]struct {
		question string
		keys     []string
	}{
		"call-full":       {"call", []string{"f"}},
		"call-difference": {"call", []string{"d"}},
		"call-remember":   {"call", []string{"r", "down", "down", "h"}},
		"call-focus":      {"call", []string{"tab"}},
		"call-reason":     {"call", []string{"n", "t", "o", "o", "space", "l", "o", "n", "g"}},
		"call-edit":       {"call", []string{"e", "down", "down"}},
		"call-value":      {"call", []string{"e", "down", "enter"}},
		"call-edited":     {"call", []string{"e", "3", "backspace", "1", "enter", "b"}},
		"sample-models":   {"sample", []string{"m", "down"}},
		"roots-picked":    {"roots", []string{"down", "down", "space"}},
		"form-fill":       {"form", []string{"y", "A", "tab", "down", "space", "tab", "1", "tab"}},
		"form-review":     {"form", []string{"y", "A", "d", "a", "tab", "down", "space", "tab", "tab", "space", "tab", "tab", "tab", "enter"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sit(t, questions()[test.question], last)
			if out := p.press(test.keys...); out.Answer != nil || out.Aside {
				t.Fatalf("it ended: %+v", out)
			}
			golden(t, name, p.look())
		})
	}
}
