package wire

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// ID is a JSON-RPC id or a progress token: a string or an integer. IDs are
// comparable; "a" and "\u0061" are the same, "1" and 1 are not. The zero ID is
// absent.
type ID struct {
	// text is the JSON form: a string literal with no more escapes than
	// needed, or an integer.
	text string
}

// StringID returns the ID that is the string s.
func StringID(s string) ID { return ID{string(AppendString(nil, s))} }

// IntID returns the ID that is the integer n.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// ParseID reads an ID from one JSON value. Anything but a string or an
// integer is refused, also null and numbers with a fraction or exponent;
// integers beyond 64 bits are kept exactly. The error is an *[Error].
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
	switch c := raw[0]; {
	case c == '"':
		return stringID(raw), nil
	case c != '-' && (c < '0' || c > '9'):
		return ID{}, newError("", nil, "expected a string or an integer, got %s", kindOf(c))
	case strings.ContainsAny(string(raw), ".eE"):
		return ID{}, newError("", nil, "expected a string or an integer, got a number with fraction or exponent")
	case string(raw) == "-0":
		return IntID(0), nil
	}
	return ID{string(raw)}, nil
}

// stringID takes a valid literal over as it is if it has no escapes: then it
// is in its one form already.
func stringID(raw RawValue) ID {
	for _, c := range raw {
		if c == '\\' {
			plain, _ := jsontext.AppendUnquote([]byte(nil), raw) // valid
			return StringID(string(plain))
		}
	}
	return ID{string(raw)}
}

// IsZero says whether the ID is absent.
func (id ID) IsZero() bool { return id.text == "" }

// Equal says whether both are the same, as == does.
func (id ID) Equal(other ID) bool { return id == other }

// String returns the ID for logs, where it may be cut and what does not print
// is escaped: strings in quotes; "none" if it is absent.
func (id ID) String() string {
	if id.text == "" {
		return "none"
	}
	const limit = 200
	if strings.ContainsFunc(id.text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return cut(strconv.Quote(Text(RawValue(id.text))), limit)
	}
	return cut(id.text, limit)
}

// AppendJSON appends the ID, or null if it is absent. The error is always nil.
func (id ID) AppendJSON(dst []byte) ([]byte, error) {
	if id.text == "" {
		return append(dst, "null"...), nil
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
