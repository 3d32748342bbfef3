package schema

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
)

// tagSet are the tags of one field; absent ones are nil.
type tagSet struct {
	title, desc                                     string
	min, max, minlen, maxlen, pattern, enum, format *string
	titles, fallback, header                        *string
	items                                           bool // they speak of the items of an array
}

var noTags = &tagSet{}

// misspelt are keys that people write for ours.
var misspelt = map[string]string{"minLen": "minlen", "maxLen": "maxlen"}

// others are the keys of other libraries that mean the same as ours.
var others = map[string][]string{
	"desc": {"description", "jsonschema_description"}, "min": {"minimum"}, "max": {"maximum"},
	"minlen": {"minLength", "minItems"}, "maxlen": {"maxLength", "maxItems"},
}

// schemaOption is an option of a jsonschema tag as other libraries write it.
var schemaOption = regexp.MustCompile(`^\s*(-|required|nullable|[A-Za-z_]+=.*)\s*$`)

// described reads the tag jsonschema, whose text is a description for some
// libraries and a list of options for others.
func (w *walk) described(sf reflect.StructField) (string, error) {
	text := sf.Tag.Get("jsonschema")
	items := strings.Split(text, ",")
	plain := func(item string) bool { return !schemaOption.MatchString(item) }
	if plain(items[0]) || !strings.Contains(items[0], "=") && slices.ContainsFunc(items, plain) {
		return text, nil
	}
	return "", w.errorf("tag jsonschema:%q: options are not read here, only a plain text as the description; "+
		"write the tags desc, min, max, enum, default and so on beside it, or give the schema by a method %s", text, schemaMethod)
}

func (w *walk) tags(sf reflect.StructField) (*tagSet, error) {
	for wrong, right := range misspelt {
		if _, ok := sf.Tag.Lookup(wrong); ok {
			return nil, w.errorf("tag %s is not known; write %s", wrong, right)
		}
	}
	get := func(key string) *string {
		for _, name := range append([]string{key}, others[key]...) {
			if s, ok := sf.Tag.Lookup(name); ok {
				return &s
			}
		}
		return nil
	}
	described, err := w.described(sf)
	if err != nil {
		return nil, err
	}
	if desc := get("desc"); desc != nil {
		described = *desc
	}
	return &tagSet{
		title: sf.Tag.Get("title"), desc: described,
		min: get("min"), max: get("max"), minlen: get("minlen"), maxlen: get("maxlen"),
		pattern: get("pattern"), enum: get("enum"), format: get("format"),
		titles: get("titles"), fallback: get("default"), header: get("header"),
	}, nil
}

// forItems are the tags that speak of the items of an array.
func (t *tagSet) forItems() *tagSet {
	return &tagSet{min: t.min, max: t.max, pattern: t.pattern, enum: t.enum, titles: t.titles, format: t.format, items: true}
}

// any returns the name of a constraint that is set.
func (t *tagSet) any() string {
	for _, c := range []struct {
		name string
		text *string
	}{
		{"min", t.min},
		{"max", t.max},
		{"minlen", t.minlen},
		{"maxlen", t.maxlen},
		{"pattern", t.pattern},
		{"enum", t.enum},
		{"titles", t.titles},
		{"format", t.format},
		{"default", t.fallback},
		{"header", t.header},
	} {
		if c.text != nil {
			return c.name
		}
	}
	return ""
}

// rule is what one tag means, and for which types.
type rule struct {
	name  string
	text  *string
	fits  bool
	apply func(*node, string) error
	fix   string
}

func (w *walk) rules(n *node, t reflect.Type, tags *tagSet) []rule {
	number := n.kind == kindInt || n.kind == kindUint || n.kind == kindFloat
	lengthy := n.kind == kindString || n.kind == kindArray && t.Kind() == reflect.Slice || n.kind == kindMap
	return []rule{
		{"min", tags.min, number, w.min, "numbers only; for a length write minlen"},
		{"max", tags.max, number, w.max, "numbers only; for a length write maxlen"},
		{"minlen", tags.minlen, lengthy, w.minlen, "strings, slices and maps only; for a number write min"},
		{"maxlen", tags.maxlen, lengthy, w.maxlen, "strings, slices and maps only; for a number write max"},
		{"pattern", tags.pattern, n.kind == kindString, w.pattern, "strings only"},
		{"enum", tags.enum, n.kind == kindString || number, w.enumeration, "strings and numbers only"},
		{"titles", tags.titles, n.kind == kindString && tags.enum != nil, w.titling(tags.items), "strings with the tag enum only"},
		{"format", tags.format, n.kind == kindString, w.formatting, "strings only"},
	}
}

// constrain applies the tags to a node, and refuses those that make no sense
// for its kind.
func (w *walk) constrain(n *node, t reflect.Type, tags *tagSet) error {
	for _, r := range w.rules(n, t, tags) {
		if r.text == nil || n.kind == kindArray && r.name != "minlen" && r.name != "maxlen" {
			continue // the others have been applied to the items
		}
		if w.form && (r.name == "pattern" || r.name == "enum" && n.kind != kindString) {
			return w.errorf("a form cannot have the tag %s here", r.name)
		}
		if !r.fits {
			return w.errorf("tag %s does not fit type %s: %s", r.name, t, r.fix)
		}
		if err := r.apply(n, *r.text); err != nil {
			return err
		}
	}
	if n.minLen >= 0 && n.maxLen >= 0 && n.minLen > n.maxLen {
		return w.errorf("minlen %d is above maxlen %d", n.minLen, n.maxLen)
	}
	if n.kind == kindFloat && n.flo > n.fhi {
		return w.errorf("min %s is above max %s", n.loText, n.hiText)
	}
	return nil
}

func (w *walk) min(n *node, text string) (err error) {
	switch n.kind {
	case kindInt:
		n.lo, n.loText, err = w.integer(n, "min", text)
	case kindUint:
		n.ulo, n.loText, err = w.natural(n, "min", text)
	default:
		n.flo, err = w.float("min", text)
		n.loText = text
	}
	return err
}

func (w *walk) max(n *node, text string) (err error) {
	switch n.kind {
	case kindInt:
		n.hi, n.hiText, err = w.integer(n, "max", text)
	case kindUint:
		n.uhi, n.hiText, err = w.natural(n, "max", text)
	default:
		n.fhi, err = w.float("max", text)
		n.hiText = text
	}
	return err
}

// integer reads a bound within the bounds so far, and spells it as JSON does.
func (w *walk) integer(n *node, tag, text string) (int64, string, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < n.lo || v > n.hi {
		return 0, "", w.errorf("tag %s:%q: want an integer in the range of the type, min not above max", tag, text)
	}
	return v, strconv.FormatInt(v, 10), nil
}

// natural is integer for unsigned types.
func (w *walk) natural(n *node, tag, text string) (uint64, string, error) {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil || v < n.ulo || v > n.uhi {
		return 0, "", w.errorf("tag %s:%q: want an integer in the range of the type, from 0, min not above max", tag, text)
	}
	return v, strconv.FormatUint(v, 10), nil
}

// float reads a number that is also a number in JSON.
func (w *walk) float(tag, text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || wire.Valid([]byte(text), wire.Limits{}) != nil {
		return 0, w.errorf("tag %s:%q: want a number", tag, text)
	}
	return v, nil
}

func (w *walk) length(tag, text string) (int, error) {
	v, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, w.errorf("tag %s:%q: want a count", tag, text)
	}
	return int(v), nil
}

func (w *walk) minlen(n *node, text string) (err error) {
	n.minLen, err = w.length("minlen", text)
	return err
}

func (w *walk) maxlen(n *node, text string) (err error) {
	n.maxLen, err = w.length("maxlen", text)
	return err
}

func (w *walk) pattern(n *node, text string) error {
	re, err := regexp.Compile(text)
	if err != nil {
		return w.errorf("tag pattern: %w; write it as Go's package regexp does", err)
	}
	n.pattern = re
	return nil
}

func (w *walk) formatting(n *node, text string) error {
	n.format = formatNamed(text)
	if n.format == nil || w.form && !n.format.form {
		var known []string
		for i := range formats {
			if !w.form || formats[i].form {
				known = append(known, formats[i].name)
			}
		}
		return w.errorf("tag format:%q: want one of %s", text, strings.Join(known, ", "))
	}
	return nil
}

func (w *walk) enumeration(n *node, text string) error {
	e := &enum{}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		var err error
		switch n.kind {
		case kindString:
			e.strings = append(e.strings, item)
			e.texts = append(e.texts, string(wire.AppendString(nil, item)))
			if item == "" {
				return w.errorf("tag enum:%q has an empty value", text)
			}
		case kindInt:
			var v int64
			v, err = strconv.ParseInt(item, 10, 64)
			e.ints, e.texts = append(e.ints, v), append(e.texts, strconv.FormatInt(v, 10))
		case kindUint:
			var v uint64
			v, err = strconv.ParseUint(item, 10, 64)
			e.uints, e.texts = append(e.uints, v), append(e.texts, strconv.FormatUint(v, 10))
		default:
			var v float64
			v, err = w.float("enum", item)
			e.floats, e.texts = append(e.floats, v), append(e.texts, item)
		}
		if err != nil {
			return w.errorf("tag enum:%q: %q is not a value of the type", text, item)
		}
	}
	for i, text := range e.texts {
		if slices.Contains(e.texts[:i], text) {
			return w.errorf("tag enum has %s twice", text)
		}
	}
	n.enum = e
	return nil
}

// titling gives the values of an enum titles, in their order. The schema then
// has a choice of constants, as forms have it (spec 2026-07-28,
// client/elicitation): oneOf, and anyOf for the items of an array.
func (w *walk) titling(items bool) func(*node, string) error {
	return func(n *node, text string) error {
		titles := strings.Split(text, ",")
		if len(titles) != len(n.enum.texts) {
			return w.errorf("tag titles:%q has %d titles for %d values of enum", text, len(titles), len(n.enum.texts))
		}
		for _, title := range titles {
			if title = strings.TrimSpace(title); title == "" {
				return w.errorf("tag titles:%q has an empty title", text)
			}
			n.enum.titles = append(n.enum.titles, title)
		}
		n.enum.items = items
		return nil
	}
}

// fallback reads the tag default, which must fit the schema of its field.
func (w *walk) fallback(f *field, tags *tagSet) (*fallback, error) {
	if tags.fallback == nil {
		return nil, nil
	}
	raw, err := w.fallbackText(f.node, *tags.fallback)
	if err != nil {
		return nil, err
	}
	if err := wire.Valid(raw, wire.Limits{}); err != nil {
		return nil, w.errorf("tag default:%q: want JSON: %w", *tags.fallback, err)
	}
	c := Compiled{root: f.node}
	if raw, err = c.checkInferred(raw); err != nil {
		return nil, w.errorf("tag default:%q does not fit the field: %w", *tags.fallback, err)
	}
	d := &fallback{raw: raw}
	v := reflect.New(f.typ).Elem()
	if err := wire.Decode(raw, v.Addr().Interface()); err != nil {
		return nil, w.errorf("tag default:%q cannot be decoded: %w", *tags.fallback, err)
	}
	switch f.typ.Kind() {
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		d.plain = v
	}
	return d, nil
}

// fallbackText turns the text of a default tag into JSON.
func (w *walk) fallbackText(n *node, text string) (wire.RawValue, error) {
	quoted := wire.RawValue(wire.AppendString(nil, text))
	if n.own != nil && n.own.typ == "string" {
		return quoted, nil
	}
	switch n.kind {
	case kindString, kindTime:
		return quoted, nil
	case kindDuration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, w.errorf("tag default:%q: want a duration such as 1m30s", text)
		}
		return wire.AppendString(nil, d.String()), nil
	case kindStruct, kindBytes, kindRef:
		return nil, w.errorf("tag default does not fit the type; put defaults on the fields of a struct")
	case kindArray:
		if !strings.HasPrefix(text, "[") {
			return listText(n.items, text), nil
		}
	default:
	}
	return wire.RawValue(text), nil
}

// listText makes an array of comma-separated items.
func listText(items *node, text string) wire.RawValue {
	dst := []byte{'['}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		if items.jsonType() == "string" {
			dst = wire.AppendString(dst, item)
		} else {
			dst = append(dst, item...)
		}
	}
	return append(dst, ']')
}

// formKind refuses what a form cannot have.
func (w *walk) formKind(t reflect.Type, k nodeKind) error {
	depth := len(w.names)
	switch k {
	case kindString, kindTime, kindInt, kindUint, kindFloat, kindBool:
		return nil
	case kindStruct:
		if depth == 0 {
			return nil
		}
	case kindArray:
		if w.classify(deref(t.Elem())) == kindString && w.reach == 0 {
			return nil
		}
	case kindDuration:
		return w.errorf("a form cannot have a duration; use a string or a number of seconds")
	default:
	}
	return w.errorf("a form cannot have type %s; it has strings, numbers, booleans, times, enums and slices of enums, side by side", t)
}
