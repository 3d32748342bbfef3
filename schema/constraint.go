package schema

import (
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// typeSet is a set of JSON types.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeNumber
	typeInteger // by value: 1.0 is one
	typeString
	typeArray
	typeObject
	typeNone // of the schema false

	anyType = typeNone - 1
)

// typeNames are the names of the types, in the order of their bits.
var typeNames = [...]string{"null", "boolean", "number", "integer", "string", "array", "object"}

func typeNamed(name string) typeSet {
	if i := slices.Index(typeNames[:], name); i >= 0 {
		return 1 << i
	}
	return 0
}

// startTypes are the types of values by their first byte.
var startTypes = [256]typeSet{
	'{': typeObject, '[': typeArray, '"': typeString, 't': typeBoolean, 'f': typeBoolean, 'n': typeNull, '-': typeNumber,
	'0': typeNumber, '1': typeNumber, '2': typeNumber, '3': typeNumber, '4': typeNumber,
	'5': typeNumber, '6': typeNumber, '7': typeNumber, '8': typeNumber, '9': typeNumber,
}

// typeAt returns the type of the value that starts with c, or 0 if none does.
func typeAt(c byte) typeSet { return startTypes[c] }

func (s typeSet) String() string {
	if s&(s-1) == 0 && 0 < s && s < typeNone {
		return typeNames[bits.TrailingZeros8(uint8(s))]
	}
	var list []string
	for i, name := range typeNames {
		if s&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return strings.Join(list, " or ")
}

// constraints is a schema that is ready to validate the text of a value.
type constraints struct {
	root    *constraint
	program int // instructions of the regular expressions, of a foreign schema
	// inferred says that they come from a Go type, not from keywords.
	inferred bool
}

// constraint is what one schema demands of a value; what it does not mention may
// be anything. It is not changed once it is compiled.
type constraint struct {
	types  typeSet // as in the schema; 0: any
	starts typeSet // typeAt of the values that may fit
	idle   bool    // demands nothing at all
	// The first of these three that a value does not meet is the only problem.
	enum   *choices
	only   *choices // const
	format *format
	// All problems with these are found.
	number *numberConstraint
	text   *stringConstraint
	array  *arrayConstraint
	object *objectConstraint
	// Other schemas for the same value. If there is nothing but one reference,
	// it is same, and then starts are types that fit besides.
	inPlace *applicators
	same    *constraint

	defaults bool // of a Go type that has defaults at or below this place

	// Of a foreign schema: where it starts in the text, and the count of what
	// is applied to one value.
	at    int
	state visit
	cost  int
}

// applicators apply schemas to the value itself.
type applicators struct {
	ref *constraint
	all []*constraint
	any []*constraint
	one []*constraint
	not *constraint
	own *Compiled // of a Go type with a schema of its own
}

// choices are scalars, one of which a value must be.
type choices struct {
	reason  string        // if it is none of them; "" until it is wanted
	list    wire.RawValue // the array, or one value, as in the schema
	words   string        // first letters of those of true, false and null
	strings []string
	numbers []wire.Decimal
	index   map[string]struct{} // of strings, if there are many
}

// numberConstraint bounds numbers.
type numberConstraint struct {
	bounds   []bound
	multiple *wire.Divisor
	step     string // the reason if it is no multiple
	// Of a Go type: values within the bounds, and the type that will hold one.
	enum     *choices
	float    *floatConstraint
	unsigned bool
	lo, hi   int64 // any integer between them fits if it is written plainly
}

// bound is one bound of a number, which compares as sign to the limit if it is
// beyond; meeting the limit is beyond too if the bound excludes it.
type bound struct {
	limit    wire.Decimal
	sign     int
	excludes bool
	reason   string
}

// floatConstraint bounds the Go float that is nearest to a number.
type floatConstraint struct {
	bits   int
	lo, hi float64
	reason string
	enum   []float64
}

// extents are bounds of a length; -1 for none.
type extents struct{ min, max int }

var anyLength = extents{-1, -1}

// stringConstraint bounds strings.
type stringConstraint struct {
	length   extents
	pattern  *regexp.Regexp
	mismatch string   // the reason if the pattern does not match
	enum     *choices // of a Go type
	format   *format  // of a Go type
}

// arrayConstraint bounds arrays.
type arrayConstraint struct {
	length extents
	unique bool
	prefix []*constraint
	items  *constraint // of the items after prefix; nil: any
}

// objectConstraint bounds objects.
type objectConstraint struct {
	length   extents
	members  []memberConstraint
	index    map[string]int // of members, if there are many
	required int            // how many are
	closed   bool           // other members are refused
	extra    *constraint    // of other members; nil: any
	fields   []goField      // of a Go struct: where its members go
	keys     *format        // of a Go map whose keys are not strings
}

// memberConstraint is what is known of a member.
type memberConstraint struct {
	name       string
	constraint *constraint // nil: it is only required, and else as other members are
	required   bool
}

// few is the number of members up to which they are searched one by one.
const few = 8

// find returns the position of a member, starting at the one expected, or -1.
func (o *objectConstraint) find(name []byte, expect int) int {
	if expect < len(o.members) && string(name) == o.members[expect].name {
		return expect
	}
	if o.index != nil {
		if i, ok := o.index[string(name)]; ok {
			return i
		}
		return -1
	}
	for i := range o.members {
		if string(name) == o.members[i].name {
			return i
		}
	}
	return -1
}

// member returns the member of that name, a new one if need be.
func (o *objectConstraint) member(name string) *memberConstraint {
	if at := o.find([]byte(name), len(o.members)); at >= 0 {
		return &o.members[at]
	}
	o.members = append(o.members, memberConstraint{name: name})
	if at := len(o.members) - 1; o.index != nil {
		o.index[name] = at
	} else {
		o.makeIndex()
	}
	return &o.members[len(o.members)-1]
}

// makeIndex makes the index if there are many members.
func (o *objectConstraint) makeIndex() {
	if len(o.members) > few {
		o.index = make(map[string]int, max(2*few, len(o.members)))
		for i := range o.members {
			o.index[o.members[i].name] = i
		}
	}
}

// missing lists the required members that were not seen.
func (o *objectConstraint) missing(seen *memberSet) (list []string) {
	for i := range o.members {
		if o.members[i].required && !seen.has(i) {
			list = append(list, o.members[i].name)
		}
	}
	return list
}

// memberSet is a set of members, by their positions.
type memberSet struct {
	few  uint64
	many []bool
}

func (p *memberSet) make(members int) {
	if members > 64 {
		p.many = make([]bool, members)
	}
}

// add adds a member and says whether it was there before.
func (p *memberSet) add(i int) bool {
	was := p.has(i)
	if p.many != nil {
		p.many[i] = true
	} else {
		p.few |= 1 << i
	}
	return was
}

func (p *memberSet) has(i int) bool {
	if p.many != nil {
		return p.many[i]
	}
	return p.few&(1<<i) != 0
}

// hasText says whether s is one of the choices.
func (c *choices) hasText(s []byte) bool {
	if c.index != nil {
		_, ok := c.index[string(s)]
		return ok
	}
	for _, choice := range c.strings {
		if choice == string(s) {
			return true
		}
	}
	return false
}

func (c *choices) hasNumber(d *wire.Decimal) bool {
	for i := range c.numbers {
		if d.Compare(&c.numbers[i]) == 0 {
			return true
		}
	}
	return false
}

func (c *choices) hasWord(first byte) bool { return strings.IndexByte(c.words, first) >= 0 }

// refusal is the reason that a report gives for another value.
func (c *choices) refusal() string {
	switch {
	case c.reason != "":
		return c.reason
	case wire.At(c.list, 0) != '[':
		return "must be " + bounded(string(c.list))
	}
	var b strings.Builder
	for i, last := wire.First(c.list, 0, ']'); !last && b.Len() <= maxMessage; {
		end := wire.SkipValue(c.list, i)
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.Write(c.list[i:end])
		i, last = wire.Next(c.list, end, ']')
	}
	return "must be one of " + bounded(b.String())
}

// bare says whether s has nothing but annotations, and perhaps $ref.
func (s *constraint) bare() bool {
	a := s.inPlace
	return s.types == 0 && s.enum == nil && s.only == nil && s.format == nil && s.number == nil && s.text == nil && s.array == nil &&
		s.object == nil && (a == nil || a.all == nil && a.any == nil && a.one == nil && a.not == nil)
}

// settle notes what the validator wants to know at once.
func (s *constraint) settle() {
	s.starts = startsOf(s.types)
	if s.bare() {
		if s.idle = s.inPlace == nil; !s.idle {
			s.same, s.starts, s.inPlace = s.inPlace.ref, 0, nil
		}
	}
	if o := s.object; o != nil && o.extra != nil && o.extra.bare() && o.extra.inPlace == nil && o.extra.same == nil {
		o.extra = nil // any
	}
}

// startsOf are the types, as typeAt tells them, of the values that a schema with
// those types may take.
func startsOf(types typeSet) typeSet {
	switch {
	case types == 0:
		return anyType
	case types&typeInteger != 0:
		types |= typeNumber
	}
	return types &^ typeNone
}

// inPlaceCost counts the constraints that are applied to one value. It is not ok
// if there is no end to them, or too many to be worth it.
func (s *constraint) inPlaceCost() (n int, ok bool) {
	const most = 1000
	switch s.state {
	case visited:
		return s.cost, s.cost <= most
	case visiting:
		return 0, false
	case unvisited:
	}
	s.state, s.cost = visiting, 1
	add := func(list ...*constraint) bool {
		for _, sub := range list {
			if sub == nil {
				continue
			}
			n, ok := sub.inPlaceCost()
			if s.cost += n; !ok || s.cost > most {
				return false
			}
		}
		return true
	}
	if a := s.inPlace; a != nil && (!add(a.ref, a.not) || !add(a.all...) || !add(a.any...) || !add(a.one...)) {
		return 0, false
	}
	s.state = visited
	return s.cost, true
}
