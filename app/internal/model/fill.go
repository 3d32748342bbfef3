package model

import (
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// filling is the work on the arguments of one call.
type filling struct {
	fields []field
	values map[string]mcp.RawValue
	spare  []token // what no field has taken yet
}

// fill finds values for the fields of a tool. missing are required fields
// without one.
func fill(step []token, tool *host.ToolSpec) (args mcp.RawValue, missing []string) {
	f := &filling{fields: fieldsOf(tool.InputSchema), values: make(map[string]mcp.RawValue)}
	f.pairs(step)
	f.choices()
	f.inOrder(number, field.numeric)
	f.inOrder(quoted, field.textual)
	f.addresses()
	f.flags()
	f.remainder(tool)
	for i := range f.fields {
		if fd := &f.fields[i]; fd.required && f.values[fd.name] == nil {
			missing = append(missing, fd.name)
		}
	}
	return f.encode(), missing
}

// encode writes the values as an object, in the order of the fields.
func (f *filling) encode() mcp.RawValue {
	out := []byte{'{'}
	for i := range f.fields {
		name := f.fields[i].name
		value, ok := f.values[name]
		if !ok {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, encode(name)...), ':'), value...)
	}
	return append(out, '}')
}

// encode writes a value as JSON.
func encode(v any) mcp.RawValue {
	out, err := jsonrpc.JSON(v).AppendJSON(nil)
	if err != nil {
		return mcp.RawValue("null") // texts, numbers and lists of them always encode
	}
	return out
}

// pairs gives key=value to the fields of that name.
func (f *filling) pairs(step []token) {
	for _, t := range step {
		if t.kind != pair {
			f.spare = append(f.spare, t)
			continue
		}
		if fd := find(f.fields, t.key); fd != nil {
			if value, ok := fd.value(t.text); ok {
				f.values[fd.name] = value
			}
		}
	}
}

// open are the fields that take a kind of value and have none: required ones first.
func (f *filling) open(takes func(field) bool) []*field {
	var first, later []*field
	for i := range f.fields {
		fd := &f.fields[i]
		switch {
		case f.values[fd.name] != nil || !takes(*fd):
		case fd.required:
			first = append(first, fd)
		default:
			later = append(later, fd)
		}
	}
	return append(first, later...)
}

// take gives the first spare token that suits to a field.
func (f *filling) take(fd *field, suits func(token) bool) {
	for i, t := range f.spare {
		if !suits(t) {
			continue
		}
		if value, ok := fd.value(t.text); ok {
			f.values[fd.name] = value
			f.spare = slices.Delete(f.spare, i, i+1)
			return
		}
	}
}

// choices gives words to the fields whose choices they are.
func (f *filling) choices() {
	for _, fd := range f.open(func(fd field) bool { return len(fd.enum) > 0 }) {
		f.take(fd, func(t token) bool {
			return slices.ContainsFunc(fd.enum, func(e string) bool { return strings.EqualFold(e, t.text) })
		})
	}
}

// inOrder gives tokens of one kind to fields, in their order.
func (f *filling) inOrder(kind tokenKind, takes func(field) bool) {
	for _, fd := range f.open(takes) {
		f.take(fd, func(t token) bool { return t.kind == kind })
	}
}

// addresses gives URIs and mail addresses to the fields of that format.
func (f *filling) addresses() {
	marks := map[string]string{mcp.FormatURI: "://", mcp.FormatEmail: "@"}
	for _, fd := range f.open(func(fd field) bool { return marks[fd.format] != "" }) {
		f.take(fd, func(t token) bool { return strings.Contains(t.text, marks[fd.format]) })
	}
}

// flags sets booleans that are named.
func (f *filling) flags() {
	for _, fd := range f.open(func(fd field) bool { return fd.typ == "boolean" }) {
		for _, t := range f.spare {
			if t.kind == word && sameName(t.text, fd.name) {
				f.values[fd.name] = mcp.RawValue("true")
			}
		}
	}
}

// remainder gives the words that are not the tool's name to the one text that
// is required and has no value.
func (f *filling) remainder(tool *host.ToolSpec) {
	var texts []*field
	for _, fd := range f.open(field.textual) {
		if fd.required {
			texts = append(texts, fd)
		}
	}
	if len(texts) != 1 {
		return
	}
	inName := parts(tool.Name)
	rest := f.spare
	for len(rest) > 0 && rest[0].kind == word && ofName(rest[0].text, inName) {
		rest = rest[1:]
	}
	var words []string
	for _, t := range rest {
		words = append(words, t.text)
	}
	if len(words) > 0 {
		f.values[texts[0].name] = encode(strings.Join(words, " "))
	}
}

// ofName reports whether a word at the beginning belongs to the name of the
// tool, or says nothing.
func ofName(text string, inName []string) bool {
	for _, p := range parts(text) {
		if !idle[p] && !slices.Contains(inName, p) {
			return false
		}
	}
	return true
}

// value makes a value of the field's type out of a text.
func (fd *field) value(text string) (mcp.RawValue, bool) {
	switch fd.typ {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		return mcp.RawValue(strconv.FormatInt(n, 10)), err == nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		return encode(n), err == nil && strings.ContainsAny(text, "0123456789")
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "yes", "on", "1":
			return mcp.RawValue("true"), true
		case "false", "no", "off", "0":
			return mcp.RawValue("false"), true
		}
		return nil, false
	case "array":
		return fd.list(text)
	case "object":
		return mcp.RawValue(text), valid(mcp.RawValue(text)) && strings.HasPrefix(text, "{")
	case "string":
		for _, e := range fd.enum {
			if strings.EqualFold(e, text) {
				return encode(e), true
			}
		}
		return encode(text), len(fd.enum) == 0
	}
	if valid(mcp.RawValue(text)) { // any type will do
		return mcp.RawValue(text), true
	}
	return encode(text), true
}

// list makes a list of JSON, or of texts with commas between.
func (fd *field) list(text string) (mcp.RawValue, bool) {
	if strings.HasPrefix(text, "[") {
		return mcp.RawValue(text), valid(mcp.RawValue(text))
	}
	item := field{typ: fd.items}
	out := []byte{'['}
	for i, part := range strings.Split(text, ",") {
		value, ok := item.value(strings.TrimSpace(part))
		if !ok {
			return nil, false
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, value...)
	}
	return append(out, ']'), true
}
