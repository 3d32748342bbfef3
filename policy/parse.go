package policy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

var (
	ruleMembers = []string{
		"effect", "kind", "server", "name", "where", "hints", "subjects", "issuers", "groups", "clients",
		"views", "labels", "from", "until", "reason",
	}
	predicateMembers = []string{"equals", "glob", "inside", "host", "min", "max"}
)

// ParseRule reads a rule from its JSON form, an object. Only the effect is required:
//
//	{
//	  "effect": "deny", "kind": "tool", "server": "files", "name": "write_*",
//	  "where": {
//	    "/path": {"inside": ["/etc", "/usr"]}, "/mode": {"equals": "w"}, "/n": {"min": 1, "max": 10},
//	    "/url": {"host": "*.example.com"}, "/to": {"glob": "*@example.com"}
//	  },
//	  "hints": ["read-only"], "labels": ["untrusted-input"],
//	  "subjects": ["ada"], "issuers": [], "groups": [], "clients": [], "views": [],
//	  "from": "2030-01-01T00:00:00Z", "until": "2031-01-01T00:00:00Z", "reason": "Ask an administrator."
//	}
//
// Lists may not be empty; instead of a list with one string the string may stand alone, and after
// "equals" every value that is no array. Several predicates on one argument stand in one object or,
// if their operation is the same, in a list of objects; all must hold. Unknown members, members
// twice and, other than as a value, null are refused.
//
// src becomes Rule.Source; errors begin with it. What ParseRule returns is valid for [New].
func ParseRule(raw mcp.RawValue, src Source) (Rule, error) {
	r := Rule{Kind: KindTool, Source: src}
	err := r.decode(raw)
	if err == nil {
		_, err = r.compile(newInterner())
	}
	if err != nil {
		return Rule{}, sourceError(src, "rule", err)
	}
	return r, nil
}

// UnmarshalJSON reads the rule as ParseRule does; its Source is empty.
func (r *Rule) UnmarshalJSON(data []byte) error {
	parsed, err := ParseRule(slices.Clone(data), Source{})
	if err == nil {
		*r = parsed
	}
	return err
}

func (r *Rule) decode(raw mcp.RawValue) error {
	object, err := wire.ParseObject(raw, wire.Limits{})
	if err != nil {
		return err
	}
	if _, ok := object.Member("effect"); !ok {
		return fmt.Errorf("the member \"effect\" is missing; write %s", choices(effectNames))
	}
	for name, value := range object.All() {
		if !slices.Contains(ruleMembers, name) {
			return unknownWord("member", name, ruleMembers)
		}
		if err := r.decodeMember(name, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (r *Rule) decodeMember(name string, value mcp.RawValue) error {
	if i := slices.Index(callerNames[:], name); i >= 0 {
		return decodeWords(value, r.callerLists()[i])
	}
	switch name {
	case "where":
		return r.decodeWhere(value)
	case "hints":
		return decodeWords(value, &r.Hints)
	case "labels":
		return decodeWords(value, &r.Labels)
	}
	text, err := decodeString(value)
	if err != nil {
		return err
	}
	if text == "" {
		return errors.New("the text is empty; leave the member out")
	}
	switch name {
	case "effect":
		return r.Effect.UnmarshalText([]byte(text))
	case "kind":
		r.Kind = Kind(text)
	case "server":
		r.Server = text
	case "name":
		r.Name = text
	case "reason":
		r.Reason = text
	case "from":
		return decodeTime(text, &r.From)
	default:
		return decodeTime(text, &r.Until)
	}
	return nil
}

func decodeTime(text string, t *time.Time) error {
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil || parsed.IsZero() {
		return fmt.Errorf("%q is no time; write one such as \"2030-12-31T18:00:00Z\"", text)
	}
	*t = parsed
	return nil
}

func decodeString(value mcp.RawValue) (string, error) {
	if value[0] != '"' {
		return "", fmt.Errorf("expected string, got %s", wire.Kind(value[0]))
	}
	return wire.Text(value), nil
}

// decodeList returns the elements of a list, or of one that has the value alone.
func decodeList(value mcp.RawValue) ([]mcp.RawValue, error) {
	if value[0] != '[' {
		return []mcp.RawValue{value}, nil
	}
	list, err := wire.ParseArray(value, wire.Limits{}, 0)
	if err == nil && len(list) == 0 {
		err = errors.New("the list is empty; leave it out, or name something")
	}
	return list, err
}

func decodeWords[S ~string](value mcp.RawValue, words *[]S) error {
	list, err := decodeList(value)
	for _, element := range list {
		text, err := decodeString(element)
		if err != nil {
			return err
		}
		*words = append(*words, S(text))
	}
	return err
}

func (r *Rule) decodeWhere(value mcp.RawValue) error {
	object, err := wire.ParseObject(value, wire.Limits{})
	if err != nil {
		return err
	}
	if object.Len() == 0 {
		return errors.New("the object is empty; leave it out, or name an argument such as \"/path\"")
	}
	for pointer, predicates := range object.All() {
		list, err := decodeList(predicates)
		for _, p := range list {
			if err == nil {
				err = r.decodePredicates(pointer, p)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", wire.QuoteName(pointer), err)
		}
	}
	return nil
}

// decodePredicates reads the predicates of one object; min and max make one.
func (r *Rule) decodePredicates(pointer string, value mcp.RawValue) error {
	object, err := wire.ParseObject(value, wire.Limits{})
	if err != nil {
		return err
	}
	if object.Len() == 0 {
		return fmt.Errorf("the object is empty; write %s", choices(predicateMembers))
	}
	ranged := -1
	for name, operand := range object.All() {
		if !slices.Contains(predicateMembers, name) {
			return unknownWord("member", name, predicateMembers)
		}
		if name == "min" || name == "max" {
			if ranged < 0 {
				ranged = len(r.Where)
				r.Where = append(r.Where, Predicate{Pointer: pointer, Op: OpRange})
			}
			p := &r.Where[ranged]
			if name == "min" {
				p.Min = slices.Clone(operand)
			} else {
				p.Max = slices.Clone(operand)
			}
			continue
		}
		p := Predicate{Pointer: pointer, Op: Op(slices.Index(opNames, name))}
		if err := p.decodeOperands(operand); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.Where = append(r.Where, p)
	}
	return nil
}

func (p *Predicate) decodeOperands(operand mcp.RawValue) error {
	switch p.Op {
	case OpGlob:
		return decodeWords(operand, &p.Globs)
	case OpInside:
		return decodeWords(operand, &p.Dirs)
	case OpHost:
		return decodeWords(operand, &p.Hosts)
	default:
		list, err := decodeList(operand)
		for _, v := range list {
			p.Values = append(p.Values, slices.Clone(v))
		}
		return err
	}
}
