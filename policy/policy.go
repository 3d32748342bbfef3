package policy

import (
	"errors"
	"fmt"
	"slices"
)

// A Policy decides by rules. Of the rules that match, one that denies wins, then one that needs
// approval, then one that asks, then one that allows; where none matches, the effect is Ask. The
// order of the rules decides only which of several rules with that effect is named: the first.
//
// A nil Policy always asks. A Policy never changes and may be used by many goroutines at once.
type Policy struct {
	rules    []Rule
	compiled []compiled // in the order of rules
	kinds    map[Kind]*kindIndex
	pointers int
}

// A kindIndex has the rules of one kind, as places in Policy.compiled.
type kindIndex struct {
	// all are the rules in their order.
	all []int
	// servers has the rules whose server is a name, by that name; anyServer has the others.
	servers   map[string]*nameIndex
	anyServer nameIndex
}

// A nameIndex has rules whose name is without wildcards, by that name, and others. Its lists are
// ordered by effect, the strongest first, and by place.
type nameIndex struct {
	names   map[string][]int
	anyName []int
}

// New returns a policy with these rules, of which it makes copies. Its error tells of every rule that
// is not valid, with its source: an effect, kind, hint, label or operation that does not exist, a
// pointer that is none, folders that are not absolute, hosts that are not ASCII, numbers that are
// none, hints on a rule for something else than tools, text that is not UTF-8.
func New(rules []Rule) (*Policy, error) {
	p := &Policy{rules: make([]Rule, len(rules)), compiled: make([]compiled, len(rules)), kinds: make(map[Kind]*kindIndex)}
	in := newInterner()
	var errs []error
	for i := range rules {
		p.rules[i] = rules[i].clone()
		var err error
		if p.compiled[i], err = p.rules[i].compile(in); err != nil {
			errs = append(errs, sourceError(rules[i].Source, fmt.Sprintf("rule %d", i+1), err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	p.pointers = len(in.pointers)
	p.index()
	return p, nil
}

// sourceError puts where a rule was written before an error, or the other name if that is unknown.
func sourceError(src Source, other string, err error) error {
	if s := src.String(); s != "" {
		return fmt.Errorf("%s: %w", s, err)
	}
	return fmt.Errorf("%s: %w", other, err)
}

func (p *Policy) index() {
	for i := range p.compiled {
		k := p.kinds[p.rules[i].Kind]
		if k == nil {
			k = &kindIndex{servers: make(map[string]*nameIndex)}
			p.kinds[p.rules[i].Kind] = k
		}
		k.all = append(k.all, i)
	}
	for _, k := range p.kinds {
		for _, e := range byStrength {
			for _, i := range k.all {
				if p.rules[i].Effect == e {
					k.add(i, &p.compiled[i])
				}
			}
		}
	}
}

func (k *kindIndex) add(i int, c *compiled) {
	names := &k.anyServer
	if c.server.form == globExact {
		if names = k.servers[c.server.text]; names == nil {
			names = new(nameIndex)
			k.servers[c.server.text] = names
		}
	}
	if c.name.form != globExact {
		names.anyName = append(names.anyName, i)
		return
	}
	if names.names == nil {
		names.names = make(map[string][]int)
	}
	names.names[c.name.text] = append(names.names[c.name.text], i)
}

// lists returns the lists of all rules that may match.
func (k *kindIndex) lists(server, name string) [4][]int {
	lists := [4][]int{k.anyServer.names[name], k.anyServer.anyName}
	if s := k.servers[server]; s != nil {
		lists[2], lists[3] = s.names[name], s.anyName
	}
	return lists
}

// Rules returns the rules in their order, with defaults filled in. What is returned is the caller's.
func (p *Policy) Rules() []Rule {
	if p == nil {
		return nil
	}
	rules := make([]Rule, len(p.rules))
	for i := range p.rules {
		rules[i] = p.rules[i].clone()
	}
	return rules
}

// Decide returns the verdict on one action. It reads the arguments only if a rule has predicates over
// them and its other members hold.
func (p *Policy) Decide(q *Query) Verdict {
	m := matcher{policy: p, query: q}
	i, found := m.decide()
	if i < 0 {
		return Verdict{}
	}
	return Verdict{p.rules[i].Effect, &p.rules[i], found.unjudged()}
}

// Hides reports whether a rule denies an action whatever its arguments, labels and time are, so that
// it need not be listed. A deny with predicates, labels, From or Until hides nothing. It reads
// neither Arguments nor Labels, Time and Dir of q.
func (p *Policy) Hides(q *Query) bool {
	k := p.kind(q)
	if k == nil {
		return false
	}
	m := matcher{policy: p, query: q}
	for _, list := range k.lists(q.Server, q.Name) {
		for _, i := range list {
			c := &p.compiled[i]
			if c.effect != Deny {
				break
			}
			if len(c.tests) == 0 && len(c.rule.Labels) == 0 && c.window == windowOpen && m.match(c).result == ResultMatched {
				return true
			}
		}
	}
	return false
}

// kind returns the index of the query's kind, or nil.
func (p *Policy) kind(q *Query) *kindIndex {
	if p == nil {
		return nil
	}
	if q.Kind == "" {
		return p.kinds[KindTool]
	}
	return p.kinds[q.Kind]
}

// A matcher holds rules against one query.
type matcher struct {
	policy    *Policy
	query     *Query
	arguments arguments
	// server and name are the globs that matched last: many rules have the same.
	server, name *glob
}

// An outcome is what came of one rule.
type outcome struct {
	// result is ResultMatched for every rule that matches.
	result Result
	// test is the one that does not hold or cannot be judged, or nil.
	test *test
	// doubt says why test cannot be judged.
	doubt doubt
	// word is the list of callers, the hint or the label that does not hold.
	word string
}

func (o *outcome) matches() bool { return o.result == ResultMatched }

// unjudged says which argument could not be judged and why, or is empty.
func (o *outcome) unjudged() string {
	if o.doubt == noDoubt {
		return ""
	}
	return argumentName(o.test.Pointer) + " could not be judged: " + o.doubt.String()
}

func argumentName(pointer string) string {
	if pointer == "" {
		return "the whole of the arguments"
	}
	return "argument " + word(pointer)
}

// decide returns the place of the rule that decides, or -1.
func (m *matcher) decide() (int, outcome) {
	k := m.policy.kind(m.query)
	if k == nil {
		return -1, outcome{}
	}
	lists := k.lists(m.query.Server, m.query.Name)
	for _, e := range byStrength {
		best, found := -1, outcome{}
		for l, list := range lists {
			for len(list) > 0 && m.policy.compiled[list[0]].effect == e && (best < 0 || list[0] < best) {
				if o := m.match(&m.policy.compiled[list[0]]); o.matches() {
					best, found = list[0], o
				}
				list = list[1:]
			}
			lists[l] = list
		}
		if best >= 0 {
			return best, found
		}
	}
	return -1, outcome{}
}

// match holds one rule against the query. The arguments come last: they cost most.
func (m *matcher) match(c *compiled) outcome {
	if c.server != m.server {
		if !c.server.match(m.query.Server) {
			return outcome{result: ResultServer}
		}
		m.server = c.server
	}
	if c.name != m.name {
		if !c.name.match(m.query.Name) {
			return outcome{result: ResultName}
		}
		m.name = c.name
	}
	for i := range c.callers {
		if t := &c.callers[i]; !m.callerMatches(t.list, t.globs) {
			return outcome{result: ResultCaller, word: callerNames[t.list]}
		}
	}
	if c.words {
		if o := m.matchWords(c.rule); !o.matches() {
			return o
		}
	}
	if c.window != windowOpen && !c.holdsAt(m.query) {
		return outcome{result: ResultTime}
	}
	return m.matchArguments(c)
}

// matchWords holds hints and labels against the query.
func (m *matcher) matchWords(r *Rule) outcome {
	q := m.query
	for _, h := range r.Hints {
		if !q.Trusted || !holdsHint(h, q.Annotations) {
			return outcome{result: ResultHint, word: string(h)}
		}
	}
	for _, l := range r.Labels {
		if !slices.Contains(q.Labels, l) {
			return outcome{result: ResultLabel, word: string(l)}
		}
	}
	return outcome{result: ResultMatched}
}

// holdsAt reports whether the rule holds at the time of the query. At an unknown time one that allows
// does not.
func (c *compiled) holdsAt(q *Query) bool {
	r := c.rule
	if c.window == windowEmpty || q.Time.IsZero() {
		return c.window == windowSet && r.Effect != Allow
	}
	return !q.Time.Before(r.From) && (r.Until.IsZero() || q.Time.Before(r.Until))
}

func (m *matcher) callerMatches(list int, globs []glob) bool {
	q := m.query
	var known string
	switch callerNames[list] {
	case "groups":
		return groupMatches(globs, q.Groups) || q.Principal != nil && groupMatches(globs, q.Principal.Groups)
	case "clients":
		if known = q.Client; known == "" && q.Principal != nil {
			known = q.Principal.Client
		}
	case "views":
		known = q.View
	case "subjects":
		if q.Principal != nil {
			known = q.Principal.Subject
		}
	default:
		if q.Principal != nil {
			known = q.Principal.Issuer
		}
	}
	return known != "" && matchesOne(globs, known)
}

func groupMatches(globs []glob, groups []string) bool {
	for _, g := range groups {
		if g != "" && matchesOne(globs, g) {
			return true
		}
	}
	return false
}

func (m *matcher) matchArguments(c *compiled) outcome {
	o := outcome{result: ResultMatched}
	for i := range c.tests {
		if m.arguments.state == argumentsUnread {
			m.arguments.query = m.query
			m.arguments.read(m.policy.pointers)
		}
		t := &c.tests[i]
		judged, why := m.arguments.judge(t, c.rule.Effect)
		switch {
		case judged == no:
			return outcome{result: ResultArgument, test: t}
		case judged == unknown && c.rule.Effect == Allow:
			return outcome{result: ResultUnjudged, test: t, doubt: why}
		case judged == unknown && o.doubt == noDoubt:
			o.test, o.doubt = t, why
		}
	}
	return o
}
