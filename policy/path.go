package policy

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// A pathStyle says how a path is written.
type pathStyle uint8

const (
	unknownStyle pathStyle = iota
	posixStyle             // "/srv/data"
	windowsStyle           // `C:\data`
)

// A location is an absolute path without "." and "..".
type location struct {
	style pathStyle
	// text has slashes between its segments and none at its end: "" and "C:" are roots.
	text string
	// folded is the same for all texts in which some file systems see one path.
	folded string
}

// nearness says how a location lies to a folder.
type nearness uint8

const (
	outside     nearness = iota
	maybeInside          // inside to file systems that ignore letter case, forms of letters, or what is not seen
	inside               // it is the folder, or lies beneath it
)

// from returns how the location lies to dir, of the same style.
func (l *location) from(dir *location) nearness {
	switch {
	case !beneath(l.folded, dir.folded):
		return outside
	case beneath(l.text, dir.text):
		return inside
	default:
		return maybeInside
	}
}

func beneath(text, dir string) bool {
	return strings.HasPrefix(text, dir) && (len(text) == len(dir) || text[len(dir)] == '/')
}

// parseArgument is parsePath for an argument. Some servers remove quotes around a path.
func parseArgument(s string, dir *location) (location, doubt) {
	if strings.HasPrefix(s, "'") || strings.HasPrefix(s, `"`) || strings.HasSuffix(s, "'") || strings.HasSuffix(s, `"`) {
		return location{}, doubtQuote
	}
	return parsePath(s, dir)
}

// parsePath returns the location of a path or file URI; relative paths begin at dir, which also tells
// the system. It has unknownStyle if it is not known. The doubt says why there is no location.
func parsePath(s string, dir *location) (location, doubt) {
	if d := doubtfulPath(s); d != noDoubt {
		return location{}, d
	}
	isURI := false
	if scheme := schemeOf(s); scheme != "" {
		path, ok := "", false
		if strings.EqualFold(scheme, "file") {
			path, ok = decodeFileURI(s)
		} else {
			return location{}, doubtScheme
		}
		if !ok {
			return location{}, doubtFileURI
		}
		s, isURI = path, true
	}
	switch {
	case hasDrive(s) && dir.style == posixStyle: // elsewhere "C:\x" is a name
		return location{}, doubtStyle
	case hasDrive(s):
		if len(s) == 2 || !isSlash(s[2]) {
			return location{}, doubtDrive
		}
		return clean(strings.ToUpper(s[:2]), s[3:], windowsStyle)
	case strings.HasPrefix(s, `\\`), dir.style == windowsStyle && len(s) > 1 && isSlash(s[0]) && isSlash(s[1]):
		return location{}, doubtDrive
	case s[0] == '/' && dir.style != windowsStyle:
		return clean("", s, posixStyle)
	case isURI:
		return location{}, doubtFileURI
	case isSlash(s[0]) && dir.style == windowsStyle:
		if namesDrive(s) {
			return location{}, doubtShellDrive
		}
		return clean(dir.text[:2], s, windowsStyle)
	case strings.ContainsAny(s[:1], "~$%"):
		return location{}, doubtVariable
	default:
		return join(dir, s)
	}
}

// join returns the location of a relative path that begins at dir.
func join(dir *location, s string) (location, doubt) {
	switch dir.style {
	case unknownStyle:
		return location{}, doubtRelative
	case windowsStyle:
		return clean(dir.text[:2], dir.text[2:]+"/"+s, windowsStyle)
	default:
		return clean("", dir.text+"/"+s, posixStyle)
	}
}

// namesDrive reports whether shells on Windows read the path as one of a drive: "/c/data",
// "/cygdrive/c/data" and "/mnt/c/data" are "C:\data" to them, and "\c\data" on the current drive to
// other programs.
func namesDrive(s string) bool {
	first, rest, _ := strings.Cut(strings.ReplaceAll(s[1:], `\`, "/"), "/")
	if strings.EqualFold(first, "mnt") {
		first, _, _ = strings.Cut(rest, "/")
	}
	return len(first) == 1 && hasDrive(first+":") || strings.EqualFold(first, "cygdrive")
}

// parseDir returns the location of an absolute path.
func parseDir(s string) (location, doubt) { return parsePath(s, &location{}) }

func doubtfulPath(s string) doubt {
	if s == "" {
		return doubtEmptyPath
	}
	if strings.IndexByte(s, 0) >= 0 {
		return doubtNUL
	}
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	if isBlank(first) || isBlank(last) {
		return doubtBlank
	}
	return noDoubt
}

// isBlank reports whether a server may remove the character at the ends of a path: what is a blank
// differs between languages.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf) }

// schemeOf returns the scheme of a URI, or "". One letter is a drive.
func schemeOf(s string) string {
	if colon := strings.IndexByte(s, ':'); colon > 1 && validScheme(s[:colon]) {
		return s[:colon]
	}
	return ""
}

func validScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		other := '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return s != ""
}

// decodeFileURI returns the absolute path of a file URI on this machine (RFC 8089).
func decodeFileURI(s string) (path string, ok bool) {
	rest := s[len("file:"):]
	if strings.ContainsAny(rest, "?#") || strings.Contains(strings.ToLower(rest), "%2f") {
		return "", false
	}
	if after, found := strings.CutPrefix(rest, "//"); found {
		slash := strings.IndexByte(after, '/')
		if slash < 0 || after[:slash] != "" && !strings.EqualFold(after[:slash], "localhost") {
			return "", false
		}
		rest = after[slash:]
	}
	path, err := url.PathUnescape(rest)
	if err != nil || !utf8.ValidString(path) || path == "" || path[0] != '/' || doubtfulPath(path) != noDoubt {
		return "", false
	}
	if hasDrive(path[1:]) {
		path = path[1:]
	}
	return path, !strings.HasPrefix(path, "//")
}

func hasDrive(s string) bool {
	return len(s) >= 2 && s[1] == ':' && (s[0]|0x20) >= 'a' && (s[0]|0x20) <= 'z'
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

// clean returns the location beneath root of a path, the rest of an absolute one.
func clean(root, path string, style pathStyle) (location, doubt) {
	if style == windowsStyle {
		path = strings.ReplaceAll(path, `\`, "/")
	} else if strings.Contains(path, `\..`) || strings.Contains(path, `..\`) {
		return location{}, doubtBackslash
	}
	kept := make([]string, 0, 16)
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == "" || name == ".":
		case name == ".." && len(kept) == 0:
			return location{}, doubtAboveRoot
		case name == "..":
			kept = kept[:len(kept)-1]
		case style == windowsStyle && changedByWindows(name):
			return location{}, doubtWindowsName
		default:
			kept = append(kept, name)
		}
	}
	l := location{style: style, text: root}
	if len(kept) > 0 {
		l.text += "/" + strings.Join(kept, "/")
	}
	l.folded = fold(l.text)
	return l, noDoubt
}

// fold returns the same for all texts in which some file systems see one name: those that differ in
// letter case ("ß" and "SS" too), in the Unicode form of a letter, or in characters that are not seen; and
// those that differ in the kind of a space, which servers may take for each other.
//
// Unicode 17.0, D145: canonical caseless matching is equality of NFD(toCasefold(NFD(s))).
func fold(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return strings.ToLower(s)
	}
	s = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		if r == '\u00a0' || r == '\u202f' { // such as in the names of screenshots on macOS
			return ' '
		}
		return r
	}, norm.NFD.String(s))
	return norm.NFD.String(cases.Fold().String(s))
}

// changedByWindows reports whether Windows may open another file than the one with that name: it
// drops dots and blanks at the end, takes what follows a colon for a stream, and knows short names
// such as "PROGRA~1".
func changedByWindows(name string) bool {
	if last := name[len(name)-1]; last == '.' || last == ' ' || strings.IndexByte(name, ':') >= 0 {
		return true
	}
	tilde := strings.IndexByte(name, '~')
	return tilde >= 0 && tilde+1 < len(name) && '0' <= name[tilde+1] && name[tilde+1] <= '9'
}
