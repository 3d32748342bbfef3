package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/principal"
)

// A random source makes rules and queries of few words, so that they often have to do with each other.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 1))} }

func pick[T any](r random, from ...T) T { return from[r.IntN(len(from))] }

// some returns at most n of from, and mostly none.
func some[T any](r random, n int, from ...T) []T {
	var picked []T
	for range r.IntN(n + 1) {
		if r.IntN(2) == 0 {
			picked = append(picked, pick(r, from...))
		}
	}
	return picked
}

func (r random) glob() string {
	if r.IntN(3) == 0 {
		return pick(r, "*", "a", "b", "ab")
	}
	var b strings.Builder
	for range r.IntN(4) + 1 {
		b.WriteString(pick(r, "a", "b", "*", "?"))
	}
	return b.String()
}

func (r random) globs() []string {
	var globs []string
	if r.IntN(6) == 0 {
		for range r.IntN(2) + 1 {
			globs = append(globs, r.glob())
		}
	}
	return globs
}

var hours = []time.Time{
	{},
	{},
	{},
	time.Date(2030, 1, 1, 1, 0, 0, 0, time.UTC), time.Date(2030, 1, 1, 2, 0, 0, 0, time.UTC),
	time.Date(2030, 1, 1, 3, 0, 0, 0, time.UTC),
}

func raws(texts ...string) []mcp.RawValue {
	var values []mcp.RawValue
	for _, text := range texts {
		values = append(values, mcp.RawValue(text))
	}
	return values
}

func (r random) predicate() policy.Predicate {
	p := policy.Predicate{Pointer: pick(r, "", "/a", "/a", "/A", "/b", "/a/0", "/a/*", "/*")}
	switch r.IntN(5) {
	case 0:
		p.Op, p.Values = policy.OpEquals, raws(pick(r, scalars...))
		if r.IntN(2) == 0 {
			p.Values = append(p.Values, raws(pick(r, scalars...))...)
		}
	case 1:
		p.Op, p.Globs = policy.OpGlob, []string{r.glob()}
	case 2:
		p.Op, p.Dirs = policy.OpInside, []string{pick(r, "/a", "/a/b", "/", "C:/a")}
	case 3:
		p.Op, p.Hosts = policy.OpHost, []string{pick(r, "a.b", "*.b", "a.b:80", "*")}
	default:
		p.Op = policy.OpRange
		if r.IntN(2) == 0 {
			p.Min = mcp.RawValue(pick(r, "0", "1", "2.5"))
		}
		if p.Min == nil || r.IntN(2) == 0 {
			p.Max = mcp.RawValue(pick(r, "1", "2", "3"))
		}
	}
	return p
}

var scalars = []string{
	"0", "1", "2", "3", `"a"`, `"ab"`, `"b"`, `"/a"`, `"/a/b/c"`, `"/b"`, `"b/../c"`, `"C:\\a\\b"`, `"/A"`,
	`"http://a.b"`, `"http://c.b:8080"`, `"x://a.b"`, "null", "true",
}

func (r random) arguments() mcp.RawValue {
	var members []string
	for _, name := range []string{"a", "b", "A"} {
		value := pick(r, scalars...)
		switch r.IntN(8) {
		case 0:
			value = "[" + value + "," + pick(r, scalars...) + "]"
		case 1:
			value = `{"a":` + value + `}`
		case 2:
			value = "[]"
		}
		if name != "A" && r.IntN(3) > 0 || r.IntN(10) == 0 {
			members = append(members, `"`+name+`":`+value)
		}
	}
	return mcp.RawValue(pick(r, "", "", "", "", "x") + "{" + strings.Join(members, ",") + "}")
}

func (r random) rule() policy.Rule {
	rule := policy.Rule{
		Effect: policy.Effect(r.IntN(4)),
		Kind:   pick(r, policy.KindTool, policy.KindTool, policy.KindTool, policy.KindPrompt),
		Server: r.glob(), Name: r.glob(),
		Subjects: r.globs(), Issuers: r.globs(), Groups: r.globs(), Clients: r.globs(), Views: r.globs(),
		Labels: some(r, 1, policy.LabelUntrusted, policy.LabelPrivate),
		Reason: pick(r, "", "", "x"),
	}
	if rule.Kind == policy.KindTool {
		rule.Hints = some(r, 1, policy.HintReadOnly, policy.HintNotDestructive)
	}
	if r.IntN(4) == 0 {
		rule.From, rule.Until = pick(r, hours...), pick(r, hours...)
	}
	for range pick(r, 0, 0, 0, 1, 2, 3) {
		rule.Where = append(rule.Where, r.predicate())
	}
	return rule
}

func (r random) rules(n int) []policy.Rule {
	var all []policy.Rule
	for i := range n {
		rule := r.rule()
		if i > 0 && r.IntN(4) == 0 { // a rule that is much like another
			rule = pick(r, all...)
			rule.Effect = policy.Effect(r.IntN(4))
			rule.Where = append(slices.Clone(rule.Where), r.predicate())[:r.IntN(len(rule.Where)+2)]
		}
		rule.Source = policy.Source{File: "random", Line: i + 1}
		all = append(all, rule)
	}
	return all
}

func (r random) query() *policy.Query {
	word := func() string { return pick(r, "a", "b", "ab", "ba", "aab", "bb", "") }
	q := &policy.Query{
		Kind:   pick(r, policy.KindTool, policy.KindTool, policy.KindTool, policy.KindPrompt),
		Server: word(), Name: word(), Arguments: r.arguments(), Trusted: r.IntN(2) == 0,
		Groups: []string{word()}, Client: word(), View: word(),
		Labels: some(r, 3, policy.LabelUntrusted, policy.LabelPrivate),
		Time:   pick(r, hours...), Dir: pick(r, "", "/a", "/b", `C:\a`),
	}
	if r.IntN(4) > 0 {
		q.Principal = &principal.Principal{Subject: word(), Issuer: word()}
	}
	if r.IntN(2) == 0 {
		hint := r.IntN(2) == 0
		q.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: &hint}
	}
	return q
}

// naive decides as the documentation says, one rule after the other.
func naive(t testing.TB, rules []policy.Rule, q *policy.Query) policy.Verdict {
	t.Helper()
	for _, e := range []policy.Effect{policy.Deny, policy.Approve, policy.Ask, policy.Allow} {
		for i := range rules {
			if rules[i].Effect != e {
				continue
			}
			p, err := policy.New(rules[i : i+1])
			if err != nil {
				t.Fatal(err)
			}
			if v := p.Decide(q); v.Rule != nil {
				return v
			}
		}
	}
	return policy.Verdict{}
}

func made(t testing.TB, rules []policy.Rule) *policy.Policy {
	t.Helper()
	p, err := policy.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func show(q *policy.Query) string {
	return fmt.Sprintf("%s %s/%s(%s) by %+v %v %q %q, %v at %v in %q, trusted %v", q.Kind, q.Server, q.Name, q.Arguments,
		q.Principal, q.Groups, q.Client, q.View, q.Labels, q.Time, q.Dir, q.Trusted)
}

// The policy decides as a loop over the rules, in whatever order they are.
func TestDecideLikeLoop(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	var seen [4]int
	for seed := range uint64(300) {
		r := newRandom(seed)
		all := r.rules(r.IntN(40))
		p := made(t, all)
		shuffled := slices.Clone(all)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		other := made(t, shuffled)
		for range 20 {
			q := r.query()
			got, want := p.Decide(q), naive(t, all, q)
			seen[got.Effect]++
			if got.Effect != want.Effect || got.Why() != want.Why() {
				t.Fatalf("seed %d, %s: %v by %s, want %v by %s", seed, show(q), got.Effect, got.Why(), want.Effect, want.Why())
			}
			if got := other.Decide(q); got.Effect != want.Effect {
				t.Fatalf("seed %d, %s: %v in another order, want %v", seed, show(q), got.Effect, want.Effect)
			}
			checkExplanation(t, p, q)
			if p.Hides(q) && got.Effect != policy.Deny {
				t.Fatalf("seed %d, %s is hidden and not denied", seed, show(q))
			}
		}
	}
	if slices.Min(seen[:]) < 100 {
		t.Errorf("the random rules hardly decide: %v", seen)
	}
}

// checkExplanation holds an explanation to the verdict.
func checkExplanation(t *testing.T, p *policy.Policy, q *policy.Query) {
	t.Helper()
	x, v := p.Explain(q), p.Decide(q)
	if x.Verdict != v {
		t.Fatalf("%s: explained as %v, decided %v", show(q), x.Verdict, v)
	}
	decided, n := 0, 0
	for _, r := range p.Rules() {
		if r.Kind == q.Kind {
			n++
		}
	}
	for _, c := range x.Considered {
		switch c.Result {
		case policy.ResultDecided:
			decided++
			if c.Rule != v.Rule {
				t.Fatalf("%s: %v decided, not %v", show(q), c.Rule, v.Rule)
			}
		case policy.ResultMatched:
			if c.Rule.Effect != v.Effect {
				t.Fatalf("%s: %v matched beside %v", show(q), c.Rule, v.Rule)
			}
		case policy.ResultOverruled:
			if c.Rule.Effect == v.Effect {
				t.Fatalf("%s: %v is overruled by %v", show(q), c.Rule, v.Rule)
			}
		default:
			if c.Rule == v.Rule {
				t.Fatalf("%s: %v decided: %v", show(q), c.Rule, c.Result)
			}
		}
	}
	if decided != min(1, decided) || (decided == 1) != (v.Rule != nil) || len(x.Considered) != n {
		t.Fatalf("%s: %d rules decided, %d of %d considered", show(q), decided, len(x.Considered), n)
	}
}

// Without the rules that are reported as useless, one alone or all at once, every effect is the same.
func TestLintIsProof(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	var seen [4]int
	for seed := range uint64(1000) {
		r := newRandom(seed)
		all := r.rules(r.IntN(12) + 1)
		p := made(t, all)
		findings := p.Lint()
		if len(findings) == 0 {
			continue
		}
		without := make([]*policy.Policy, 0, len(findings)+1)
		kept := slices.Clone(all)
		for _, f := range findings {
			seen[f.Problem]++
			if f.Problem == policy.ProblemOnlyUnjudged {
				continue
			}
			same := func(x policy.Rule) bool { return x.Source == f.Rule.Source }
			without = append(without, made(t, slices.DeleteFunc(slices.Clone(all), same)))
			kept = slices.DeleteFunc(kept, same)
		}
		without = append(without, made(t, kept))
		for range 100 {
			q := r.query()
			v := p.Decide(q)
			for i, less := range without {
				if got := less.Decide(q); got.Effect != v.Effect {
					t.Fatalf("seed %d, %s: %v, and %v without %d of %v", seed, show(q), v.Effect, got.Effect, i, findings)
				}
				if less.Hides(q) != p.Hides(q) {
					t.Fatalf("seed %d, %s: hidden otherwise without %d of %v", seed, show(q), i, findings)
				}
			}
			for _, f := range findings {
				if f.Problem != policy.ProblemOnlyUnjudged {
					continue
				}
				if v := made(t, []policy.Rule{*f.Rule}).Decide(q); v.Rule != nil && v.Unjudged == "" {
					t.Fatalf("seed %d, %s: %v matches", seed, show(q), f.Rule)
				}
			}
		}
	}
	if slices.Min(seen[:]) < 20 {
		t.Errorf("the random rules hardly have problems: %v", seen)
	}
}
