package policy

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// A doubt says why an argument cannot be judged.
type doubt uint8

const (
	noDoubt doubt = iota
	doubtArguments
	doubtLetterCase
	doubtContainer
	doubtMany
	doubtType
	doubtEmptyPath
	doubtNUL
	doubtBlank
	doubtQuote
	doubtScheme
	doubtFileURI
	doubtURIOrName
	doubtDrive
	doubtShellDrive
	doubtWindowsName
	doubtBackslash
	doubtVariable
	doubtRelative
	doubtAboveRoot
	doubtStyle
	doubtPathCase
	doubtURL
	doubtURLScheme
	doubtUserinfo
	doubtURLCharacter
	doubtHost
	doubtAddress
	doubtPort
)

var doubtTexts = [...]string{
	noDoubt:           "",
	doubtArguments:    "the arguments are no valid JSON object",
	doubtLetterCase:   "a member's name differs from it in letter case only",
	doubtContainer:    "a value on the way to it is no object or array, as the rule expects",
	doubtMany:         "it stands for too many values",
	doubtType:         "its type is not the one that the rule expects",
	doubtEmptyPath:    "the path is empty",
	doubtNUL:          "the path has a NUL character",
	doubtBlank:        "the path begins or ends with a blank or a character that is not seen",
	doubtQuote:        "the path begins or ends with a quote",
	doubtScheme:       "it is a URI, but no file URI",
	doubtFileURI:      "the file URI is not plain",
	doubtURIOrName:    "it is a file URI, which some servers read as a relative path",
	doubtDrive:        "it is a path of Windows without a drive and a root",
	doubtShellDrive:   "the path begins with a drive as shells on Windows write it",
	doubtWindowsName:  "the path has a name that Windows changes",
	doubtBackslash:    "the path has a backslash beside '..'",
	doubtVariable:     "the path begins with '~', '$' or '%'",
	doubtRelative:     "the path is relative, and the folder that it begins at is unknown",
	doubtAboveRoot:    "the path leads above the root",
	doubtStyle:        "the path is one of another system than those of the rule or the server's folder",
	doubtPathCase:     "the path differs from one of the rule only in letter case, the Unicode form of a letter, or characters that are not seen",
	doubtURL:          "it is no URL with a scheme and a host",
	doubtURLScheme:    "the URL's scheme is not http, https, ws, wss or ftp",
	doubtUserinfo:     "the URL has user information",
	doubtURLCharacter: "the URL has a blank, a control character or a backslash",
	doubtHost:         "the URL's host is not written in plain ASCII",
	doubtAddress:      "the URL's host is an unusual spelling of an address",
	doubtPort:         "the URL's port is not a number from 1 to 65535",
}

func (d doubt) String() string { return doubtTexts[d] }

// A pointer is a compiled JSON pointer.
type pointer struct {
	text     string
	segments []segment
	// id is the place of the pointer among those of a policy.
	id int
}

// A segment is one step of a pointer.
type segment struct {
	name string
	all  bool // "*": every element or member
	// index is the element of an array that name stands for, or -1.
	index int
}

func compilePointer(text string) (*pointer, error) {
	p := &pointer{text: text}
	if text == "" {
		return p, nil
	}
	if text[0] != '/' {
		return nil, fmt.Errorf("%q is no JSON pointer; begin it with a slash: %q", text, "/"+text)
	}
	for _, name := range strings.Split(text[1:], "/") {
		for i := range len(name) {
			if name[i] == '~' && (i+1 == len(name) || name[i+1] != '0' && name[i+1] != '1') {
				return nil, fmt.Errorf("%q is no JSON pointer; write '~' in a name as '~0' and '/' as '~1'", text)
			}
		}
		s := segment{name: strings.NewReplacer("~1", "/", "~0", "~").Replace(name), all: name == "*", index: -1}
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && strconv.Itoa(n) == name {
			s.index = n
		}
		p.segments = append(p.segments, s)
	}
	return p, nil
}

// wild reports whether the pointer may lead to several places.
func (p *pointer) wild() bool {
	for _, s := range p.segments {
		if s.all {
			return true
		}
	}
	return false
}

// maxPlaces is the largest number of places of one pointer that are judged.
const maxPlaces = 1000

// located is what a pointer leads to in some arguments.
type located struct {
	values []value
	// absent counts the places where there is nothing.
	absent int
	// doubt says why a place cannot be judged.
	doubt doubt
}

// locate finds the places that a pointer leads to. text is valid JSON.
func locate(text mcp.RawValue, p *pointer) *located {
	found := new(located)
	found.walk(text, wire.SkipSpace(text, 0), p.segments)
	return found
}

// walk follows segments from the value at pos, and returns where that value ends.
func (l *located) walk(text mcp.RawValue, pos int, segments []segment) (end int) {
	if len(segments) == 0 {
		end = wire.SkipValue(text, pos)
		if len(l.values) == maxPlaces {
			l.doubt = doubtMany
			return end
		}
		l.values = append(l.values, newValue(text[pos:end]))
		return end
	}
	s, rest := segments[0], segments[1:]
	c := wire.At(text, pos)
	switch {
	case c == '{' && s.all:
		return wire.EachMember(text, pos, func(_ string, pos int) int { return l.walk(text, pos, rest) })
	case c == '[' && s.all:
		return wire.EachElement(text, pos, func(pos int) int { return l.walk(text, pos, rest) })
	case c == '{':
		return l.member(text, pos, s.name, rest)
	case c == '[' && s.index >= 0:
		return l.element(text, pos, s.index, rest)
	}
	l.doubt = doubtContainer
	return wire.SkipValue(text, pos)
}

func (l *located) element(text mcp.RawValue, pos, index int, rest []segment) (end int) {
	n := 0
	end = wire.EachElement(text, pos, func(pos int) int {
		n++
		if n-1 == index {
			return l.walk(text, pos, rest)
		}
		return wire.SkipValue(text, pos)
	})
	if n <= index {
		l.absent++
	}
	return end
}

// member follows one member of the object at pos. A member whose name differs in letter case only
// is the same to some servers.
func (l *located) member(text mcp.RawValue, pos int, name string, rest []segment) (end int) {
	found := false
	pos, last := wire.First(text, pos, '}')
	for !last {
		nameEnd, escaped, at := wire.MemberAt(text, pos)
		here := []byte(nil)
		if escaped {
			here = []byte(wire.Text(text[pos:nameEnd]))
		} else {
			here = text[pos+1 : nameEnd-1]
		}
		end := 0
		switch {
		case string(here) == name:
			found = true
			end = l.walk(text, at, rest)
		case bytes.EqualFold(here, []byte(name)):
			l.doubt = doubtLetterCase
			fallthrough
		default:
			end = wire.SkipValue(text, at)
		}
		pos, last = wire.Next(text, end, '}')
	}
	if !found {
		l.absent++
	}
	return pos
}
