package policy

import (
	"bytes"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// A judgement says whether an argument fulfils a predicate.
type judgement uint8

const (
	no judgement = iota
	yes
	unknown
)

// A test is a compiled Predicate.
type test struct {
	*Predicate
	// id is the same for tests that the same arguments fulfil, as far as their texts show.
	id       int
	pointer  *pointer
	values   []operand
	globs    []glob
	dirs     []location
	hosts    []hostPattern
	min, max *wire.Decimal
}

// An operand is a value of OpEquals.
type operand struct {
	raw    mcp.RawValue // without white space around it
	kind   valueKind
	number wire.Decimal
}

// A valueKind is the first character of a value, '0' for all numbers and 't' for both booleans.
type valueKind byte

func kindOf(raw mcp.RawValue) valueKind {
	switch c := raw[0]; c {
	case '{', '[', '"', 't', 'n':
		return valueKind(c)
	case 'f':
		return 't'
	default:
		return '0'
	}
}

// A value is one argument, with what is read from it when it is needed first.
type value struct {
	raw    mcp.RawValue
	kind   valueKind
	have   reading
	text   string
	number wire.Decimal // if kind is '0'
	at     location
	atWhy  doubt
	// name is what a file URI is to a server that takes it for a relative path; nil if none does.
	name    *location
	nameWhy doubt
	end     endpoint
	endWhy  doubt
}

// newValue returns the value with that text.
func newValue(raw mcp.RawValue) value {
	v := value{raw: raw, kind: kindOf(raw)}
	if v.kind == '0' {
		v.number = wire.ReadDecimal(raw)
	}
	return v
}

// reading is a set of what was read from a value.
type reading uint8

const (
	readText reading = 1 << iota
	readPath
	readURL
)

// string returns the content of a string.
func (v *value) string() (string, bool) {
	if v.kind != '"' {
		return "", false
	}
	if v.have&readText == 0 {
		v.text = wire.Text(v.raw)
		v.have |= readText
	}
	return v.text, true
}

// asPath reads a string of the arguments as a path.
func (v *value) asPath(s string, a *arguments) {
	if v.have&readPath != 0 {
		return
	}
	v.have |= readPath
	v.at, v.atWhy = parseArgument(s, &a.dir)
	if v.atWhy == noDoubt && !a.uris && schemeOf(s) != "" {
		v.name = new(location)
		*v.name, v.nameWhy = join(&a.dir, s)
	}
}

func (v *value) url(s string) (*endpoint, doubt) {
	if v.have&readURL == 0 {
		v.end, v.endWhy = parseURL(s)
		v.have |= readURL
	}
	return &v.end, v.endWhy
}

// judge reports whether one value of the arguments fulfils the test.
func (t *test) judge(v *value, a *arguments) (judgement, doubt) {
	if t.Op == OpEquals {
		return t.judgeEquals(v)
	}
	if t.Op == OpRange {
		return t.judgeRange(v)
	}
	s, ok := v.string()
	if !ok {
		return unknown, doubtType
	}
	switch t.Op {
	case OpGlob:
		return answer(matchesOne(t.globs, s)), noDoubt
	case OpInside:
		v.asPath(s, a)
		return t.judgePath(v, a.dir.style)
	default:
		return t.judgeHost(v.url(s))
	}
}

func answer(b bool) judgement {
	if b {
		return yes
	}
	return no
}

// judgeEquals cannot judge a value whose type none of the test's values has: "true" is true to
// some servers.
func (t *test) judgeEquals(v *value) (judgement, doubt) {
	sameType := false
	for i := range t.values {
		want := &t.values[i]
		switch {
		case want.kind != v.kind:
			continue
		case v.kind == '0' && want.number.Compare(&v.number) == 0, v.kind != '0' && wire.EqualValid(want.raw, v.raw):
			return yes, noDoubt
		}
		sameType = true
	}
	if !sameType {
		return unknown, doubtType
	}
	return no, noDoubt
}

func (t *test) judgeRange(v *value) (judgement, doubt) {
	if v.kind != '0' {
		return unknown, doubtType
	}
	n := &v.number
	return answer((t.min == nil || n.Compare(t.min) >= 0) && (t.max == nil || n.Compare(t.max) <= 0)), noDoubt
}

// judgePath cannot judge a file URI of which it matters whether the server takes URIs. system is the
// server's.
func (t *test) judgePath(v *value, system pathStyle) (judgement, doubt) {
	j, why := t.judgeInside(&v.at, v.atWhy, system)
	if j == unknown || v.name == nil {
		return j, why
	}
	if asName, _ := t.judgeInside(v.name, v.nameWhy, system); asName != j {
		return unknown, doubtURIOrName
	}
	return j, noDoubt
}

// judgeInside cannot judge a path that is inside if letter case and the form of letters are ignored, as
// many file systems do, nor one of another system than the test's folders: than all of them, or than
// one if the server's system is unknown.
func (t *test) judgeInside(l *location, d doubt, system pathStyle) (judgement, doubt) {
	if d != noDoubt {
		return unknown, d
	}
	same, why := false, noDoubt
	for i := range t.dirs {
		dir := &t.dirs[i]
		if dir.style != l.style {
			if why == noDoubt && system == unknownStyle {
				why = doubtStyle
			}
			continue
		}
		same = true
		switch l.from(dir) {
		case inside:
			return yes, noDoubt
		case maybeInside:
			why = doubtPathCase
		case outside:
		}
	}
	if !same {
		why = doubtStyle
	}
	if why != noDoubt {
		return unknown, why
	}
	return no, noDoubt
}

func (t *test) judgeHost(e *endpoint, d doubt) (judgement, doubt) {
	if d != noDoubt {
		return unknown, d
	}
	for i := range t.hosts {
		if t.hosts[i].match(e) {
			return yes, noDoubt
		}
	}
	return no, noDoubt
}

// maxCached is the number of pointers of a policy whose places are kept during one decision.
const maxCached = 512

// arguments are those of one query, read when the first predicate needs them.
type arguments struct {
	query *Query
	state argumentState
	text  mcp.RawValue
	// dir is the folder that relative paths begin at.
	dir location
	// uris says that the arguments are URIs, as only tools and prompts have others.
	uris    bool
	located []*located
	last    *located // of a pointer that is not kept
	lastID  int
}

type argumentState uint8

const (
	argumentsUnread argumentState = iota
	argumentsValid
	argumentsInvalid
)

var noArguments = mcp.RawValue("{}")

// read checks the arguments. pointers is the number of pointers of the policy.
func (a *arguments) read(pointers int) {
	a.text = bytes.Trim(a.query.Arguments, " \t\r\n")
	if len(a.text) == 0 || string(a.text) == "null" {
		a.text = noArguments
	}
	a.state, a.lastID = argumentsValid, -1
	if a.text[0] != '{' || wire.Valid(a.text, wire.Limits{}) != nil {
		a.state = argumentsInvalid
	}
	a.located = make([]*located, min(pointers, maxCached))
	a.uris = a.query.Kind != "" && a.query.Kind != KindTool && a.query.Kind != KindPrompt
	if dir := a.query.Dir; dir != "" && !a.uris {
		a.dir, _ = parseDir(dir)
	}
}

func (a *arguments) locate(p *pointer) *located {
	if p.id < len(a.located) {
		if a.located[p.id] == nil {
			a.located[p.id] = locate(a.text, p)
		}
		return a.located[p.id]
	}
	if a.lastID != p.id {
		a.last, a.lastID = locate(a.text, p), p.id
	}
	return a.last
}

// judge reports whether the arguments fulfil a test of a rule with that effect: all places of the
// pointer must for Allow, one for the others.
func (a *arguments) judge(t *test, e Effect) (judgement, doubt) {
	if a.state == argumentsInvalid {
		return unknown, doubtArguments
	}
	found := a.locate(t.pointer)
	result, why := no, found.doubt
	if e == Allow && (found.absent > 0 || len(found.values) == 0 && why == noDoubt) {
		return no, noDoubt
	}
	for i := range found.values {
		j, d := t.judge(&found.values[i], a)
		switch {
		case j == unknown && why == noDoubt:
			why = d
		case j == no && e == Allow:
			return no, noDoubt
		case j == yes && e != Allow:
			return yes, noDoubt
		case j == yes:
			result = yes
		}
	}
	if why != noDoubt {
		return unknown, why
	}
	return result, noDoubt
}

// holdsHint reports whether the annotations say what a hint wants.
func holdsHint(h Hint, a *mcp.ToolAnnotations) bool {
	switch h {
	case HintReadOnly:
		return a.ReadOnly()
	case HintNotDestructive:
		return !a.Destructive()
	case HintIdempotent:
		return a.Idempotent()
	case HintClosedWorld:
		return !a.OpenWorld()
	default:
		return false
	}
}
