package panel_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A text is edited without its quotes, and what is typed behind it goes into it. A text that
// cannot be shown so is edited as JSON, and a quotation mark too few is told.
func TestEditText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ value, typed, want, told string }{
		"text":          {`"hello"`, " world", `"hello world"`, ""},
		"empty":         {`""`, "x", `"x"`, ""},
		"like a number": {`"1"`, "2", `"12"`, ""},
		"number":        {`1`, "2", `12`, ""},
		"newline":       {`"a\n"`, "", "", "changes nothing"},
		"newline more":  {`"a\n"`, "b", "", "must be a JSON text"},
		"quotes":        {`"\"a\""`, "", "", "changes nothing"},
		"blanks":        {`" a "`, "", "", "changes nothing"},
		"invisible":     {`"a\u202eb"`, "", "", "changes nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := callQuestion()
			q.Arguments = mcp.RawValue(`{"a":` + test.value + `}`)
			p := sit(t, q)
			p.press("e", "down", "enter")
			p.press(chars(test.typed)...)
			p.press("enter")
			if test.told != "" {
				if shown := strings.Join(strings.Fields(p.look()), " "); !strings.Contains(shown, test.told) {
					t.Fatalf("%q is not told:\n%s", test.told, p.look())
				}
				return
			}
			var out panel.Outcome
			for _, key := range []string{"b", "y"} {
				out = p.press(key)
			}
			if out.Answer == nil || out.Answer.Action != host.Approve {
				t.Fatalf("no yes:\n%s", p.look())
			}
			if want := `{"a":` + test.want + `}`; string(out.Answer.Edited) != want {
				t.Errorf("edited is %s, want %s", out.Answer.Edited, want)
			}
		})
	}
}
