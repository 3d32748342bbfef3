package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/parley-mcp/parley/internal/wire"
)

// report turns the library's error into problems that show no values.
func report(err *jsonschema.ValidationError) error {
	e := &Error{}
	e.collect(err)
	if len(e.Problems) == 0 {
		e.Problems = []Problem{{Reason: "does not fit the schema"}}
	}
	return e
}

func (e *Error) collect(err *jsonschema.ValidationError) {
	if e.More {
		return
	}
	switch err.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		if len(err.Causes) > 0 {
			for _, cause := range err.Causes {
				e.collect(cause)
			}
			return
		}
	}
	if len(e.Problems) == MaxProblems {
		e.More = true
		return
	}
	var pointer strings.Builder
	for _, token := range err.InstanceLocation {
		pointer.WriteByte('/')
		writeToken(&pointer, token)
	}
	e.Problems = append(e.Problems, Problem{Pointer: pointer.String(), Reason: reason(err.ErrorKind)})
}

// reason says what a keyword expects, without the value it got.
func reason(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "expected " + strings.Join(k.Want, " or ") + ", got " + k.Got
	case *kind.Enum:
		return "must be one of " + expected(k.Want...)
	case *kind.Const:
		return "must be " + expected(k.Want)
	case *kind.Format:
		return "expected the format " + bounded(k.Want)
	case *kind.Pattern:
		return "must match the pattern " + bounded(k.Want)
	case *kind.AnyOf:
		return "fits none of the alternatives"
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			return "fits more than one of the alternatives"
		}
		return "fits none of the alternatives"
	case *kind.Not:
		return "fits what is excluded"
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.PropertyNames:
		return "member " + wire.QuoteName(k.Property) + " has a name that is not allowed"
	}
	if text := sizeReason(k); text != "" {
		return text
	}
	return memberReason(k)
}

// sizeReason speaks of numbers and lengths.
func sizeReason(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "must be at least " + bounded(k.Want.RatString())
	case *kind.Maximum:
		return "must be at most " + bounded(k.Want.RatString())
	case *kind.ExclusiveMinimum:
		return "must be above " + bounded(k.Want.RatString())
	case *kind.ExclusiveMaximum:
		return "must be below " + bounded(k.Want.RatString())
	case *kind.MultipleOf:
		return "must be a multiple of " + bounded(k.Want.RatString())
	case *kind.MinLength:
		return sized("at least", k.Want, "character", k.Got)
	case *kind.MaxLength:
		return sized("at most", k.Want, "character", k.Got)
	case *kind.MinItems:
		return sized("at least", k.Want, "item", k.Got)
	case *kind.MaxItems:
		return sized("at most", k.Want, "item", k.Got)
	case *kind.MinProperties:
		return sized("at least", k.Want, "member", k.Got)
	case *kind.MaxProperties:
		return sized("at most", k.Want, "member", k.Got)
	case *kind.MinContains:
		return fmt.Sprintf("must have at least %d items that fit", k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("must have at most %d items that fit", k.Want)
	case *kind.Contains:
		return "has no item that fits"
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items too many", k.Count)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d must differ", k.Duplicates[0], k.Duplicates[1])
	}
	return ""
}

// memberReason speaks of members that lack or are too much.
func memberReason(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Required:
		return required(k.Missing)
	case *kind.Dependency:
		return required(k.Missing) + " with " + wire.QuoteName(k.Prop)
	case *kind.DependentRequired:
		return required(k.Missing) + " with " + wire.QuoteName(k.Prop)
	case *kind.AdditionalProperties:
		return "unknown member " + names(k.Properties)
	}
	if path := k.KeywordPath(); len(path) > 0 {
		return "does not fit " + bounded(path[0])
	}
	return "does not fit the schema"
}

func required(missing []string) string {
	if len(missing) == 1 {
		return "member " + names(missing) + " is required"
	}
	return "members " + names(missing) + " are required"
}

func sized(bound string, want int, unit string, got int) string {
	if want != 1 {
		unit += "s"
	}
	return "must have " + bound + " " + strconv.Itoa(want) + " " + unit + ", has " + strconv.Itoa(got)
}

// names lists members, a few of them.
func names(list []string) string {
	var b strings.Builder
	for i, name := range list {
		if i == MaxProblems {
			b.WriteString(" and others")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(wire.QuoteName(name))
	}
	return b.String()
}

// expected prints values of the schema, bounded.
func expected(list ...any) string {
	var dst []byte
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if dst = appendValue(dst, v); len(dst) > maxMessage {
			break
		}
	}
	return bounded(string(dst))
}

// appendValue appends a decoded value as JSON, cut off beyond maxMessage.
func appendValue(dst []byte, v any) []byte {
	if len(dst) > maxMessage {
		return dst
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return wire.AppendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, item)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(append(wire.AppendString(dst, name), ':'), v[name])
		}
		return append(dst, '}')
	}
	return fmt.Append(dst, v) // a number, spelt as in the schema
}
