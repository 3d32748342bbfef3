package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// lacking are keywords of JSON Schema that no tag says.
var lacking = strings.Fields(`exclusiveMinimum exclusiveMaximum multipleOf uniqueItems minProperties maxProperties minContains maxContains
	patternProperties propertyNames additionalProperties contentEncoding contentMediaType`)

// ours are the keys that are read, of other libraries too. Those before _ are too
// short to tell a misspelling from the key of another library, but for letter case.
var ours = strings.Fields(`min max enum desc header _ minlen maxlen title titles pattern format default
	description jsonschema_description minimum maximum minLength maxLength minItems maxItems`)

// spelling refuses tags that cannot mean what they say: the tag itself, keys that
// are ours but for letter case or one misspelling, and keywords that have no tag. All
// other keys belong to other libraries.
func (w *walk) spelling(tag reflect.StructTag) error {
	keys, rest := tagKeys(string(tag))
	if strings.Contains(rest, `:"`) {
		return w.errorf("struct tag %q cannot be read from %q on; write key:\"value\" pairs with one space between them", tag, rest)
	}
	for _, key := range keys {
		if slices.Contains(ours, key) {
			continue
		}
		for _, word := range lacking {
			if strings.EqualFold(key, word) {
				return w.errorf("tag %s is not known, and would check nothing; give the schema by ToolOptions.InputSchema or a method %s", key, schemaMethod)
			}
		}
		long := false
		for _, known := range ours {
			if long = long || known == "_"; strings.EqualFold(key, known) || long && isMisspelling(key, known) || key == "enums" && known == "enum" {
				return w.errorf("tag %s is not known, and would check nothing; write %s", key, known)
			}
		}
	}
	return nil
}

// tagKeys returns the keys of a struct tag, as reflect.StructTag.Lookup finds
// them, and what is left where it stops.
func tagKeys(tag string) (keys []string, rest string) {
	for {
		tag = strings.TrimLeft(tag, " ")
		i := strings.IndexFunc(tag, func(r rune) bool { return r <= ' ' || r == ':' || r == '"' || r == 0x7f })
		if i <= 0 || !strings.HasPrefix(tag[i:], `:"`) {
			return keys, tag
		}
		quoted, err := strconv.QuotedPrefix(tag[i+1:])
		if err != nil {
			return keys, tag
		}
		keys = append(keys, tag[:i])
		tag = tag[i+1+len(quoted):]
	}
}

// isMisspelling reports whether one letter is missing, too many or another one, or two have
// changed places.
func isMisspelling(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) || a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
