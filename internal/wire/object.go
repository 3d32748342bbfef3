package wire

import (
	"hash/maphash"
	"iter"
	"strings"
)

// Object is a validated JSON object with an index of its members. The zero
// Object is absent: it has no text and no members. An Object never changes
// and may be used by many goroutines.
type Object struct {
	x *Index
}

// An Index is the memory for the index of one object. Its zero value is for
// [Parser.Parse].
type Index struct {
	text    []byte // from brace to brace
	members []member
	table   []uint32  // hash table of members, position plus one, if there are many
	inline  [6]member // room for the members of a usual object
	inner   *inner    // a member that has been indexed too, or nil
}

// ParseObject validates data and returns the object it holds. It refuses
// duplicate names at any depth (compared without escapes), invalid UTF-8, lone
// surrogates, trailing data and whatever exceeds lim. It retains data, which
// must not change afterwards. The error is an *[Error]; errors.Is tells
// [ErrNotObject] from texts that are not valid at all.
func ParseObject(data []byte, lim Limits) (Object, error) {
	s := scanners.Get().(*scanner)
	defer s.release()
	return s.parseObject(data, lim, new(Index))
}

func (s *scanner) parseObject(data []byte, lim Limits, x *Index) (Object, error) {
	if err := lim.check(data); err != nil {
		return Object{}, err
	}
	x.members = x.inline[:0]
	start, end, err := s.scan(data, lim, &x.members)
	if err != nil {
		return Object{}, err
	}
	if data[start] != '{' {
		return Object{}, newError("", ErrNotObject, "expected an object, got %s", Kind(data[start]))
	}
	x.complete(data[:end], start)
	if s.inner != nil && s.inner.at > 0 {
		s.inner.complete(x, data, start)
	}
	return Object{x}, nil
}

// complete makes the index of a member of the object x, which starts at start.
func (in *inner) complete(x *Index, data []byte, start int) {
	x.inner = in
	from := in.at
	in.at -= start
	for i := range x.members {
		if m := &x.members[i]; m.value == uint32(in.at) {
			in.index.complete(data[:start+int(m.valueEnd)], from)
			return
		}
	}
}

// ParseArray validates data as [ParseObject] does and returns the elements of
// the array it holds, which alias data. More than limit elements are refused
// with [ErrCount]; 0 means no limit. The depth of lim counts inside the elements.
func ParseArray(data []byte, lim Limits, limit int) ([]RawValue, error) {
	lim.Depth = lim.depth() + 1
	var elements []member
	start, _, err := scan(data, lim, &elements)
	if err != nil {
		return nil, err
	}
	if data[start] != '[' {
		return nil, newError("", ErrNotArray, "expected an array, got %s", Kind(data[start]))
	}
	if limit > 0 && len(elements) > limit {
		return nil, newError("", ErrCount, "array of %d elements is longer than the limit of %d", len(elements), limit)
	}
	raw := make([]RawValue, len(elements))
	for i, e := range elements {
		raw[i] = data[e.value:e.valueEnd:e.valueEnd]
	}
	return raw, nil
}

// complete makes an index of members that are known by their place in text,
// in which the object starts.
func (x *Index) complete(text []byte, start int) {
	x.text = text[start:len(text):len(text)]
	if start > 0 {
		by := uint32(start)
		for i := range x.members {
			m := &x.members[i]
			m.name, m.mark, m.value, m.valueEnd = m.name-by, m.mark-by, m.value-by, m.valueEnd-by
		}
	}
	x.hash()
}

// hash makes the table if there are many members.
func (x *Index) hash() {
	if len(x.members) <= few {
		return
	}
	size := tableSize(len(x.members))
	x.table = make([]uint32, size)
	for i := range x.members {
		slot := int(maphash.Bytes(seed, x.nameBytes(&x.members[i]))) & (size - 1)
		for x.table[slot] != 0 {
			slot = (slot + 1) & (size - 1)
		}
		x.table[slot] = uint32(i + 1)
	}
}

// indexObject indexes an object that is known to be valid.
func indexObject(text []byte) Object {
	x := &Index{text: text}
	x.members = x.inline[:0]
	pos, last := First(text, 0, '}')
	for !last {
		nameEnd, escaped, value := MemberAt(text, pos)
		end := SkipValue(text, value)
		x.members = append(x.members, newMember(pos+1, nameEnd-1, escaped, value, end))
		pos, last = Next(text, end, '}')
	}
	x.hash()
	return Object{x}
}

func (x *Index) value(m *member) RawValue {
	return x.text[m.value:m.valueEnd:m.valueEnd]
}

// nameBytes returns the name of a member without escapes.
func (x *Index) nameBytes(m *member) []byte {
	if !m.escaped() {
		return x.text[m.name:m.nameEnd()]
	}
	return []byte(Text(x.text[m.name-1 : m.nameEnd()+1]))
}

func (x *Index) find(name string) *member {
	if x.table != nil {
		mask := len(x.table) - 1
		for slot := int(maphash.String(seed, name)) & mask; x.table[slot] != 0; slot = (slot + 1) & mask {
			if m := &x.members[x.table[slot]-1]; string(x.nameBytes(m)) == name {
				return m
			}
		}
		return nil
	}
	for i := range x.members {
		m := &x.members[i]
		if m.escaped() {
			if string(x.nameBytes(m)) == name {
				return m
			}
		} else if string(x.text[m.name:m.mark]) == name {
			return m
		}
	}
	return nil
}

// IsZero says whether the object is absent.
func (o Object) IsZero() bool { return o.x == nil }

// Raw returns the text of the object, which must not be changed, or nil.
func (o Object) Raw() RawValue {
	if o.x == nil {
		return nil
	}
	return o.x.text
}

// Len returns the number of members.
func (o Object) Len() int {
	if o.x == nil {
		return 0
	}
	return len(o.x.members)
}

// Member returns the value of the member with that exact name.
func (o Object) Member(name string) (RawValue, bool) {
	if o.x == nil {
		return nil, false
	}
	m := o.x.find(name)
	if m == nil {
		return nil, false
	}
	return o.x.value(m), true
}

// At returns the member at place i of the text. The name must not be changed.
func (o Object) At(i int) (name []byte, value RawValue) {
	m := &o.x.members[i]
	return o.x.nameBytes(m), o.x.value(m)
}

// All yields names and values in the order of the text.
func (o Object) All() iter.Seq2[string, RawValue] {
	return func(yield func(string, RawValue) bool) {
		if o.x == nil {
			return
		}
		for i := range o.x.members {
			m := &o.x.members[i]
			if !yield(string(o.x.nameBytes(m)), o.x.value(m)) {
				return
			}
		}
	}
}

// Object returns the member with that exact name if it is an object.
func (o Object) Object(name string) (Object, bool) {
	if o.x == nil {
		return Object{}, false
	}
	m := o.x.find(name)
	if m == nil || o.x.text[m.value] != '{' {
		return Object{}, false
	}
	return o.x.object(m), true
}

// object returns a member that is an object.
func (x *Index) object(m *member) Object {
	if x.inner != nil && uint32(x.inner.at) == m.value {
		return Object{x.inner.index}
	}
	return indexObject(x.value(m))
}

// Equal says whether both are absent or hold the same value, see [Equal].
func (o Object) Equal(p Object) bool {
	if o.x == nil || p.x == nil {
		return o.x == p.x
	}
	return Equal(o.x.text, p.x.text)
}

// CheckNames refuses members whose name differs from a known name in letter
// case only (Unicode simple folding): an implementation that ignores case
// would take them for the known ones. The error is an *[Error] with [ErrTwin].
func (o Object) CheckNames(known ...string) error {
	if o.x == nil {
		return nil
	}
	for i := range o.x.members {
		if err := CheckName(o.x.nameBytes(&o.x.members[i]), known...); err != nil {
			return err
		}
	}
	return nil
}

// CheckName is [Object.CheckNames] for one name.
func CheckName(name []byte, known ...string) error {
	if twin := twinOf(name, known); twin != "" {
		return twinError("", string(name), twin)
	}
	return nil
}

// twinOf returns the known name that name is not, but for letter case.
func twinOf(name []byte, known []string) (twin string) {
	for _, k := range known {
		if string(name) == k {
			return ""
		}
		if twin == "" && mayFold(name, k) && strings.EqualFold(string(name), k) {
			twin = k
		}
	}
	return twin
}

// mayFold rules out most pairs cheaply. Folding changes the length only of
// characters beyond ASCII.
func mayFold(name []byte, known string) bool {
	if len(name) == len(known) {
		return true
	}
	if len(name) < len(known) {
		return !isASCII(known)
	}
	return !isASCII(name)
}

func isASCII[T []byte | string](text T) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
