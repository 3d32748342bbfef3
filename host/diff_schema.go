package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// A schemaPath names a place in the input or output schema of a tool in words.
type schemaPath struct {
	kind string // input or output
	text string // the steps that lead to the place; empty is the schema itself
}

func (p schemaPath) String() string { return p.kind + " " + cmp.Or(p.text, "schema") }

// step returns the path of a part.
func (p schemaPath) step(text string) schemaPath {
	if p.text == "" && !strings.HasPrefix(text, "field ") {
		text = "schema, " + text
	} else if p.text != "" {
		text = p.text + ", " + text
	}
	if len(text) > 3*maxPathName {
		text = "…" + text[len(text)-3*maxPathName:]
		text = strings.ToValidUTF8(text, "")
	}
	return schemaPath{p.kind, text}
}

func (p schemaPath) field(name string) schemaPath { return p.step("field " + quotePath(name)) }

// A schemaObject is the keywords of a JSON Schema.
type schemaObject map[string]mcp.RawValue

// schemaOf returns the keywords of a schema, or false if it is no object.
func schemaOf(raw mcp.RawValue) (schemaObject, bool) {
	o, err := wire.ParseObject(raw, wire.Limits{Depth: definitionLimits.Depth})
	if err != nil {
		return nil, false
	}
	return maps.Collect(o.All()), true
}

// What the keywords of JSON Schema have as their value, as far as it holds
// schemas.
var (
	schemaMaps = map[string]string{
		"patternProperties": "fields that match", "$defs": "definition", "definitions": "definition",
		"dependentSchemas": "if there is a field",
	}
	schemaLists = map[string]string{
		"allOf": "part", "anyOf": "alternative", "oneOf": "alternative", "prefixItems": "item",
	}
	schemaSingles = map[string]string{
		"items": "each item", "additionalProperties": "other fields", "additionalItems": "further items",
		"contains": "contained item", "propertyNames": "names of fields", "unevaluatedItems": "unevaluatedItems",
		"unevaluatedProperties": "unevaluatedProperties", "not": "not", "if": "if", "then": "then", "else": "else",
	}
)

// schema compares two schemas, keyword by keyword.
func (d *differ) schema(p schemaPath, old, new mcp.RawValue) {
	before, after := canonical(old), canonical(new)
	if before == after {
		return
	}
	a, ok1 := schemaOf(old)
	b, ok2 := schemaOf(new)
	if !ok1 || !ok2 {
		d.value(p.String(), before, after)
		return
	}
	for _, keyword := range keywordsOf(a, b) {
		before, after := canonical(a[keyword]), canonical(b[keyword])
		if before == after {
			continue
		}
		if total := d.total; !d.keyword(p, keyword, a, b) && total == d.total {
			d.value(p.step(keyword).String(), before, after)
		}
	}
}

// keywordsOf returns the keywords of either schema, what models read most
// first.
func keywordsOf(a, b schemaObject) []string {
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
func (d *differ) keyword(p schemaPath, keyword string, a, b schemaObject) (told bool) {
	switch keyword {
	case "description", "title":
		before, err1 := text(a[keyword])
		after, err2 := text(b[keyword])
		if (err1 == nil || a[keyword] == nil) && (err2 == nil || b[keyword] == nil) {
			d.words(p.step(keyword).String(), before, after)
		}
	case "type":
		d.value(p.step("type").String(), typeText(a["type"]), typeText(b["type"]))
	case "enum":
		d.enum(p.step("allowed value").String(), a["enum"], b["enum"])
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
func (d *differ) subschemas(p schemaPath, keyword string, old, new mcp.RawValue) {
	if step, ok := schemaSingles[keyword]; ok && old != nil && new != nil {
		d.schema(p.step(step), old, new)
		return
	}
	if step, ok := schemaLists[keyword]; ok {
		a, err1 := items(old)
		b, err2 := items(new)
		if err1 != nil || err2 != nil {
			return
		}
		for i := range max(len(a), len(b)) {
			d.schema(p.step(fmt.Sprintf("%s %d of %s", step, i+1, keyword)), itemAt(a, i), itemAt(b, i))
		}
		return
	}
	step, ok := schemaMaps[keyword]
	if !ok {
		return
	}
	a, ok1 := schemaOf(old)
	b, ok2 := schemaOf(new)
	if ok1 && ok2 {
		d.names(keysOf(a), keysOf(b), func(name string) {
			d.schema(p.step(step+" "+quotePath(name)), a[name], b[name])
		})
	}
}

func itemAt(list []mcp.RawValue, i int) mcp.RawValue {
	if i < len(list) {
		return list[i]
	}
	return nil
}

func keysOf(o schemaObject) map[string]bool {
	set := make(map[string]bool, len(o))
	for name := range o {
		set[name] = true
	}
	return set
}

// fields compares the fields of an object.
func (d *differ) fields(p schemaPath, a, b schemaObject) {
	before, ok1 := schemaOf(a["properties"])
	after, ok2 := schemaOf(b["properties"])
	if !ok1 && a["properties"] != nil || !ok2 && b["properties"] != nil {
		return
	}
	wasRequired, _ := requiredOf(a)
	isRequired, _ := requiredOf(b)
	d.names(keysOf(before), keysOf(after), func(name string) {
		old, new := before[name], after[name]
		if old == nil || new == nil {
			d.value(p.field(name).String(), fieldText(old, wasRequired[name]), fieldText(new, isRequired[name]))
			return
		}
		d.schema(p.field(name), old, new)
	})
}

// required compares which fields are required. It reports true if all that
// changed is told with fields that are new or gone.
func (d *differ) required(p schemaPath, a, b schemaObject) (told bool) {
	before, ok1 := requiredOf(a)
	after, ok2 := requiredOf(b)
	if !ok1 || !ok2 {
		return false
	}
	old, _ := schemaOf(a["properties"])
	new, _ := schemaOf(b["properties"])
	word := map[bool]string{false: "optional", true: "required"}
	d.names(before, after, func(name string) {
		switch {
		case before[name] == after[name]:
		case (old[name] == nil) != (new[name] == nil):
			told = true
		default:
			d.value(p.field(name).String(), word[before[name]], word[after[name]])
		}
	})
	return told
}

// requiredOf returns the names that a schema requires.
func requiredOf(s schemaObject) (map[string]bool, bool) {
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
			set[canonical(v)] = true
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
	return canonical(raw)
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
	s, ok := schemaOf(raw)
	if !ok {
		return word + ", schema " + canonical(raw)
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
			b.WriteString("; " + keyword + " " + canonical(s[keyword]))
		}
	}
	return b.String()
}
