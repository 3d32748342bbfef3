package schema

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-mcp/parley/internal/wire"
)

// checker walks a value and the nodes of its schema side by side.
type checker struct {
	trail
	respelt []respelling
}

// respelling is an integer such as 1.0 or 1e3, which is one to JSON Schema but
// not to Go's decoders.
type respelling struct {
	at, end int
	text    string
}

// checkInferred checks raw, and returns it with its integers spelt as Go's
// decoders want them: nearly always raw itself.
func (c *Compiled) checkInferred(raw wire.RawValue) (wire.RawValue, error) {
	var k checker // stays on the stack
	k.raw = raw
	end := k.value(c.root, skipSpace(raw, 0))
	if !k.broken && len(k.problems) == 0 && skipSpace(raw, end) != len(raw) {
		k.broken = true
	}
	if k.broken {
		return nil, &Error{Problems: []Problem{{Reason: "not valid JSON"}}}
	}
	if len(k.problems) > 0 {
		return nil, &Error{Problems: k.problems, More: k.more}
	}
	if len(k.respelt) > 0 {
		raw = k.respell()
	}
	return raw, nil
}

// spelt returns raw with its integers spelt as Go's decoders want them, whether
// it fits or not.
func (c *Compiled) spelt(raw wire.RawValue) wire.RawValue {
	var k checker
	k.raw = raw
	k.value(c.root, skipSpace(raw, 0))
	if k.over() || len(k.respelt) == 0 {
		return raw
	}
	return k.respell()
}

func (k *checker) respell() wire.RawValue {
	var dst []byte
	from := 0
	for _, r := range k.respelt {
		dst = append(append(dst, k.raw[from:r.at]...), r.text...)
		from = r.end
	}
	return append(dst, k.raw[from:]...)
}

// value checks the value at i and returns the position after it.
func (k *checker) value(n *node, i int) int {
	if i < 0 || i >= len(k.raw) {
		return k.breakOff()
	}
	c := k.raw[i]
	switch {
	case n.nullable && c == 'n':
		return k.skip(i)
	case n.kind == kindOwn:
		return k.own(n, i)
	case n.kind == kindRef:
		n = n.ref
	}
	if n.kind == kindAny || kindAt(c) != wireType(n.kind) {
		if n.kind != kindAny {
			k.fail("expected " + types[n.kind] + ", got " + kindAt(c))
		}
		return k.skip(i)
	}
	switch n.kind {
	case kindBool:
		return k.skip(i)
	case kindInt, kindUint, kindFloat:
		return k.number(n, i)
	case kindArray, kindMap, kindStruct:
		return k.container(n, i)
	default:
		return k.text(n, i)
	}
}

func (k *checker) container(n *node, i int) (end int) {
	if k.depth++; k.depth > maxNesting {
		return k.breakOff()
	}
	switch n.kind {
	case kindArray:
		end = k.array(n, i)
	case kindMap:
		end = k.mapping(n, i)
	default:
		end = k.object(n, i)
	}
	k.depth--
	return end
}

// wireType is the JSON type that kindAt gives for values of a kind.
func wireType(k nodeKind) string {
	if k == kindInt || k == kindUint {
		return "number"
	}
	return types[k]
}

func (k *checker) skip(i int) int {
	end := skipValue(k.raw, i)
	if end < 0 {
		return k.breakOff()
	}
	return end
}

// anyText reports whether every text will do.
func (n *node) anyText() bool {
	return n.kind == kindString && n.digits == kindAny && n.minLen < 0 && n.maxLen < 0 && n.pattern == nil && n.enum == nil && n.format == nil
}

func (k *checker) text(n *node, i int) int {
	end, escaped := stringEnd(k.raw, i)
	if end < 0 {
		return k.breakOff()
	}
	if n.anyText() {
		return end
	}
	s := k.inner(i, end, escaped)
	if n.minLen >= 0 || n.maxLen >= 0 {
		k.count(n, utf8.RuneCount(s), "character")
	}
	if n.pattern != nil && !n.pattern.Match(s) {
		k.fail("must match the pattern " + n.pattern.String())
	}
	if n.enum != nil && !slices.ContainsFunc(n.enum.strings, func(v string) bool { return v == string(s) }) {
		k.notInEnum(n)
	}
	switch n.kind {
	case kindTime:
		if !isTime(string(s)) {
			k.fail("expected a date-time such as 2006-01-02T15:04:05Z")
		}
	case kindDuration:
		if _, err := time.ParseDuration(string(s)); err != nil {
			k.fail("expected a duration such as 1m30s")
		}
	case kindBytes:
		k.bytes(s)
	default:
	}
	if n.digits != kindAny && !n.isDigits(string(s)) {
		k.fail("expected " + digitWords[n.digits] + " in a string")
	}
	if n.format != nil && !n.format.valid(string(s)) {
		k.fail("expected the format " + n.format.name)
	}
	return end
}

// bytes checks base64, strictly: bits that are not used must be zero.
func (k *checker) bytes(s []byte) {
	ok := isBase64(s)
	if ok && len(s) > 0 {
		var last [3]byte
		_, err := base64.StdEncoding.Strict().Decode(last[:], s[len(s)-4:])
		ok = err == nil
	}
	if !ok {
		k.fail("expected base64 with padding")
	}
}

// count checks the length of a string, array or map.
func (k *checker) count(n *node, got int, unit string) {
	want, bound := n.minLen, "at least "
	if got >= n.minLen {
		if n.maxLen < 0 || got <= n.maxLen {
			return
		}
		want, bound = n.maxLen, "at most "
	}
	if want != 1 {
		unit += "s"
	}
	k.fail("must have " + bound + strconv.Itoa(want) + " " + unit + ", has " + strconv.Itoa(got))
}

func (k *checker) notInEnum(n *node) {
	reason := "must be one of " + strings.Join(n.enum.texts, ", ")
	if len(reason) > 400 {
		reason = strings.ToValidUTF8(reason[:400], "") + "…"
	}
	k.fail(reason)
}

func (k *checker) array(n *node, i int) int {
	count := 0
	i, last := first(k.raw, i, ']')
	for !last && !k.over() {
		k.push(count, 0)
		end := k.value(n.items, i)
		k.pop()
		count++
		if i, last = next(k.raw, end, ']'); i < 0 {
			return k.breakOff()
		}
	}
	if k.over() {
		return len(k.raw)
	}
	k.count(n, count, "item")
	return i
}

func (k *checker) mapping(n *node, i int) int {
	count := 0
	i, last := first(k.raw, i, '}')
	for !last && !k.over() {
		nameEnd, escaped, value := memberAt(k.raw, i)
		if nameEnd < 0 {
			return k.breakOff()
		}
		k.push(i, nameEnd)
		if n.keys != nil && !n.keys.valid(string(k.inner(i, nameEnd, escaped))) {
			k.fail("the member's name must be an integer in the range of its type")
		}
		end := k.value(n.items, value)
		k.pop()
		count++
		if i, last = next(k.raw, end, '}'); i < 0 {
			return k.breakOff()
		}
	}
	if k.over() {
		return len(k.raw)
	}
	k.count(n, count, "member")
	return i
}

func (r *keyRule) valid(s string) bool {
	if digits := strings.TrimPrefix(s, "-"); digits == "" || digits[0] == '+' || digits[0] == '0' && len(digits) > 1 {
		return false
	}
	var err error
	if r.signed {
		_, err = strconv.ParseInt(s, 10, r.bits)
	} else {
		_, err = strconv.ParseUint(s, 10, r.bits)
	}
	return err == nil
}

// present is a set of fields.
type present struct {
	few  uint64
	many []uint64
}

func (p *present) make(fields int) {
	if fields > 64 {
		p.many = make([]uint64, (fields+63)/64)
	}
}

// add adds a field and says whether it was there before.
func (p *present) add(i int) bool {
	word := &p.few
	if p.many != nil {
		word = &p.many[i/64]
	}
	bit := uint64(1) << (i % 64)
	was := *word&bit != 0
	*word |= bit
	return was
}

func (p *present) has(i int) bool {
	if p.many != nil {
		return p.many[i/64]&(1<<(i%64)) != 0
	}
	return p.few&(1<<i) != 0
}

func (k *checker) object(n *node, i int) int {
	var seen present
	seen.make(len(n.fields))
	expect := 0
	i, last := first(k.raw, i, '}')
	for !last && !k.over() {
		nameEnd, escaped, value := memberAt(k.raw, i)
		if nameEnd < 0 {
			return k.breakOff()
		}
		at := n.fieldNamed(k.inner(i, nameEnd, escaped), expect)
		var end int
		switch {
		case at >= 0:
			expect = at + 1
			k.push(i, nameEnd)
			if seen.add(at) {
				k.fail("the member is given twice")
			}
			end = k.value(n.fields[at].node, value)
			k.pop()
		case n.extra != nil:
			k.push(i, nameEnd)
			end = k.value(n.extra, value)
			k.pop()
		default:
			k.fail("unknown member " + quoted(string(k.inner(i, nameEnd, escaped))))
			end = k.skip(value)
		}
		if i, last = next(k.raw, end, '}'); i < 0 {
			return k.breakOff()
		}
	}
	if k.over() {
		return len(k.raw)
	}
	for at := range n.fields {
		if n.fields[at].required && !seen.has(at) {
			k.fail("member " + quoted(n.fields[at].name) + " is required")
		}
	}
	return i
}
