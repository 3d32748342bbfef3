package schema

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// member is a Go field that becomes a member of the JSON object.
type member struct {
	name     string
	index    []int
	sf       reflect.StructField
	optional bool // by its tag or type
	nullable bool // encoded as null when nil
	quoted   bool // a number in a string
	pointer  bool // in a struct embedded by pointer
}

// structure walks the fields of a struct.
func (w *walk) structure(n *node, t reflect.Type) error {
	members, extra, err := w.members(t)
	if err != nil {
		return err
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Name == "_" {
			n.title, n.desc = f.Tag.Get("title"), f.Tag.Get("desc")
		}
	}
	if len(members) > 0 || extra != nil {
		// The decoder may refuse the json tags.
		if err := wire.Decode([]byte("{}"), reflect.New(t).Interface()); err != nil {
			return w.errorf("%w", err)
		}
	}
	for _, m := range members {
		f, err := w.field(m)
		if err != nil {
			return err
		}
		n.fields = append(n.fields, *f)
	}
	switch {
	case extra != nil:
		n.extra, err = w.inside("."+extra.Name, deref(extra.Type).Elem(), noTags)
		if err == nil && n.extra.kind != kindAny && w.mayDefault(n.extra) {
			err = w.errorf("defaults inside the inlined map %s are not supported", extra.Name)
		}
	case w.additional:
		n.extra = &node{kind: kindAny, length: anyLength}
	}
	return err
}

// field walks one member.
func (w *walk) field(m member) (*field, error) {
	w.path = append(w.path, m.sf.Name)
	w.names = append(w.names, m.name)
	defer func() {
		w.path = w.path[:len(w.path)-1]
		w.names = w.names[:len(w.names)-1]
	}()
	tags, err := w.tags(m.sf)
	if err != nil {
		return nil, err
	}
	f := &field{name: m.name, goField: goField{index: m.index, typ: m.sf.Type}}
	if m.quoted {
		f.node, err = w.quoted(m.sf.Type, tags)
	} else {
		f.node, err = w.value(m.sf.Type, tags)
	}
	if err != nil {
		return nil, err
	}
	f.node.nullable = w.output && m.nullable
	f.node.title, f.node.desc = cmp.Or(tags.title, f.node.title), cmp.Or(tags.desc, f.node.desc)
	if f.fallback, err = w.fallback(f, tags); err != nil {
		return nil, err
	}
	if f.fallback != nil && m.pointer {
		return nil, w.errorf("defaults in a struct embedded by pointer are not supported; embed the struct itself")
	}
	f.required = !m.optional && f.fallback == nil
	if err := w.header(f, tags); err != nil {
		return nil, err
	}
	w.noteSecret(m.name, f.node)
	return f, nil
}

// level is an embedded struct that is still to be searched.
type level struct {
	typ     reflect.Type
	index   []int
	pointer bool
}

// search is a breadth-first search for the fields of a struct.
type search struct {
	*walk
	found map[string]member
	seen  map[reflect.Type]bool
	queue []level
	extra *reflect.StructField // the inlined map
}

// members lists the fields of t as the decoder sees them: embedded structs are
// inlined, the shallowest of a name wins, a name given twice at one depth is an
// error. extra is the inlined map, if there is one.
func (w *walk) members(t reflect.Type) (list []member, extra *reflect.StructField, err error) {
	s := search{walk: w, found: map[string]member{}, seen: map[reflect.Type]bool{t: true}}
	for s.queue = []level{{typ: t}}; len(s.queue) > 0; s.queue = s.queue[1:] {
		at := s.queue[0]
		for i := range at.typ.NumField() {
			m, embed, err := w.member(at.typ.Field(i), append(slices.Clone(at.index), i))
			switch {
			case err != nil:
				return nil, nil, err
			case embed:
				err = s.embed(at, m)
			case m != nil:
				err = s.add(at, m)
			}
			if err != nil {
				return nil, nil, err
			}
		}
	}
	list = slices.SortedFunc(maps.Values(s.found), func(a, b member) int { return slices.Compare(a.index, b.index) })
	return list, s.extra, nil
}

// embed notes a field whose content is inlined.
func (s *search) embed(at level, m *member) error {
	inner := deref(m.sf.Type)
	if inner.Kind() == reflect.Struct {
		if s.seen[inner] {
			return s.errorf("struct %s is embedded twice", inner)
		}
		s.seen[inner] = true
		s.queue = append(s.queue, level{inner, m.index, at.pointer || m.sf.Type.Kind() == reflect.Pointer})
		return nil
	}
	if s.extra != nil || inner.Kind() != reflect.Map {
		return s.errorf("field %s: only one map can be inlined", m.sf.Name)
	}
	s.extra = &m.sf
	return nil
}

func (s *search) add(at level, m *member) error {
	if at.pointer {
		m.optional, m.pointer = true, true
	}
	if old, ok := s.found[m.name]; ok {
		if len(old.index) == len(m.index) {
			return s.errorf("fields %s and %s have the same name %q", old.sf.Name, m.sf.Name, m.name)
		}
		return nil
	}
	s.found[m.name] = *m
	return nil
}

// member reads the json tag of a field. It returns nil if the field takes no
// part, and embed if its content is inlined.
func (w *walk) member(sf reflect.StructField, index []int) (m *member, embed bool, err error) {
	tag := sf.Tag.Get("json")
	if tag != "-" && tag != "" && !sf.IsExported() && !sf.Anonymous {
		return nil, false, w.errorf("field %s has a json tag but is not exported, so that nothing can set it; begin its name with a capital letter", sf.Name)
	}
	if tag == "-" || !sf.IsExported() && !sf.Anonymous {
		return nil, false, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	if strings.ContainsAny(name, `'"\`) {
		return nil, false, w.errorf("field %s: quotes and backslashes in the json name %s are not supported", sf.Name, name)
	}
	m = &member{name: cmp.Or(name, sf.Name), index: index, sf: sf}
	omits := false
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitzero", "omitempty":
			omits = true
		case "embed", "inline":
			embed = true
		case "string":
			m.quoted = true
		default:
			return nil, false, w.errorf("field %s: the json option %q is not supported", sf.Name, option)
		}
	}
	if sf.Anonymous && name == "" && deref(sf.Type).Kind() == reflect.Struct {
		return m, true, nil
	}
	m.nullable = sf.Type.Kind() == reflect.Pointer && !omits
	m.optional = omits || m.nullable && !w.output
	return m, embed, nil
}
