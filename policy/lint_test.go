package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

func TestLint(t *testing.T) {
	t.Parallel()
	const never, unjudged, overruled, redundant = " never matches", " matches only what cannot be judged", " is overruled by ", " is redundant by "
	for _, test := range []struct {
		name  string
		rules []string
		want  []string // line, problem and the other line
	}{
		{"nothing", []string{"allow a/*", "ask a/b", "deny a/b*c", "allow b/*", "deny prompt:a/*"}, nil},
		{"duplicate", []string{"allow a/b", "allow a/b"}, []string{"2" + redundant + "1"}},
		{"same effect, wider later", []string{"allow a/b", "allow a/*"}, []string{"1" + redundant + "2"}},
		{"same language", []string{"allow a/?*", "allow a/*?"}, []string{"2" + redundant + "1"}},
		{"stronger", []string{"allow a/b", "deny */b"}, []string{"1" + overruled + "2"}},
		{"stronger, exact names", []string{"allow a/b", "approve a/b"}, []string{"1" + overruled + "2"}},
		{"strongest of all", []string{"allow a/b", "ask a/*", "deny a/*", "allow a/*"}, []string{"1" + overruled + "3", "2" + overruled + "3", "4" + overruled + "3"}},
		{"weaker", []string{"deny a/b", "allow a/*"}, nil},
		{"other kind", []string{"allow a/b", "deny prompt:a/*"}, nil},
		{"chain", []string{"allow a/b?", "allow a/b*", "allow a/*"}, []string{"1" + redundant + "2", "2" + redundant + "3"}},
		{
			"conditions",
			[]string{
				`{"effect":"allow","server":"a","where":{"/p":{"inside":"/srv"}}}`,
				`{"effect":"deny","server":"a","where":{"/p":{"inside":"/srv"}}}`,
				`{"effect":"allow","server":"a","where":{"/p":{"inside":"/srv/x"}}}`,
				`{"effect":"allow","server":"a","where":{"/p":{"inside":"/srv"},"/q":{"equals":1}},"groups":"g"}`,
			},
			[]string{"1" + overruled + "2", "4" + overruled + "2"},
		},
		{
			"numbers that differ beyond doubles",
			[]string{`{"effect":"allow","where":{"/p":{"equals":0.1}}}`, `{"effect":"allow","where":{"/p":{"equals":0.10000000000000000001}}}`},
			nil,
		},
		{
			"callers",
			[]string{
				`{"effect":"deny","groups":["a*","b"]}`, `{"effect":"allow","groups":["ab","b"]}`, `{"effect":"allow","groups":["ab","c"]}`,
				`{"effect":"allow"}`, `{"effect":"allow","subjects":"b"}`, `{"effect":"ask","groups":"ax","views":"v"}`,
			},
			[]string{"2" + overruled + "1", "3" + redundant + "4", "5" + redundant + "4", "6" + overruled + "1"},
		},
		{
			"labels and hints",
			[]string{
				`{"effect":"deny","labels":"private-data"}`, `{"effect":"allow","labels":["can-send-out","private-data"]}`,
				`{"effect":"ask","hints":"not-destructive","name":"x"}`, `{"effect":"allow","hints":"read-only","name":"x"}`,
				`{"effect":"allow","hints":"idempotent","name":"x"}`, `{"effect":"allow","labels":"can-send-out"}`,
			},
			[]string{"2" + overruled + "1", "4" + overruled + "3"},
		},
		{
			"times",
			[]string{
				`{"effect":"deny","until":"2030-01-01T00:00:00Z"}`,
				`{"effect":"allow","until":"2029-01-01T00:00:00Z"}`,
				`{"effect":"allow","until":"2031-01-01T00:00:00Z"}`,
				`{"effect":"allow","from":"2020-01-01T00:00:00Z"}`,
				`{"effect":"ask","from":"2030-01-01T00:00:00Z","until":"2029-01-01T00:00:00Z"}`,
			},
			[]string{"2" + overruled + "1", "5" + never},
		},
		{
			"reasons",
			[]string{
				`{"effect":"deny","name":"a","reason":"because"}`, `{"effect":"deny"}`, `{"effect":"deny","name":"b","reason":"so"}`,
			},
			[]string{"3" + redundant + "2"},
		},
		{
			"contradictions",
			[]string{
				`{"effect":"allow","where":{"/a":[{"equals":"x"},{"equals":"y"}]}}`,
				`{"effect":"deny","where":{"/a":[{"equals":["x","y"]},{"equals":["z"]}]}}`,
				`{"effect":"allow","where":{"/a":{"min":2,"max":1}}}`,
				`{"effect":"ask","where":{"/a":[{"min":2},{"max":1.5}]}}`,
				`{"effect":"allow","where":{"/a":{"equals":"x","glob":"y*"}}}`,
				`{"effect":"allow","where":{"/a":{"equals":[1,"/b"],"inside":"/a"}}}`,
				`{"effect":"allow","where":{"/a":{"glob":"*","min":1}}}`,
				`{"effect":"allow","where":{"/a/*":[{"equals":"x"},{"equals":"y"}]}}`,
				`{"effect":"allow","where":{"":[{"equals":{"x":1}},{"equals":{"x":2}}]}}`,
			},
			[]string{"1" + never, "2" + unjudged, "3" + never, "4" + unjudged, "5" + never, "6" + never, "7" + never, "8" + never, "9" + never},
		},
		{
			"no contradictions",
			[]string{
				`{"effect":"allow","where":{"/a":[{"equals":["x","y"]},{"equals":["y","z"]}]}}`,
				`{"effect":"allow","name":"a","where":{"/a":[{"min":1},{"max":1}]}}`,
				`{"effect":"deny","name":"b","where":{"/a/*":[{"equals":"x"},{"equals":"y"}]}}`,
				`{"effect":"deny","name":"c","where":{"/a":{"glob":"*","min":1}}}`,
				`{"effect":"allow","name":"d","where":{"/a":{"equals":"b","inside":"/a"}}}`,
				`{"effect":"allow","name":"e","where":{"/a":{"equals":"/data/x","inside":["C:/data","/srv"]}}}`,
				`{"effect":"allow","name":"f","where":{"/a":{"equals":"x"},"/b":{"equals":"y"}}}`,
				`{"effect":"deny","name":"g","where":{"/a":[{"equals":"x"},{"equals":1}]}}`,
			},
			nil,
		},
	} {
		var got []string
		for _, f := range newPolicy(t, test.rules...).Lint() {
			line := string(rune('0'+f.Rule.Source.Line)) + " " + f.Problem.String()
			if f.Other != nil {
				line += " by " + string(rune('0'+f.Other.Source.Line))
			}
			if (f.Other == nil) != (f.Detail != "") {
				t.Errorf("%s: neither a rule nor a detail, or both: %s", test.name, f)
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestFindingString(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, "allow a/b", "deny a/*", "deny a/c", `{"effect":"ask","where":{"/n":{"min":2,"max":1}}}`)
	var got []string
	for _, f := range p.Lint() {
		got = append(got, f.String())
	}
	want := []string{
		"allow a/b, from test:1: is overruled by deny a/*, from test:2",
		"deny a/c, from test:3: is redundant with deny a/*, from test:2",
		"ask */* where /n from 2 to 1, from test:4: matches only what cannot be judged: no number is from 2 to 1 at /n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	p := newPolicy(t,
		"allow files/*",
		"ask files/write_*",
		`{"effect":"deny","server":"files","where":{"/path":{"inside":"/etc"}}}`,
		`{"effect":"deny","server":"files","where":{"/mode":{"equals":"w"}}}`,
		"deny db/*",
		"deny files/delete_*",
		`{"effect":"deny","groups":"guests"}`,
		`{"effect":"allow","hints":"read-only"}`,
		`{"effect":"deny","labels":["private-data","untrusted-input"]}`,
		`{"effect":"ask","until":"2020-01-01T00:00:00Z"}`,
		`{"effect":"allow","where":{"/mode":{"equals":"w"},"/path":{"inside":"/srv"}}}`,
		`{"effect":"deny","where":{"/size":{"max":5}}}`,
		"deny prompt:*",
	)
	q := call("files/write_file", `{"path":"notes.md","mode":"w"}`)
	q.Labels = []policy.Label{policy.LabelPrivate}
	q.Time = hours[3]
	x := p.Explain(q)
	var got []string
	for _, c := range x.Considered {
		got = append(got, strings.TrimSuffix(c.Result.String()+": "+c.Detail, ": "))
	}
	const why = "argument /path could not be judged: the path is relative, and the folder that it begins at is unknown"
	want := []string{
		"overruled by a stronger rule",
		"overruled by a stronger rule",
		"decided: " + why,
		"matched",
		"another server",
		"another name",
		"another caller: groups",
		"hint does not hold: read-only",
		"label is missing: untrusted-input",
		"not at this time",
		"argument could not be judged: " + why,
		"argument does not match: argument /size",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, want := x.Verdict.Why(), "rule: deny files/* where /path inside /etc, from test:3; "+why; got != want {
		t.Errorf("why: %s, want %s", got, want)
	}
	q.Arguments = mcp.RawValue(`{`)
	if got, want := p.Decide(q).Unjudged, "argument /path could not be judged: the arguments are no valid JSON object"; got != want {
		t.Errorf("unjudged: %s, want %s", got, want)
	}
}

// What strangers wrote into a rule moves no cursor and starts no line.
func TestStringIsOneLine(t *testing.T) {
	t.Parallel()
	r := policy.Rule{
		Effect: policy.Deny, Server: "a\nb", Name: "\x1b[31m", Groups: []string{"a, b", "\u202ec"}, Source: policy.Source{File: "f\r", Line: 2},
		Where: []policy.Predicate{
			{Pointer: "/a b", Op: policy.OpGlob, Globs: []string{""}},
			{Pointer: "", Op: policy.OpEquals, Values: []mcp.RawValue{mcp.RawValue("{\n\"a\": \"\u202e\"}")}},
		},
	}
	const want = `deny "a\nb"/"\x1b[31m" where "/a b" like "" and "" is {"a":"\u202e"}, groups "a, b" or "\u202ec", from "f\r:2"`
	if diff := cmp.Diff(want, r.String()); diff != "" {
		t.Error(diff)
	}
}
