package policy

import "slices"

// A Problem is what is wrong with a rule that is valid.
type Problem uint8

// The problems.
const (
	// ProblemNeverMatches: no action matches the rule. Without it every verdict is the same.
	ProblemNeverMatches Problem = iota
	// ProblemOnlyUnjudged: the predicates of a rule that does not allow contradict each other, so
	// that it matches only arguments that cannot be judged.
	ProblemOnlyUnjudged
	// ProblemOverruled: a rule with a stronger effect matches whenever this one does. Without it
	// every effect is the same.
	ProblemOverruled
	// ProblemRedundant: another rule with the same effect matches whenever this one does. Without it
	// every effect is the same.
	ProblemRedundant
)

var problemNames = []string{"never matches", "matches only what cannot be judged", "is overruled", "is redundant"}

// String returns the problem in words.
func (p Problem) String() string { return wordOf(problemNames, int(p), "Problem") }

// A Finding is a proof that a rule does not do what somebody may expect of it.
type Finding struct {
	// Rule is the rule, which must not be changed.
	Rule *Rule
	// Problem is what is wrong with it.
	Problem Problem
	// Other is the rule with which it is overruled or redundant, or nil. It must not be changed.
	Other *Rule
	// Detail says why the rule never matches, or is empty.
	Detail string
}

// String returns the finding in one line.
func (f Finding) String() string {
	s := f.Rule.String() + ": " + f.Problem.String()
	if f.Other != nil {
		s += " by " + f.Other.String()
		if f.Problem == ProblemRedundant {
			s = f.Rule.String() + ": is redundant with " + f.Other.String()
		}
	}
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}

// Lint returns what is provably wrong with the rules, at most one finding for each rule, in their
// order. Without all rules that it reports as never matching, overruled or redundant, every action
// has the same effect. It finds:
//
//   - rules whose Until is not after their From;
//   - predicates on the same argument that contradict each other: values of which none fulfils the
//     other predicates, ranges without a number in common, operations on different types;
//   - rules that another rule with the same or a stronger effect makes useless: its server, name and
//     callers are the same or wider, and its predicates, hints, labels and times are among those of
//     the rule. A rule is redundant with a later one only if both have the same Reason.
//
// That a glob is wider than another is decided exactly; one caller or name that only two globs
// together cover is not found.
func (p *Policy) Lint() []Finding {
	if p == nil {
		return nil
	}
	var found []Finding
	for i := range p.compiled {
		c := &p.compiled[i]
		f := Finding{Rule: c.rule}
		if detail, problem := c.contradiction(); detail != "" {
			f.Problem, f.Detail = problem, detail
			found = append(found, f)
			continue
		}
		if f.Other = p.covering(i); f.Other != nil {
			f.Problem = ProblemRedundant
			if f.Other.Effect != c.rule.Effect {
				f.Problem = ProblemOverruled
			}
			found = append(found, f)
		}
	}
	return found
}

// contradiction says why a rule never matches, or only what cannot be judged; detail is empty if it
// may match.
func (c *compiled) contradiction() (detail string, problem Problem) {
	if c.window == windowEmpty {
		return "until is not after from", ProblemNeverMatches
	}
	if c.rule.Effect != Allow {
		problem = ProblemOnlyUnjudged
	}
	for i := range c.tests {
		t := &c.tests[i]
		if c.rule.Effect != Allow && t.pointer.wild() {
			continue // other predicates may hold for other elements
		}
		if t.emptyRange(t) {
			return "no number is " + rangeString(t.Predicate) + " at " + word(t.Pointer), problem
		}
		for j := range c.tests {
			other := &c.tests[j]
			if j != i && other.pointer == t.pointer && t.contradicts(other, c.rule.Effect) {
				return "the predicates on " + word(t.Pointer) + " contradict each other", problem
			}
		}
	}
	return "", problem
}

// emptyRange reports whether no number is in the ranges of both.
func (t *test) emptyRange(other *test) bool {
	return t.Op == OpRange && other.Op == OpRange && t.min != nil && other.max != nil && t.min.Compare(other.max) > 0
}

// contradicts reports whether no argument fulfils both tests of a rule with that effect. A rule that
// does not allow matches what has the wrong type for one of them.
func (t *test) contradicts(other *test, e Effect) bool {
	if t.Op == OpEquals {
		if slices.ContainsFunc(other.dirs, func(l location) bool { return l.style == windowsStyle }) {
			return false // what "/data" means depends on Query.Dir
		}
		for _, v := range t.values {
			judged, why := other.judge(new(newValue(v.raw)), &arguments{})
			if judged == yes || judged == unknown && (e != Allow || why != doubtType) {
				return false
			}
		}
		return true
	}
	stringWithNumber := other.Op != OpEquals && (t.Op == OpRange) != (other.Op == OpRange)
	return t.emptyRange(other) || e == Allow && stringWithNumber
}

// covering returns a rule that makes rule i useless, or nil: a stronger one if there is one. Of rules
// that make each other useless, all but the first are.
func (p *Policy) covering(i int) *Rule {
	c := &p.compiled[i]
	var best *Rule
	for _, list := range p.kinds[c.rule.Kind].covers(c) {
		for _, j := range list {
			o := &p.compiled[j]
			if stronger(c.effect, o.effect) {
				break
			}
			if j == i || best != nil && !stronger(o.effect, best.Effect) || !o.covers(c) {
				continue
			}
			if o.effect != c.effect || p.replaces(j, i) {
				best = o.rule
			}
		}
	}
	return best
}

// covers returns the lists that have all rules which match whenever c does.
func (k *kindIndex) covers(c *compiled) [][]int {
	var lists [][]int
	add := func(n *nameIndex) {
		lists = append(lists, n.anyName)
		if c.name.form == globExact {
			lists = append(lists, n.names[c.name.text])
		}
	}
	add(&k.anyServer)
	if n := k.servers[c.server.text]; n != nil && c.server.form == globExact {
		add(n)
	}
	return lists
}

// replaces reports whether rule j, which covers rule i and has the same effect, may stand for it: it is
// named before it, or has the same reason and is not itself left out for i.
func (p *Policy) replaces(j, i int) bool {
	if j < i {
		return true
	}
	return p.rules[i].Reason == p.rules[j].Reason && !p.compiled[i].covers(&p.compiled[j])
}

var strength = [...]int{Deny: 3, Approve: 2, Ask: 1, Allow: 0}

// stronger reports whether a is stronger than b.
func stronger(a, b Effect) bool {
	return strength[a] > strength[b]
}

// covers reports whether c matches whenever d, which has the same kind and no stronger effect, does.
func (c *compiled) covers(d *compiled) bool {
	if len(c.tests) > len(d.tests) || len(c.callers) > len(d.callers) {
		return false
	}
	if c.server != d.server && !c.server.contains(d.server) || c.name != d.name && !c.name.contains(d.name) {
		return false
	}
	for i := range c.callers {
		t := &c.callers[i]
		covered := func(u callerTest) bool { return u.list == t.list && containsAll(t.globs, u.globs) }
		if !slices.ContainsFunc(d.callers, covered) {
			return false
		}
	}
	for _, h := range c.rule.Hints {
		implied := h == HintNotDestructive && slices.Contains(d.rule.Hints, HintReadOnly)
		if !implied && !slices.Contains(d.rule.Hints, h) {
			return false
		}
	}
	for _, l := range c.rule.Labels {
		if !slices.Contains(d.rule.Labels, l) {
			return false
		}
	}
	for i := range c.tests {
		if !slices.ContainsFunc(d.tests, func(t test) bool { return t.id == c.tests[i].id }) {
			return false
		}
	}
	return c.coversTimes(d)
}

// coversTimes reports whether c holds at all times of d. At an unknown time c holds if d does: it has
// no bound where d has none, and it allows only if d does.
func (c *compiled) coversTimes(d *compiled) bool {
	r, s := c.rule, d.rule
	from := r.From.IsZero() || !s.From.IsZero() && !s.From.Before(r.From)
	until := r.Until.IsZero() || !s.Until.IsZero() && !s.Until.After(r.Until)
	return from && until
}
