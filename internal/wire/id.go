package wire

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
)

// ID is a JSON-RPC id or a progress token: a string or an integer. IDs are
// comparable; "a" and "\u0061" are the same, "1" and 1 are not. The zero ID is
// absent.
type ID struct {
	// text is the JSON form: a string literal with no more escapes than
	// needed, or an integer beyond 64 bits. It is number for other integers,
	// which most ids are and which take no memory of their own.
	text string
	n    int64
}

// number is the text of an ID that is n.
const number = "#"

// StringID returns the ID that is the string s.
func StringID(s string) ID { return ID{text: string(AppendString(nil, s))} }

// IntID returns the ID that is the integer n.
func IntID(n int64) ID { return ID{text: number, n: n} }

// ParseID reads an ID from one JSON value. Anything but a string or an
// integer is refused, also null and numbers with a fraction; 1.0 and 1e0 are
// the integer 1. Integers beyond 64 bits are kept exactly. The error is an
// *[Error].
func ParseID(raw RawValue) (ID, error) {
	raw = trim(raw)
	if len(raw) == 0 {
		return ID{}, newError("", ErrSyntax, "expected a string or an integer, got nothing")
	}
	s := scanner{data: raw, depth: DefaultDepth}
	end, err := s.value(0, nil)
	if err == nil && end < len(raw) {
		err = s.fail(end, "unexpected text after the value")
	}
	if err != nil {
		return ID{}, err
	}
	return ReadID(raw)
}

// ReadID is [ParseID] of a text without white space around it that is known to
// be one valid value.
func ReadID(raw RawValue) (ID, error) {
	c := raw[0]
	if c == '"' {
		return stringID(raw), nil
	}
	if c != '-' && (c < '0' || c > '9') {
		return ID{}, newError("", nil, "expected a string or an integer, got %s", Kind(c))
	}
	digits := raw
	if c == '-' {
		digits = raw[1:]
	}
	n, small := int64(0), len(digits) <= 18 // 64 bits hold them all
	for _, c := range digits {
		if c < '0' || c > '9' {
			return integerID(raw)
		}
		if small {
			n = 10*n + int64(c-'0')
		}
	}
	if small {
		if c == '-' {
			n = -n
		}
		return IntID(n), nil
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return IntID(n), nil
	}
	return ID{text: string(raw)}, nil
}

// integerID reads a number with a fraction or an exponent, which has to be an integer.
func integerID(raw RawValue) (ID, error) {
	d := ReadDecimal(raw)
	if digits := d.Integer(); digits != "" {
		return ReadID(RawValue(digits))
	}
	return ID{}, newError("", nil, "expected a string or an integer, got a number with fraction or exponent")
}

// stringID takes a valid literal over as it is if it has no escapes: then it
// is in its one form already.
func stringID(raw RawValue) ID {
	if bytes.IndexByte(raw, '\\') < 0 {
		return ID{text: string(raw)}
	}
	return StringID(Text(raw))
}

// IsZero says whether the ID is absent.
func (id ID) IsZero() bool { return id.text == "" }

// Equal says whether both are the same, as == does.
func (id ID) Equal(other ID) bool { return id == other }

// String returns the ID for logs, where it may be cut and what does not print
// is escaped: strings in quotes; "none" if it is absent.
func (id ID) String() string {
	switch id.text {
	case "":
		return "none"
	case number:
		return strconv.FormatInt(id.n, 10)
	}
	const limit = 200
	if strings.ContainsFunc(id.text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return cut(strconv.Quote(Text(RawValue(id.text))), limit)
	}
	return cut(id.text, limit)
}

// AppendJSON appends the ID, or null if it is absent. The error is always nil.
func (id ID) AppendJSON(dst []byte) ([]byte, error) {
	switch id.text {
	case "":
		return append(dst, "null"...), nil
	case number:
		return strconv.AppendInt(dst, id.n, 10), nil
	}
	return append(dst, id.text...), nil
}

// MarshalJSON returns the ID, or null if it is absent.
func (id ID) MarshalJSON() ([]byte, error) { return id.AppendJSON(nil) }

// UnmarshalJSON reads the ID as [ParseID] does.
func (id *ID) UnmarshalJSON(data []byte) error {
	parsed, err := ParseID(data)
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// trim removes white space at both ends.
func trim(raw RawValue) RawValue {
	for len(raw) > 0 && isSpace(raw[0]) {
		raw = raw[1:]
	}
	for len(raw) > 0 && isSpace(raw[len(raw)-1]) {
		raw = raw[:len(raw)-1]
	}
	return raw
}
