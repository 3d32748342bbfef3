package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/schematext"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// forms are the values of keywords: s is a string, b a boolean, n a number, o an object, a an
// array. See formOf for those that hold schemas.
var forms = map[string]string{
	"$ref": "s", "$anchor": "s", "$id": "s", "$schema": "s", "$comment": "s", "type": "sa", "title": "s", "description": "s",
	"format": "s", "pattern": "s", "contentEncoding": "s", "contentMediaType": "s", "contentSchema": "ob",
	"properties": "o", "dependentRequired": "o", "dependencies": "o", "items": "oba", "required": "a", "enum": "a", "examples": "a",
	"minimum": "n", "maximum": "n", "exclusiveMinimum": "n", "exclusiveMaximum": "n", "multipleOf": "n",
	"minLength": "n", "maxLength": "n", "minItems": "n", "maxItems": "n", "minProperties": "n", "maxProperties": "n",
	"minContains": "n", "maxContains": "n",
	"uniqueItems": "b", "readOnly": "b", "writeOnly": "b", "deprecated": "b", "nullable": "b",
}

// formOf returns the forms that the value of a keyword can have, or "" for any.
func formOf(keyword string) string {
	switch {
	case forms[keyword] != "":
		return forms[keyword]
	case schematext.Maps[keyword] != "":
		return "o"
	case schematext.Lists[keyword] != "":
		return "a"
	case schematext.Singles[keyword] != "":
		return "ob"
	}
	return ""
}

// dropInvalid removes from s the keywords whose values are not JSON Schema, which providers refuse.
// Null is the same as absence. An exclusive bound of draft-04, which is a boolean, becomes one of
// 2020-12.
func (r *reducer) dropInvalid(s schematext.Object, lost *[]string) {
	for _, pair := range [][2]string{{"exclusiveMaximum", "maximum"}, {"exclusiveMinimum", "minimum"}} {
		if exclusive := s[pair[0]]; form(exclusive) == "b" {
			delete(s, pair[0])
			if limit := s[pair[1]]; schematext.Kind(exclusive) == 't' && form(limit) == "n" {
				s[pair[0]] = limit
				delete(s, pair[1])
			}
		}
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		value := s[keyword]
		want := formOf(keyword)
		if want == "" || strings.Contains(want, form(value)) && (keyword != "type" || isTypes(value)) {
			continue
		}
		delete(s, keyword)
		if schematext.Kind(value) != 'n' {
			*lost = append(*lost, keyword+": "+lostText(value))
			r.lose("an invalid "+keyword+" is left out", "it is not JSON Schema", "correct the schema")
		}
	}
}

// form is the letter in forms of a value, or "-" for null and no value.
func form(value mcp.RawValue) string {
	switch schematext.Kind(value) {
	case '"':
		return "s"
	case '{':
		return "o"
	case '[':
		return "a"
	case 't', 'f':
		return "b"
	case 'n', 0:
		return "-"
	}
	return "n"
}

// isTypes reports whether all types of a value of "type" are known.
func isTypes(value mcp.RawValue) bool {
	names := typeNames(value)
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool {
		return !slices.Contains([]string{"array", "boolean", "integer", "null", "number", "object", "string"}, name)
	})
}

// exactKeywords writes keywords whose schemas must not accept more than they
// do, or else the whole would accept less. They are kept as they are or left
// out, each with those that belong to it.
func (n *reduction) exactKeywords() {
	for _, group := range [][]string{
		{"not"},
		{"if", "then", "else"},
		{"contains", "minContains", "maxContains"},
		{"unevaluatedItems"},
		{"unevaluatedProperties"},
		{"dependencies"},
	} {
		keep := !n.plain() && !strings.HasPrefix(group[0], "unevaluated") && group[0] != "dependencies"
		for _, keyword := range group {
			value, ok := n.s[keyword]
			if !ok || !keep {
				continue
			}
			count := strings.HasSuffix(keyword, "Contains")
			keep = n.takes(keyword) && (count || n.r.exact(value, n.depth+1))
		}
		for _, keyword := range group {
			if value, ok := n.s[keyword]; ok && keep {
				n.out[keyword] = mcp.RawValue(schematext.Canonical(value))
				delete(n.s, keyword)
			} else {
				n.lose(keyword)
			}
		}
	}
}

// names leaves out the arguments whose names are not taken, and with them the
// keyword that would refuse them then.
func (n *reduction) names() {
	fields, ok := schematext.Of(n.s["properties"])
	if !ok {
		return
	}
	out := false
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if n.takesName(name) {
			continue
		}
		n.r.lose(n.path.Field(name).String()+" is left out: its name must be 1 to 64 letters, digits, _, . or -",
			"names of arguments are 1 to 64 letters, digits, _, . or -", "give the field such a name")
		n.lost = append(n.lost, "properties: "+schematext.Clip(name, maxLostValue)+" "+lostText(fields[name]))
		delete(fields, name)
		out = true
	}
	if out {
		n.s["properties"] = encodeSchema(fields)
		n.lose("additionalProperties")
	}
}

// takesName reports whether a field may be called that.
func (n *reduction) takesName(name string) bool {
	return n.depth > 0 || n.r.profile.Names == NamesAny || isPlain(name)
}

// bounds writes an exclusive bound as an ordinary one if it is not taken.
func (n *reduction) bounds() {
	for _, pair := range [][2]string{{"exclusiveMaximum", "maximum"}, {"exclusiveMinimum", "minimum"}} {
		exclusive, ordinary := pair[0], pair[1]
		value, ok := n.s[exclusive]
		if !ok || n.takes(exclusive) {
			continue
		}
		n.lose(exclusive)
		number := strings.IndexByte("-0123456789", schematext.Kind(value)) >= 0
		if n.s[ordinary] == nil && n.takes(ordinary) && number {
			n.s[ordinary] = value
		}
	}
}

// required writes the names of required fields. Those that are not described are
// left out unless the provider takes every schema.
func (n *reduction) required(value mcp.RawValue) {
	var names []string
	if err := wire.Decode(value, &names); err != nil || !n.takes("required") {
		n.lose("required")
		return
	}
	properties, _ := schematext.Of(n.s["properties"])
	var list []mcp.RawValue
	for i, name := range names {
		known := properties[name] != nil || n.r.profile.Keywords == nil && n.takesName(name)
		if known && !slices.Contains(names[:i], name) {
			list = append(list, wire.AppendString(nil, name))
		}
	}
	if len(list) < len(names) {
		n.lose("required")
	}
	if len(list) > 0 {
		n.out["required"] = encodeList(list)
	}
}

// arrays writes what the items of a list are. Of the forms of draft-07 it makes
// those of 2020-12.
func (n *reduction) arrays() {
	if schematext.Kind(n.s["items"]) == '[' {
		n.s["prefixItems"] = n.s["items"]
		delete(n.s, "items")
		if rest := n.s["additionalItems"]; rest != nil {
			n.s["items"] = rest
		}
	}
	if n.s["prefixItems"] != nil && !n.takes("prefixItems") {
		n.lose("items") // it would count for the first items too
		n.lose("prefixItems")
	}
	if value := n.s["prefixItems"]; value != nil {
		n.keyword("prefixItems", value)
	}
	switch value := n.s["items"]; {
	case value == nil:
	case !n.takes("items"):
		n.lose("items")
	case schematext.Canonical(value) == "false" && !n.takes("not"):
		n.lose("items")
	case schematext.Kind(value) == '{':
		n.keyword("items", value)
	default:
		n.out["items"] = value
	}
}

// typeNames returns the types that the keyword "type" allows.
func typeNames(raw mcp.RawValue) []string {
	if raw == nil {
		return nil
	}
	if one, err := schematext.Text(raw); err == nil {
		return []string{one}
	}
	var several []string
	if err := wire.Decode(raw, &several); err != nil {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(several)))
}

// types writes the type, in the style of the provider.
func (n *reduction) types() {
	types := typeNames(n.s["type"])
	if n.nullable && !slices.Contains(types, "null") {
		types = append(types, "null")
	}
	p := n.r.profile
	null := slices.Contains(types, "null")
	rest := slices.DeleteFunc(slices.Clone(types), func(t string) bool {
		return t == "null" || t == "integer" && slices.Contains(types, "number")
	})
	if n.depth == 0 && p.Root != RootAny && slices.Contains(rest, "object") {
		rest, null = []string{"object"}, false
	}
	switch {
	case len(types) == 0:
	case p.Types == TypesList:
		n.out["type"] = typeValue(rest, null)
	case len(rest) == 0 && p.Types == TypesNullable:
		n.out["nullable"] = mcp.RawValue("true")
		n.lost = append(n.lost, "type: null")
		n.r.lose(n.path.String()+": null becomes nullable", "the type null is not taken", "leave out a field that is always null")
	case len(rest) == 0:
		n.out["type"] = mcp.RawValue(`"null"`)
	case len(rest) == 1 && (!null || p.Types == TypesNullable):
		n.out["type"] = typeValue(rest, false)
		if null {
			n.out["nullable"] = mcp.RawValue("true")
		}
	case n.out["anyOf"] != nil || !p.takes("anyOf"):
		n.lose("type")
	default:
		n.splitTypes(rest, null)
	}
	n.finish(n.out)
	if p.AnyOf == AnyOfAlone && n.out["anyOf"] != nil {
		n.anyOfAlone()
	}
}

func typeValue(types []string, null bool) mcp.RawValue {
	if null {
		types = append(slices.Clone(types), "null")
	}
	if len(types) == 1 {
		return wire.AppendString(nil, types[0])
	}
	list := make([]mcp.RawValue, len(types))
	for i, t := range types {
		list[i] = wire.AppendString(nil, t)
	}
	return encodeList(list)
}

// typeKeywords are the keywords that say something of values of one type.
var typeKeywords = map[string]string{
	"properties": "object", "required": "object", "additionalProperties": "object", "patternProperties": "object",
	"minProperties": "object", "maxProperties": "object", "propertyNames": "object", "dependentSchemas": "object",
	"dependentRequired": "object",
	"items":             "array", "prefixItems": "array", "minItems": "array", "maxItems": "array", "uniqueItems": "array",
	"contains": "array", "minContains": "array", "maxContains": "array",
	"minLength": "string", "maxLength": "string", "pattern": "string", "format": "string",
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number",
	"multipleOf": "number",
}

// splitTypes makes one alternative of each type.
func (n *reduction) splitTypes(types []string, null bool) {
	var list []mcp.RawValue
	for i, t := range types {
		one := schematext.Object{"type": wire.AppendString(nil, t)}
		for keyword, value := range n.out {
			if of := typeKeywords[keyword]; of == t || of == "number" && t == "integer" {
				one[keyword] = value
			}
		}
		if null && i == 0 && n.r.profile.Types == TypesNullable {
			one["nullable"] = mcp.RawValue("true")
		}
		n.finish(one)
		list = append(list, encodeSchema(one))
	}
	if null && n.r.profile.Types == TypesAnyOf {
		list = append(list, mcp.RawValue(`{"type":"null"}`))
	}
	for keyword := range n.out {
		if typeKeywords[keyword] != "" {
			delete(n.out, keyword)
		}
	}
	n.out["anyOf"] = encodeList(list)
}

// finish adds what the provider demands of a schema.
func (n *reduction) finish(out schematext.Object) {
	array := slices.Contains(typeNames(out["type"]), "array")
	if array && n.r.profile.Items == ItemsRequired && out["items"] == nil {
		out["items"] = mcp.RawValue("{}")
	}
}

// anyOfAlone removes what stands beside anyOf. What is only a type or a remark
// goes into the alternatives; where there is more, it counts more.
func (n *reduction) anyOfAlone() {
	for keyword := range n.out {
		if !slices.Contains([]string{"anyOf", "type", "nullable", "title", "default"}, keyword) {
			n.lost = append(n.lost, "anyOf: "+lostText(n.out["anyOf"]))
			n.r.lose(n.path.String()+": anyOf is left out", "anyOf stands alone", "write what stands beside anyOf in each alternative")
			delete(n.out, "anyOf")
			return
		}
	}
	list, _ := schematext.Items(n.out["anyOf"])
	for i, raw := range list {
		branch, ok := schematext.Of(raw)
		if !ok {
			continue
		}
		if branch["type"] == nil && branch["anyOf"] == nil && n.out["type"] != nil {
			branch["type"] = n.out["type"]
		}
		if n.out["nullable"] != nil && branch["anyOf"] == nil {
			branch["nullable"] = n.out["nullable"]
		}
		n.finish(branch)
		list[i] = encodeSchema(branch)
	}
	clear(n.out)
	n.out["anyOf"] = encodeList(list)
}

// describe writes the description, with what was left out. Where anyOf stands
// alone it goes to the first alternative.
func (n *reduction) describe() {
	description := ""
	if raw := n.s["description"]; raw != nil {
		description, _ = schematext.Text(raw)
	}
	if len(description) > maxDescription {
		description = schematext.Clip(description, maxDescription)
		n.r.lose(n.path.String()+": the description is shortened", whyLong, fmt.Sprintf("write at most %d bytes", maxDescription))
	}
	if len(n.lost) > 0 {
		slices.Sort(n.lost)
		note := schematext.Clip("("+strings.Join(n.lost, "; ")+")", 4*maxLostValue)
		description = strings.TrimSpace(description + " " + note)
	}
	if description == "" || !n.takes("description") {
		return
	}
	if n.r.profile.AnyOf != AnyOfAlone || n.out["anyOf"] == nil {
		n.out["description"] = wire.AppendString(nil, description)
		return
	}
	list, _ := schematext.Items(n.out["anyOf"])
	if first, ok := schematext.Of(list[0]); ok && first["anyOf"] == nil {
		own := ""
		if raw := first["description"]; raw != nil {
			own, _ = schematext.Text(raw)
		}
		first["description"] = wire.AppendString(nil, strings.TrimSpace(description+" "+own))
		list[0] = encodeSchema(first)
		n.out["anyOf"] = encodeList(list)
	}
}
