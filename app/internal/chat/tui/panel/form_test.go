package panel_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// fieldsQuestion has a field of every kind that is chosen, with and without defaults.
func fieldsQuestion() *host.Question {
	q := formQuestion()
	several := func(def string) mcp.PrimitiveSchema {
		s := mcp.PrimitiveSchema{Type: "array", MaxItems: new(int64(2)), Items: &mcp.EnumItems{Type: "string", Enum: []string{"a", "b", "c"}}}
		if def != "" {
			s.Default = mcp.RawValue(def)
		}
		return s
	}
	one := mcp.PrimitiveSchema{Type: "string", Enum: []string{"x, y", " z"}}
	two := one
	two.Default = mcp.RawValue(`" z"`)
	q.Form.RequestedSchema = &mcp.ElicitSchema{Properties: mcp.Properties{
		{Name: "some", Schema: several("")},
		{Name: "kept", Schema: several(`["c","a"]`)},
		{Name: "one", Schema: one},
		{Name: "two", Schema: two},
		{Name: "yes", Schema: mcp.PrimitiveSchema{Type: "boolean", Default: mcp.RawValue("true")}},
		{Name: "maybe", Schema: mcp.PrimitiveSchema{Type: "boolean"}},
		{Name: "text", Schema: mcp.PrimitiveSchema{Type: "string", Default: mcp.RawValue(`"as it was"`)}},
	}}
	return q
}

func values(pairs ...string) map[string]mcp.RawValue {
	m := make(map[string]mcp.RawValue)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = mcp.RawValue(pairs[i+1])
	}
	return m
}

// Options are chosen with the arrow keys and space; what is not touched is the default, or is
// left out.
func TestFields(t *testing.T) {
	t.Parallel()
	send := ks("tab enter y")
	for name, test := range map[string]struct {
		keys []string
		want map[string]mcp.RawValue
	}{
		"untouched": {
			keys(ks("y tab tab tab tab tab tab"), send),
			values("kept", `["a","c"]`, "two", `" z"`, "yes", "true", "text", `"as it was"`),
		},
		"chosen": {
			keys(ks("y down space down space tab space tab space tab space tab down space tab down space tab"), chars("new"), send),
			values("some", `["b","c"]`, "kept", `["c"]`, "one", `"x, y"`, "two", `"x, y"`, "yes", "false", "maybe", "false", "text", `"new"`),
		},
		"by letters": {
			keys(ks("y n y b c tab y n tab n tab y tab n tab y tab"), send),
			values("kept", `["a","c"]`, "two", `" z"`, "yes", "false", "maybe", "true", "text", `"as it was"`),
		},
		"taken back": {
			keys(ks("y space space tab space down down space tab space space tab down space tab space tab tab"), send),
			values("kept", "[]", "text", `"as it was"`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wants(t, sit(t, fieldsQuestion()).press(test.keys...), host.Answer{Action: host.Approve, Values: test.want})
		})
	}
	t.Run("too many", func(t *testing.T) {
		t.Parallel()
		p := sit(t, fieldsQuestion())
		p.press(ks("y space down space down space tab")...)
		if shown := p.look(); !strings.Contains(shown, "Wrong: please choose at most 2") {
			t.Errorf("it shows:\n%s", shown)
		}
	})
}

// A form without fields goes to its review at once, and one with wrong fields back to them.
func TestNoFields(t *testing.T) {
	t.Parallel()
	q := formQuestion()
	q.Form.RequestedSchema = nil
	want := lineAnswer(t, q, []string{"y", "y"})
	wants(t, sit(t, q).press("y", "y"), want)
}

// The differences to the last call are told in words where there are none.
func TestDifference(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		last string
		want []string
	}{
		"none":    {"", []string{"This tool was not called before in this session"}},
		"same":    {string(callQuestion().Arguments), []string{"The arguments are the same as those of the last call"}},
		"order":   {`{"text":"Dear Bob,\n\nthank you.\n","path":"/home/ada/notes.txt","token":"ghp_0123","options":{"tags":["a","b"],"mode":420}}`, []string{"The arguments are the same"}},
		"changed": {`{"path":"/home/ada/notes.txt","token":"ghp_0123"}`, []string{"text is new", "+ Dear Bob,", "options is new"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sit(t, callQuestion(), func(o *panel.Options) { o.Last = mcp.RawValue(test.last) })
			if test.last == "" {
				p = sit(t, callQuestion())
			}
			p.press("d")
			for _, want := range test.want {
				if shown := p.look(); !strings.Contains(shown, want) {
					t.Errorf("%q is not in:\n%s", want, shown)
				}
			}
			p.press("d")
			if shown := p.look(); !strings.Contains(shown, `path: "/home/ada/notes.txt"`) {
				t.Errorf("the question is not back:\n%s", shown)
			}
		})
	}
}

// After a change of the width, the middle shows about what it showed before.
func TestResize(t *testing.T) {
	t.Parallel()
	p := sit(t, long(t)["lines"])
	p.press("f", "t")
	for range 100 {
		p.press("pgdown")
	}
	if shown := p.look(); !strings.Contains(shown, "line 19") {
		t.Fatalf("it shows:\n%s", shown)
	}
	p.width, p.high = 33, 12
	if shown := p.look(); !strings.Contains(shown, "line 19") && !strings.Contains(shown, "line 18") {
		t.Errorf("it shows:\n%s", shown)
	}
}
