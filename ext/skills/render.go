package skills

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A renderer makes JSON of YAML. The nodes are those of the parser; what a scalar
// means is decided here, by the core schema, and not by the parser's own rules.
type renderer struct {
	out  mcp.RawValue
	left int // values that may still come
	read int // bytes of scalars: a number may be longer than its JSON
}

// bad is an error about a node.
func bad(n *yaml.Node, format string, args ...any) error {
	return &FrontmatterError{Line: n.Line, Reason: fmt.Sprintf(format, args...)}
}

// append writes a node that is nested in depth others.
func (r *renderer) append(n *yaml.Node, depth int) error {
	if r.left--; r.left < 0 || max(len(r.out), r.read) > maxFrontmatterJSON {
		return bad(n, "there are more than %d values, or %d bytes; aliases count as often as they are used", maxValues, maxFrontmatterJSON)
	}
	if depth > maxFrontmatterDepth {
		return bad(n, "it is nested more than %d levels deep", maxFrontmatterDepth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.mapping(n, depth)
	case yaml.SequenceNode:
		return r.sequence(n, depth)
	case yaml.ScalarNode:
		return r.scalar(n)
	case yaml.AliasNode:
		return r.append(n.Alias, depth+1) // so that one within its own anchor ends
	default:
		return bad(n, "it holds something that JSON does not have")
	}
}

func (r *renderer) mapping(n *yaml.Node, depth int) error {
	if err := checkTag(n, "!!map"); err != nil {
		return err
	}
	seen := make(map[string]bool, len(n.Content)/2)
	r.out = append(r.out, '{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || coreType(key) != typeString {
			return bad(key, "a key is no string; put it in quotes")
		}
		if err := checkTag(key, "!!str"); err != nil {
			return err
		}
		if key.Value == "<<" && key.Style == 0 {
			return bad(key, "merge keys (<<) are no part of YAML 1.2; write the members out")
		}
		if seen[key.Value] {
			return bad(key, "the key %q is there twice", key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			r.out = append(r.out, ',')
		}
		if err := r.text(key); err != nil {
			return err
		}
		r.out = append(r.out, ':')
		if err := r.append(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	r.out = append(r.out, '}')
	return nil
}

func (r *renderer) sequence(n *yaml.Node, depth int) error {
	if err := checkTag(n, "!!seq"); err != nil {
		return err
	}
	r.out = append(r.out, '[')
	for i, item := range n.Content {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		if err := r.append(item, depth+1); err != nil {
			return err
		}
	}
	r.out = append(r.out, ']')
	return nil
}

// text writes the value of a scalar as a string.
func (r *renderer) text(n *yaml.Node) error {
	quoted, err := strictjson.Marshal(n.Value)
	if err != nil {
		return bad(n, "the text cannot be JSON: %v", err)
	}
	r.out = append(r.out, quoted...)
	return nil
}

func (r *renderer) scalar(n *yaml.Node) error {
	r.read += len(n.Value)
	t := coreType(n)
	if n.Style&yaml.TaggedStyle != 0 {
		var err error
		if t, err = taggedType(n); err != nil {
			return err
		}
	}
	switch t {
	case typeNull:
		r.out = append(r.out, "null"...)
	case typeBool:
		r.out = append(r.out, strings.ToLower(n.Value)...)
	case typeInt:
		r.out = append(r.out, integer(n.Value)...)
	case typeFloat:
		r.out = append(r.out, float(n.Value)...)
	case typeNotFinite:
		return bad(n, "%s is no number in JSON; put it in quotes", n.Value)
	default:
		return r.text(n)
	}
	return nil
}

// The types of scalars in the core schema.
type scalarType int

const (
	typeString scalarType = iota
	typeNull
	typeBool
	typeInt
	typeFloat
	typeNotFinite
)

// The core schema: YAML 1.2.2, 10.3.2.
var coreSchema = []struct {
	scalarType

	form *regexp.Regexp
}{
	{typeNull, regexp.MustCompile(`^(null|Null|NULL|~|)$`)},
	{typeBool, regexp.MustCompile(`^(true|True|TRUE|false|False|FALSE)$`)},
	{typeInt, regexp.MustCompile(`^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`)},
	{typeFloat, regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)},
	{typeNotFinite, regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)},
}

// coreType is the type of a scalar without a tag.
func coreType(n *yaml.Node) scalarType {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return typeString
	}
	return typeOf(n.Value)
}

// typeOf is the type of a plain text.
func typeOf(value string) scalarType {
	for _, c := range coreSchema {
		if c.form.MatchString(value) {
			return c.scalarType
		}
	}
	return typeString
}

// taggedType is the type of a scalar with a tag of the core schema.
func taggedType(n *yaml.Node) (scalarType, error) {
	t := typeOf(n.Value)
	switch n.Tag {
	case "!!str":
		return typeString, nil
	case "!!null":
		if t == typeNull {
			return t, nil
		}
	case "!!bool":
		if t == typeBool {
			return t, nil
		}
	case "!!int":
		if t == typeInt {
			return t, nil
		}
	case "!!float":
		if t == typeInt || t == typeFloat || t == typeNotFinite {
			return t, nil
		}
	default:
		return 0, foreignTag(n)
	}
	return 0, bad(n, "the text is no %s", n.Tag)
}

// checkTag refuses a tag other than the one that the kind of node has anyway.
func checkTag(n *yaml.Node, own string) error {
	if n.Style&yaml.TaggedStyle != 0 && n.Tag != own {
		return foreignTag(n)
	}
	return nil
}

func foreignTag(n *yaml.Node) error {
	return bad(n, "the tag %s is none of YAML's core schema; leave it out", n.Tag)
}

// integer is an integer of the core schema in JSON, exactly.
func integer(value string) string {
	base := 10
	switch {
	case strings.HasPrefix(value, "0o"):
		value, base = value[2:], 8
	case strings.HasPrefix(value, "0x"):
		value, base = value[2:], 16
	}
	if base == 10 { // without big.Int, whose time grows with the square of the digits
		digits := strings.TrimLeft(strings.TrimLeft(value, "+-"), "0")
		switch {
		case digits == "":
			return "0"
		case value[0] == '-':
			return "-" + digits
		}
		return digits
	}
	n, _ := new(big.Int).SetString(value, base) // the form was checked
	return n.String()
}

// float is a number of the core schema in JSON, exactly.
func float(value string) string {
	sign := ""
	if value[0] == '+' || value[0] == '-' {
		sign, value = strings.TrimPrefix(value[:1], "+"), value[1:]
	}
	mantissa, exponent := value, ""
	if i := strings.IndexAny(value, "eE"); i >= 0 {
		mantissa, exponent = value[:i], value[i:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction + exponent
}
