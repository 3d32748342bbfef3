package registry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFindings bounds what is said of one file.
const maxFindings = 200

// A Severity says what a finding means.
type Severity string

const (
	// Error says that the schema or a registry refuses the file, or that it gives a secret away.
	Error Severity = "error"
	// Warning says that the schema takes the file, but that there is likely to be a mistake, or
	// something that the official registry refuses or drops.
	Warning Severity = "warning"
)

// A Finding is something that is wrong with a file.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Pointer is a JSON pointer (RFC 6901); of what is absent, that of the object it belongs to.
	// What is very long is cut, and ends in "…".
	Pointer string `json:"pointer"`
	Line    int    `json:"line"` // from 1
	Reason  string `json:"reason"`
	Fix     string `json:"fix"`

	at int
}

// Valid reports whether there is no error among findings.
func Valid(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
}

// Check checks the text of a server.json. The findings are in the order of the text; there are none
// if it is as it should be. Values that may be secrets are in none of them.
func Check(text []byte) []Finding {
	c := &checker{text: text, starts: lineStarts(text)}
	if len(text) > MaxFile {
		c.add(Error, 0, "", "json-size", fmt.Sprintf("the file has more than %d bytes", MaxFile), "check that it is a server.json")
		return c.findings
	}
	root, err := parse(text)
	if err != nil {
		var at int
		if e, ok := err.(*syntaxError); ok { //nolint:errorlint // parse returns nothing else
			at = e.at
		}
		c.add(Error, at, "", "json-syntax", err.Error(), "write it as JSON (RFC 8259): no comments, no trailing commas, UTF-8")
		return c.findings
	}
	c.server(location{c, root, ""})
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return a.at - b.at })
	return c.findings
}

// A checker collects findings.
type checker struct {
	text     []byte
	starts   []int
	findings []Finding
}

func (c *checker) add(severity Severity, at int, pointer, code, reason, fix string) {
	switch {
	case len(c.findings) == maxFindings:
		code, reason, fix = "too-many", "too many findings", "fix the reported ones first, then check again"
	case len(c.findings) > maxFindings:
		return
	}
	c.findings = append(c.findings, Finding{
		Code: code, Severity: severity, Pointer: cut(pointer, maxPointer), Line: lineAt(c.starts, at), Reason: reason, Fix: fix, at: at,
	})
}

// A location is a value of the file and its place.
type location struct {
	c       *checker
	n       *node
	pointer string
}

func (s location) fail(code, fix, reason string, args ...any) {
	s.c.add(Error, s.n.at, s.pointer, code, fmt.Sprintf(reason, args...), fix)
}

func (s location) warn(code, fix, reason string, args ...any) {
	s.c.add(Warning, s.n.at, s.pointer, code, fmt.Sprintf(reason, args...), fix)
}

// get is a member of that kind. It is not there either if it is of another kind, which object reports.
func (s location) get(name string, k kind) (location, bool) {
	n := s.n.member(name)
	if n == nil || n.kind != k {
		return location{}, false
	}
	return s.of(name, n), true
}

func (s location) of(name string, n *node) location {
	return location{s.c, n, s.pointer + "/" + escapePointer.Replace(name)}
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// text is a member that is a string; empty is like absent.
func (s location) text(name string) string {
	if m, ok := s.get(name, isString); ok {
		return m.n.text
	}
	return ""
}

func (s location) flag(name string) bool {
	m, ok := s.get(name, isBool)
	return ok && m.n.yes
}

// list are the items of a member that is an array.
func (s location) list(name string) []location {
	m, ok := s.get(name, isArray)
	if !ok {
		return nil
	}
	items := make([]location, len(m.n.items))
	for i, n := range m.n.items {
		items[i] = m.of(strconv.Itoa(i), n)
	}
	return items
}

// entries are the members of a member that is an object.
func (s location) entries(name string) []entry {
	m, ok := s.get(name, isObject)
	if !ok {
		return nil
	}
	list := make([]entry, len(m.n.members))
	for i, each := range m.n.members {
		list[i] = entry{each.name, m.of(each.name, each.value)}
	}
	return list
}

type entry struct {
	name string
	location
}

// A shape is the members of an object and their kinds.
type shape map[string]kind

// object reports whether a value is an object, and checks its members: no name twice, of the right
// kind, none missing and none unknown.
func (s location) object(members shape, required ...string) bool {
	if s.n.kind != isObject {
		s.fail("type", "write an object", "expected an object, got %s", s.n.kind)
		return false
	}
	s.twice()
	for _, m := range s.n.members {
		at := s.of(m.name, m.value)
		want, known := members[m.name]
		switch {
		case !known:
			at.unknown(m.name, members)
		case m.value.kind != want:
			at.fail("type", "write "+want.String(), "expected %s, got %s", want, m.value.kind)
		}
	}
	for _, name := range required {
		if s.n.member(name) == nil {
			s.fail("required", "add "+name, "the field %s is missing", name)
		}
	}
	return true
}

// twice reports members of the same name.
func (s location) twice() {
	seen := map[string]bool{}
	for _, m := range s.n.members {
		if seen[m.name] {
			s.c.add(Error, m.at, s.of(m.name, m.value).pointer, "duplicate-member",
				fmt.Sprintf("duplicate field %s", quoted(m.name)), "remove one of them: programs differ in which one they use")
		}
		seen[m.name] = true
	}
}

// unknown reports a member that the format does not have.
func (s location) unknown(name string, members shape) {
	if camel := camelCase(name); camel != name {
		if _, ok := members[camel]; ok {
			s.fail("old-member", "write "+camel, "the field %s had this name in an older schema", quoted(name))
			return
		}
	}
	if old, ok := removed[name]; ok {
		s.fail("old-member", old, "the field %s was part of an older schema", quoted(name))
		return
	}
	s.warn("unknown-member", "remove it, or put your own fields under _meta", "unknown field %s", quoted(name))
}

// removed says what to do about members of older schemas.
var removed = map[string]string{
	"status":         "remove it: registries manage the status themselves",
	"version_detail": "write version, as a string",
	"transport_type": "write type",
	"registry_name":  "write registryType",
}

// camelCase turns snake_case, which older schemas had.
func camelCase(name string) string {
	parts := strings.Split(name, "_")
	for i, p := range parts[1:] {
		if p == "" {
			return name
		}
		parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
	}
	camel := strings.Join(parts, "")
	if name == "registry_base_url" {
		return "registryBaseUrl"
	}
	return camel
}

// length checks how many characters a string has.
func (s location) length(least, most int) bool {
	n := utf8.RuneCountInString(s.n.text)
	switch {
	case n < least && n == 0:
		s.fail("empty", "add a value, or remove the field if it is optional", "the string is empty")
	case n < least:
		s.fail("too-short", fmt.Sprintf("write at least %d characters", least), "the string has %d characters; at least %d are required", n, least)
	case n > most:
		s.fail("too-long", fmt.Sprintf("shorten it to %d characters", most), "the string has %d characters; at most %d are allowed", n, most)
	default:
		return true
	}
	return false
}

// oneOf checks that a string is one of those that the schema lists.
func (s location) oneOf(values ...string) bool {
	if slices.Contains(values, s.n.text) {
		return true
	}
	s.fail("enum", "write one of "+strings.Join(values, ", "), "%s is not one of %s", quoted(s.n.text), strings.Join(values, ", "))
	return false
}

// Bounds of what a finding repeats of the file, in bytes.
const (
	maxQuoted  = 120
	maxPointer = 1000
)

func quoted(s string) string { return strconv.Quote(cut(s, maxQuoted)) }

func cut(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
