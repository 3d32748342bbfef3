package policy

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// A compiled rule is a valid Rule that is ready to match. It is small, as thousands may be looked at
// for one decision.
type compiled struct {
	rule         *Rule
	server, name *glob
	callers      []callerTest
	tests        []test
	effect       Effect
	window       window
	words        bool // there are hints or labels
}

// A callerTest is one list of globs for the caller.
type callerTest struct {
	list  int // the place in callerNames
	globs []glob
}

// window says what From and Until of a rule are.
type window uint8

const (
	windowOpen  window = iota // both are zero
	windowSet                 // there is a time at which the rule holds
	windowEmpty               // there is none
)

var callerNames = [5]string{"subjects", "issuers", "groups", "clients", "views"}

// callerLists are the lists of globs of a rule, in the order of callerNames.
func (r *Rule) callerLists() [5]*[]string {
	return [5]*[]string{&r.Subjects, &r.Issuers, &r.Groups, &r.Clients, &r.Views}
}

// clone returns a copy of the rule that shares nothing with it, with defaults filled in.
func (r *Rule) clone() Rule {
	c := *r
	if c.Kind == "" {
		c.Kind = KindTool
	}
	if c.Server == "" {
		c.Server = "*"
	}
	if c.Name == "" {
		c.Name = "*"
	}
	c.Hints, c.Labels = slices.Clone(r.Hints), slices.Clone(r.Labels)
	for _, list := range c.callerLists() {
		*list = slices.Clone(*list)
	}
	c.Where = slices.Clone(r.Where)
	for i := range c.Where {
		p := &c.Where[i]
		p.Globs, p.Dirs, p.Hosts = slices.Clone(p.Globs), slices.Clone(p.Dirs), slices.Clone(p.Hosts)
		p.Min, p.Max, p.Values = bytes.Clone(p.Min), bytes.Clone(p.Max), slices.Clone(p.Values)
		for j := range p.Values {
			p.Values[j] = bytes.Clone(p.Values[j])
		}
	}
	return c
}

// An interner keeps what the rules of a policy have in common, by its text.
type interner struct {
	pointers map[string]*pointer
	globs    map[string]*glob
	tests    map[string]int
}

func newInterner() *interner {
	return &interner{make(map[string]*pointer), make(map[string]*glob), make(map[string]int)}
}

func (in *interner) pointer(text string) (*pointer, error) {
	if p := in.pointers[text]; p != nil {
		return p, nil
	}
	p, err := compilePointer(text)
	if err != nil {
		return nil, err
	}
	p.id = len(in.pointers)
	in.pointers[text] = p
	return p, nil
}

func (in *interner) glob(text string) (*glob, error) {
	if g := in.globs[text]; g != nil {
		return g, nil
	}
	g, err := compileGlob(text)
	if err != nil {
		return nil, err
	}
	in.globs[text] = &g
	return &g, nil
}

// testID returns the number of all tests with the same operation, pointer and operands, as they are
// written: numbers that are equal as doubles may differ.
func (in *interner) testID(t *test) int {
	e := encoder{}
	e.predicates([]Predicate{*t.Predicate}, t.Pointer)
	key := t.Pointer + "\x00" + string(e.dst)
	id, ok := in.tests[key]
	if !ok {
		id = len(in.tests)
		in.tests[key] = id
	}
	return id
}

// compile checks a rule and returns what matches by it. The rule must have its defaults.
func (r *Rule) compile(in *interner) (compiled, error) {
	c := compiled{rule: r, effect: r.Effect, words: len(r.Hints)+len(r.Labels) > 0}
	if int(r.Effect) >= len(effectNames) {
		return c, fmt.Errorf("no such effect: %d; use a constant of package policy", r.Effect)
	}
	if !slices.Contains(kinds, r.Kind) {
		return c, unknownWord("kind", string(r.Kind), kinds)
	}
	var err error
	if c.server, err = in.glob(r.Server); err != nil {
		return c, fmt.Errorf("server: %w", err)
	}
	if c.name, err = in.glob(r.Name); err != nil {
		return c, fmt.Errorf("name: %w", err)
	}
	for i, list := range r.callerLists() {
		if slices.Contains(*list, "") {
			return c, fmt.Errorf("%s: an empty pattern matches nothing; leave it out", callerNames[i])
		}
		globs, err := compileGlobs(*list)
		if err != nil {
			return c, fmt.Errorf("%s: %w", callerNames[i], err)
		}
		if len(globs) > 0 {
			c.callers = append(c.callers, callerTest{i, globs})
		}
	}
	if err := r.checkWords(); err != nil {
		return c, err
	}
	for i := range r.Where {
		t, err := r.Where[i].compile(in)
		if err != nil {
			return c, fmt.Errorf("where %q: %w", r.Where[i].Pointer, err)
		}
		c.tests = append(c.tests, t)
	}
	switch {
	case r.From.IsZero() && r.Until.IsZero():
	case !r.From.IsZero() && !r.Until.IsZero() && !r.From.Before(r.Until):
		c.window = windowEmpty
	default:
		c.window = windowSet
	}
	return c, nil
}

func (r *Rule) checkWords() error {
	if len(r.Hints) > 0 && r.Kind != KindTool {
		return fmt.Errorf("hints: only tools have annotations; leave the hints out of a rule of kind %q", r.Kind)
	}
	for _, h := range r.Hints {
		if !slices.Contains(hints, h) {
			return unknownWord("hint", string(h), hints)
		}
	}
	for _, l := range r.Labels {
		if !slices.Contains(labels, l) {
			return unknownWord("label", string(l), labels)
		}
	}
	for _, t := range [...]time.Time{r.From, r.Until} {
		if _, err := t.MarshalText(); err != nil {
			return fmt.Errorf("from and until: %w; write a time such as 2030-12-31T18:00:00Z", err)
		}
	}
	if _, ok := wire.AppendText(nil, r.Reason); !ok {
		return errors.New("reason: the text is not valid UTF-8; write it in UTF-8")
	}
	return nil
}

func compileGlobs(list []string) ([]glob, error) {
	var globs []glob
	for _, text := range list {
		g, err := compileGlob(text)
		if err != nil {
			return nil, err
		}
		globs = append(globs, g)
	}
	return globs, nil
}

// compile checks a predicate and returns what judges by it.
func (p *Predicate) compile(in *interner) (test, error) {
	t := test{Predicate: p}
	var err error
	if t.pointer, err = in.pointer(p.Pointer); err != nil {
		return t, err
	}
	has := [...]bool{
		OpEquals: len(p.Values) > 0, OpGlob: len(p.Globs) > 0, OpInside: len(p.Dirs) > 0,
		OpHost: len(p.Hosts) > 0, OpRange: p.Min != nil || p.Max != nil,
	}
	if p.Op == 0 || int(p.Op) >= len(has) {
		return t, errors.New("no such operation; use equals, glob, inside, host, or min and max")
	}
	if !has[p.Op] {
		return t, fmt.Errorf("%s has nothing to compare with; give it a value", p.Op)
	}
	for op, set := range has {
		if set && Op(op) != p.Op {
			return t, fmt.Errorf("one predicate has %s and %s; write one for each", p.Op, Op(op))
		}
	}
	if err := t.compileOperands(); err != nil {
		return t, fmt.Errorf("%s: %w", p.Op, err)
	}
	t.id = in.testID(&t)
	return t, nil
}

func (t *test) compileOperands() (err error) {
	for _, raw := range t.Values {
		if err := wire.Valid(raw, wire.Limits{}); err != nil {
			return fmt.Errorf("a value is no JSON: %w", err)
		}
		raw = bytes.TrimSpace(raw)
		v := newValue(raw)
		t.values = append(t.values, operand{raw, v.kind, v.number})
	}
	if t.globs, err = compileGlobs(t.Globs); err != nil {
		return err
	}
	for _, text := range t.Dirs {
		dir, d := parseDir(text)
		if d != noDoubt {
			return fmt.Errorf("%q is no absolute path (%v); write one such as \"/srv/data\" or \"C:/data\"", text, d)
		}
		t.dirs = append(t.dirs, dir)
	}
	for _, text := range t.Hosts {
		h, err := compileHost(text)
		if err != nil {
			return err
		}
		t.hosts = append(t.hosts, h)
	}
	if t.min, err = compileNumber(t.Min); err != nil {
		return fmt.Errorf("min: %w", err)
	}
	if t.max, err = compileNumber(t.Max); err != nil {
		return fmt.Errorf("max: %w", err)
	}
	return nil
}

func compileNumber(raw mcp.RawValue) (*wire.Decimal, error) {
	if raw == nil {
		return nil, nil
	}
	text := bytes.TrimSpace(raw)
	if err := wire.Valid(text, wire.Limits{}); err != nil || kindOf(text) != '0' {
		return nil, errors.New("it is no JSON number; write one such as 10 or 2.5")
	}
	d := wire.ReadDecimal(text)
	return &d, nil
}
