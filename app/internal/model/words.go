package model

import (
	"strconv"
	"strings"
	"unicode"
)

// A token is one piece of a request.
type token struct {
	kind tokenKind
	key  string // of key=value
	text string
}

type tokenKind uint8

const (
	word   tokenKind = iota
	number           // 3, -1.5, 2e3
	quoted           // "a text" or 'a text'
	pair             // key=value
)

// split splits a request into steps of tokens. Steps are separated by ";"
// or the word "then".
func split(request string) [][]token {
	var steps [][]token
	var step []token
	end := func() {
		if len(step) > 0 {
			steps = append(steps, step)
			step = nil
		}
	}
	s := scanner{rest: []rune(request)}
	for {
		t, separator, ok := s.next()
		if !ok {
			end()
			return steps
		}
		if separator || t.kind == word && strings.EqualFold(t.text, "then") {
			end()
			continue
		}
		step = append(step, t)
	}
}

type scanner struct{ rest []rune }

func (s *scanner) next() (t token, separator, ok bool) {
	for len(s.rest) > 0 && (unicode.IsSpace(s.rest[0]) || s.rest[0] == ',') {
		s.rest = s.rest[1:]
	}
	if len(s.rest) == 0 {
		return token{}, false, false
	}
	switch r := s.rest[0]; {
	case r == ';':
		s.rest = s.rest[1:]
		return token{}, true, true
	case quote(r) != 0:
		if text, found := s.quoted(); found {
			return token{kind: quoted, text: text}, false, true
		}
	}
	text := s.until(func(r rune) bool { return unicode.IsSpace(r) || r == ';' || r == '=' })
	if len(s.rest) > 0 && s.rest[0] == '=' && isKey(text) {
		s.rest = s.rest[1:]
		return token{kind: pair, key: text, text: s.value()}, false, true
	}
	text += s.until(func(r rune) bool { return unicode.IsSpace(r) || r == ';' })
	text = strings.TrimRight(text, ",.!?:")
	if _, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, "0123456789") {
		return token{kind: number, text: text}, false, true
	}
	return token{kind: word, text: text}, false, true
}

// value reads what stands after key=: a quoted text, JSON, or a word.
func (s *scanner) value() string {
	if len(s.rest) == 0 {
		return ""
	}
	if quote(s.rest[0]) != 0 {
		if text, found := s.quoted(); found {
			return text
		}
	}
	if s.rest[0] == '{' || s.rest[0] == '[' {
		return s.nested()
	}
	return s.until(func(r rune) bool { return unicode.IsSpace(r) || r == ';' })
}

// nested reads up to the bracket that closes the first one.
func (s *scanner) nested() string {
	depth, inText := 0, false
	for i, r := range s.rest {
		switch {
		case r == '"' && (i == 0 || s.rest[i-1] != '\\'):
			inText = !inText
		case inText:
		case r == '{' || r == '[':
			depth++
		case r == '}' || r == ']':
			depth--
		}
		if depth == 0 {
			text := string(s.rest[:i+1])
			s.rest = s.rest[i+1:]
			return text
		}
	}
	text := string(s.rest)
	s.rest = nil
	return text
}

func (s *scanner) until(stop func(rune) bool) string {
	for i, r := range s.rest {
		if stop(r) {
			text := string(s.rest[:i])
			s.rest = s.rest[i:]
			return text
		}
	}
	text := string(s.rest)
	s.rest = nil
	return text
}

// quoted reads a text in quotes, if they are closed.
func (s *scanner) quoted() (string, bool) {
	closing := quote(s.rest[0])
	for i, r := range s.rest[1:] {
		if r == closing {
			text := string(s.rest[1 : i+1])
			s.rest = s.rest[i+2:]
			return text, true
		}
	}
	return "", false
}

// quote returns the rune that closes what r opens, or 0.
func quote(r rune) rune {
	switch r {
	case '"', '\'', '`':
		return r
	case '“', '„':
		return '”'
	case '«':
		return '»'
	}
	return 0
}

func isKey(s string) bool {
	if s == "" {
		return false
	}
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' && r != '.' {
			return false
		}
	}
	return true
}

// parts splits a name or sentence into lower-case words: "getUser_name"
// has three.
func parts(s string) []string {
	var list []string
	var part []rune
	end := func() {
		if len(part) > 0 {
			list = append(list, stem(string(part)))
			part = nil
		}
	}
	lower := false
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			lower = false
			continue
		case unicode.IsUpper(r) && lower:
			end()
		}
		lower = unicode.IsLower(r)
		part = append(part, unicode.ToLower(r))
	}
	end()
	return list
}

// same are words that mean the same to the planner.
var same = map[string]string{
	"plus": "add", "sum": "add", "total": "add",
	"say": "echo", "repeat": "echo", "print": "echo",
	"picture": "image", "photo": "image",
	"sound":    "audio",
	"forecast": "weather", "temperature": "weather",
}

// stem makes forms of a word equal.
func stem(s string) string {
	if len(s) > 3 && strings.HasSuffix(s, "s") && !strings.HasSuffix(s, "ss") {
		s = strings.TrimSuffix(s, "s")
	}
	if other, ok := same[s]; ok {
		return other
	}
	return s
}

// idle are words that say nothing about which tool is meant.
var idle = map[string]bool{
	"a": true, "an": true, "the": true, "and": true, "or": true, "of": true, "to": true, "in": true,
	"is": true, "it": true, "for": true, "with": true, "on": true, "by": true, "me": true, "please": true,
	"what": true, "that": true, "this": true, "from": true, "as": true, "get": true, "tool": true,
	"call": true, "use": true, "run": true, "be": true, "are": true, "can": true, "you": true, "my": true,
}
