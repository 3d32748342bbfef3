package wire

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"sync"
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
	start = SkipSpace(s.data, 0)
	if end, err = s.value(start, into); err != nil {
		return 0, 0, err
	}
	if rest := SkipSpace(s.data, end); rest < len(data) {
		return 0, 0, s.fail(rest, "unexpected text after the value")
	}
	return start, end, nil
}

func (s *scanner) fail(pos int, reason string) *Error { return syntaxAt(s.data, pos, reason) }

func (s *scanner) value(pos int, into *[]member) (int, *Error) {
	switch c := At(s.data, pos); c {
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
		end, _, err := ScanString(s.data, pos)
		return end, err
	case 't', 'f', 'n':
		return ScanWord(s.data, pos)
	default:
		if c == '-' || '0' <= c && c <= '9' {
			end, _, err := ScanNumber(s.data, pos)
			return end, err
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
	if in == nil || in.at > 0 || At(s.data, pos) != '{' || string(name) != in.names[0] && string(name) != in.names[1] {
		return nil
	}
	in.at = pos
	return &in.index.members
}

func (s *scanner) object(pos int, into *[]member) (int, *Error) {
	data, names, arena := s.data, len(s.names), len(s.arena)
	pos = SkipSpace(data, pos+1)
	if At(data, pos) == '}' {
		return pos + 1, nil
	}
	var seen nameSet
	for {
		if At(data, pos) != '"' {
			return 0, s.fail(pos, "expected a member name in double quotes")
		}
		nameEnd, escaped, err := ScanString(data, pos)
		if err != nil {
			return 0, err
		}
		name := data[pos+1 : nameEnd-1]
		if escaped {
			name = s.pushEscaped(data[pos:nameEnd])
		} else {
			s.names = append(s.names, span{at: uint32(pos + 1), end: uint32(nameEnd - 1)})
		}
		seen.add(name)
		colon := SkipSpace(data, nameEnd)
		if At(data, colon) != ':' {
			return 0, s.fail(colon, "expected ':' after the member name")
		}
		value := SkipSpace(data, colon+1)
		var end int
		switch {
		case into == nil && At(data, value) == '"':
			end, _, err = ScanString(data, value)
		case into == nil:
			end, err = s.value(value, nil)
		default:
			end, err = s.value(value, s.within(data[pos+1:nameEnd-1], value))
		}
		if err != nil {
			return 0, err
		}
		if into != nil {
			*into = append(*into, newMember(pos+1, nameEnd-1, escaped, value, end))
		}
		switch next := SkipSpace(data, end); At(data, next) {
		case ',':
			pos = SkipSpace(data, next+1)
		case '}':
			if twice := s.duplicate(&seen, s.names[names:]); twice != nil {
				return 0, duplicateError(next, twice)
			}
			s.names, s.arena = s.names[:names], s.arena[:arena]
			return next + 1, nil
		default:
			return 0, s.fail(next, "expected ',' or '}' after the member")
		}
	}
}

// A nameSet tells most objects without a duplicate name from the others.
type nameSet struct {
	bits    uint64
	suspect bool // two names may be the same
}

func (n *nameSet) add(name []byte) {
	h := uint(len(name))
	if h > 0 {
		h += 5*uint(name[0]) + 11*uint(name[h-1])
	}
	bit := uint64(1) << (h & 63)
	if n.bits&bit != 0 {
		n.suspect = true
	}
	n.bits |= bit
}

func (s *scanner) array(pos int, into *[]member) (int, *Error) {
	pos = SkipSpace(s.data, pos+1)
	if At(s.data, pos) == ']' {
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
		switch next := SkipSpace(s.data, end); At(s.data, next) {
		case ',':
			pos = SkipSpace(s.data, next+1)
		case ']':
			return next + 1, nil
		default:
			return 0, s.fail(next, "expected ',' or ']' after the element")
		}
	}
}

// pushEscaped notes a name of the innermost object, given with its quotes, and
// returns it without escapes.
func (s *scanner) pushEscaped(literal []byte) []byte {
	from := len(s.arena)
	s.arena = AppendUnquoted(s.arena, literal)
	s.names = append(s.names, span{at: uint32(from), end: uint32(len(s.arena)), arena: true})
	return s.arena[from:]
}

func (s *scanner) name(n span) []byte {
	if n.arena {
		return s.arena[n.at:n.end]
	}
	return s.data[n.at:n.end]
}

// duplicate returns a name that occurs twice, or nil. All names are in set.
func (s *scanner) duplicate(set *nameSet, names []span) []byte {
	switch {
	case !set.suspect:
		return nil
	case len(names) > few:
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
