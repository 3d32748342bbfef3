package ui_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

func TestCondense(t *testing.T) {
	t.Parallel()
	blanks := strings.Repeat
	for in, want := range map[string]string{
		"":                                         "",
		"a  b":                                     "a  b",
		"a" + blanks(" ", 8) + "b":                 "a" + blanks(" ", 8) + "b",
		"a" + blanks(" ", 9) + "b":                 "a[9 blanks]b",
		"a" + blanks("\u3000", 300) + "b":          "a[300 blanks]b",
		`"a` + blanks(`\n`, 99) + `b"`:             `"a[99 blanks]b"`,
		`"a` + blanks(`\u0020 \t`, 9) + `b"`:       `"a[27 blanks]b"`,
		`"a` + blanks(`\\n`, 9) + `b"`:             `"a` + blanks(`\\n`, 9) + `b"`,
		blanks(" ", 64) + "a":                      blanks(" ", 64) + "a",
		blanks(" ", 65) + "a":                      "[65 blanks]a",
		"a\n\n\n\nb":                               "a\n\n\n\nb",
		"a" + blanks("\n", 100) + "b":              "a\n[99 empty lines]\nb",
		"a\n" + blanks(" \n", 50) + blanks(" ", 9): "a\n[51 empty lines]",
		`\`:           `\`,
		`\u12`:        `\u12`,
		"\xff \u00e9": "\xff \u00e9",
	} {
		if got := ui.Condense(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// Proves: SEC-TOOL-4. Neither the head nor the tail of an argument is out of sight behind
// blanks, a word that is longer than a line shows that it goes on, and a title or
// description that is cut says by how much. Attack: a path after hundreds of blanks.
func TestNothingIsPushedOutOfSight(t *testing.T) {
	t.Parallel()
	q := writeQuestion()
	q.Arguments = mcp.RawValue(`{"command":"ls` + strings.Repeat(" ", 2000) + `; rm -rf /` + strings.Repeat(`\n`, 500) + `","word":"` + strings.Repeat("x", 200) + `end"}`)
	tool := *q.Tool
	tool.Description = strings.Repeat("very ", 300)
	q.Tool = &tool
	s := newSession(writes(q))
	shown := talk(t, servers(), s, nil, "Write.", "n")
	for _, want := range []string{
		`"command": "ls[2000 blanks]; rm -rf /[500 blanks]"`,
		"WARNING: the arguments hold a long run of blanks, shown as its number",
		"xxx\\\n    | xxx", `xend"`,
		"… (899 more",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not shown:\n%s", want, shown)
		}
	}
	if len(s.answers) != 1 || s.answers[0].Action != host.Refuse {
		t.Errorf("answers %+v", s.answers)
	}
}
