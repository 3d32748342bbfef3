package schema

import (
	"strconv"

	"github.com/parley-mcp/parley/internal/wire"
)

// container validates an object or array.
func (v *validator) container(s *constraint, i int) (end int, fits bool) {
	if v.depth++; v.depth > maxNesting {
		return v.tooDeep(i), false
	}
	steps := v.steps
	switch {
	case s.only != nil || s.enum != nil:
		end = v.inside(i) // the choices are scalars
		if !v.over() {
			fits = v.isChoice(s, func(*choices) bool { return false })
		}
	case v.raw[i] == '{' && s.object != nil:
		end, fits = v.object(s.object, i), true
	case v.raw[i] == '[' && s.array != nil:
		end, fits = v.array(s.array, i), true
	default:
		end, fits = v.inside(i), true
	}
	v.depth--
	v.steps = steps
	return end, fits
}

func (v *validator) object(o *objectConstraint, i int) int {
	var seen memberSet
	seen.make(len(o.members))
	missing, count, expect := o.required, 0, 0
	i, last := wire.First(v.raw, i, '}')
	for !last {
		var nameEnd, value int
		var escaped bool
		if v.schema.inferred {
			nameEnd, escaped, value = wire.MemberAt(v.raw, i)
		} else {
			nameEnd, escaped, value = v.name(i)
		}
		if v.over() || nameEnd < 0 {
			return v.stop(notJSON, value)
		}
		name := v.inner(i, nameEnd, escaped)
		at := o.find(name, expect)
		var end int
		if at < 0 {
			end = v.other(o, name, i, nameEnd, value)
		} else {
			expect = at + 1
			again := seen.add(at)
			if o.members[at].required && !again {
				missing--
			}
			end = v.member(o, at, again, i, nameEnd, value)
		}
		if v.over() {
			return end
		}
		count++
		if i, last = wire.Next(v.raw, end, '}'); i < 0 {
			return v.stop(notJSON, end)
		}
	}
	if o.length != anyLength && v.isDistinct() {
		v.length(o.length, count, "member")
	}
	if missing > 0 && v.reports() {
		v.lacks(o, &seen)
	}
	return i
}

// lacks reports members that are required and absent: those of a Go type one by
// one.
func (v *validator) lacks(o *objectConstraint, seen *memberSet) {
	list := o.missing(seen)
	if !v.schema.inferred {
		v.fail(required(list))
		return
	}
	for i := range list {
		v.fail(required(list[i : i+1]))
	}
}

// member validates a member that the schema names; again says that it has been
// met before.
func (v *validator) member(o *objectConstraint, at int, again bool, name, nameEnd, value int) (end int) {
	m := &o.members[at]
	if m.constraint == nil {
		return v.other(o, nil, name, nameEnd, value)
	}
	v.push(name, nameEnd)
	if !v.schema.inferred {
		end = v.value(m.constraint, value)
		v.pop()
		return end
	}
	if again {
		v.fail("the member is given twice")
	}
	before := len(v.problems)
	end = v.value(m.constraint, value)
	if !m.required && len(v.problems) == before+1 && wire.At(v.raw, value) == 'n' {
		// People write null for a member that is absent.
		v.problems[before].Reason += " (the member is optional: leave it out)"
	}
	v.pop()
	return end
}

// other validates a member that the schema does not name, or not more.
func (v *validator) other(o *objectConstraint, text []byte, name, nameEnd, value int) (end int) {
	switch {
	case o.closed:
		if v.reports() {
			v.fail("unknown member " + wire.QuoteName(wire.Text(v.raw[name:nameEnd])))
		}
		if v.over() {
			return value
		}
		return v.skip(value)
	case o.extra == nil:
		return v.skip(value)
	}
	v.push(name, nameEnd)
	if o.keys != nil && !o.keys.valid(text) {
		v.fail("the member's name must be an integer in the range of its type")
	}
	end = v.value(o.extra, value)
	v.pop()
	return end
}

func (v *validator) array(a *arrayConstraint, i int) int {
	start, count := i, 0
	i, last := wire.First(v.raw, i, ']')
	for !last {
		s := a.items
		if count < len(a.prefix) {
			s = a.prefix[count]
		}
		var end int
		if s == nil {
			end = v.skip(i)
		} else {
			v.push(count, 0)
			end = v.value(s, i)
			v.pop()
		}
		if v.over() {
			return end
		}
		count++
		if i, last = wire.Next(v.raw, end, ']'); i < 0 {
			return v.stop(notJSON, end)
		}
	}
	v.length(a.length, count, "item")
	if a.unique && count > 1 && !v.over() {
		v.unique(start, count)
	}
	return i
}

// unique checks that the items of the array at i, a few scalars, differ.
func (v *validator) unique(i, count int) {
	const most = 32
	if count > most {
		v.state = undecided
		return
	}
	var room [most]wire.RawValue
	items := room[:0]
	i, last := wire.First(v.raw, i, ']')
	for !last {
		if c := v.raw[i]; c == '{' || c == '[' {
			v.state = undecided
			return
		}
		end := wire.SkipValue(v.raw, i)
		for at, other := range items {
			if wire.EqualValid(other, v.raw[i:end]) {
				if v.reports() {
					v.fail("items " + strconv.Itoa(at) + " and " + strconv.Itoa(len(items)) + " must differ")
				}
				return
			}
		}
		items = append(items, v.raw[i:end])
		i, last = wire.Next(v.raw, end, ']')
	}
}
