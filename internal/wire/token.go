package wire

import "unicode/utf8"

// The functions of this file validate one token of a text that nothing is known
// of yet. An error is of the kind [ErrSyntax] or, for a string, [ErrUTF8].

// syntaxAt is the error at a position.
func syntaxAt(text []byte, pos int, reason string) *Error {
	if pos >= len(text) {
		reason = "unexpected end of text"
	}
	return &Error{Offset: int64(pos), Reason: reason, Err: ErrSyntax}
}

// ScanWord returns the position after the true, false or null at pos.
func ScanWord(text []byte, pos int) (end int, err *Error) {
	word := "null"
	switch At(text, pos) {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	}
	if end = pos + len(word); end <= len(text) && string(text[pos:end]) == word {
		return end, nil
	}
	return 0, &Error{Offset: int64(pos), Reason: "expected a value", Err: ErrSyntax}
}

// A NumberForm says how a number is written.
type NumberForm uint8

// The forms of numbers. One with an exponent may have a fraction too.
const (
	PlainNumber NumberForm = iota
	FractionNumber
	ExponentNumber
)

// ScanNumber returns the position after the number at pos.
func ScanNumber(text []byte, pos int) (end int, form NumberForm, err *Error) {
	if At(text, pos) == '-' {
		pos++
	}
	if At(text, pos) == '0' {
		pos++
	} else if pos, err = scanDigits(text, pos); err != nil {
		return 0, form, err
	}
	if At(text, pos) == '.' {
		form = FractionNumber
		if pos, err = scanDigits(text, pos+1); err != nil {
			return 0, form, err
		}
	}
	if c := At(text, pos); c == 'e' || c == 'E' {
		form = ExponentNumber
		pos++
		if c := At(text, pos); c == '+' || c == '-' {
			pos++
		}
		if pos, err = scanDigits(text, pos); err != nil {
			return 0, form, err
		}
	}
	return pos, form, nil
}

func scanDigits(text []byte, pos int) (int, *Error) {
	start := pos
	for pos < len(text) && '0' <= text[pos] && text[pos] <= '9' {
		pos++
	}
	if pos == start {
		return 0, syntaxAt(text, pos, "expected a digit")
	}
	return pos, nil
}

// ScanString returns the position after the string that starts with the quote
// at pos, and whether it has escapes.
func ScanString(text []byte, pos int) (end int, escaped bool, err *Error) {
	for pos++; ; {
		pos = plain(text, pos)
		switch c := At(text, pos); {
		case c == '"':
			return pos + 1, escaped, nil
		case c == '\\':
			escaped = true
			if pos, err = scanEscape(text, pos); err != nil {
				return 0, false, err
			}
		case c < ' ':
			return 0, false, syntaxAt(text, pos, "control character in a string; write it as an escape")
		default:
			r, n := utf8.DecodeRune(text[pos:])
			if r == utf8.RuneError && n == 1 {
				return 0, false, &Error{Offset: int64(pos), Reason: "string is not valid UTF-8", Err: ErrUTF8}
			}
			pos += n
		}
	}
}

// scanEscape returns the position after the escape that starts with the
// backslash at pos, with both halves of a surrogate pair.
func scanEscape(text []byte, pos int) (int, *Error) {
	switch At(text, pos+1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return pos + 2, nil
	case 'u':
	default:
		return 0, syntaxAt(text, pos+1, "invalid escape in a string")
	}
	unit, ok := hex(text, pos)
	if !ok {
		return 0, syntaxAt(text, pos, "expected four hexadecimal digits after \\u")
	}
	if unit < 0xD800 || unit > 0xDFFF {
		return pos + 6, nil
	}
	if unit < 0xDC00 && At(text, pos+6) == '\\' && At(text, pos+7) == 'u' {
		if low, ok := hex(text, pos+6); ok && 0xDC00 <= low && low <= 0xDFFF {
			return pos + 12, nil
		}
	}
	return 0, &Error{Offset: int64(pos), Reason: "half a surrogate pair in a string", Err: ErrUTF8}
}
