package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads one document of YAML. Scalars have the types of YAML's core schema (YAML
// 1.2.2, 10.3), of which JSON has all. Merge keys (<<) are followed, because kit and
// LibreChat do.
func parseYAML(data []byte) (n *node, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, &lineError{text: "the text is not UTF-8: save it as UTF-8"}
	}
	defer func() {
		if recover() != nil {
			n, err = nil, &lineError{text: "this is no YAML that can be read"}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return &node{line: 1}, nil
	} else if err != nil {
		return nil, yamlError(err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, &lineError{line: document.Line, text: "there is more than one document (---): keep one"}
	}
	p := &yamlParser{left: maxNodes}
	return p.node(document.Content[0], 0)
}

var quotedPattern = regexp.MustCompile("['\"`].*['\"`]")

// yamlError keeps the line and the reason, without what the parser quotes of the file.
func yamlError(err error) error {
	e := &lineError{}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := linePattern.FindStringSubmatch(text); m != nil {
		e.line, _ = strconv.Atoi(m[1])
		_, text, _ = strings.Cut(text, ": ")
	}
	e.text = "this is no YAML: " + quotedPattern.ReplaceAllString(text, "…")
	return e
}

// A yamlParser makes nodes of the parser's nodes.
type yamlParser struct{ left int }

func (p *yamlParser) node(y *yaml.Node, depth int) (*node, error) {
	n := &node{line: y.Line}
	if p.left--; p.left < 0 {
		return nil, at(n, "there are too many values; aliases count as often as they are used")
	}
	if depth > maxDepth {
		return nil, at(n, "values are nested more than %d levels deep", maxDepth)
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = kindObject
		return n, p.mapping(n, y, depth)
	case yaml.SequenceNode:
		n.kind = kindArray
		for _, item := range y.Content {
			inner, err := p.node(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, inner)
		}
		return n, nil
	case yaml.AliasNode:
		return p.node(y.Alias, depth+1) // so that an alias within its own anchor ends
	case yaml.ScalarNode:
		n.kind, n.text = scalarOf(y)
		return n, nil
	default:
		return nil, at(n, "this is no value")
	}
}

// mapping fills the members of n. Members of a merge key come after those that are
// written out, and never replace one.
func (p *yamlParser) mapping(n *node, y *yaml.Node, depth int) error {
	seen := map[string]bool{}
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return at(&node{line: key.Line}, "a key is no string: put it in quotes")
		}
		inner, err := p.node(value, depth+1)
		if err != nil {
			return err
		}
		if key.Value == "<<" && key.Style == 0 {
			merged = append(merged, inner)
			continue
		}
		if seen[key.Value] {
			return at(&node{line: key.Line}, "the key %s is there twice: remove one", show(key.Value))
		}
		seen[key.Value] = true
		n.members = append(n.members, member{name: key.Value, line: key.Line, value: inner})
	}
	for len(merged) > 0 {
		from := merged[0]
		merged = append(merged[1:], from.items...)
		for _, m := range from.members {
			if !seen[m.name] {
				seen[m.name] = true
				n.members = append(n.members, m)
			}
		}
	}
	return nil
}

var numberPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// scalarOf is type and text of a scalar. A number that JSON cannot write is a string.
func scalarOf(y *yaml.Node) (kind, string) {
	if y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 || y.Tag == "!!str" && y.Style&yaml.TaggedStyle != 0 {
		return kindString, y.Value
	}
	switch y.Value {
	case "", "~", "null", "Null", "NULL":
		return kindNull, "null"
	case "true", "True", "TRUE":
		return kindBool, "true"
	case "false", "False", "FALSE":
		return kindBool, "false"
	}
	if numberPattern.MatchString(y.Value) {
		return kindNumber, y.Value
	}
	return kindString, y.Value
}
