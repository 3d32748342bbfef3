package schema

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/parley-mcp/parley/internal/wire"
)

// holder holds the text of a value against the clauses of a schema. What it
// cannot decide cheaply and for certain it leaves undecided, for the library:
// alternatives that take too many steps, values with a member twice.
type holder struct {
	trail
	program   int // of the schema
	wild      bool
	undecided bool
	checked   bool // by single
	// quiet holds while an alternative is tried, whose problems nobody wants
	// to know; missed says that it had one.
	quiet, missed bool
	left          int // clauses that may still be applied
	bytes         int // bytes that may still be read again
}

// check decides about raw, or leaves it undecided.
func (c *clauses) check(raw wire.RawValue, limit int) (err error, decided bool) {
	k := holder{program: c.program, left: limit, bytes: 1<<16 + 32*len(raw)} // stays on the stack
	k.raw = raw
	end := k.value(c.root, skipSpace(raw, 0))
	if !k.over() && skipSpace(raw, end) != len(raw) {
		k.broken = true
	}
	switch {
	case k.broken:
		return &Error{Problems: []Problem{{Reason: "not valid JSON"}}}, true
	case k.undecided:
		return nil, false
	case k.wild:
		return errWild(), true
	case len(k.problems) == 0:
		return nil, true
	case !k.single():
		return nil, false
	}
	return &Error{Problems: k.problems, More: k.more}, true
}

// single says whether no object has a member twice. Of those the last counts,
// while a walk meets each: as long as all of them fit that is the same, but
// not where one that does not fit, or their number, makes a difference.
func (k *holder) single() bool {
	if !k.checked {
		k.checked = true
		k.undecided = wire.Valid(k.raw, wire.Limits{Depth: maxNesting}) != nil
	}
	return !k.undecided
}

func (k *holder) over() bool {
	return k.broken || k.undecided || k.missed || k.more || k.wild
}

// leave ends the walk without a decision.
func (k *holder) leave(i int) int {
	k.undecided = true
	return i
}

func (k *holder) breakOff(i int) int {
	k.broken = true
	return i
}

// misses notes that the value does not fit, and says whether a reason is
// wanted.
func (k *holder) misses() bool {
	k.missed = k.quiet
	return !k.quiet
}

// value holds the value at i against s and returns the position after it. Once
// the walk is over, that is only how far it came.
func (k *holder) value(s *clause, i int) (end int) {
	for ; s.same != nil; s = s.same {
		k.left--
	}
	if k.left--; k.left < 0 {
		return k.leave(i)
	}
	if s.idle {
		return k.skip(i)
	}
	kind := typeAt(byteAt(k.raw, i))
	if s.never || s.types != 0 && s.types&kind == 0 && (kind != typeNumber || s.types&typeInteger == 0) {
		if end = k.skip(i); !k.over() {
			k.refuse(s, i)
		}
		return end
	}
	var fits bool
	switch kind {
	case typeObject, typeArray:
		end, fits = k.container(s, i)
	case typeString:
		end, fits = k.string(s, i)
	case typeNumber:
		end, fits = k.number(s, i)
	default:
		end, fits = k.word(s, i)
	}
	if s.inPlace && fits && !k.over() {
		k.inPlace(s, i, end)
	}
	return end
}

// refuse says which type was expected.
func (k *holder) refuse(s *clause, i int) {
	switch {
	case !k.misses():
	case s.never:
		k.fail("is not allowed here")
	default:
		k.fail("expected " + s.types.String() + ", got " + kindAt(k.raw[i]))
	}
}

// chosen notes that a value is not among the choices, which decides: nothing
// else is said about it.
func (k *holder) chosen(c *choices, ok bool) bool {
	if !ok && k.misses() {
		if c.list[0] == '[' {
			k.fail("must be one of " + c.String())
		} else {
			k.fail("must be " + c.String())
		}
	}
	return ok
}

// among says whether the value is allowed by enum and const.
func (k *holder) among(s *clause, has func(*choices) bool) bool {
	for _, c := range [...]*choices{s.only, s.enum} {
		if c != nil && !k.chosen(c, has(c)) {
			return false
		}
	}
	return true
}

// word holds true, false or null against s. It does not fit if nothing more
// is to be said.
func (k *holder) word(s *clause, i int) (end int, fits bool) {
	if end = strictWord(k.raw, i); end < 0 {
		return k.breakOff(i), false
	}
	return end, k.among(s, func(c *choices) bool {
		switch k.raw[i] {
		case 't':
			return c.yes
		case 'f':
			return c.no
		}
		return c.types&typeNull != 0
	})
}

func (k *holder) numberEnd(i int) (end int, plain bool) {
	end, plain, exponent := strictNumber(k.raw, i)
	if end < 0 {
		return k.breakOff(i), false
	}
	if (exponent || end-i > maxDigits) && isWild(k.raw[i:end]) {
		k.wild = true
	}
	return end, plain
}

func (k *holder) number(s *clause, i int) (end int, fits bool) {
	end, plain := k.numberEnd(i)
	if k.over() {
		return end, false
	}
	whole := s.types&(typeInteger|typeNumber) == typeInteger
	if s.number == nil && s.enum == nil && s.only == nil && (plain || !whole) {
		return end, true
	}
	d := readDecimal(k.raw[i:end])
	if whole && !d.isInteger() {
		if k.misses() {
			k.fail("expected " + s.types.String() + ", got a number with a fraction")
		}
		return end, false
	}
	if !k.among(s, func(c *choices) bool { return c.hasNumber(&d) }) {
		return end, false
	}
	if s.number != nil {
		k.bounds(s.number, &d)
	}
	return end, true
}

func (k *holder) bounds(n *numberClause, d *decimal) {
	for i := range n.bounds {
		b := &n.bounds[i]
		if c := d.compare(&b.limit); (c == b.sign || c == 0 && b.excludes) && k.misses() {
			k.fail(b.text)
		}
	}
	if n.multiple != nil && !n.multiple.divides(d) && k.misses() {
		k.fail(n.step)
	}
}

// stringEnd returns the position after the string at i.
func (k *holder) stringEnd(i int) (end int, escaped bool) {
	end, escaped, trouble := strictString(k.raw, i)
	switch trouble {
	case notJSON:
		return k.breakOff(end), escaped
	case odd:
		return k.leave(end), escaped
	case fine:
	}
	return end, escaped
}

func (k *holder) string(s *clause, i int) (end int, fits bool) {
	end, escaped := k.stringEnd(i)
	if k.over() || s.enum == nil && s.only == nil && s.format == nil && s.text == nil {
		return end, true
	}
	text := k.inner(i, end, escaped)
	if !k.among(s, func(c *choices) bool { return c.hasText(text) }) {
		return end, false
	}
	if s.format != nil && s.format.Validate(string(text)) != nil {
		if k.misses() {
			k.fail("expected the format " + bounded(s.format.Name))
		}
		return end, false
	}
	if s.text == nil {
		return end, true
	}
	if s.text.length != anyLength {
		k.length(s.text.length, utf8.RuneCount(text), "character")
	}
	if p := s.text.pattern; p != nil {
		if len(text) > maxMatching/k.program {
			return k.leave(end), false
		}
		if !p.Match(text) && k.misses() {
			k.fail("must match the pattern " + bounded(p.String()))
		}
	}
	return end, true
}

// length checks the length of a string, array or object.
func (k *holder) length(want extents, got int, unit string) {
	if got < want.min && k.misses() {
		k.fail(sized("at least", want.min, unit, got))
	}
	if want.max >= 0 && got > want.max && k.misses() {
		k.fail(sized("at most", want.max, unit, got))
	}
}

// container holds an object or array against s.
func (k *holder) container(s *clause, i int) (end int, fits bool) {
	if k.depth++; k.depth > maxNesting {
		return k.leave(i), false
	}
	steps := k.steps
	switch {
	case s.only != nil || s.enum != nil:
		end = k.inside(i) // the choices are scalars
		if !k.over() {
			fits = k.among(s, func(*choices) bool { return false })
		}
	case k.raw[i] == '{' && s.object != nil:
		end, fits = k.object(s.object, i), true
	case k.raw[i] == '[' && s.array != nil:
		end, fits = k.array(s.array, i), true
	default:
		end, fits = k.inside(i), true
	}
	k.depth--
	k.steps = steps
	return end, fits
}

// skip reads any value.
func (k *holder) skip(i int) (end int) {
	switch c := byteAt(k.raw, i); typeAt(c) {
	case typeObject, typeArray:
		if k.depth++; k.depth > maxNesting {
			return k.leave(i)
		}
		end = k.inside(i)
		k.depth--
		return end
	case typeString:
		end, _ = k.stringEnd(i)
		return end
	case typeNumber:
		end, _ = k.numberEnd(i)
		return end
	default:
		if end = strictWord(k.raw, i); end < 0 {
			return k.breakOff(i)
		}
		return end
	}
}

// inside skips the object or array at i.
func (k *holder) inside(i int) int {
	shut := k.raw[i] + 2 // ASCII has '}' two after '{', and ']' two after '['
	i, last := first(k.raw, i, shut)
	for !last && !k.over() {
		if shut == '}' {
			if _, _, i = k.name(i); k.over() {
				return i
			}
		}
		end := k.skip(i)
		if k.over() {
			return end
		}
		if i, last = next(k.raw, end, shut); i < 0 {
			return k.breakOff(end)
		}
	}
	return i
}

// name reads the name of the member at i.
func (k *holder) name(i int) (nameEnd int, escaped bool, value int) {
	if byteAt(k.raw, i) != '"' {
		return i, false, k.breakOff(i)
	}
	nameEnd, escaped = k.stringEnd(i)
	if k.over() {
		return nameEnd, escaped, nameEnd
	}
	colon := skipSpace(k.raw, nameEnd)
	if byteAt(k.raw, colon) != ':' {
		return nameEnd, escaped, k.breakOff(colon)
	}
	return nameEnd, escaped, skipSpace(k.raw, colon+1)
}

func (k *holder) object(o *objectClause, i int) int {
	var seen present
	seen.make(len(o.members))
	missing, count, expect := o.required, 0, 0
	i, last := first(k.raw, i, '}')
	for !last {
		nameEnd, escaped, value := k.name(i)
		if k.over() {
			return value
		}
		s := o.extra
		if at := o.find(k.inner(i, nameEnd, escaped), expect); at >= 0 {
			expect = at + 1
			m := &o.members[at]
			if m.required && !seen.add(at) {
				missing--
			}
			if m.clause != nil {
				s = m.clause
			}
		}
		end := k.member(o, s, i, nameEnd, value)
		if k.over() {
			return end
		}
		count++
		if i, last = next(k.raw, end, '}'); i < 0 {
			return k.breakOff(end)
		}
	}
	if o.length != anyLength && k.single() {
		k.length(o.length, count, "member")
	}
	if missing > 0 && k.misses() {
		k.fail(o.missing(&seen))
	}
	return i
}

// member holds the value of one member against s.
func (k *holder) member(o *objectClause, s *clause, name, nameEnd, value int) (end int) {
	switch {
	case s == nil:
		return k.skip(value)
	case s == o.extra && o.closed:
		if k.misses() {
			k.fail("unknown member " + quoted(string(unquote(nil, k.raw[name+1:nameEnd-1]))))
		}
		if k.over() {
			return value
		}
		return k.skip(value)
	}
	k.push(name, nameEnd)
	end = k.value(s, value)
	k.pop()
	return end
}

func (k *holder) array(a *arrayClause, i int) int {
	start, count := i, 0
	i, last := first(k.raw, i, ']')
	for !last {
		s := a.items
		if count < len(a.prefix) {
			s = a.prefix[count]
		}
		var end int
		if s == nil {
			end = k.skip(i)
		} else {
			k.push(count, 0)
			end = k.value(s, i)
			k.pop()
		}
		if k.over() {
			return end
		}
		count++
		if i, last = next(k.raw, end, ']'); i < 0 {
			return k.breakOff(end)
		}
	}
	k.length(a.length, count, "item")
	if a.unique && count > 1 && !k.over() {
		k.unique(start, count)
	}
	return i
}

// unique checks that the items of the array at i, a few scalars, differ.
func (k *holder) unique(i, count int) {
	const most = 32
	if count > most {
		k.undecided = true
		return
	}
	var room [most]int
	items := room[:0]
	i, last := first(k.raw, i, ']')
	for !last {
		if c := k.raw[i]; c == '{' || c == '[' {
			k.undecided = true
			return
		}
		for at, other := range items {
			if k.equal(other, i) {
				if k.misses() {
					k.fail("items " + strconv.Itoa(at) + " and " + strconv.Itoa(len(items)) + " must differ")
				}
				return
			}
		}
		items = append(items, i)
		i, last = next(k.raw, skipValue(k.raw, i), ']')
	}
}

// equal says whether the scalars at i and j are the same value.
func (k *holder) equal(i, j int) bool {
	kind := typeAt(k.raw[i])
	if kind != typeAt(k.raw[j]) {
		return false
	}
	a, b := k.raw[i:skipValue(k.raw, i)], k.raw[j:skipValue(k.raw, j)]
	switch kind {
	case typeNumber:
		x, y := readDecimal(a), readDecimal(b)
		return x.compare(&y) == 0
	case typeString:
		return sameText(a, b)
	default:
		return string(a) == string(b)
	}
}

// sameText compares two string literals without their escapes.
func sameText(a, b []byte) bool {
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return string(a) == string(b)
	}
	return string(unquote(nil, a[1:len(a)-1])) == string(unquote(nil, b[1:len(b)-1]))
}

// inPlace applies to the value from i to end what else its schema applies.
func (k *holder) inPlace(s *clause, i, end int) {
	if s.ref != nil {
		k.again(s.ref, i)
	}
	for _, sub := range s.all {
		if k.over() {
			return
		}
		k.again(sub, i)
	}
	if s.any != nil && !k.over() {
		k.anyOf(s.any, i)
	}
	if s.not == nil && s.one == nil || k.over() || typeAt(k.raw[i])&(typeObject|typeArray) != 0 && !k.single() {
		return
	}
	if s.not != nil && k.tries(s.not, i) && k.misses() {
		k.fail("fits what is excluded")
	}
	if s.one != nil && !k.over() {
		k.oneOf(s.one, i)
	}
}

// again holds the value at i against one more schema.
func (k *holder) again(s *clause, i int) {
	end := k.value(s, i)
	if k.bytes -= end - i; k.bytes < 0 && !k.broken {
		k.undecided = true
	}
}

// tries says whether the value at i fits s; it does not if the walk is over.
func (k *holder) tries(s *clause, i int) bool {
	quiet, steps, depth := k.quiet, k.steps, k.depth
	k.quiet = true
	k.again(s, i)
	fits := !k.over()
	k.quiet, k.missed, k.steps, k.depth = quiet, false, steps, depth
	return fits
}

func (k *holder) anyOf(list []*clause, i int) {
	for _, s := range list {
		if k.tries(s, i) || k.over() {
			return
		}
	}
	if k.misses() {
		k.fail("fits none of the alternatives")
	}
}

func (k *holder) oneOf(list []*clause, i int) {
	fitting := 0
	for _, s := range list {
		if k.tries(s, i) {
			fitting++
		}
		if k.over() {
			return
		}
		if fitting > 1 {
			if k.misses() {
				k.fail("fits more than one of the alternatives")
			}
			return
		}
	}
	if fitting == 0 && k.misses() {
		k.fail("fits none of the alternatives")
	}
}
