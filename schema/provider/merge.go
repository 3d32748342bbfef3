package provider

import (
	"bytes"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/internal/schematext"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// flatten returns a schema with the references and parts of allOf merged into it
// that the provider does not take, or all of them if it must be plain.
// References that it follows are added to r.inlining; what cannot be merged is
// added to lost.
func (r *reducer) flatten(s schematext.Object, plain bool, lost *[]string) schematext.Object {
	if r.left--; r.left < 0 {
		return schematext.Object{}
	}
	s = maps.Clone(s)
	r.dropInvalid(s, lost)
	for _, keyword := range []string{"$dynamicRef", "$recursiveRef"} {
		if s[keyword] != nil {
			*lost = append(*lost, keyword+": "+lostText(s[keyword]))
			delete(s, keyword)
		}
	}
	if raw, ok := s["$ref"]; ok {
		ref, err := schematext.Text(raw)
		if r.refs == refsAlone {
			s = onlyRemarks(s)
		}
		if err == nil && !plain && r.keepsRef(ref) {
			s["$ref"] = raw
		} else {
			delete(s, "$ref")
			s = r.follow(s, ref, plain, lost)
		}
	}
	if raw, ok := s["allOf"]; ok && (plain || !r.profile.takes("allOf")) {
		delete(s, "allOf")
		parts, _ := schematext.Items(raw)
		for _, part := range parts {
			if p, ok := schematext.Of(part); ok {
				s = r.merge(s, r.flatten(p, plain, lost))
			}
		}
	}
	return s
}

// onlyRemarks returns the keywords that accept and refuse nothing.
func onlyRemarks(s schematext.Object) schematext.Object {
	kept := schematext.Object{}
	for _, keyword := range []string{"title", "description", "default", "examples"} {
		if value, ok := s[keyword]; ok {
			kept[keyword] = value
		}
	}
	return kept
}

// follow merges what a reference refers to into a schema.
func (r *reducer) follow(s schematext.Object, ref string, plain bool, lost *[]string) schematext.Object {
	if slices.Contains(r.inlining, ref) {
		*lost = append(*lost, "the same again within itself")
		r.lose("a schema that contains itself is cut", "references are not taken", "write as many levels as are used")
		return s
	}
	raw, ok := r.resolve(ref)
	if !ok {
		*lost = append(*lost, "$ref: "+schematext.Clip(ref, maxLostValue))
		r.lose("a reference that leads nowhere is left out", "references lead to $defs of the same schema", "correct the $ref")
		return s
	}
	r.inlining = append(r.inlining, ref)
	if target, ok := schematext.Of(raw); ok {
		s = r.merge(s, r.flatten(target, plain, lost))
	}
	return s
}

// keepsRef reports whether a reference stays: it refers to a definition of the
// document, and the provider takes both.
func (r *reducer) keepsRef(ref string) bool {
	if r.refs == refsOpaque || !r.profile.takes("$ref") {
		return false
	}
	for _, keyword := range []string{"$defs", "definitions"} {
		name, ok := strings.CutPrefix(ref, "#/"+keyword+"/")
		if ok && r.profile.takes(keyword) && !strings.ContainsAny(name, "/~%") {
			defs, _ := schematext.Of(r.document[keyword])
			return defs[name] != nil
		}
	}
	return false
}

// resolve returns what a reference within the document refers to.
func (r *reducer) resolve(ref string) (mcp.RawValue, bool) {
	if r.refs == refsOpaque {
		return nil, false
	}
	if ref == "#" {
		return r.raw, true
	}
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	raw := r.raw
	for step := range strings.SplitSeq(pointer, "/") {
		step, err := url.PathUnescape(step)
		if err != nil {
			return nil, false
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch schematext.Kind(raw) {
		case '{':
			o, _ := schematext.Of(raw)
			raw = o[step]
		case '[':
			list, _ := schematext.Items(raw)
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(list) {
				return nil, false
			}
			raw = list[i]
		default:
			return nil, false
		}
	}
	return raw, raw != nil
}

// keywordGroups are keywords that mean something only together: of two schemas
// the ones of the first count.
var keywordGroups = [][]string{
	{"items", "prefixItems", "additionalItems"},
	{"if", "then", "else"},
	{"contains", "minContains", "maxContains"},
	{"$ref"},
}

// merge returns a schema that accepts what both accept, and perhaps more. Where
// one of two must be left out, the first stays.
func (r *reducer) merge(a, b schematext.Object) schematext.Object {
	if r.left--; r.left < 0 {
		return a
	}
	out := maps.Clone(a)
	for _, keyword := range slices.Sorted(maps.Keys(b)) {
		value := b[keyword]
		has := func(k string) bool { return a[k] != nil }
		if slices.ContainsFunc(keywordGroups, func(group []string) bool {
			return slices.Contains(group, keyword) && slices.ContainsFunc(group, has)
		}) {
			continue
		}
		if old, ok := a[keyword]; ok {
			value = r.mergeKeyword(keyword, old, value)
		}
		out[keyword] = value
	}
	return out
}

// mergeKeyword merges the values of a keyword that two schemas have.
func (r *reducer) mergeKeyword(keyword string, a, b mcp.RawValue) mcp.RawValue {
	switch keyword {
	case "properties", "patternProperties":
		x, ok1 := schematext.Of(a)
		y, ok2 := schematext.Of(b)
		if !ok1 || !ok2 {
			return a
		}
		for _, name := range slices.Sorted(maps.Keys(y)) {
			field := y[name]
			p, ok1 := schematext.Of(x[name])
			q, ok2 := schematext.Of(field)
			switch {
			case x[name] == nil:
				x[name] = field
			case !ok1 || !ok2:
				// true and false say nothing that could be merged.
			case p["$ref"] != nil || q["$ref"] != nil || p["allOf"] != nil || q["allOf"] != nil:
				// Merged when they are reduced.
				x[name] = encodeSchema(schematext.Object{"allOf": encodeList([]mcp.RawValue{x[name], field})})
			default:
				x[name] = encodeSchema(r.merge(p, q))
			}
		}
		return encodeSchema(x)
	case "required", "allOf":
		x, err1 := schematext.Items(a)
		y, err2 := schematext.Items(b)
		if err1 != nil || err2 != nil {
			return a
		}
		for _, v := range y {
			if !containsValue(x, v) {
				x = append(x, v)
			}
		}
		return encodeList(x)
	case "type":
		return commonTypes(a, b)
	case "enum":
		x, err1 := schematext.Items(a)
		y, err2 := schematext.Items(b)
		if err1 != nil || err2 != nil {
			return a
		}
		both := slices.DeleteFunc(slices.Clone(x), func(v mcp.RawValue) bool { return !containsValue(y, v) })
		if len(both) > 0 {
			return encodeList(both)
		}
	}
	return a
}

func containsValue(list []mcp.RawValue, v mcp.RawValue) bool {
	return slices.ContainsFunc(list, func(x mcp.RawValue) bool { return bytes.Equal(x, v) || wire.Equal(x, v) })
}

// commonTypes returns the types that both values of "type" allow, or the first
// value if there is none.
func commonTypes(a, b mcp.RawValue) mcp.RawValue {
	y := typeNames(b)
	var common []string
	for _, t := range typeNames(a) {
		switch {
		case slices.Contains(y, t), t == "integer" && slices.Contains(y, "number"):
			common = append(common, t)
		case t == "number" && slices.Contains(y, "integer"):
			common = append(common, "integer")
		}
	}
	if len(common) == 0 {
		return a
	}
	return typeValue(common, false)
}

// union returns one schema that accepts what any of several accepts, and
// perhaps more: the types and fields of all of them.
func (r *reducer) union(branches []mcp.RawValue) schematext.Object {
	var objects []schematext.Object
	types, typed := []string{}, true
	for _, raw := range branches {
		b, ok := schematext.Of(raw)
		if !ok {
			if schematext.Canonical(raw) == "false" {
				continue
			}
			return schematext.Object{}
		}
		mark := len(r.inlining)
		var lost []string
		b = r.flatten(b, true, &lost)
		r.inlining = r.inlining[:mark]
		names := typeNames(b["type"])
		typed = typed && len(names) > 0
		types = append(types, names...)
		if len(names) == 0 || slices.Contains(names, "object") {
			objects = append(objects, b)
		}
	}
	out := schematext.Object{}
	if typed && len(types) > 0 {
		slices.Sort(types)
		out["type"] = typeValue(slices.Compact(types), false)
	}
	if len(objects) > 0 {
		r.unionFields(objects, out)
	}
	return out
}

// unionFields adds the fields of several objects to out, and requires those
// that all of them require.
func (r *reducer) unionFields(objects []schematext.Object, out schematext.Object) {
	all := schematext.Object{}
	for _, o := range objects {
		fields, _ := schematext.Of(o["properties"])
		maps.Copy(all, fields)
	}
	for name := range all {
		all[name] = unionField(objects, name)
	}
	if len(all) > 0 {
		out["properties"] = encodeSchema(all)
	}
	common, _ := schematext.Items(objects[0]["required"])
	for _, o := range objects[1:] {
		list, _ := schematext.Items(o["required"])
		common = slices.DeleteFunc(common, func(v mcp.RawValue) bool { return !containsValue(list, v) })
	}
	if len(common) > 0 {
		out["required"] = encodeList(common)
	}
}

// unionField returns what a field may be in any of several objects. An object
// that does not describe it allows everything, unless it refuses other fields.
func unionField(objects []schematext.Object, name string) mcp.RawValue {
	var list []mcp.RawValue
	open := false
	for _, o := range objects {
		fields, _ := schematext.Of(o["properties"])
		switch field := fields[name]; {
		case field != nil:
			if !containsValue(list, field) {
				list = append(list, field)
			}
		case schematext.Canonical(o["additionalProperties"]) != "false" || o["patternProperties"] != nil:
			open = true
		}
	}
	switch {
	case open:
		remark := schematext.Object{}
		if s, ok := schematext.Of(list[0]); ok {
			remark = onlyRemarks(s)
			description, _ := schematext.Text(remark["description"])
			delete(s, "description")
			description += " (in one alternative: " + lostText(encodeSchema(s)) + ")"
			remark["description"] = wire.AppendString(nil, strings.TrimSpace(description))
		}
		return encodeSchema(remark)
	case len(list) == 1:
		return list[0]
	}
	return encodeSchema(schematext.Object{"anyOf": encodeList(list)})
}
