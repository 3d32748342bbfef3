package uritemplate

import (
	"fmt"
	"strings"
)

// expand appends the text of an expression for values (RFC 6570, section 3.2).
func (p *part) expand(dst []byte, values Values) ([]byte, error) {
	first := true
	for _, v := range p.variables {
		list := values[v.name]
		switch {
		case len(list) == 0 && (p.operator == 0 || p.operator == '+'):
			return nil, fmt.Errorf("variable %s is missing: %w", v.name, ErrVariable)
		case len(list) > 1 && !v.explode:
			return nil, fmt.Errorf("variable %s has %d values; the template would have to explode it (*): %w", v.name, len(list), ErrVariable)
		}
		for _, value := range list {
			dst = p.appendStart(dst, first)
			first = false
			if p.named() {
				dst = append(dst, v.name...)
				if value != "" || p.operator != ';' {
					dst = append(dst, '=')
				}
			}
			dst = p.appendValue(dst, value)
		}
	}
	return dst, nil
}

// appendStart appends what comes before a value.
func (p *part) appendStart(dst []byte, first bool) []byte {
	switch p.operator {
	case '.', '/', ';', '&':
		return append(dst, p.operator)
	case '?':
		if !first {
			return append(dst, '&')
		}
		return append(dst, '?')
	case '#':
		if first {
			return append(dst, '#')
		}
	}
	if first {
		return dst
	}
	return append(dst, ',')
}

func (p *part) appendValue(dst []byte, value string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(value) {
		c := value[i]
		plain := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
		if plain || p.reserved() && strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0 {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}
