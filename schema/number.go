package schema

import (
	"slices"
	"strconv"
)

// number checks the number at i. An integer may be spelt with a fraction or
// exponent, as JSON Schema looks at its value alone.
func (k *checker) number(n *node, i int) int {
	end := scalarEnd(k.raw, i)
	if end < 0 {
		return k.breakOff()
	}
	tok := k.raw[i:end]
	if n.kind == kindFloat {
		k.float(n, tok)
		return end
	}
	if !plainInteger(tok) || n.kind == kindUint && tok[0] == '-' {
		text, ok, big := integerText(tok)
		switch {
		case !ok:
			k.fail("expected integer, got a number with a fraction")
			return end
		case big:
			k.outOfRange(n)
			return end
		}
		if text == "-0" {
			text = "0"
		}
		k.respelt = append(k.respelt, respelling{i, end, text})
		tok = []byte(text)
	}
	if n.kind == kindInt {
		v, err := strconv.ParseInt(string(tok), 10, 64)
		switch {
		case err != nil || v < n.lo || v > n.hi:
			k.outOfRange(n)
		case n.enum != nil && !slices.Contains(n.enum.ints, v):
			k.notInEnum(n)
		}
		return end
	}
	v, err := strconv.ParseUint(string(tok), 10, 64)
	switch {
	case err != nil || v < n.ulo || v > n.uhi:
		k.outOfRange(n)
	case n.enum != nil && !slices.Contains(n.enum.uints, v):
		k.notInEnum(n)
	}
	return end
}

// float checks the value that a Go float would have: the nearest one.
func (k *checker) float(n *node, tok []byte) {
	v, err := strconv.ParseFloat(string(tok), n.bits)
	switch {
	case err != nil || v < n.flo || v > n.fhi:
		k.outOfRange(n)
	case n.enum != nil && !slices.Contains(n.enum.floats, v):
		k.notInEnum(n)
	}
}

func (k *checker) outOfRange(n *node) {
	switch {
	case n.loText != "" && n.hiText != "":
		k.fail("must be between " + n.loText + " and " + n.hiText)
	case n.loText != "":
		k.fail("must be at least " + n.loText + " and fit its type")
	case n.hiText != "":
		k.fail("must be at most " + n.hiText + " and fit its type")
	default:
		k.fail("must fit a number of " + numberSize(n))
	}
}

func numberSize(n *node) string {
	if n.kind == kindFloat {
		return strconv.Itoa(n.bits) + " bits"
	}
	return "64 bits"
}
