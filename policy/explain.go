package policy

// An Explanation is a verdict with every rule that was considered.
type Explanation struct {
	// Verdict is what Decide returns.
	Verdict Verdict
	// Considered are all rules of the query's kind, in their order.
	Considered []Considered
}

// A Result says what came of one rule.
type Result uint8

// The results.
const (
	// ResultDecided: the rule matches and is the one that is named.
	ResultDecided Result = iota
	// ResultMatched: the rule matches and has the same effect as an earlier one, which is named.
	ResultMatched
	// ResultOverruled: the rule matches, but one with a stronger effect does, too.
	ResultOverruled
	// ResultServer: the server is another.
	ResultServer
	// ResultName: the name is another.
	ResultName
	// ResultCaller: the rule is about another subject, issuer, group, client or view.
	ResultCaller
	// ResultHint: a hint does not hold, or the server is not trusted.
	ResultHint
	// ResultLabel: a label is missing.
	ResultLabel
	// ResultTime: it is not the time of the rule.
	ResultTime
	// ResultArgument: an argument is absent or does not fulfil a predicate.
	ResultArgument
	// ResultUnjudged: the rule allows, and an argument cannot be judged.
	ResultUnjudged
)

var resultNames = []string{
	"decided", "matched", "overruled by a stronger rule", "another server", "another name",
	"another caller", "hint does not hold", "label is missing", "not at this time",
	"argument does not match", "argument could not be judged",
}

// String returns the result in words.
func (r Result) String() string { return wordOf(resultNames, int(r), "Result") }

// Considered is a rule and what came of it. If several of its members do not hold, the first in the
// order of the results is told.
type Considered struct {
	// Rule is the rule, which must not be changed.
	Rule *Rule
	// Result says what came of it.
	Result Result
	// Detail tells more, or is empty: the argument, hint or label, the first that does not hold, or
	// why an argument could not be judged, which a rule that does not allow matches for.
	Detail string
}

// Explain decides about q and tells of every rule of its kind what came of it. It takes longer than
// Decide, which does not look at rules that cannot matter.
func (p *Policy) Explain(q *Query) *Explanation {
	x := &Explanation{Verdict: p.Decide(q)}
	k := p.kind(q)
	if k == nil {
		return x
	}
	m := matcher{policy: p, query: q}
	for _, i := range k.all {
		r := &p.rules[i]
		o := m.match(&p.compiled[i])
		c := Considered{Rule: r, Result: o.result, Detail: o.detail()}
		switch {
		case !o.matches():
		case r == x.Verdict.Rule:
			c.Result = ResultDecided
		case r.Effect != x.Verdict.Effect:
			c.Result = ResultOverruled
		}
		x.Considered = append(x.Considered, c)
	}
	return x
}

func (o *outcome) detail() string {
	switch {
	case o.doubt != noDoubt:
		return o.unjudged()
	case o.test != nil:
		return argumentName(o.test.Pointer)
	default:
		return o.word
	}
}
