package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An Effect is what a rule says about the things it matches.
type Effect uint8

// The effects. The zero Effect asks: it is the answer when no rule matches.
const (
	Ask Effect = iota
	Allow
	Deny
)

// String returns the effect as a word.
func (e Effect) String() string {
	switch e {
	case Allow:
		return "allow"
	case Deny:
		return "deny"
	default:
		return "ask"
	}
}

// A Kind is what sort of thing is to be done.
type Kind string

// The kinds of things that a policy decides about.
const (
	// KindTool is the call of a tool by the model; the name is the tool's.
	KindTool Kind = "tool"
	// KindSampling is a server's use of the model; the names are "request",
	// before the model is called, and "answer", before its answer goes back.
	KindSampling Kind = "sampling"
	// KindElicit is a server's question to the person; the names are "form"
	// and "url". No rule can answer in the person's place, so that only Deny
	// has an effect.
	KindElicit Kind = "elicit"
	// KindRoots is a server's wish to see the roots; the name is "list".
	KindRoots Kind = "roots"
)

// kinds are the kinds that patterns may name.
var kinds = []Kind{KindTool, KindSampling, KindElicit, KindRoots}

// A Rule says what happens to the things it matches.
type Rule struct {
	// Effect is what happens.
	Effect Effect
	// Kind is the kind of thing.
	Kind Kind
	// Server and Name are patterns of the server's name in this host and of
	// the thing's own name: "*" stands for any characters, "?" for one.
	Server, Name string
	// Source says where the rule was written, for explanations: "file:line",
	// or the flag of a command line.
	Source string
}

// ParseRule reads a rule from its short form "server/name", or
// "kind:server/name" for another kind than tool. "*" alone is every tool of
// every server.
func ParseRule(effect Effect, pattern, source string) (Rule, error) {
	r := Rule{Effect: effect, Kind: KindTool, Source: source}
	rest := pattern
	if kind, after, found := strings.Cut(pattern, ":"); found && !strings.Contains(kind, "/") {
		if !slices.Contains(kinds, Kind(kind)) {
			return Rule{}, fmt.Errorf("rule %q: no such kind %q; the kinds are tool, sampling, elicit, roots", pattern, kind)
		}
		r.Kind, rest = Kind(kind), after
	}
	if rest == "*" {
		r.Server, r.Name = "*", "*"
		return r, nil
	}
	server, name, found := strings.Cut(rest, "/")
	if !found || server == "" || name == "" {
		return Rule{}, fmt.Errorf("rule %q: write it as server/tool, for example 'everything/add', 'everything/*' or '*'", pattern)
	}
	r.Server, r.Name = server, name
	return r, nil
}

// String returns the rule as one writes it, with its source.
func (r *Rule) String() string {
	s := r.Effect.String() + " "
	if r.Kind != KindTool {
		s += string(r.Kind) + ":"
	}
	s += r.Server + "/" + r.Name
	if r.Source != "" {
		s += ", from " + r.Source
	}
	return s
}

func (r *Rule) matches(kind Kind, server, name string) bool {
	return r.Kind == kind && match(r.Server, server) && match(r.Name, name)
}

// A Policy decides what may run, what a person is asked about and what may
// not. Of the rules that match, one that denies wins, then one that asks, then
// one that allows; when none matches, the person is asked. The order of the
// rules matters only for which of two rules with the same effect is named in
// the explanation. A nil Policy asks always. It is not written to once in use.
type Policy struct {
	Rules []Rule
}

// A Verdict is what a policy says, and why.
type Verdict struct {
	Effect Effect
	// Rule is the rule that decided, or nil if none matched.
	Rule *Rule
}

// Why says in words which rule decided.
func (v Verdict) Why() string {
	if v.Rule == nil {
		return "no rule matches"
	}
	return "rule: " + v.Rule.String()
}

// Decide returns the verdict on one action. A tool's annotations do not count: they are the
// server's own words.
//
// spec 2026-07-28, server/tools: clients "MUST consider tool annotations to
// be untrusted unless they come from trusted servers".
func (p *Policy) Decide(kind Kind, server, name string) Verdict {
	if p == nil {
		return Verdict{}
	}
	for _, e := range [...]Effect{Deny, Ask, Allow} {
		for i := range p.Rules {
			if r := &p.Rules[i]; r.Effect == e && r.matches(kind, server, name) {
				return Verdict{e, r}
			}
		}
	}
	return Verdict{}
}

// match reports whether name fits pattern, in time proportional to their
// product at most: it never needs to go back further than the last star.
func match(pattern, name string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// ErrConsent is what every [ConsentError] is, for errors.Is.
var ErrConsent = errors.New("consent is missing")

// A ConsentError says that something was not done for lack of consent.
type ConsentError struct {
	Kind         Kind
	Server, Name string
	// Why says in words what stood in the way.
	Why string
	// Refused says that a rule or the person said no. Otherwise no person could
	// be asked.
	Refused bool
	// Reason is what the person wants the model to know, or empty.
	Reason string
}

// Error names the thing and what stood in the way.
func (e *ConsentError) Error() string {
	what := string(e.Kind) + " " + EscapeLine(e.Server) + "/" + EscapeLine(e.Name)
	return what + " was not run: " + e.Why
}

// Is reports that it is an ErrConsent.
func (e *ConsentError) Is(target error) bool { return target == ErrConsent }
