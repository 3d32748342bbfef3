package schema

import (
	"math"

	"github.com/parley-mcp/parley/internal/wire"
)

// maxNesting bounds recursion over texts that did not pass the wire's bound.
const maxNesting = 1000

// validator validates the text of one value in one pass. What it cannot decide
// cheaply and for certain about a foreign schema it leaves undecided, for the
// library: alternatives that take too many steps, values with a member twice.
// About an inferred schema it decides always; it trusts that the text has
// passed the strict pass of internal/wire.
type validator struct {
	cursor
	schema   *constraints
	state    state
	problems []Problem
	depth    int
	scratch  []byte
	quiet    bool // while an alternative is tried, whose problems are not reported
	distinct bool // no object has a member twice
	left     int  // constraints that may still be applied
	bytes    int  // bytes that may still be read again
	respelt  []respelling
}

// state says why a walk is over:
//
//	walking ──┬─→ full        there are more problems than are listed
//	          ├─→ notJSON     the text is not JSON
//	          ├─→ longNumber  a number has too many digits to compute with
//	          ├─→ undecided   the library has to decide
//	          └─→ unfit       the alternative does not fit (only while quiet)
//	walking ←── unfit         the next alternative is tried
//	unfit ──→ undecided       the text has been read too often
type state uint8

const (
	walking state = iota
	full
	notJSON
	longNumber
	undecided
	unfit
)

func (v *validator) over() bool { return v.state != walking }

// stop ends the walk.
func (v *validator) stop(s state, i int) int {
	if v.state == walking {
		v.state = s
	}
	return i
}

// run validates raw, or leaves it undecided.
func (v *validator) run(c *constraints, raw wire.RawValue, limit int) (err error, decided bool) {
	v.schema, v.raw, v.left, v.bytes = c, raw, limit, 1<<16+32*len(raw)
	end := v.value(c.root, wire.SkipSpace(raw, 0))
	if !v.over() && wire.SkipSpace(raw, end) != len(raw) {
		v.state = notJSON
	}
	switch v.state {
	case notJSON:
		return errNotJSON(), true
	case undecided:
		return nil, false
	case longNumber:
		return errLongNumber(), true
	default:
	}
	if len(v.problems) == 0 {
		return nil, true
	}
	more := v.state == full
	if !v.isDistinct() {
		return nil, false
	}
	return &Error{Problems: v.problems, More: more}, true
}

// validate decides about raw, or leaves it undecided. It applies at most limit
// constraints.
func (c *constraints) validate(raw wire.RawValue, limit int) (err error, decided bool) {
	var v validator // stays on the stack
	return v.run(c, raw, limit)
}

// validateGo decides about raw by the constraints of a Go type, and returns it
// with its integers spelt as Go's decoders want them: nearly always raw itself.
func (c *constraints) validateGo(raw wire.RawValue) (wire.RawValue, error) {
	var v validator
	if err, _ := v.run(c, raw, math.MaxInt); err != nil {
		return nil, err
	}
	return v.respell(), nil
}

// respell returns raw with its integers spelt as Go's decoders want them, whether
// it fits or not.
func (c *constraints) respell(raw wire.RawValue) wire.RawValue {
	var v validator
	_, _ = v.run(c, raw, math.MaxInt)
	if v.over() {
		return raw
	}
	return v.respell()
}

// isDistinct says whether no object has a member twice. Of those the last
// counts, while a walk meets each: as long as all of them fit that is the same,
// but not where one that does not fit, or their number, makes a difference.
func (v *validator) isDistinct() bool {
	if !v.distinct && !v.schema.inferred {
		if wire.Valid(v.raw, wire.Limits{Depth: maxNesting}) != nil {
			v.state = undecided
			return false
		}
		v.distinct = true
	}
	return true
}

// fail notes a problem at the current place. Once there are too many, the walk
// ends.
func (v *validator) fail(reason string) {
	if len(v.problems) == MaxProblems {
		v.state = full
		return
	}
	v.problems = append(v.problems, Problem{Pointer: v.pointer(), Reason: reason})
}

// reports notes that the value does not fit, and says whether a reason is wanted.
func (v *validator) reports() bool {
	if v.quiet {
		v.stop(unfit, 0)
	}
	return !v.quiet
}

// value validates the value at i and returns the position after it. Once the
// walk is over, that is only how far it came.
func (v *validator) value(s *constraint, i int) (end int) {
	kind := typeAt(wire.At(v.raw, i))
	for ; s.same != nil; s = s.same {
		if v.left--; s.starts&kind != 0 {
			return v.skip(i)
		}
	}
	if v.left--; v.left < 0 {
		return v.stop(undecided, i)
	}
	if s.idle {
		return v.skip(i)
	}
	if s.starts&kind == 0 {
		if end = v.skip(i); !v.over() {
			v.refuse(s, i)
		}
		return end
	}
	var fits bool
	switch kind {
	case typeObject, typeArray:
		end, fits = v.container(s, i)
	case typeString:
		end, fits = v.string(s, i)
	case typeNumber:
		end, fits = v.number(s, i)
	default:
		end, fits = v.word(s, i)
	}
	if s.inPlace != nil && fits && !v.over() {
		v.inPlace(s.inPlace, i, end)
	}
	return end
}

// refuse says which type was expected.
func (v *validator) refuse(s *constraint, i int) {
	switch {
	case !v.reports():
	case s.types == typeNone:
		v.fail("is not allowed here")
	default:
		v.fail("expected " + s.types.String() + ", got " + wire.Kind(v.raw[i]))
	}
}

// skip reads any value.
func (v *validator) skip(i int) (end int) {
	switch typeAt(wire.At(v.raw, i)) {
	case typeObject, typeArray:
		if v.depth++; v.depth > maxNesting {
			return v.tooDeep(i)
		}
		end = v.inside(i)
		v.depth--
		return end
	case typeString:
		end, _ = v.stringEnd(i)
		return end
	case typeNumber:
		end, _ = v.numberEnd(i)
		return end
	default:
		return v.wordEnd(i)
	}
}

func (v *validator) tooDeep(i int) int {
	if v.schema.inferred {
		return v.stop(notJSON, i)
	}
	return v.stop(undecided, i)
}

// inside skips the object or array at i.
func (v *validator) inside(i int) int {
	if v.schema.inferred {
		if end := wire.SkipValue(v.raw, i); end >= 0 {
			return end
		}
		return v.stop(notJSON, i)
	}
	shut := v.raw[i] + 2 // ASCII has '}' two after '{', and ']' two after '['
	i, last := wire.First(v.raw, i, shut)
	for !last && !v.over() {
		if shut == '}' {
			if _, _, i = v.name(i); v.over() {
				return i
			}
		}
		end := v.skip(i)
		if v.over() {
			return end
		}
		if i, last = wire.Next(v.raw, end, shut); i < 0 {
			return v.stop(notJSON, end)
		}
	}
	return i
}

// name reads the name of the member at i.
func (v *validator) name(i int) (nameEnd int, escaped bool, value int) {
	if wire.At(v.raw, i) != '"' {
		return i, false, v.stop(notJSON, i)
	}
	nameEnd, escaped = v.stringEnd(i)
	if v.over() {
		return nameEnd, escaped, nameEnd
	}
	colon := wire.SkipSpace(v.raw, nameEnd)
	if wire.At(v.raw, colon) != ':' {
		return nameEnd, escaped, v.stop(notJSON, colon)
	}
	return nameEnd, escaped, wire.SkipSpace(v.raw, colon+1)
}

// inner returns the content of the string literal from at to end, valid until
// the next call. It is inlined.
func (v *validator) inner(at, end int, escaped bool) []byte {
	if !escaped {
		return v.raw[at+1 : end-1]
	}
	return v.unescaped(at, end)
}

//go:noinline
func (v *validator) unescaped(at, end int) []byte {
	v.scratch = wire.AppendUnquoted(v.scratch[:0], v.raw[at:end])
	return v.scratch
}
