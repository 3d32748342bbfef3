package wire

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"sync"
	"unicode/utf8"
)

// few is the number of members up to which names are compared one by one;
// above it they are hashed.
const few = 16

// seed keeps strangers from choosing names that collide.
var seed = maphash.MakeSeed()

// span is a piece of the text, or of the scanner's arena.
type span struct {
	at, end uint32
	arena   bool
}

// member is one member of an object, as offsets into its text.
type member struct {
	name            uint32 // after the quote
	mark            uint32 // end of the name, before the quote, and escapedName
	value, valueEnd uint32
}

// escapedName is the bit of a mark that says that the name has escapes. No
// offset has it.
const escapedName = 1 << 31

func newMember(name, nameEnd int, escaped bool, value, valueEnd int) member {
	m := member{name: uint32(name), mark: uint32(nameEnd), value: uint32(value), valueEnd: uint32(valueEnd)}
	if escaped {
		m.mark |= escapedName
	}
	return m
}

func (m *member) nameEnd() uint32 { return m.mark &^ escapedName }
func (m *member) escaped() bool   { return m.mark&escapedName != 0 }

// scanner validates one text. It is recursive; its depth is bounded.
type scanner struct {
	data  []byte
	depth int      // containers that may still be opened
	names []span   // names of the objects that are open, outermost first
	arena []byte   // names that had escapes, without them
	table []uint32 // hash table for objects with many members
	inner *inner   // what else is indexed, or nil
}

// inner asks for the index of the first member of the outermost object that has
// one of two names.
type inner struct {
	names [2]string
	index *Index
	at    int // where the value starts; 0 while there is none
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// keep is the most scratch memory, in elements, that a pooled scanner keeps.
const keep = 4096

func (s *scanner) release() {
	s.clear()
	scanners.Put(s)
}

// clear forgets the text.
func (s *scanner) clear() {
	s.data, s.inner = nil, nil
	if cap(s.names) > keep {
		s.names = nil
	}
	if cap(s.arena) > keep {
		s.arena = nil
	}
	if cap(s.table) > keep {
		s.table = nil
	}
	s.names, s.arena = s.names[:0], s.arena[:0]
}

// scan validates data as one value and returns where it starts and ends. An
// object's members are added to *into, an array's elements as members without
// a name, if into is not nil.
func scan(data []byte, lim Limits, into *[]member) (start, end int, err *Error) {
	if err := lim.check(data); err != nil {
		return 0, 0, err
	}
	s := scanners.Get().(*scanner)
	defer s.release()
	return s.scan(data, lim, into)
}

func (s *scanner) scan(data []byte, lim Limits, into *[]member) (start, end int, err *Error) {
	s.data, s.depth = data, lim.depth()
	start = s.space(0)
	if end, err = s.value(start, into); err != nil {
		return 0, 0, err
	}
	if rest := s.space(end); rest < len(data) {
		return 0, 0, s.fail(rest, "unexpected text after the value")
	}
	return start, end, nil
}

func (s *scanner) fail(pos int, reason string) *Error {
	if pos >= len(s.data) {
		reason = "unexpected end of text"
	}
	return &Error{Offset: int64(pos), Reason: reason, Err: ErrSyntax}
}

func (s *scanner) space(pos int) int {
	for pos < len(s.data) && isSpace(s.data[pos]) {
		pos++
	}
	return pos
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t'
}

// at returns the byte at pos, or 0 at the end, which is valid nowhere.
func (s *scanner) at(pos int) byte {
	if pos < len(s.data) {
		return s.data[pos]
	}
	return 0
}

func (s *scanner) value(pos int, into *[]member) (int, *Error) {
	switch c := s.at(pos); c {
	case '{':
		if s.depth == 0 {
			return 0, s.tooDeep(pos)
		}
		s.depth--
		end, err := s.object(pos, into)
		s.depth++
		return end, err
	case '[':
		if s.depth == 0 {
			return 0, s.tooDeep(pos)
		}
		s.depth--
		end, err := s.array(pos, into)
		s.depth++
		return end, err
	case '"':
		end, _, err := s.text(pos)
		return end, err
	case 't':
		return s.literal(pos, "true")
	case 'f':
		return s.literal(pos, "false")
	case 'n':
		return s.literal(pos, "null")
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return s.number(pos)
		}
		return 0, s.fail(pos, "expected a value")
	}
}

func (s *scanner) tooDeep(pos int) *Error {
	return &Error{Offset: int64(pos), Reason: "objects and arrays are nested too deeply", Err: ErrDepth}
}

// within returns where the members of the value at pos go, the value of a
// member of the outermost object.
func (s *scanner) within(name []byte, pos int) *[]member {
	in := s.inner
	if in == nil || in.at > 0 || s.at(pos) != '{' || string(name) != in.names[0] && string(name) != in.names[1] {
		return nil
	}
	in.at = pos
	return &in.index.members
}

func (s *scanner) object(pos int, into *[]member) (int, *Error) {
	names, arena := len(s.names), len(s.arena)
	pos = s.space(pos + 1)
	if s.at(pos) == '}' {
		return pos + 1, nil
	}
	for {
		if s.at(pos) != '"' {
			return 0, s.fail(pos, "expected a member name in double quotes")
		}
		nameEnd, escaped, err := s.text(pos)
		if err != nil {
			return 0, err
		}
		s.push(pos, nameEnd, escaped)
		colon := s.space(nameEnd)
		if s.at(colon) != ':' {
			return 0, s.fail(colon, "expected ':' after the member name")
		}
		value := s.space(colon + 1)
		var within *[]member
		if into != nil {
			within = s.within(s.data[pos+1:nameEnd-1], value)
		}
		end, err := s.value(value, within)
		if err != nil {
			return 0, err
		}
		if into != nil {
			*into = append(*into, newMember(pos+1, nameEnd-1, escaped, value, end))
		}
		switch next := s.space(end); s.at(next) {
		case ',':
			pos = s.space(next + 1)
		case '}':
			if name := s.duplicate(s.names[names:]); name != nil {
				return 0, duplicateError(next, name)
			}
			s.names, s.arena = s.names[:names], s.arena[:arena]
			return next + 1, nil
		default:
			return 0, s.fail(next, "expected ',' or '}' after the member")
		}
	}
}

func (s *scanner) array(pos int, into *[]member) (int, *Error) {
	pos = s.space(pos + 1)
	if s.at(pos) == ']' {
		return pos + 1, nil
	}
	for {
		end, err := s.value(pos, nil)
		if err != nil {
			return 0, err
		}
		if into != nil {
			*into = append(*into, member{value: uint32(pos), valueEnd: uint32(end)})
		}
		switch next := s.space(end); s.at(next) {
		case ',':
			pos = s.space(next + 1)
		case ']':
			return next + 1, nil
		default:
			return 0, s.fail(next, "expected ',' or ']' after the element")
		}
	}
}

// push notes a name of the innermost object, given with its quotes.
func (s *scanner) push(at, end int, escaped bool) {
	if !escaped {
		s.names = append(s.names, span{at: uint32(at + 1), end: uint32(end - 1)})
		return
	}
	from := len(s.arena)
	s.arena = append(s.arena, Text(s.data[at:end])...)
	s.names = append(s.names, span{at: uint32(from), end: uint32(len(s.arena)), arena: true})
}

func (s *scanner) name(n span) []byte {
	if n.arena {
		return s.arena[n.at:n.end]
	}
	return s.data[n.at:n.end]
}

// duplicate returns a name that occurs twice, or nil.
func (s *scanner) duplicate(names []span) []byte {
	if len(names) > few {
		return s.duplicateHashed(names)
	}
	for i, a := range names {
		for _, b := range names[:i] {
			if a.end-a.at == b.end-b.at && bytes.Equal(s.name(a), s.name(b)) {
				return s.name(a)
			}
		}
	}
	return nil
}

func (s *scanner) duplicateHashed(names []span) []byte {
	size := tableSize(len(names))
	if cap(s.table) < size {
		s.table = make([]uint32, size)
	}
	table := s.table[:size]
	clear(table)
	for i, n := range names {
		name := s.name(n)
		slot := int(maphash.Bytes(seed, name)) & (size - 1)
		for table[slot] != 0 {
			if bytes.Equal(name, s.name(names[table[slot]-1])) {
				return name
			}
			slot = (slot + 1) & (size - 1)
		}
		table[slot] = uint32(i + 1)
	}
	return nil
}

// tableSize is the size of a hash table for n names: a power of two, at most
// half full.
func tableSize(n int) int {
	return 1 << bits.Len(uint(2*n-1))
}

func (s *scanner) literal(pos int, want string) (int, *Error) {
	if end := pos + len(want); end <= len(s.data) && string(s.data[pos:end]) == want {
		return end, nil
	}
	return 0, &Error{Offset: int64(pos), Reason: "expected a value", Err: ErrSyntax}
}

func (s *scanner) digits(pos int) (int, *Error) {
	start := pos
	for c := s.at(pos); '0' <= c && c <= '9'; c = s.at(pos) {
		pos++
	}
	if pos == start {
		return 0, s.fail(pos, "expected a digit")
	}
	return pos, nil
}

func (s *scanner) number(pos int) (_ int, err *Error) {
	if s.at(pos) == '-' {
		pos++
	}
	if s.at(pos) == '0' {
		pos++
	} else if pos, err = s.digits(pos); err != nil {
		return 0, err
	}
	if s.at(pos) == '.' {
		if pos, err = s.digits(pos + 1); err != nil {
			return 0, err
		}
	}
	if c := s.at(pos); c == 'e' || c == 'E' {
		pos++
		if c := s.at(pos); c == '+' || c == '-' {
			pos++
		}
		if pos, err = s.digits(pos); err != nil {
			return 0, err
		}
	}
	return pos, nil
}

// text validates the string that starts with the quote at pos, and returns
// the position after its closing quote.
func (s *scanner) text(pos int) (end int, escaped bool, err *Error) {
	data := s.data
	for pos++; ; {
		pos = plain(data, pos)
		switch c := s.at(pos); {
		case c == '"':
			return pos + 1, escaped, nil
		case c == '\\':
			escaped = true
			if pos, err = s.escape(pos); err != nil {
				return 0, false, err
			}
		case c < ' ':
			return 0, false, s.fail(pos, "control character in a string; write it as an escape")
		case c < utf8.RuneSelf:
			pos++
		default:
			r, n := utf8.DecodeRune(data[pos:])
			if r == utf8.RuneError && n == 1 {
				return 0, false, &Error{Offset: int64(pos), Reason: "string is not valid UTF-8", Err: ErrUTF8}
			}
			pos += n
		}
	}
}

// escape validates the escape that starts with the backslash at pos.
func (s *scanner) escape(pos int) (int, *Error) {
	switch s.at(pos + 1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return pos + 2, nil
	case 'u':
	default:
		return 0, s.fail(pos+1, "invalid escape in a string")
	}
	unit, ok := hex(s.data, pos)
	if !ok {
		return 0, s.fail(pos, "expected four hexadecimal digits after \\u")
	}
	if unit < 0xD800 || unit > 0xDFFF {
		return pos + 6, nil
	}
	if unit < 0xDC00 && s.at(pos+6) == '\\' && s.at(pos+7) == 'u' {
		if low, ok := hex(s.data, pos+6); ok && 0xDC00 <= low && low <= 0xDFFF {
			return pos + 12, nil
		}
	}
	return 0, &Error{Offset: int64(pos), Reason: "half a surrogate pair in a string", Err: ErrUTF8}
}

// skip returns the end of the value at pos of a text known to be valid.
func skip(data []byte, pos int) int {
	switch data[pos] {
	case '"':
		return skipText(data, pos)
	case '{', '[':
	default:
		for pos < len(data) && !isEnd(data[pos]) {
			pos++
		}
		return pos
	}
	for depth := 0; ; {
		switch data[pos] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return pos + 1
			}
		case '"':
			pos = skipText(data, pos)
			continue
		}
		pos++
	}
}

func isEnd(c byte) bool {
	return isSpace(c) || c == ',' || c == '}' || c == ']'
}

// skipText returns the position after the string that starts at pos of a
// text known to be valid.
func skipText(data []byte, pos int) int {
	for pos++; ; {
		pos += bytes.IndexByte(data[pos:], '"')
		slashes := 0
		for data[pos-1-slashes] == '\\' {
			slashes++
		}
		pos++
		if slashes%2 == 0 {
			return pos
		}
	}
}
