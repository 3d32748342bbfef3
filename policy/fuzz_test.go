package policy_test

import (
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// What is read as a rule is valid, and is read again from what it is written as.
func FuzzParseRule(f *testing.F) {
	f.Add(everyMember)
	f.Add(`{"effect":"allow","where":{"/a/*":[{"min":1},{"equals":[null,{"a":1.0}]}]}}`)
	f.Add(`{"effect":"ask","kind":"resource","name":"file:///[*]"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := policy.ParseRule(mcp.RawValue(text), policy.Source{})
		if err != nil {
			if err.Error() == "" || !utf8.ValidString(err.Error()) {
				t.Errorf("the error is %q", err)
			}
			return
		}
		if _, err := policy.New([]policy.Rule{r}); err != nil {
			t.Fatalf("%s is read and not valid: %v", text, err)
		}
		written, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatalf("%s is not written: %v", text, err)
		}
		again, err := policy.ParseRule(written, policy.Source{})
		if err != nil {
			t.Fatalf("%s is written as %s: %v", text, written, err)
		}
		if rewritten, _ := again.AppendJSON(nil); string(rewritten) != string(written) {
			t.Errorf("%s is written as %s", written, rewritten)
		}
		if line := r.String(); !utf8.ValidString(line) || slices.Contains([]byte(line), '\n') {
			t.Errorf("the line is %q", line)
		}
	})
}

// A rule that denies never lets more happen, and a rule that allows never denies; whatever the
// arguments are, every way to ask has the same answer.
func FuzzDecide(f *testing.F) {
	f.Add(uint64(1), `{"a":"/a/b"}`, `{"effect":"deny","where":{"/a":{"inside":"/a"}}}`, "/srv")
	f.Add(uint64(2), `{"a":["http://a.b",{"a":1}],"b":1e9}`, `{"effect":"allow","where":{"/a/*":{"host":"*.b"}}}`, `C:\x`)
	f.Add(uint64(3), `{"a":"file:///C:/%61","A":1}`, `{"effect":"ask","where":{"":{"equals":{}}}}`, "")
	f.Add(uint64(4), `[`, `{"effect":"approve","where":{"/a":{"min":1}},"hints":"read-only"}`, "~")
	f.Fuzz(func(t *testing.T, seed uint64, arguments, rule, dir string) {
		r := newRandom(seed)
		all := r.rules(r.IntN(10))
		if own, err := policy.ParseRule(mcp.RawValue(rule), policy.Source{File: "own"}); err == nil {
			all = append(all, own)
		}
		q := r.query()
		q.Arguments, q.Dir = mcp.RawValue(arguments), dir
		before := made(t, all).Decide(q)
		if want := naive(t, all, q); before.Effect != want.Effect || before.Why() != want.Why() {
			t.Fatalf("%s: %s, and one after the other %s", show(q), before.Why(), want.Why())
		}
		if x := made(t, all).Explain(q); x.Verdict.Effect != before.Effect || x.Verdict.Why() != before.Why() {
			t.Errorf("%s: %s, and explained %s", show(q), before.Why(), x.Verdict.Why())
		}
		extra := r.rule()
		extra.Kind, extra.Effect = q.Kind, policy.Deny
		if extra.Kind != policy.KindTool {
			extra.Hints = nil
		}
		with := made(t, append(slices.Clone(all), extra)).Decide(q)
		if with.Effect != before.Effect && with.Effect != policy.Deny {
			t.Errorf("%s: %v, and with %v it is %v", show(q), before.Effect, &extra, with.Effect)
		}
		extra.Effect = policy.Allow
		with = made(t, append(slices.Clone(all), extra)).Decide(q)
		if with.Effect != before.Effect && (before.Rule != nil || with.Effect != policy.Allow) {
			t.Errorf("%s: %v, and with %v it is %v", show(q), before.Effect, &extra, with.Effect)
		}
		// What a rule that allows matches, one that denies does too.
		allowed := made(t, []policy.Rule{extra}).Decide(q)
		extra.Effect = policy.Deny
		if denied := made(t, []policy.Rule{extra}).Decide(q); allowed.Effect == policy.Allow && denied.Effect != policy.Deny {
			t.Errorf("%s: %v does not match, and does when it allows", show(q), &extra)
		}
		if diff := cmp.Diff(arguments, string(q.Arguments)); diff != "" {
			t.Errorf("the arguments changed: %s", diff)
		}
	})
}
