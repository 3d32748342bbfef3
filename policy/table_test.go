package policy_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/principal"
)

// rules makes rules of lines: a JSON object, or an effect and a pattern.
func rules(t testing.TB, lines ...string) []policy.Rule {
	t.Helper()
	var all []policy.Rule
	for i, line := range lines {
		src := policy.Source{File: "test", Line: i + 1, Text: line}
		var r policy.Rule
		var err error
		if strings.HasPrefix(line, "{") {
			r, err = policy.ParseRule(mcp.RawValue(line), src)
		} else {
			effect, pattern, _ := strings.Cut(line, " ")
			var e policy.Effect
			if err = e.UnmarshalText([]byte(effect)); err == nil {
				r, err = policy.ParsePattern(e, pattern, src)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func newPolicy(t testing.TB, lines ...string) *policy.Policy {
	t.Helper()
	p, err := policy.New(rules(t, lines...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// call is the query of a tool "server/name".
func call(tool, arguments string) *policy.Query {
	server, name, _ := strings.Cut(tool, "/")
	return &policy.Query{Server: server, Name: name, Arguments: mcp.RawValue(arguments)}
}

const (
	ask     = policy.Ask
	allow   = policy.Allow
	approve = policy.Approve
	deny    = policy.Deny
)

// Proves: SEC-TOOL-2
func TestEffects(t *testing.T) {
	t.Parallel()
	p := newPolicy(t,
		"allow db/*", "ask db/write_*", "approve db/grant*", "deny */drop*", "allow files/read-?",
		"allow sampling:db/*", "deny resource:*/file:*", "allow resource:docs/https://example.com/*",
		"allow mcp__git", "deny mcp__git__push", "ask mcp__git__com*", "approve db/write_all", "deny db/grant_root",
		"allow odd/[*]", "allow odd/a[?]b", "allow odd/é?",
	)
	for _, test := range []struct {
		kind  policy.Kind
		tool  string
		want  policy.Effect
		named int // the line of the rule, 0 for none
	}{
		{"", "db/list", allow, 1},
		{"tool", "db/list", allow, 1},
		{"", "db/write_row", ask, 2},
		{"", "db/write_all", approve, 12},
		{"", "db/grant_read", approve, 3},
		{"", "db/grant_root", deny, 13},
		{"", "db/drop_table", deny, 4},
		{"", "other/drop", deny, 4},
		{"", "other/list", ask, 0},
		{"", "files/read-1", allow, 5},
		{"", "files/read-é", allow, 5},
		{"", "files/read-12", ask, 0},
		{"", "files/read-", ask, 0},
		{"", "files/Read-1", ask, 0},
		{"", "Files/read-1", ask, 0},
		{"sampling", "db/request", allow, 6},
		{"sampling", "files/request", ask, 0},
		{"sampling", "db/drop", allow, 6},
		{"resource", "docs/https://example.com/a/b", allow, 8},
		{"resource", "docs/https://example.org/a", ask, 0},
		{"resource", "docs/file:///etc/passwd", deny, 7},
		{"elicitation", "db/form", ask, 0},
		{"prompt", "db/list", ask, 0},
		{"unknown", "db/list", ask, 0},
		{"", "git/status", allow, 9},
		{"", "git/push", deny, 10},
		{"", "git/commit", ask, 11},
		{"", "odd/*", allow, 14},
		{"", "odd/x", ask, 0},
		{"", "odd/a?b", allow, 15},
		{"", "odd/axb", ask, 0},
		{"", "odd/éé", allow, 16},
		{"", "odd/é", ask, 0},
	} {
		q := call(test.tool, "")
		q.Kind = test.kind
		v := p.Decide(q)
		line := 0
		if v.Rule != nil {
			line = v.Rule.Source.Line
		}
		if v.Effect != test.want || line != test.named {
			t.Errorf("%s %s: %v by rule %d, want %v by %d", test.kind, test.tool, v.Effect, line, test.want, test.named)
		}
	}
	var none *policy.Policy
	if v := none.Decide(call("a/b", "")); v.Effect != ask || v.Why() != "no rule matches" {
		t.Errorf("no policy: %v because %s", v.Effect, v.Why())
	}
	if none.Hides(call("a/b", "")) || none.Lint() != nil || none.Rules() != nil || none.Explain(call("a/b", "")).Considered != nil {
		t.Error("no policy has rules")
	}
}

// argumentRows are predicates and arguments, with what becomes of a rule that allows and of one that
// denies.
var argumentRows = []struct {
	where, arguments string
	allows, denies   match
}{
	// Absent, fulfilled, not fulfilled, not judged.
	{`"/a":{"equals":"x"}`, `{}`, misses, misses},
	{`"/a":{"equals":"x"}`, ``, misses, misses},
	{`"/a":{"equals":"x"}`, `null`, misses, misses},
	{`"/a":{"equals":"x"}`, `{"a":"x"}`, matches, matches},
	{`"/a":{"equals":"x"}`, `{"a":"\u0078"}`, matches, matches},
	{`"/a":{"equals":"x"}`, `{"a":"y"}`, misses, misses},
	{`"/a":{"equals":"x"}`, `{"a":1}`, misses, unjudged},
	{`"/a":{"equals":"x"}`, `{"a":null}`, misses, unjudged},
	{`"/a":{"equals":"x"}`, `{"a":["x"]}`, misses, unjudged},
	{`"/a":{"equals":"x"}`, `{"a":"x","a":"y"}`, misses, unjudged},
	{`"/a":{"equals":"x"}`, `{"a":"y","b":{"c":1,"c":1}}`, misses, unjudged},
	{`"/a":{"equals":"x"}`, `{"a":`, misses, unjudged},
	{`"/a":{"equals":"x"}`, `["x"]`, misses, unjudged},
	{`"/a":{"equals":"x"}`, "{\"a\":\"\xff\"}", misses, unjudged},
	{`"/a":{"equals":"x"}`, `{"a":"y","A":"x"}`, misses, unjudged},
	{`"/a":{"equals":"x"}`, `{"a":"x","A":"y"}`, misses, matches},
	{`"/a":{"equals":"x"}`, `{"\u0041":"x"}`, misses, unjudged},
	{`"/a":{"equals":["x","y"]}`, `{"a":"y"}`, matches, matches},
	{`"/a":{"equals":[1]}`, `{"a":1.0e0}`, matches, matches},
	{`"/a":{"equals":[1]}`, `{"a":2}`, misses, misses},
	{`"/a":{"equals":12345678901234567890}`, `{"a":12345678901234567891}`, misses, misses},
	{`"/a":{"equals":true}`, `{"a":true}`, matches, matches},
	{`"/a":{"equals":true}`, `{"a":false}`, misses, misses},
	{`"/a":{"equals":true}`, `{"a":"true"}`, misses, unjudged},
	{`"/a":{"equals":null}`, `{"a":null}`, matches, matches},
	{`"/a":{"equals":[{"b":1,"c":[2]}]}`, `{"a":{"c":[2.0],"b":1}}`, matches, matches},
	{`"/a":{"equals":[{"b":1,"c":[2]}]}`, `{"a":{"b":1}}`, misses, misses},
	{`"/a":{"equals":[[1,2]]}`, `{"a":[1,2]}`, matches, matches},
	{`"/a":{"equals":[[1,2]]}`, `{"a":[2,1]}`, misses, misses},
	{`"":{"equals":{"a":1}}`, `{"a":1}`, matches, matches},
	{`"":{"equals":{"a":1}}`, `{"a":1,"b":2}`, misses, misses},
	{`"":{"equals":{}}`, ``, matches, matches},
	// Ways through the arguments.
	{`"/a/b":{"equals":1}`, `{"a":{"b":1}}`, matches, matches},
	{`"/a/b":{"equals":1}`, `{"a":{"b":2}}`, misses, misses},
	{`"/a/b":{"equals":1}`, `{"a":{}}`, misses, misses},
	{`"/a/b":{"equals":1}`, `{"a":"{\"b\":1}"}`, misses, unjudged},
	{`"/a/b":{"equals":1}`, `{"a":[{"b":1}]}`, misses, unjudged},
	{`"/a/b":{"equals":1}`, `{"a":null}`, misses, unjudged},
	{`"/a/0":{"equals":1}`, `{"a":[1,2]}`, matches, matches},
	{`"/a/1":{"equals":1}`, `{"a":[1,2]}`, misses, misses},
	{`"/a/2":{"equals":1}`, `{"a":[1,2]}`, misses, misses},
	{`"/a/0":{"equals":1}`, `{"a":{"0":1}}`, matches, matches},
	{`"/a/00":{"equals":1}`, `{"a":[1]}`, misses, unjudged},
	{`"/a~1b/m~0n":{"equals":1}`, `{"a/b":{"m~n":1}}`, matches, matches},
	{`"/":{"equals":1}`, `{"":1}`, matches, matches},
	{`"/é":{"equals":1}`, `{"É":1}`, misses, unjudged},
	// Every element.
	{`"/a/*":{"equals":1}`, `{"a":[1,1]}`, matches, matches},
	{`"/a/*":{"equals":1}`, `{"a":[1,2]}`, misses, matches},
	{`"/a/*":{"equals":1}`, `{"a":[2,3]}`, misses, misses},
	{`"/a/*":{"equals":1}`, `{"a":[]}`, misses, misses},
	{`"/a/*":{"equals":1}`, `{"a":{}}`, misses, misses},
	{`"/a/*":{"equals":1}`, `{}`, misses, misses},
	{`"/a/*":{"equals":1}`, `{"a":{"x":1,"y":1}}`, matches, matches},
	{`"/a/*":{"equals":1}`, `{"a":{"x":1,"y":2}}`, misses, matches},
	{`"/a/*":{"equals":1}`, `{"a":1}`, misses, unjudged},
	{`"/a/*":{"equals":1}`, `{"a":[2,"1"]}`, misses, unjudged},
	{`"/a/*":{"equals":1}`, `{"a":[1,"1"]}`, misses, matches},
	{`"/a/*/b":{"equals":1}`, `{"a":[{"b":1},{"b":1}]}`, matches, matches},
	{`"/a/*/b":{"equals":1}`, `{"a":[{"b":1},{}]}`, misses, matches},
	{`"/a/*/b":{"equals":1}`, `{"a":[{"b":2},{}]}`, misses, misses},
	{`"/a/*/b":{"equals":1}`, `{"a":[{"b":2},3]}`, misses, unjudged},
	{`"/*":{"equals":1}`, `{"x":1,"y":1}`, matches, matches},
	{`"/*":{"equals":1}`, ``, misses, misses},
	// Several predicates.
	{`"/a":{"equals":1},"/b":{"equals":2}`, `{"a":1,"b":2}`, matches, matches},
	{`"/a":{"equals":1},"/b":{"equals":2}`, `{"a":1,"b":3}`, misses, misses},
	{`"/a":{"equals":1},"/b":{"equals":2}`, `{"a":"1","b":3}`, misses, misses},
	{`"/a":{"equals":1},"/b":{"equals":2}`, `{"a":"1","b":2}`, misses, unjudged},
	{`"/a":[{"glob":"a*"},{"glob":"*b"}]`, `{"a":"ab"}`, matches, matches},
	{`"/a":[{"glob":"a*"},{"glob":"*b"}]`, `{"a":"ac"}`, misses, misses},
	{`"/a/*":[{"glob":"a*"},{"glob":"*b"}]`, `{"a":["ac","cb"]}`, misses, matches},
	// Globs.
	{`"/a":{"glob":"*@example.com"}`, `{"a":"ada@example.com"}`, matches, matches},
	{`"/a":{"glob":"*@example.com"}`, `{"a":"ada@example.org"}`, misses, misses},
	{`"/a":{"glob":["x","*@example.com"]}`, `{"a":"x"}`, matches, matches},
	{`"/a":{"glob":"*"}`, `{"a":""}`, matches, matches},
	{`"/a":{"glob":"*"}`, `{"a":5}`, misses, unjudged},
	{`"/a":{"glob":"a[*]"}`, `{"a":"ab"}`, misses, misses},
	// Numbers.
	{`"/n":{"min":1,"max":10}`, `{"n":1}`, matches, matches},
	{`"/n":{"min":1,"max":10}`, `{"n":10.0}`, matches, matches},
	{`"/n":{"min":1,"max":10}`, `{"n":1e1}`, matches, matches},
	{`"/n":{"min":1,"max":10}`, `{"n":10.0000000000000000001}`, misses, misses},
	{`"/n":{"min":1,"max":10}`, `{"n":-5}`, misses, misses},
	{`"/n":{"min":1,"max":10}`, `{"n":"5"}`, misses, unjudged},
	{`"/n":{"min":9007199254740993}`, `{"n":9007199254740992}`, misses, misses},
	{`"/n":{"max":1e400}`, `{"n":1e399}`, matches, matches},
	{`"/n":{"min":0}`, `{"n":-0.0}`, matches, matches},
}

// match says what becomes of a rule.
type match uint8

const (
	misses match = iota
	matches
	unjudged // it matches, as it could not be judged
)

func matchOf(v policy.Verdict) match {
	switch {
	case v.Rule == nil:
		return misses
	case v.Unjudged != "":
		return unjudged
	default:
		return matches
	}
}

// Proves: SEC-TOOL-2
func TestArguments(t *testing.T) {
	t.Parallel()
	for _, row := range argumentRows {
		checkArguments(t, row.where, row.arguments, "", row.allows, row.denies)
	}
}

func checkArguments(t *testing.T, where, arguments, dir string, allows, denies match) {
	t.Helper()
	for _, effect := range []string{"allow", "ask", "approve", "deny"} {
		want := denies
		if effect == "allow" {
			want = allows
		}
		p := newPolicy(t, `{"effect":"`+effect+`","where":{`+where+`}}`)
		q := call("s/t", arguments)
		q.Dir = dir
		v := p.Decide(q)
		if got := matchOf(v); got != want {
			t.Errorf("%s where %s, arguments %s, in %q: %d (%s), want %d", effect, where, arguments, dir, got, v.Why(), want)
		}
		x := p.Explain(q)
		if x.Verdict != v {
			t.Errorf("%s where %s, arguments %s: explained as %v, decided %v", effect, where, arguments, x.Verdict, v)
		}
	}
}

// More values than a rule judges are on the safe side, and cost no more.
func TestManyValues(t *testing.T) {
	t.Parallel()
	list := func(n int) string { return `{"a":[1` + strings.Repeat(",1", n-1) + `]}` }
	checkArguments(t, `"/a/*":{"equals":1}`, list(1000), "", matches, matches)
	checkArguments(t, `"/a/*":{"equals":1}`, list(1001), "", misses, matches)
	checkArguments(t, `"/a/*":{"equals":2}`, list(1001), "", misses, unjudged)
	checkArguments(t, `"/a":{"equals":[[1]]}`, list(100_000), "", misses, misses)
}

// A policy may be used by many goroutines at once; the race detector watches.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	r := newRandom(1)
	p := made(t, r.rules(30))
	q := r.query()
	want := p.Decide(q)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 100 {
				if got := p.Decide(q); got != want || p.Explain(q).Verdict != want || p.Hides(q) && want.Effect != deny {
					t.Errorf("the verdict is %v, and was %v", got, want)
				}
			}
			p.Lint()
		})
	}
	group.Wait()
}

// Proves: SEC-TOOL-2
func TestCallers(t *testing.T) {
	t.Parallel()
	ada := &principal.Principal{Issuer: "https://id.example", Subject: "ada", Client: "editor", Groups: []string{"staff"}}
	for _, test := range []struct {
		rule  string
		query policy.Query
		want  bool
	}{
		{`"subjects":"ada"`, policy.Query{Principal: ada}, true},
		{`"subjects":["bob","a*"]`, policy.Query{Principal: ada}, true},
		{`"subjects":"bob"`, policy.Query{Principal: ada}, false},
		{`"subjects":"*"`, policy.Query{}, false},
		{`"subjects":"*"`, policy.Query{Principal: &principal.Principal{}}, false},
		{`"subjects":"local"`, policy.Query{Principal: principal.Local}, true},
		{`"subjects":"ada","issuers":"https://id.example"`, policy.Query{Principal: ada}, true},
		{`"subjects":"ada","issuers":"https://other.example"`, policy.Query{Principal: ada}, false},
		{`"issuers":"*"`, policy.Query{}, false},
		{`"groups":"staff"`, policy.Query{Principal: ada}, true},
		{`"groups":"staff"`, policy.Query{Groups: []string{"x", "staff"}}, true},
		{`"groups":["admin","ops"]`, policy.Query{Principal: ada, Groups: []string{"ops"}}, true},
		{`"groups":"admin"`, policy.Query{Principal: ada}, false},
		{`"groups":"*"`, policy.Query{}, false},
		{`"groups":"*"`, policy.Query{Groups: []string{""}}, false},
		{`"clients":"editor"`, policy.Query{Principal: ada}, true},
		{`"clients":"editor"`, policy.Query{Principal: ada, Client: "shell"}, false},
		{`"clients":"sh*"`, policy.Query{Client: "shell"}, true},
		{`"clients":"*"`, policy.Query{}, false},
		{`"views":"public"`, policy.Query{View: "public"}, true},
		{`"views":"public"`, policy.Query{View: "internal"}, false},
		{`"views":"public"`, policy.Query{}, false},
		{`"views":"public","groups":"staff"`, policy.Query{View: "public", Principal: ada}, true},
		{`"views":"public","groups":"admin"`, policy.Query{View: "public", Principal: ada}, false},
	} {
		for _, effect := range []string{"allow", "deny"} {
			p := newPolicy(t, `{"effect":"`+effect+`",`+test.rule+`}`)
			if v := p.Decide(&test.query); (v.Rule != nil) != test.want {
				t.Errorf("%s %s: %s", effect, test.rule, v.Why())
			}
			if got := p.Hides(&test.query); got != (test.want && effect == "deny") {
				t.Errorf("%s %s hides: %v", effect, test.rule, got)
			}
		}
	}
}

// Proves: SEC-TOOL-4
func TestHints(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, test := range []struct {
		hints       string
		annotations *mcp.ToolAnnotations
		want        bool
	}{
		{`"read-only"`, nil, false},
		{`"read-only"`, &mcp.ToolAnnotations{}, false},
		{`"read-only"`, &mcp.ToolAnnotations{ReadOnlyHint: &no}, false},
		{`"read-only"`, &mcp.ToolAnnotations{ReadOnlyHint: &yes}, true},
		{`"not-destructive"`, nil, false},
		{`"not-destructive"`, &mcp.ToolAnnotations{}, false},
		{`"not-destructive"`, &mcp.ToolAnnotations{DestructiveHint: &yes}, false},
		{`"not-destructive"`, &mcp.ToolAnnotations{DestructiveHint: &no}, true},
		{`"not-destructive"`, &mcp.ToolAnnotations{ReadOnlyHint: &yes}, true},
		{`"idempotent"`, nil, false},
		{`"idempotent"`, &mcp.ToolAnnotations{IdempotentHint: &yes}, true},
		{`"closed-world"`, nil, false},
		{`"closed-world"`, &mcp.ToolAnnotations{OpenWorldHint: &no}, true},
		{`"closed-world"`, &mcp.ToolAnnotations{OpenWorldHint: &yes}, false},
		{`["read-only","closed-world"]`, &mcp.ToolAnnotations{ReadOnlyHint: &yes}, false},
		{`["read-only","closed-world"]`, &mcp.ToolAnnotations{ReadOnlyHint: &yes, OpenWorldHint: &no}, true},
	} {
		for _, effect := range []string{"allow", "ask", "deny"} {
			p := newPolicy(t, `{"effect":"`+effect+`","hints":`+test.hints+`}`)
			q := &policy.Query{Annotations: test.annotations}
			if v := p.Decide(q); v.Rule != nil {
				t.Errorf("%s %s: a server that is not trusted is believed", effect, test.hints)
			}
			q.Trusted = true
			if v := p.Decide(q); (v.Rule != nil) != test.want {
				t.Errorf("%s %s of %+v: %s", effect, test.hints, test.annotations, v.Why())
			}
		}
	}
}

func TestLabelsAndTimes(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2030, 1, 1, hour, 0, 0, 0, time.UTC) }
	const day = `"from":"2030-01-01T09:00:00Z","until":"2030-01-01T18:00:00+01:00"`
	for _, test := range []struct {
		rule           string
		query          policy.Query
		allows, denies bool
	}{
		{`"labels":"untrusted-input"`, policy.Query{}, false, false},
		{`"labels":"untrusted-input"`, policy.Query{Labels: []policy.Label{policy.LabelUntrusted}}, true, true},
		{`"labels":["untrusted-input","private-data"]`, policy.Query{Labels: []policy.Label{policy.LabelUntrusted}}, false, false},
		{
			`"labels":["untrusted-input","private-data","can-send-out"]`,
			policy.Query{Labels: []policy.Label{policy.LabelSends, policy.LabelPrivate, policy.LabelUntrusted}},
			true, true,
		},
		{day, policy.Query{Time: at(8)}, false, false},
		{day, policy.Query{Time: at(9)}, true, true},
		{day, policy.Query{Time: at(16)}, true, true},
		{day, policy.Query{Time: at(17)}, false, false},
		{day, policy.Query{}, false, true},
		{`"from":"2030-01-01T09:00:00Z"`, policy.Query{Time: at(23)}, true, true},
		{`"until":"2030-01-01T09:00:00Z"`, policy.Query{Time: at(8)}, true, true},
		{`"until":"2030-01-01T09:00:00Z"`, policy.Query{Time: at(9)}, false, false},
		{`"from":"2030-01-01T09:00:00Z","until":"2030-01-01T09:00:00Z"`, policy.Query{Time: at(9)}, false, false},
		{`"from":"2030-01-01T09:00:00Z","until":"2030-01-01T08:00:00Z"`, policy.Query{}, false, false},
	} {
		for effect, want := range map[string]bool{"allow": test.allows, "ask": test.denies, "deny": test.denies} {
			p := newPolicy(t, `{"effect":"`+effect+`",`+test.rule+`}`)
			if v := p.Decide(&test.query); (v.Rule != nil) != want {
				t.Errorf("%s %s with %v at %v: %s", effect, test.rule, test.query.Labels, test.query.Time, v.Why())
			}
			if p.Hides(&test.query) {
				t.Errorf("%s %s hides", effect, test.rule)
			}
		}
	}
}

func TestHides(t *testing.T) {
	t.Parallel()
	p := newPolicy(t,
		"deny secret/*", "deny */drop", "ask ask/*", "approve approve/*",
		`{"effect":"deny","server":"files","where":{"/path":{"inside":"/etc"}}}`,
		`{"effect":"deny","server":"hint","hints":"read-only"}`,
		"deny prompt:docs/*", "allow secret/open",
	)
	yes := true
	for _, test := range []struct {
		query policy.Query
		want  bool
	}{
		{policy.Query{Server: "secret", Name: "x"}, true},
		{policy.Query{Server: "secret", Name: "open"}, true},
		{policy.Query{Server: "a", Name: "drop"}, true},
		{policy.Query{Server: "a", Name: "drop", Arguments: mcp.RawValue(`{`)}, true},
		{policy.Query{Server: "a", Name: "drops"}, false},
		{policy.Query{Server: "ask", Name: "x"}, false},
		{policy.Query{Server: "approve", Name: "x"}, false},
		{policy.Query{Server: "files", Name: "x", Arguments: mcp.RawValue(`{"path":"/etc"}`)}, false},
		{policy.Query{Server: "hint", Name: "x", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: &yes}}, false},
		{policy.Query{Server: "hint", Name: "x", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: &yes}, Trusted: true}, true},
		{policy.Query{Kind: policy.KindPrompt, Server: "docs", Name: "x"}, true},
		{policy.Query{Kind: policy.KindPrompt, Server: "secret", Name: "x"}, false},
		{policy.Query{Kind: policy.KindApp, Server: "secret", Name: "x"}, false},
	} {
		if got := p.Hides(&test.query); got != test.want {
			t.Errorf("%s %s/%s: %v", test.query.Kind, test.query.Server, test.query.Name, got)
		}
	}
}
