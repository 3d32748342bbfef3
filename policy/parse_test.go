package policy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

const everyMember = `{"effect":"deny","kind":"tool","server":"files","name":"write_*",` +
	`"where":{"/path":{"inside":["/etc","/usr"]},"/mode":{"equals":["w",{"b":[1]}]},"/url":{"host":"*.example.com"},` +
	`"/n":{"min":1,"max":10},"/to":[{"glob":["*@example.com"],"equals":5},{"glob":"a*"}]},` +
	`"hints":"read-only","subjects":["ada"],"issuers":["https://id.example"],"groups":["staff"],"clients":["editor"],` +
	`"views":["public"],"labels":["untrusted-input"],"from":"2030-01-01T00:00:00Z","until":"2031-01-01T00:00:00+02:00",` +
	`"reason":"Ask an administrator."}`

func TestParseRule(t *testing.T) {
	t.Parallel()
	src := policy.Source{File: "rules.json", Line: 7, Text: "the rule"}
	got, err := policy.ParseRule(mcp.RawValue(everyMember), src)
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Rule{
		Effect: policy.Deny, Kind: policy.KindTool, Server: "files", Name: "write_*",
		Where: []policy.Predicate{
			{Pointer: "/path", Op: policy.OpInside, Dirs: []string{"/etc", "/usr"}},
			{Pointer: "/mode", Op: policy.OpEquals, Values: []mcp.RawValue{mcp.RawValue(`"w"`), mcp.RawValue(`{"b":[1]}`)}},
			{Pointer: "/url", Op: policy.OpHost, Hosts: []string{"*.example.com"}},
			{Pointer: "/n", Op: policy.OpRange, Min: mcp.RawValue("1"), Max: mcp.RawValue("10")},
			{Pointer: "/to", Op: policy.OpGlob, Globs: []string{"*@example.com"}},
			{Pointer: "/to", Op: policy.OpEquals, Values: []mcp.RawValue{mcp.RawValue("5")}},
			{Pointer: "/to", Op: policy.OpGlob, Globs: []string{"a*"}},
		},
		Hints:    []policy.Hint{policy.HintReadOnly},
		Subjects: []string{"ada"}, Issuers: []string{"https://id.example"}, Groups: []string{"staff"},
		Clients: []string{"editor"}, Views: []string{"public"},
		Labels: []policy.Label{policy.LabelUntrusted},
		From:   time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
		Until:  time.Date(2030, 12, 31, 22, 0, 0, 0, time.UTC),
		Reason: "Ask an administrator.", Source: src,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	const line = `deny files/write_* where /path inside /etc or /usr and /mode is "w" or {"b":[1]} and ` +
		`/url on host *.example.com and /n from 1 to 10 and /to like *@example.com and /to is 5 and /to like a*, ` +
		`if read-only, subjects ada, issuers https://id.example, groups staff, clients editor, views public, ` +
		`with untrusted-input, since 2030-01-01T00:00:00Z, until 2031-01-01T00:00:00+02:00, from rules.json:7`
	if diff := cmp.Diff(line, got.String()); diff != "" {
		t.Error(diff)
	}
}

// What a rule is written as is read as the same rule.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		everyMember, `{"effect":"ask"}`, `{"effect":"allow","kind":"skill","name":"a?"}`, `{"effect":"approve","where":{"":{"equals":{}}}}`,
		`{"effect":"allow","where":{"/a":[{"min":1},{"max":2},{"equals":[[1],null]}]}}`,
		`{"effect":"allow","where":{"/ä~1~0\"":{"max":-1.50e3}},"from":"2030-01-01T00:00:00.123456789+05:30"}`,
	} {
		first, err := policy.ParseRule(mcp.RawValue(text), policy.Source{})
		if err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		var second policy.Rule
		if err := json.Unmarshal(written, &second); err != nil {
			t.Errorf("%s: %v", written, err)
		}
		// The order of predicates on different arguments may change.
		again, err := second.AppendJSON([]byte("x"))
		if err != nil || string(again) != "x"+string(written) {
			t.Errorf("%s is read and written as %s (%v)", written, again, err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	dst, err := (&policy.Rule{Kind: "none"}).AppendJSON([]byte("x"))
	if err == nil || string(dst) != "x" {
		t.Errorf("a rule that is not valid is written as %s", dst)
	}
}

// The errors say what is wrong and what to do.
func TestParseRuleErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                     `unexpected end`,
		`[]`:                                   `expected an object`,
		`{}`:                                   `the member "effect" is missing; write ask, allow, approve or deny`,
		`{"effect":"deny","effect":"ask"}`:     `effect`,
		`{"effect":"denny"}`:                   `effect: no such effect: "denny"; did you mean "deny"?`,
		`{"effect":"block"}`:                   `write ask, allow, approve or deny`,
		`{"effect":null}`:                      `expected string, got null`,
		`{"effect":"deny","servr":"a"}`:        `no such member: "servr"; did you mean "server"?`,
		`{"effect":"deny","Server":"a"}`:       `did you mean "server"?`,
		`{"effect":"deny","tool":"a"}`:         `no such member: "tool"; write effect, kind, server,`,
		`{"effect":"deny","sever":null}`:       `did you mean "server"?`,
		`{"effect":"deny","server":""}`:        `server: the text is empty; leave the member out`,
		`{"effect":"deny","server":["a"]}`:     `server: expected string, got array`,
		`{"effect":"deny","kind":"tools"}`:     `no such kind: "tools"; did you mean "tool"?`,
		`{"effect":"deny","kind":"elicit"}`:    `no such kind: "elicit"; did you mean "elicitation"?`,
		`{"effect":"deny","subjects":[]}`:      `subjects: the list is empty`,
		`{"effect":"deny","subjects":[""]}`:    `subjects: an empty pattern matches nothing`,
		`{"effect":"deny","subjects":[1]}`:     `subjects: expected string, got number`,
		`{"effect":"deny","hints":"readonly"}`: `no such hint: "readonly"; did you mean "read-only"?`,
		`{"effect":"deny","kind":"prompt","hints":"read-only"}`:               `only tools have annotations`,
		`{"effect":"deny","labels":"untrusted"}`:                              `no such label: "untrusted"; did you mean "untrusted-input"?`,
		`{"effect":"deny","labels":"secret"}`:                                 `no such label: "secret"; write untrusted-input, private-data, can-send-out or runs-code`,
		`{"effect":"deny","from":"tomorrow"}`:                                 `from: "tomorrow" is no time; write one such as`,
		`{"effect":"deny","until":"0001-01-01T00:00:00Z"}`:                    `is no time`,
		`{"effect":"deny","where":[]}`:                                        `where: expected an object`,
		`{"effect":"deny","where":{}}`:                                        `where: the object is empty`,
		`{"effect":"deny","where":{"path":{"glob":"a"}}}`:                     `begin it with a slash: "/path"`,
		`{"effect":"deny","where":{"/a~2":{"glob":"a"}}}`:                     `write '~' in a name as '~0'`,
		`{"effect":"deny","where":{"/a":"b"}}`:                                `expected an object`,
		`{"effect":"deny","where":{"/a":[]}}`:                                 `the list is empty`,
		`{"effect":"deny","where":{"/a":{}}}`:                                 `the object is empty; write equals, glob, inside, host, min or max`,
		`{"effect":"deny","where":{"/a":{"equal":1}}}`:                        `no such member: "equal"; did you mean "equals"?`,
		`{"effect":"deny","where":{"/a":{"equals":[]}}}`:                      `the list is empty`,
		`{"effect":"deny","where":{"/a":{"glob":1}}}`:                         `glob: expected string, got number`,
		`{"effect":"deny","where":{"/a":{"min":"1"}}}`:                        `min: it is no JSON number`,
		`{"effect":"deny","where":{"/a":{"max":null}}}`:                       `max: it is no JSON number`,
		`{"effect":"deny","where":{"/a":{"inside":"etc"}}}`:                   `"etc" is no absolute path`,
		`{"effect":"deny","where":{"/a":{"inside":"~/x"}}}`:                   `is no absolute path`,
		`{"effect":"deny","where":{"/a":{"inside":"/../x"}}}`:                 `is no absolute path`,
		`{"effect":"deny","where":{"/a":{"host":"https://example.com"}}}`:     `"https://example.com" is no host`,
		`{"effect":"deny","where":{"/a":{"host":"example.com/x"}}}`:           `is no host`,
		`{"effect":"deny","where":{"/a":{"host":"a.*.com"}}}`:                 `is no host`,
		`{"effect":"deny","where":{"/a":{"host":"bücher.example"}}}`:          `xn--`,
		`{"effect":"deny","where":{"/a":{"host":"::1"}}}`:                     `is no host`,
		`{"effect":"deny","where":{"/a":{"host":"*.127.0.0.1"}}}`:             `is no host`,
		`{"effect":"deny","where":{"/a":{"host":"example.com:"}}}`:            `is no host`,
		`{"effect":"deny","where":{"/a":{"host":"example.com:0"}}}`:           `port 0`,
		`{"effect":"deny","where":{"/a":{"host":""}}}`:                        `is no host`,
		`{"effect":"deny","name":"` + strings.Repeat("a", 5000) + `"}`:        `write one with at most 4096`,
		`{"effect":"deny","where":{"/a":{"equals":` + nested(70) + `}}}`:      `deep`,
		`{"effect":"deny","where":{"/a":{"glob":["a","` + "\xff" + `"]}}}`:    `UTF-8`,
		`{"effect":"deny","where":{"/a":{"glob":"a"},"/\u0061":{"min":"a"}}}`: `duplicate`,
	} {
		r, err := policy.ParseRule(mcp.RawValue(text), policy.Source{File: "f.json", Line: 3})
		if err == nil {
			t.Errorf("%s is the rule %v", text, &r)
			continue
		}
		if got := err.Error(); !strings.Contains(got, want) || !strings.HasPrefix(got, "f.json:3: ") {
			t.Errorf("%.100s: the error is %q, want %q", text, got, want)
		}
	}
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestParsePattern(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]policy.Rule{
		"*":                          {Kind: "tool", Server: "*", Name: "*"},
		"a/b":                        {Kind: "tool", Server: "a", Name: "b"},
		"a/b/c":                      {Kind: "tool", Server: "a", Name: "b/c"},
		"tool:a/*":                   {Kind: "tool", Server: "a", Name: "*"},
		"*/b?":                       {Kind: "tool", Server: "*", Name: "b?"},
		"elicitation:*":              {Kind: "elicitation", Server: "*", Name: "*"},
		"sampling:a/x":               {Kind: "sampling", Server: "a", Name: "x"},
		"resource:a/file:///x":       {Kind: "resource", Server: "a", Name: "file:///x"},
		"a/file:x":                   {Kind: "tool", Server: "a", Name: "file:x"},
		"mcp__a":                     {Kind: "tool", Server: "a", Name: "*"},
		"mcp__a__*":                  {Kind: "tool", Server: "a", Name: "*"},
		"mcp__a__b":                  {Kind: "tool", Server: "a", Name: "b"},
		"mcp__a__b__c":               {Kind: "tool", Server: "a", Name: "b__c"},
		"mcp__plugin_p_s__read_*":    {Kind: "tool", Server: "plugin_p_s", Name: "read_*"},
		policy.Quote("*") + "/[*]?*": {Kind: "tool", Server: "[*]", Name: "[*]?*"},
	} {
		want.Effect, want.Source = policy.Allow, policy.Source{File: "--allow"}
		got, err := policy.ParsePattern(policy.Allow, pattern, want.Source)
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", pattern, diff)
		}
	}
	for pattern, want := range map[string]string{
		"": "no server and name", "a": "no server and name", "a/": "no server and name", "/b": "no server and name",
		"a*": "no server and name", "tool:": "no server and name", "tool:a": "no server and name",
		"what:a/b": "no such kind", "tols:a/b": `did you mean "tool"?`, "elicit:*": "no such kind",
		"mcp__": "name of the server is missing", "mcp____b": "name of the server is missing", "mcp__a__": `write "mcp__a" for all`,
		"mcp__a__b(x)": "parentheses", "mcp__a(x)": "parentheses", "a/\xff": "UTF-8",
		"mcp__*": "Claude Code ignores", "mcp__*__b": "Claude Code ignores",
	} {
		r, err := policy.ParsePattern(policy.Allow, pattern, policy.Source{File: "--allow"})
		if err == nil {
			t.Errorf("%q is the rule %v", pattern, &r)
		} else if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--allow: ") {
			t.Errorf("%q: the error is %q, want %q", pattern, err, want)
		}
	}
	for _, pattern := range []string{"mcp__*", "mcp__*__delete*"} {
		if _, err := policy.ParsePattern(policy.Deny, pattern, policy.Source{}); err != nil {
			t.Error(err)
		}
	}
}

// New checks what the fields of a rule can say and JSON cannot, and names every bad rule.
func TestNewErrors(t *testing.T) {
	t.Parallel()
	where := func(p policy.Predicate) policy.Rule { return policy.Rule{Where: []policy.Predicate{p}} }
	for want, r := range map[string]policy.Rule{
		"no such effect":           {Effect: 9},
		"no such kind":             {Kind: "x"},
		"no such operation":        where(policy.Predicate{}),
		"no such operation; use":   where(policy.Predicate{Op: 99}),
		"equals has nothing":       where(policy.Predicate{Op: policy.OpEquals}),
		"range has nothing":        where(policy.Predicate{Op: policy.OpRange}),
		"glob and inside":          where(policy.Predicate{Op: policy.OpGlob, Globs: []string{"a"}, Dirs: []string{"/"}}),
		"a value is no JSON":       where(policy.Predicate{Op: policy.OpEquals, Values: []mcp.RawValue{mcp.RawValue("{")}}),
		"min: it is no JSON":       where(policy.Predicate{Op: policy.OpRange, Min: mcp.RawValue("")}),
		"reason":                   {Reason: "\xff"},
		"server: a pattern":        {Server: "\xff"},
		"from and until":           {Until: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"groups: an empty pattern": {Groups: []string{"a", ""}},
	} {
		_, err := policy.New([]policy.Rule{{}, r})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "rule 2: ") {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	_, err := policy.New([]policy.Rule{{Kind: "a", Source: policy.Source{File: "f", Line: 1}}, {Kind: "b", Source: policy.Source{File: "g"}}})
	if err == nil || !strings.HasPrefix(err.Error(), "f:1: ") || !strings.Contains(err.Error(), "\ng: ") {
		t.Errorf("the error is %v", err)
	}
}

// A policy shares nothing with what it is made of, and what it returns.
func TestCopies(t *testing.T) {
	t.Parallel()
	given := rules(t, `{"effect":"deny","server":"s","where":{"/a":{"equals":"x"},"/b":{"glob":"x"}},"groups":"g","labels":"private-data","hints":"read-only"}`)
	p, err := policy.New(given)
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(r []policy.Rule) {
		r[0].Effect, r[0].Groups[0], r[0].Where[1].Globs[0] = policy.Allow, "y", "y"
		copy(r[0].Where[0].Values[0], `"y"`)
		r[0].Where[0].Op, r[0].Labels[0], r[0].Hints[0] = 0, policy.LabelSends, policy.HintIdempotent
	}
	spoil(given)
	spoil(p.Rules())
	q := call("s/t", `{"a":"x","b":"x"}`)
	yes := true
	q.Groups, q.Labels = []string{"g"}, []policy.Label{policy.LabelPrivate}
	q.Trusted, q.Annotations = true, &mcp.ToolAnnotations{ReadOnlyHint: &yes}
	if v := p.Decide(q); v.Effect != policy.Deny {
		t.Errorf("the effect is %v", v.Effect)
	}
}

func TestEffectText(t *testing.T) {
	t.Parallel()
	for _, e := range []policy.Effect{policy.Ask, policy.Allow, policy.Approve, policy.Deny} {
		text, err := e.MarshalText()
		var back policy.Effect
		if err != nil || back.UnmarshalText(text) != nil || back != e || string(text) != e.String() {
			t.Errorf("%v is written as %s and read as %v (%v)", e, text, back, err)
		}
	}
	if _, err := policy.Effect(4).MarshalText(); err == nil || policy.Effect(4).String() != "Effect(4)" {
		t.Errorf("effect 4 is %v (%v)", policy.Effect(4), err)
	}
	var e policy.Effect
	if err := e.UnmarshalText(nil); err == nil {
		t.Error("an empty text is an effect")
	}
}
