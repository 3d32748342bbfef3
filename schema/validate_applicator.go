package schema

import "errors"

// inPlace applies other schemas to the value from i to end.
func (v *validator) inPlace(a *applicators, i, end int) {
	if a.ref != nil {
		v.again(a.ref, i)
	}
	if a.own != nil {
		v.own(a.own, i, end)
	}
	for _, sub := range a.all {
		if v.over() {
			return
		}
		v.again(sub, i)
	}
	if a.any != nil && !v.over() {
		v.alternatives(a.any, i, false)
	}
	if a.not == nil && a.one == nil || v.over() || typeAt(v.raw[i])&(typeObject|typeArray) != 0 && !v.isDistinct() {
		return
	}
	if a.not != nil && v.tries(a.not, i) && v.reports() {
		v.fail("fits what is excluded")
	}
	if a.one != nil && !v.over() {
		v.alternatives(a.one, i, true)
	}
}

// again validates the value at i against one more schema.
func (v *validator) again(s *constraint, i int) {
	end := v.value(s, i)
	if v.bytes -= end - i; v.bytes < 0 && (v.state == walking || v.state == unfit) {
		v.state = undecided
	}
}

// tries says whether the value at i fits s; it does not if the walk is over.
func (v *validator) tries(s *constraint, i int) bool {
	quiet, steps, depth := v.quiet, v.steps, v.depth
	v.quiet = true
	v.again(s, i)
	fits := !v.over()
	if v.state == unfit {
		v.state = walking
	}
	v.quiet, v.steps, v.depth = quiet, steps, depth
	return fits
}

// alternatives validates the value at i against several schemas, one of which
// must fit, or only one.
func (v *validator) alternatives(list []*constraint, i int, only bool) {
	fitting := 0
	for _, s := range list {
		if v.tries(s, i) {
			fitting++
		}
		if v.over() || fitting == 1 && !only {
			return
		}
		if fitting > 1 {
			if v.reports() {
				v.fail("fits more than one of the alternatives")
			}
			return
		}
	}
	if fitting == 0 && v.reports() {
		v.fail("fits none of the alternatives")
	}
}

// own validates the value from i to end against the schema that its Go type has
// given.
func (v *validator) own(c *Compiled, i, end int) {
	err := c.Check(v.raw[i:end])
	var e *Error
	switch {
	case err == nil:
	case errors.As(err, &e):
		here := v.pointer()
		for _, p := range e.Problems {
			if len(v.problems) == MaxProblems {
				v.state = full
				return
			}
			v.problems = append(v.problems, Problem{Pointer: here + p.Pointer, Reason: p.Reason})
		}
		if e.More {
			v.state = full
		}
	default:
		v.fail(err.Error())
	}
}
