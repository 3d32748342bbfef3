package mcptest

import (
	"strings"
	"testing"
)

func parsed(t *testing.T, text string) *tree {
	t.Helper()
	v, err := parseTree([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		want, got string
		wrong     string // part of the error, or empty
	}{
		{`{"a":1,"b":[true,null,"x"]}`, ` { "b" : [ true , null , "\u0078" ] , "a" : 1.0 } `, ""},
		{`{"a":1}`, `{"a":2}`, "at /a: got 2, want 1"},
		{`{"a":1}`, `{"a":"1"}`, "at /a"},
		{`{"a":1}`, `{}`, `member "a" is missing`},
		{`{}`, `{"a":1}`, `unexpected member "a"`},
		{`{"a":[1,2]}`, `{"a":[1]}`, "1 elements, want 2"},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, "at /a/0"},
		{`{"a":true}`, `{"a":false}`, "at /a"},
		{`12345678901234567890`, `12345678901234567891`, "at the top"},
		{`{"a":"$any"}`, `{"a":{"b":[]}}`, ""},
		{`{"a":"$any"}`, `{}`, "missing"},
		{`{"a":"$$any"}`, `{"a":"$any"}`, ""},
		{`{"a":"$$any"}`, `{"a":5}`, "at /a"},
		{`{"a":"$unknown"}`, `{"a":5}`, `nothing was saved as "unknown"`},
		{`{"a":"$save:x","b":"$x"}`, `{"a":{"c":1},"b":{"c":1}}`, ""},
		{`{"a":"$save:x","b":"$x"}`, `{"a":1,"b":2}`, "as before"},
		{`{"$save:n":1,"b":2}`, `{"b":2,"whatever":1}`, ""},
		{`{"$save:n":1}`, `{"b":1,"c":1}`, "not exactly one"},
		{`{"$save:n":1}`, `{}`, "not exactly one"},
		// A batch is answered in any order, but completely.
		{`[{"id":1},{"id":2}]`, `[{"id":2},{"id":1}]`, ""},
		{`[{"id":1},{"id":1}]`, `[{"id":1},{"id":2}]`, "nothing is like message 1"},
		{`[{"id":1}]`, `[{"id":1},{"id":2}]`, "unexpected message"},
	} {
		var m matcher
		err := m.match(parsed(t, c.want), parsed(t, c.got))
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s does not match %s: %v", c.got, c.want, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s against %s: %v, want %q", c.got, c.want, err, c.wrong)
		}
	}
}

// What does not match saves nothing.
func TestMatchKeepsNothing(t *testing.T) {
	var m matcher
	if err := m.match(parsed(t, `{"a":"$save:x","b":1}`), parsed(t, `{"a":5,"b":2}`)); err == nil {
		t.Fatal("they match")
	}
	if len(m.saved) != 0 {
		t.Errorf("saved: %v", m.saved)
	}
}

func TestSubstitute(t *testing.T) {
	var m matcher
	if err := m.match(parsed(t, `{"a":"$save:x","$save:n":0}`), parsed(t, `{"a":{"b":[1]},"name":0}`)); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		`{"a":"$x","b":"$x"}`: `{"a":{"b":[1]},"b":{"b":[1]}}`,
		`{"$n":1}`:            `{"name":1}`,
		`{"a":"$$x"}`:         `{"a":"$x"}`,
		`{"$schema":1}`:       `{"$schema":1}`,
		`{"a":"${x}"`:         "",
		`{"a":"$y"}`:          "",
		`{broken "$x`:         `{broken "$x`,
		`nothing`:             `nothing`,
	} {
		got, err := m.substitute(line)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s becomes %s, %v; want %s", line, got, err, want)
		}
	}
}

// What is written for a message matches the message, and placeholders stay
// where they were.
func TestRenewed(t *testing.T) {
	for _, c := range []struct{ old, got, want string }{
		{`{"a":"$any","b":1}`, `{"a":5,"b":2,"c":3}`, `{"a":"$any","b":2,"c":3}`},
		{`[{"a":"$save:x"},1]`, `[{"a":5},2]`, `[{"a":"$save:x"},2]`},
		{`{}`, `{"result":{"nextCursor":"abc"}}`, `{"result":{"nextCursor":"$save:nextCursor"}}`},
		{`{"result":{"nextCursor":"$any"}}`, `{"result":{"nextCursor":"abc"}}`, `{"result":{"nextCursor":"$any"}}`},
		{`{}`, `{"id":5,"method":"ask"}`, `{"id":"$save:id","method":"ask"}`},
		{`{}`, `{"inputRequests":{"k1":{}}}`, `{"inputRequests":{"$save:key":{}}}`},
		{`{"inputRequests":{"$save:k":{"a":"$any"}}}`, `{"inputRequests":{"k2":{"a":1}}}`, `{"inputRequests":{"$save:key":{"a":"$any"}}}`},
		{`{}`, `{"a":"$x"}`, `{"a":"$$x"}`},
		{`{"a":5}`, `{"a":{"b\"\u0001é":1}}`, `{"a":{"b\"\u0001é":1}}`},
	} {
		got := parsed(t, c.got)
		now := renewed(parsed(t, c.old), got)
		if now.line() != c.want {
			t.Errorf("%s after %s is written as %s, want %s", c.got, c.old, now.line(), c.want)
		}
		for _, width := range []int{0, 10, 1000} {
			if err := new(matcher).match(parsed(t, now.layout(width)), got); err != nil {
				t.Errorf("what is written for %s at width %d does not match it: %v", c.got, width, err)
			}
		}
	}
}

func TestParseTreeRefuses(t *testing.T) {
	for _, text := range []string{``, `{`, `{"a"}`, `[1,]`, `nope`, `1 2`, `"\x"`, `{"a":1,}`, "\xff", strings.Repeat("[", 100_000)} {
		if v, err := parseTree([]byte(text)); err == nil {
			t.Errorf("%.40q is taken for %v", text, v.line())
		}
	}
}
