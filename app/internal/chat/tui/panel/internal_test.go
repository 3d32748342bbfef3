package panel

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// The parts of arguments are named so that no name looks like another part.
func TestNewForm(t *testing.T) {
	t.Parallel()
	f := newForm(mcp.RawValue(`{"a":1,"a/b":2,"b":{"c":[true,{"d":null}],"e":{}},"x: \"y\"":"z","":"","` + strings.Repeat(" ", 40) + `":3,"\u202e":"\u202e","t":"one\ntwo\tx","r":"one\r\ntwo"}`))
	want := []string{
		"a: 1", "/a~1b: 2", "/b/c/0: true", "/b/c/1/d: null", "/b/e: {}", `"x: \"y\"": "z"`, `/: ""`, `"[40 blanks]": 3`, `"\u202e": "\u202e"`,
		"t: one\ntwo⇥ x", `r: "one\r\ntwo"`,
	}
	if len(f.parts) != len(want) || f.more {
		t.Fatalf("%d parts, more: %v", len(f.parts), f.more)
	}
	for i, p := range f.parts {
		if got := p.label + ": " + p.text; got != want[i] {
			t.Errorf("part %d: %s, want %s", i, got, want[i])
		}
	}
}

// Texts are broken into rows that fit, and nothing of them is lost.
func FuzzFit(f *testing.F) {
	f.Add("some words and onelongtokenthatdoesnotfit", 10)
	f.Add("漢字かな é̂ 🇩🇪", 4)
	f.Add("", 2)
	f.Fuzz(func(t *testing.T, text string, columns int) {
		text = host.Escape(text) // as all that is shown is
		if columns < 2 || columns > 400 || strings.ContainsAny(text, "\t\n\x1b"+goesOn) {
			t.Skip()
		}
		b := newBody(columns + width(mark))
		b.marked(mark, toneUntrusted, text)
		var all strings.Builder
		for _, r := range b.rows {
			if size, _ := cluster(r.text + "x"); width(r.text) > columns && size < len(r.text) {
				t.Errorf("%d columns in %d: %q", width(r.text), columns, r.text)
			}
			all.WriteString(strings.TrimSuffix(r.text, goesOn))
		}
		if all.String() != text {
			t.Errorf("%q became %q", text, all.String())
		}
	})
}

// Numbers have commas between thousands.
func TestNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1048576: "1,048,576", 5000: "5,000", 1002003: "1,002,003"} {
		if got := number(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
