package wire

// Size is the size of a value, as far as it matters for the cost of what is done
// with it.
type Size struct {
	Values     int  // all, also those in containers
	Containers int  // objects and arrays
	Longest    int  // bytes of the longest string, names included
	HasLong    bool // a number that IsLong
	Broken     bool // not JSON
}

// Measure reads a text once. A long number has more than that many digits.
func Measure(text []byte, digits int) (s Size) {
	for pos := 0; pos < len(text); {
		switch text[pos] {
		case ' ', '\t', '\r', '\n', ',', ':', '}', ']':
			pos++
			continue
		case '{', '[':
			s.Values++
			s.Containers++
			pos++
		case '"':
			end, _ := SkipString(text, pos)
			if end < 0 {
				s.Broken = true
				return s
			}
			s.Longest = max(s.Longest, end-pos-2)
			if At(text, SkipSpace(text, end)) != ':' {
				s.Values++
			}
			pos = end
		default:
			end := SkipScalar(text, pos)
			s.Values++
			s.HasLong = s.HasLong || Kind(text[pos]) == "number" && IsLong(text[pos:end], digits)
			pos = end
		}
	}
	return s
}
