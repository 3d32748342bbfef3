package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestLeaveOut(t *testing.T) {
	const newest = "2026-07-28"
	whole := scenario{leg: legNew, revision: newest, name: "tools-call"}
	part := scenario{leg: legNew, revision: newest, name: "stateless"}
	both := scenario{leg: legNew, revision: "2025-11-25", name: "tools-call"}
	for name, test := range map[string]struct {
		text   string
		change func(map[scenario]*result)
		want   string // of the error; empty for none
	}{
		"as it should be": {"* tools-call calls a tool\n" + newest + " stateless/A no tool", nil, ""},
		"a scenario that passes": {"* tools-call calls a tool", func(got map[scenario]*result) {
			got[both] = &result{counts: counts{success: 2}}
		}, "new 2025-11-25 tools-call is left out, and gives what it must"},
		"one that checks nothing": {"* tools-call calls a tool", func(got map[scenario]*result) { got[both] = &result{} }, ""},
		"one that passes for a wrong reason": {"* tools-call vacuous: calls a tool", func(got map[scenario]*result) {
			got[both] = &result{counts: counts{success: 2}}
		}, ""},
		"a check that does not fail":         {newest + " stateless/C no tool", nil, "the check C is left out, and did not fail"},
		"a check of what did not report":     {newest + " stateless/A no tool", func(got map[scenario]*result) { delete(got, part) }, "the check A is left out"},
		"a scenario that is not listed":      {"* prompts no prompt", nil, "prompts of * is left out, and the suite does not list it"},
		"one that another revision has":      {"2025-11-25 stateless/A no tool", nil, "stateless of 2025-11-25 is left out, and the suite does not list it"},
		"a scenario without a reason":        {"* tools-call", nil, "want revision, scenario, reason"},
		"a revision without a set":           {"2024-11-05 tools-call calls a tool", nil, "the revision is * or one of"},
		"a comment, which says nothing here": {"# * tools-call", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[scenario]*result{
				whole: {counts: counts{success: 1, failure: 1}, names: []string{"X"}, complaints: []string{"failed: X: no tool"}},
				both:  {counts: counts{success: 1, failure: 1}, names: []string{"X"}, complaints: []string{"failed: X: no tool"}},
				part: {
					counts: counts{success: 3, failure: 1, warning: 1}, names: []string{"B", "A"},
					complaints: []string{"warned: B: no tool", "failed: A: no tool"},
				},
			}
			if test.change != nil {
				test.change(got)
			}
			list, err := parseLeavings(strings.NewReader(test.text))
			var rest []scenario
			if err == nil {
				rest, err = leaveOut(list, []scenario{whole, part, both}, got)
			}
			switch {
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %s", err, test.want)
			case test.want == "" && err != nil:
				t.Error(err)
			case name == "as it should be":
				if len(rest) != 1 || rest[0] != part || got[part].failure != 0 || got[part].warning != 1 || len(got[part].complaints) != 1 {
					t.Errorf("there remain %v, %+v", rest, got[part])
				}
			}
		})
	}
}

// Nothing is both expected and left out.
func TestLeftOutFile(t *testing.T) {
	text, err := os.ReadFile("../" + leftOutFile)
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseLeavings(bytes.NewReader(text))
	if err != nil || len(list) == 0 {
		t.Fatalf("%d lines, %v", len(list), err)
	}
	expected, err := readTable("../expected-new.txt")
	if err != nil || len(expected) == 0 {
		t.Fatalf("%d lines, %v", len(expected), err)
	}
	for sc := range expected {
		for i := range list {
			if list[i].check == "" && list[i].of(sc) {
				t.Errorf("%s is expected, and left out: %s", sc, list[i].reason)
			}
		}
	}
}
