package schema

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
)

// tagSet are the tags of one field.
type tagSet struct {
	title, desc string
	set         map[string]string // those of constraintTags
	items       bool              // they speak of the items of an array
}

var (
	noTags = &tagSet{}
	// constraintTags say more of a value than title and description.
	constraintTags = []string{"min", "max", "minlen", "maxlen", "pattern", "enum", "titles", "format", "default", "header"}
	// itemTags speak of the items of an array.
	itemTags = []string{"min", "max", "pattern", "enum", "titles", "format"}
)

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
	if err := w.spelling(sf.Tag); err != nil {
		return nil, err
	}
	described, err := w.described(sf)
	if err != nil {
		return nil, err
	}
	t := &tagSet{title: sf.Tag.Get("title"), desc: described}
	if desc, ok := lookup(sf.Tag, "desc"); ok {
		t.desc = desc
	}
	for _, name := range constraintTags {
		if text, ok := lookup(sf.Tag, name); ok {
			if t.set == nil {
				t.set = map[string]string{}
			}
			t.set[name] = text
		}
	}
	return t, nil
}

// lookup returns a tag by our key or one of the others.
func lookup(tag reflect.StructTag, key string) (text string, ok bool) {
	text, ok = tag.Lookup(key)
	for _, name := range others[key] {
		if !ok {
			text, ok = tag.Lookup(name)
		}
	}
	return text, ok
}

// forItems are the tags that speak of the items of an array.
func (t *tagSet) forItems() *tagSet {
	items := &tagSet{items: true, set: maps.Clone(t.set)}
	maps.DeleteFunc(items.set, func(name, _ string) bool { return !slices.Contains(itemTags, name) })
	return items
}

// any returns the name of a constraint that is set.
func (t *tagSet) any() string {
	for _, name := range constraintTags {
		if _, ok := t.set[name]; ok {
			return name
		}
	}
	return ""
}

// rule is what one tag means, and for which types.
type rule struct {
	name  string
	fits  bool
	apply func(*node, string) error
	fix   string
}

func (w *walk) rules(n *node, t reflect.Type, tags *tagSet) []rule {
	number := n.kind == kindInt || n.kind == kindUint || n.kind == kindFloat
	_, listed := tags.set["enum"]
	lengthy := n.kind == kindString || n.kind == kindArray && t.Kind() == reflect.Slice || n.kind == kindMap
	return []rule{
		{"min", number, w.bound("min", &n.lo, &n.flo, &n.loText), "numbers only; for a length write minlen"},
		{"max", number, w.bound("max", &n.hi, &n.fhi, &n.hiText), "numbers only; for a length write maxlen"},
		{"minlen", lengthy, w.count("minlen", &n.length.min), "strings, slices and maps only; for a number write min"},
		{"maxlen", lengthy, w.count("maxlen", &n.length.max), "strings, slices and maps only; for a number write max"},
		{"pattern", n.kind == kindString, w.pattern, "strings only"},
		{"enum", n.kind == kindString || number, w.enumeration, "strings and numbers only"},
		{"titles", n.kind == kindString && listed, w.titling(tags.items), "strings with the tag enum only"},
		{"format", n.kind == kindString, w.formatting, "strings only"},
	}
}

// constrain applies the tags to a node, and refuses those that make no sense
// for its kind.
func (w *walk) constrain(n *node, t reflect.Type, tags *tagSet) error {
	if len(tags.set) == 0 {
		return nil
	}
	for _, r := range w.rules(n, t, tags) {
		text, ok := tags.set[r.name]
		if !ok || n.kind == kindArray && r.name != "minlen" && r.name != "maxlen" {
			continue // the others have been applied to the items
		}
		if w.form && (r.name == "pattern" || r.name == "enum" && n.kind != kindString) {
			return w.errorf("a form cannot have the tag %s here", r.name)
		}
		if !r.fits {
			return w.errorf("tag %s does not fit type %s: %s", r.name, t, r.fix)
		}
		if err := r.apply(n, text); err != nil {
			return err
		}
	}
	if n.length.min >= 0 && n.length.max >= 0 && n.length.min > n.length.max {
		return w.errorf("minlen %d is above maxlen %d", n.length.min, n.length.max)
	}
	if n.kind == kindFloat && n.flo > n.fhi {
		return w.errorf("min %s is above max %s", n.loText, n.hiText)
	}
	return nil
}

// bound reads a bound of a number, within the bounds so far.
func (w *walk) bound(tag string, whole *wire.Decimal, float *float64, shown *string) func(*node, string) error {
	return func(n *node, text string) (err error) {
		if n.kind == kindFloat {
			if *float, err = parseFloat(text); err != nil {
				return w.errorf("tag %s:%q: want a number", tag, text)
			}
			*shown = text
			return nil
		}
		d, ok := parseInteger(n.kind, text)
		if !ok || d.Compare(&n.lo) < 0 || d.Compare(&n.hi) > 0 {
			from := ""
			if n.kind == kindUint {
				from = "from 0, "
			}
			return w.errorf("tag %s:%q: want an integer in the range of the type, %smin not above max", tag, text, from)
		}
		*whole, *shown = d, d.Integer()
		return nil
	}
}

// parseInteger reads an integer of 64 bits.
func parseInteger(kind nodeKind, text string) (d wire.Decimal, ok bool) {
	if kind == kindUint {
		v, err := strconv.ParseUint(text, 10, 64)
		return wire.ReadDecimal(strconv.AppendUint(nil, v, 10)), err == nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	return wire.IntDecimal(v), err == nil
}

// parseFloat reads a number that is also a number in JSON.
func parseFloat(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	return v, cmp.Or(err, wire.Valid([]byte(text), wire.Limits{}))
}

// count reads a bound of a length.
func (w *walk) count(tag string, into *int) func(*node, string) error {
	return func(_ *node, text string) error {
		v, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return w.errorf("tag %s:%q: want a count", tag, text)
		}
		*into = int(v)
		return nil
	}
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
	known := formats
	if w.form {
		known = formats[:formFormats]
	}
	var names []string
	for _, f := range known {
		if f.name == text {
			n.format = f
			return nil
		}
		names = append(names, f.name)
	}
	return w.errorf("tag format:%q: want one of %s", text, strings.Join(names, ", "))
}

func (w *walk) enumeration(n *node, text string) error {
	e := &enum{keyword: "enum"}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" && n.kind == kindString {
			return w.errorf("tag enum:%q has an empty value", text)
		}
		shown, ok := e.add(n.kind, item)
		if !ok {
			return w.errorf("tag enum:%q: %q is not a value of the type", text, item)
		}
		if slices.Contains(e.texts, shown) {
			return w.errorf("tag enum has %s twice", shown)
		}
		e.texts = append(e.texts, shown)
	}
	const most = 400
	if e.reason = "must be one of " + strings.Join(e.texts, ", "); len(e.reason) > most {
		e.reason = strings.ToValidUTF8(e.reason[:most], "") + "…"
	}
	n.enum = e
	return nil
}

// add adds a value, and returns it as JSON.
func (e *enum) add(kind nodeKind, item string) (shown string, ok bool) {
	switch kind {
	case kindString:
		e.strings = append(e.strings, item)
		return string(wire.AppendString(nil, item)), true
	case kindFloat:
		v, err := parseFloat(item)
		e.floats = append(e.floats, v)
		return item, err == nil
	default:
		d, ok := parseInteger(kind, item)
		e.numbers = append(e.numbers, d)
		return d.Integer(), ok
	}
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
		if n.enum.keyword = "oneOf"; items {
			n.enum.keyword = "anyOf"
		}
		return nil
	}
}

// fallback reads the tag default, which must fit the schema of its field.
func (w *walk) fallback(f *field, tags *tagSet) (*fallback, error) {
	text, ok := tags.set["default"]
	if !ok {
		return nil, nil
	}
	raw, err := w.fallbackText(f.node, text)
	if err != nil {
		return nil, err
	}
	if err := wire.Valid(raw, wire.Limits{}); err != nil {
		return nil, w.errorf("tag default:%q: want JSON: %w", text, err)
	}
	if raw, err = f.node.constraints().validateGo(raw); err != nil {
		return nil, w.errorf("tag default:%q does not fit the field: %w", text, err)
	}
	d := &fallback{raw: raw}
	v := reflect.New(f.typ).Elem()
	if err := wire.Decode(raw, v.Addr().Interface()); err != nil {
		return nil, w.errorf("tag default:%q cannot be decoded: %w", text, err)
	}
	if kind := f.typ.Kind(); kind <= reflect.Float64 || kind == reflect.String {
		d.plain = v // booleans and numbers come before Float64
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
