package schema

import (
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

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
)

// typeNames are the names of the types, in the order of their bits.
var typeNames = [...]string{"null", "boolean", "number", "integer", "string", "array", "object"}

func typeNamed(name string) typeSet {
	for i, n := range typeNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// typeAt returns the type of the value that starts with c, or 0 if none does.
func typeAt(c byte) typeSet {
	switch c {
	case '{':
		return typeObject
	case '[':
		return typeArray
	case '"':
		return typeString
	case 't', 'f':
		return typeBoolean
	case 'n':
		return typeNull
	}
	if c == '-' || '0' <= c && c <= '9' {
		return typeNumber
	}
	return 0
}

func (s typeSet) String() string {
	var list []string
	for i, name := range typeNames {
		if s&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return strings.Join(list, " or ")
}

// clause is one schema of a foreign schema that keeps to the common keywords,
// ready to be held against the text of a value. What it does not say holds. It
// is not changed once it is compiled.
type clause struct {
	at      int     // where it starts in the text of the schema
	never   bool    // the schema false
	idle    bool    // says nothing at all
	types   typeSet // 0: any
	enum    *choices
	only    *choices // const
	format  *jsonschema.Format
	number  *numberClause
	text    *textClause
	array   *arrayClause
	object  *objectClause
	ref     *clause
	all     []*clause
	any     []*clause
	one     []*clause
	not     *clause
	inPlace bool    // has one of the last five
	same    *clause // if it says no more than $ref

	// Of the count of what is applied to one value.
	state visit
	cost  int
}

// choices are scalars, one of which a value must be.
type choices struct {
	list    wire.RawValue // the array, or one value, as in the schema
	types   typeSet       // null; true and false are below
	yes, no bool
	strings []string
	numbers []decimal
	index   map[string]struct{} // of strings, if there are many
}

// numberClause bounds numbers.
type numberClause struct {
	bounds   []bound
	multiple *divisor
	step     string // the divisor as in the schema
}

// bound is one bound of a number, which compares as sign to the limit if it is
// beyond; meeting the limit is beyond too if the bound excludes it.
type bound struct {
	limit    decimal
	sign     int
	excludes bool
	text     string
}

// extents are bounds of a length; -1 for none.
type extents struct{ min, max int }

var anyLength = extents{-1, -1}

// textClause bounds strings.
type textClause struct {
	length  extents
	pattern *regexp.Regexp
}

// arrayClause bounds arrays.
type arrayClause struct {
	length extents
	unique bool
	prefix []*clause
	items  *clause // of the items after prefix; nil: any
}

// objectClause bounds objects.
type objectClause struct {
	length   extents
	members  []memberClause
	index    map[string]int // of members, if there are many
	required int            // how many are
	closed   bool           // other members are refused
	extra    *clause        // of other members; nil: any
}

// memberClause is what is known of a member.
type memberClause struct {
	name     string
	clause   *clause // nil: it is only required, and else as other members are
	required bool
}

// find returns the position of a member, starting at the one expected, or -1.
func (o *objectClause) find(name []byte, expect int) int {
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

// missing says which required members were not seen.
func (o *objectClause) missing(seen *present) string {
	var list []string
	for i := range o.members {
		if o.members[i].required && !seen.has(i) {
			list = append(list, o.members[i].name)
		}
	}
	return required(list)
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

func (c *choices) hasNumber(d *decimal) bool {
	for i := range c.numbers {
		if d.compare(&c.numbers[i]) == 0 {
			return true
		}
	}
	return false
}

// String lists the choices as a report shows them.
func (c *choices) String() string {
	if byteAt(c.list, 0) != '[' {
		return bounded(string(c.list))
	}
	var b strings.Builder
	for i, last := first(c.list, 0, ']'); !last && b.Len() <= maxMessage; {
		end := skipValue(c.list, i)
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.Write(c.list[i:end])
		i, last = next(c.list, end, ']')
	}
	return bounded(b.String())
}

// inPlaceCost counts the clauses that are applied to one value. It is not ok if
// there is no end to them, or too many to be worth it.
func (c *clause) inPlaceCost() (n int, ok bool) {
	const most = 1000
	switch c.state {
	case visited:
		return c.cost, c.cost <= most
	case visiting:
		return 0, false
	case unvisited:
	}
	c.state, c.cost = visiting, 1
	add := func(list ...*clause) bool {
		for _, sub := range list {
			if sub == nil {
				continue
			}
			n, ok := sub.inPlaceCost()
			if c.cost += n; !ok || c.cost > most {
				return false
			}
		}
		return true
	}
	if !add(c.ref, c.not) || !add(c.all...) || !add(c.any...) || !add(c.one...) {
		return 0, false
	}
	c.state = visited
	return c.cost, true
}

// alone says whether s has nothing but annotations, and perhaps $ref.
func (c *clause) alone() bool {
	return !c.never && c.types == 0 && c.enum == nil && c.only == nil && c.format == nil && c.number == nil && c.text == nil &&
		c.array == nil && c.object == nil && c.all == nil && c.any == nil && c.one == nil && c.not == nil
}

// settle notes what the check wants to know at once.
func (c *clause) settle() {
	c.inPlace = c.ref != nil || c.all != nil || c.any != nil || c.one != nil || c.not != nil
	if c.alone() {
		c.idle, c.same = c.ref == nil, c.ref
	}
	if o := c.object; o != nil && o.extra != nil && o.extra.alone() && o.extra.ref == nil {
		o.extra = nil // any
	}
}
