package schema

import (
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/parley-mcp/parley/internal/wire"
)

// failChoice notes that a value is not among the choices.
func (v *validator) failChoice(c *choices, ok bool) bool {
	if !ok && v.reports() {
		v.fail(c.refusal())
	}
	return ok
}

// isChoice says whether the value is allowed by enum and const.
func (v *validator) isChoice(s *constraint, has func(*choices) bool) bool {
	for _, c := range [...]*choices{s.only, s.enum} {
		if c != nil && !v.failChoice(c, has(c)) {
			return false
		}
	}
	return true
}

func (v *validator) wordEnd(i int) int {
	end, err := wire.ScanWord(v.raw, i)
	if err != nil {
		return v.stop(notJSON, i)
	}
	return end
}

// word validates true, false or null. It does not fit if nothing more is to be
// said, as is so for the methods of other kinds of values.
func (v *validator) word(s *constraint, i int) (end int, fits bool) {
	if end = v.wordEnd(i); v.over() {
		return end, false
	}
	return end, v.isChoice(s, func(c *choices) bool { return c.hasWord(v.raw[i]) })
}

// numberEnd returns the position after the number at i. A plain one has neither
// fraction nor exponent.
func (v *validator) numberEnd(i int) (end int, plain bool) {
	end, form, err := wire.ScanNumber(v.raw, i)
	if err != nil {
		return v.stop(notJSON, i), false
	}
	if (form == wire.ExponentNumber || end-i > maxDigits) && !v.schema.inferred && wire.IsLong(v.raw[i:end], maxDigits) {
		v.stop(longNumber, i)
	}
	return end, form == wire.PlainNumber
}

func (v *validator) number(s *constraint, i int) (end int, fits bool) {
	n := s.number
	if v.schema.inferred && n != nil {
		end = wire.SkipScalar(v.raw, i)
		switch tok := v.raw[i:end]; {
		case n.float != nil:
			v.float(n.float, n.enum, tok)
			return end, true
		case n.fitsPlain(tok):
			return end, true
		}
	}
	end, plain := v.numberEnd(i)
	if v.over() {
		return end, false
	}
	whole := s.types&(typeInteger|typeNumber) == typeInteger
	if n == nil && s.enum == nil && s.only == nil && (plain || !whole) {
		return end, true
	}
	d := wire.ReadDecimal(v.raw[i:end])
	if whole && !d.IsInteger() {
		if v.reports() {
			v.fail("expected " + s.types.String() + ", got a number with a fraction")
		}
		return end, false
	}
	if (s.enum != nil || s.only != nil) && !v.isChoice(s, func(c *choices) bool { return c.hasNumber(&d) }) {
		return end, false
	}
	if n != nil {
		within := v.bounds(n, &d)
		if n.enum != nil && within {
			v.failChoice(n.enum, n.enum.hasNumber(&d))
		}
		if v.schema.inferred && (!plain || n.unsigned && v.raw[i] == '-') {
			v.respelt = append(v.respelt, respelling{i, end, d.Integer()})
		}
	}
	return end, true
}

// fitsPlain says whether it is plain that an integer fits.
func (n *numberConstraint) fitsPlain(tok []byte) bool {
	small, ok := wire.PlainInteger(tok)
	return ok && n.lo <= small && small <= n.hi && (tok[0] != '-' || !n.unsigned)
}

// bounds says whether a number is within its bounds.
func (v *validator) bounds(n *numberConstraint, d *wire.Decimal) (within bool) {
	within = true
	for i := range n.bounds {
		b := &n.bounds[i]
		if c := d.Compare(&b.limit); c == b.sign || c == 0 && b.excludes {
			if within = false; v.reports() {
				v.fail(b.reason)
			}
		}
	}
	if n.multiple != nil && !n.multiple.Divides(d) && v.reports() {
		v.fail(n.step)
	}
	return within
}

// float validates the value that a Go float would have: the nearest one.
func (v *validator) float(f *floatConstraint, enum *choices, tok []byte) {
	value, err := strconv.ParseFloat(string(tok), f.bits)
	switch {
	case err != nil || value < f.lo || value > f.hi:
		v.fail(f.reason)
	case enum != nil:
		v.failChoice(enum, slices.Contains(f.enum, value))
	}
}

// respelling is an integer such as 1.0 or 1e3, which is one to JSON Schema but
// not to Go's decoders.
type respelling struct {
	at, end int
	text    string // "" for one that no decoder takes
}

// respell returns the text with its integers spelt as Go's decoders want them.
func (v *validator) respell() wire.RawValue {
	if len(v.respelt) == 0 {
		return v.raw
	}
	var dst []byte
	from := 0
	for _, r := range v.respelt {
		if r.text != "" {
			dst = append(append(dst, v.raw[from:r.at]...), r.text...)
			from = r.end
		}
	}
	return append(dst, v.raw[from:]...)
}

// stringEnd returns the position after the string at i.
func (v *validator) stringEnd(i int) (end int, escaped bool) {
	if v.schema.inferred {
		if end, escaped = wire.SkipString(v.raw, i); end < 0 {
			end = v.stop(notJSON, i)
		}
		return end, escaped
	}
	end, escaped, err := wire.ScanString(v.raw, i)
	switch {
	case err == nil:
		return end, escaped
	case errors.Is(err, wire.ErrUTF8):
		return v.stop(undecided, i), escaped // the library replaces what is broken
	}
	return v.stop(notJSON, i), escaped
}

func (v *validator) string(s *constraint, i int) (end int, fits bool) {
	var escaped bool
	if v.schema.inferred {
		if end, escaped = wire.SkipString(v.raw, i); end < 0 {
			return v.stop(notJSON, i), false
		}
	} else {
		end, escaped = v.stringEnd(i)
	}
	t := s.text
	if v.over() || t == nil && s.enum == nil && s.only == nil && s.format == nil {
		return end, true
	}
	text := v.inner(i, end, escaped)
	if (s.enum != nil || s.only != nil) && !v.isChoice(s, func(c *choices) bool { return c.hasText(text) }) {
		return end, false
	}
	if s.format != nil && !v.formatted(s.format, text) {
		return end, false
	}
	if t == nil {
		return end, true
	}
	if t.length != anyLength {
		v.length(t.length, utf8.RuneCount(text), "character")
	}
	if t.pattern != nil {
		if v.schema.program > 0 && len(text) > maxMatching/v.schema.program {
			return v.stop(undecided, end), false
		}
		if !t.pattern.Match(text) && v.reports() {
			v.fail(t.mismatch)
		}
	}
	if t.enum != nil {
		v.failChoice(t.enum, t.enum.hasText(text))
	}
	if t.format != nil {
		v.formatted(t.format, text)
	}
	return end, true
}

// formatted says whether a text has a format.
func (v *validator) formatted(f *format, text []byte) bool {
	ok := f.valid(text)
	if !ok && v.reports() {
		v.fail(f.reason)
	}
	return ok
}

// length checks the length of a string, array or object.
func (v *validator) length(want extents, got int, unit string) {
	if got < want.min && v.reports() {
		v.fail(sized("at least", want.min, unit, got))
	}
	if want.max >= 0 && got > want.max && v.reports() {
		v.fail(sized("at most", want.max, unit, got))
	}
}
