package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/schematext"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// schema compares two schemas, keyword by keyword.
func (d *differ) schema(p schematext.Path, old, new mcp.RawValue) {
	before, after := schematext.Canonical(old), schematext.Canonical(new)
	if before == after {
		return
	}
	a, ok1 := schematext.Of(old)
	b, ok2 := schematext.Of(new)
	if !ok1 || !ok2 {
		d.value(p.String(), before, after)
		return
	}
	for _, keyword := range keywordsOf(a, b) {
		before, after := schematext.Canonical(a[keyword]), schematext.Canonical(b[keyword])
		if before == after {
			continue
		}
		if total := d.total; !d.keyword(p, keyword, a, b) && total == d.total {
			d.value(p.Step(keyword).String(), before, after)
		}
	}
}

// keywordsOf returns the keywords of either schema, what models read most
// first.
func keywordsOf(a, b schematext.Object) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	order := func(keyword string) int {
		return slices.Index([]string{"required", "properties", "enum", "type", "title", "description"}, keyword)
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(order(b), order(a)), cmp.Compare(a, b))
	})
}

// keyword compares one keyword and reports whether it is told elsewhere.
func (d *differ) keyword(p schematext.Path, keyword string, a, b schematext.Object) (told bool) {
	switch keyword {
	case "description", "title":
		before, err1 := text(a[keyword])
		after, err2 := text(b[keyword])
		if (err1 == nil || a[keyword] == nil) && (err2 == nil || b[keyword] == nil) {
			d.words(p.Step(keyword).String(), before, after)
		}
	case "type":
		d.value(p.Step("type").String(), typeText(a["type"]), typeText(b["type"]))
	case "enum":
		d.enum(p.Step("allowed value").String(), a["enum"], b["enum"])
	case "properties":
		d.fields(p, a, b)
	case "required":
		return d.required(p, a, b)
	default:
		d.subschemas(p, keyword, a[keyword], b[keyword])
	}
	return false
}

// subschemas compares a keyword that holds schemas.
func (d *differ) subschemas(p schematext.Path, keyword string, old, new mcp.RawValue) {
	if step, ok := schematext.Singles[keyword]; ok && old != nil && new != nil {
		d.schema(p.Step(step), old, new)
		return
	}
	if step, ok := schematext.Lists[keyword]; ok {
		a, err1 := items(old)
		b, err2 := items(new)
		if err1 != nil || err2 != nil {
			return
		}
		for i := range max(len(a), len(b)) {
			d.schema(p.Step(fmt.Sprintf("%s %d of %s", step, i+1, keyword)), itemAt(a, i), itemAt(b, i))
		}
		return
	}
	step, ok := schematext.Maps[keyword]
	if !ok {
		return
	}
	a, ok1 := schematext.Of(old)
	b, ok2 := schematext.Of(new)
	if ok1 && ok2 {
		d.names(keysOf(a), keysOf(b), func(name string) {
			d.schema(p.Step(step+" "+schematext.Quote(name)), a[name], b[name])
		})
	}
}

func itemAt(list []mcp.RawValue, i int) mcp.RawValue {
	if i < len(list) {
		return list[i]
	}
	return nil
}

func keysOf(o schematext.Object) map[string]bool {
	set := make(map[string]bool, len(o))
	for name := range o {
		set[name] = true
	}
	return set
}

// fields compares the fields of an object.
func (d *differ) fields(p schematext.Path, a, b schematext.Object) {
	before, ok1 := schematext.Of(a["properties"])
	after, ok2 := schematext.Of(b["properties"])
	if !ok1 && a["properties"] != nil || !ok2 && b["properties"] != nil {
		return
	}
	wasRequired, _ := requiredOf(a)
	isRequired, _ := requiredOf(b)
	d.names(keysOf(before), keysOf(after), func(name string) {
		old, new := before[name], after[name]
		if old == nil || new == nil {
			d.value(p.Field(name).String(), fieldText(old, wasRequired[name]), fieldText(new, isRequired[name]))
			return
		}
		d.schema(p.Field(name), old, new)
	})
}

// required compares which fields are required. It reports true if all that
// changed is told with fields that are new or gone.
func (d *differ) required(p schematext.Path, a, b schematext.Object) (told bool) {
	before, ok1 := requiredOf(a)
	after, ok2 := requiredOf(b)
	if !ok1 || !ok2 {
		return false
	}
	old, _ := schematext.Of(a["properties"])
	new, _ := schematext.Of(b["properties"])
	word := map[bool]string{false: "optional", true: "required"}
	d.names(before, after, func(name string) {
		switch {
		case before[name] == after[name]:
		case (old[name] == nil) != (new[name] == nil):
			told = true
		default:
			d.value(p.Field(name).String(), word[before[name]], word[after[name]])
		}
	})
	return told
}

// requiredOf returns the names that a schema requires.
func requiredOf(s schematext.Object) (map[string]bool, bool) {
	raw, ok := s["required"]
	if !ok {
		return map[string]bool{}, true
	}
	var names []string
	if err := wire.Decode(raw, &names); err != nil {
		return nil, false
	}
	return setOf(names), true
}

// enum compares lists of allowed values.
func (d *differ) enum(path string, old, new mcp.RawValue) {
	a, err1 := items(old)
	b, err2 := items(new)
	if err1 != nil || err2 != nil {
		return
	}
	values := func(list []mcp.RawValue) map[string]bool {
		set := make(map[string]bool, len(list))
		for _, v := range list {
			set[schematext.Canonical(v)] = true
		}
		return set
	}
	before, after := values(a), values(b)
	d.names(before, after, func(v string) { d.value(path, present(before[v], v), present(after[v], v)) })
}

// typeText writes the value of the keyword "type" for a person.
func typeText(raw mcp.RawValue) string {
	var one string
	if err := wire.Decode(raw, &one); err == nil && raw != nil {
		return one
	}
	var several []string
	if err := wire.Decode(raw, &several); err == nil && raw != nil {
		return strings.Join(several, " or ")
	}
	return schematext.Canonical(raw)
}

// fieldText describes a field that is new or gone.
func fieldText(raw mcp.RawValue, required bool) string {
	if raw == nil {
		return ""
	}
	word := "optional"
	if required {
		word = "required"
	}
	s, ok := schematext.Of(raw)
	if !ok {
		return word + ", schema " + schematext.Canonical(raw)
	}
	var b strings.Builder
	b.WriteString(word)
	if s["type"] != nil {
		b.WriteString(" " + typeText(s["type"]))
	}
	if description, err := text(s["description"]); err == nil && s["description"] != nil {
		b.WriteString(": " + description)
	} else {
		delete(s, "description")
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if keyword != "type" && keyword != "description" {
			b.WriteString("; " + keyword + " " + schematext.Canonical(s[keyword]))
		}
	}
	return b.String()
}
