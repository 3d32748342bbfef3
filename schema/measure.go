package schema

import (
	"bytes"
	"strconv"
)

// extent is the size of a value, as far as it matters for the cost of checking.
type extent struct {
	values     int  // all, also those in containers
	containers int  // objects and arrays
	longest    int  // bytes of the longest string, names included
	wild       bool // has a number that is costly to compute with
	broken     bool // not JSON
}

// measure reads raw once.
func measure(raw []byte) (e extent) {
	for i := 0; i < len(raw); {
		switch raw[i] {
		case ' ', '\t', '\r', '\n', ',', ':', '}', ']':
			i++
			continue
		case '{', '[':
			e.values++
			e.containers++
			i++
		case '"':
			end, _ := stringEnd(raw, i)
			if end < 0 {
				e.broken = true
				return e
			}
			e.longest = max(e.longest, end-i-2)
			if byteAt(raw, skipSpace(raw, end)) != ':' {
				e.values++
			}
			i = end
		default:
			end := scalarEnd(raw, i)
			e.values++
			e.wild = e.wild || isWild(raw[i:end])
			i = end
		}
	}
	return e
}

// isWild says whether exact arithmetic with a number would be costly.
func isWild(tok []byte) bool {
	if len(tok) > maxDigits {
		return true
	}
	if c := tok[0]; c != '-' && (c < '0' || c > '9') {
		return false
	}
	i := bytes.IndexAny(tok, "eE")
	if i < 0 {
		return false
	}
	n, err := strconv.Atoi(string(tok[i+1:]))
	return err != nil || n > maxDigits || n < -maxDigits
}
