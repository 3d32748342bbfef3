package uritemplate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// part is a literal or an expression of a template.
type part struct {
	literal   string
	operator  byte // 0 for a simple expression
	variables []variable
}

type variable struct {
	name    string
	explode bool
	most    int // characters, 0 for any number
}

// reserved says whether the part's variables may hold slashes.
func (p *part) reserved() bool { return p.operator == '+' || p.operator == '#' }

// named says whether the part writes its variables as name=value.
func (p *part) named() bool { return strings.IndexByte(";?&", p.operator) >= 0 && p.operator != 0 }

// split splits a template whose syntax has been checked.
func split(template string) (parts []part, err error) {
	seen := map[string]bool{}
	for template != "" {
		open := strings.IndexByte(template, '{')
		if open < 0 {
			return append(parts, part{literal: template}), nil
		}
		if open > 0 {
			parts = append(parts, part{literal: template[:open]})
		}
		inner, rest, _ := strings.Cut(template[open+1:], "}")
		p := readExpression(inner)
		for _, v := range p.variables {
			if seen[v.name] {
				return nil, fmt.Errorf("variable %s is used twice", v.name)
			}
			seen[v.name] = true
		}
		if len(seen) > maxVariables {
			return nil, fmt.Errorf("more than %d variables", maxVariables)
		}
		if len(parts) > 0 && open == 0 && runsInto(&parts[len(parts)-1], &p) {
			return nil, fmt.Errorf("nothing separates {%s} from the expression before it; put a literal between", inner)
		}
		parts = append(parts, p)
		template = rest
	}
	return parts, nil
}

func readExpression(inner string) (p part) {
	if strings.IndexByte("+#./;?&", inner[0]) >= 0 {
		p.operator, inner = inner[0], inner[1:]
	}
	for spec := range strings.SplitSeq(inner, ",") {
		v := variable{name: spec}
		if name, ok := strings.CutSuffix(spec, "*"); ok {
			v.name, v.explode = name, true
		} else if name, most, ok := strings.Cut(spec, ":"); ok {
			v.name = name
			v.most, _ = strconv.Atoi(most) // checked by the parser of the syntax
		}
		p.variables = append(p.variables, v)
	}
	return p
}

// runsInto says whether the border between two expressions would be a guess.
func runsInto(before, after *part) bool {
	if before.variables == nil {
		return false
	}
	if before.reserved() {
		return after.operator == 0 || strings.IndexByte("+./", after.operator) >= 0
	}
	return after.operator == 0 || after.operator == '+' || after.operator == '.'
}

// Characters as RFC 6570 lets them be expanded: section 1.5.
const (
	unreserved = `[A-Za-z0-9._~-]|%[0-9A-Fa-f][0-9A-Fa-f]`
	reserved   = `[:/?#\[\]@!$&'()*+,;=]`
)

// expression is the regular expression of a template: one group for each
// expression, which takes all of its text.
func expression(parts []part) string {
	b := strings.Builder{}
	b.WriteString(`^`)
	for i := range parts {
		if p := &parts[i]; p.variables == nil {
			b.WriteString(regexp.QuoteMeta(p.literal))
		} else {
			b.WriteString(p.expression())
		}
	}
	b.WriteString(`$`)
	return b.String()
}

func (p *part) expression() string {
	const value = `(?:` + unreserved + `)*`
	switch p.operator {
	case '+':
		return `((?:` + unreserved + `|` + reserved + `)+?)`
	case '#':
		return `(#(?:` + unreserved + `|` + reserved + `)*?)?`
	case '.':
		return `(\.` + value + `)?`
	case '/':
		return `((?:/` + value + `)+)?`
	case ';':
		return `((?:;` + p.names() + `(?:=` + value + `)?)+)?`
	case '?':
		return `(\?` + p.names() + `(?:=` + value + `)?(?:&` + p.names() + `(?:=` + value + `)?)*)?`
	case '&':
		return `((?:&` + p.names() + `(?:=` + value + `)?)+)?`
	}
	if len(p.variables) > 1 || p.variables[0].explode {
		return `((?:` + unreserved + `|,)+)`
	}
	return `((?:` + unreserved + `)+)`
}

func (p *part) names() string {
	var names []string
	for _, v := range p.variables {
		names = append(names, regexp.QuoteMeta(v.name))
	}
	return `(?:` + strings.Join(names, "|") + `)`
}

// read reads the variables from the text of the expression.
func (p *part) read(text string, values Values) bool {
	if p.operator != 0 && p.operator != '+' {
		text = text[1:]
	}
	separator := ","
	switch p.operator {
	case '.', '/', ';':
		separator = string(p.operator)
	case '?', '&':
		separator = "&"
	}
	if len(p.variables) == 1 && !p.variables[0].explode && !p.named() {
		return p.take(&p.variables[0], text, values)
	}
	items := strings.Split(text, separator)
	if p.named() {
		return p.readNamed(items, values)
	}
	for i := range p.variables {
		v := &p.variables[i]
		if len(items) == 0 {
			return p.operator != 0 && p.operator != '+'
		}
		count := 1
		if v.explode {
			count = len(items) - (len(p.variables) - i - 1) // later ones get one each
		}
		if count < 1 {
			return false
		}
		for _, item := range items[:count] {
			if !p.take(v, item, values) {
				return false
			}
		}
		items = items[count:]
	}
	return len(items) == 0
}

func (p *part) readNamed(items []string, values Values) bool {
	for _, item := range items {
		name, value, _ := strings.Cut(item, "=")
		at := slices.IndexFunc(p.variables, func(v variable) bool { return v.name == name })
		if at < 0 || len(values[name]) > 0 && !p.variables[at].explode {
			return false
		}
		if !p.take(&p.variables[at], value, values) {
			return false
		}
	}
	return true
}

// take decodes one value, once, and adds it if it is harmless.
func (p *part) take(v *variable, text string, values Values) bool {
	value, _ := decode(text)
	if value == "" && (p.operator == 0 || p.operator == '+') {
		return false
	}
	if !harmless(value, p.reserved()) || v.most > 0 && utf8.RuneCountInString(value) > v.most {
		return false
	}
	values[v.name] = append(values[v.name], value)
	return true
}
