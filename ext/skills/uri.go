package skills

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name of a skill.
const maxName = 64

// checkName refuses what cannot be the name of a skill.
//
// Agent Skills, name field.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("it has no name; write one such as \"name: git-workflow\"")
	case len(name) > maxName:
		return fmt.Errorf("the name is longer than %d characters", maxName)
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return fmt.Errorf("the name %q has characters other than a to z, 0 to 9 and hyphens", name)
	case name[0] == '-' || name[len(name)-1] == '-' || strings.Contains(name, "--"):
		return fmt.Errorf("the name %q begins or ends with a hyphen, or has two in a row", name)
	}
	return nil
}

// checkURI refuses a URI that does not name one file or directory in the one way that
// there is to write it: dots, empty segments, queries, characters that mislead.
func checkURI(uri string) error {
	_, path, ok := strings.Cut(uri, "://")
	if !ok || strings.HasPrefix(uri, ":") {
		return fmt.Errorf("%q is no URI such as skill://refunds/%s", uri, skillFile)
	}
	if !utf8.ValidString(uri) || strings.ContainsAny(uri, "\\?#") ||
		strings.ContainsFunc(uri, func(r rune) bool { return misleading(r) || unicode.IsSpace(r) }) {
		return fmt.Errorf("%q has a character that URIs of skills do not have", uri)
	}
	for segment := range strings.SplitSeq(path, "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\\\x00") {
			return fmt.Errorf("%q has a segment %q, which is no name of a file or directory", uri, segment)
		}
	}
	return nil
}

// directoryOf is the URI of the directory whose SKILL.md a URI names.
func directoryOf(uri string) (string, error) {
	if err := checkURI(uri); err != nil {
		return "", err
	}
	dir, ok := strings.CutSuffix(uri, "/"+skillFile)
	if !ok || strings.HasSuffix(dir, "/") {
		return "", fmt.Errorf("%q does not end with NAME/%s", uri, skillFile)
	}
	return dir, nil
}

// Resolve returns the URI of a file that SKILL.md refers to: a path such as
// "references/FORMS.md", relative to the folder of that SKILL.md, with slashes. The
// error says that it is none or leaves the skill. Whether there is such a file
// [Read] tells. A file that the entry lists has the URI that it has there: servers
// percent-encode more or fewer characters.
//
// SEP-2640, Relative References.
func (s *Skill) Resolve(ref string) (string, error) {
	dir, err := directoryOf(s.URI)
	if err != nil {
		return "", &EntryError{URI: s.URI, Reason: err.Error()}
	}
	if strings.Contains(ref, "://") || strings.HasPrefix(ref, "/") {
		return "", fmt.Errorf("skills: %q is no path relative to %s", ref, dir)
	}
	var kept []string
	for segment := range strings.SplitSeq(ref, "/") {
		switch segment {
		case "", ".":
		case "..":
			if len(kept) == 0 {
				return "", fmt.Errorf("skills: %q leaves the skill %s", ref, dir)
			}
			kept = kept[:len(kept)-1]
		default:
			kept = append(kept, escape(segment))
		}
	}
	uri := dir + "/" + strings.Join(kept, "/")
	if err := checkURI(uri); err != nil {
		return "", fmt.Errorf("skills: %q names no file of %s", ref, dir)
	}
	if _, ok := s.file(uri); ok {
		return uri, nil
	}
	for _, f := range s.Files {
		rest, below := strings.CutPrefix(f.URI, dir+"/")
		if below && checkURI(f.URI) == nil && canonical(rest) == uri[len(dir)+1:] {
			return f.URI, nil
		}
	}
	return uri, nil
}

// canonical is a path of a URI in the way in which this package writes it.
func canonical(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = escape(s)
	}
	return strings.Join(segments, "/")
}

// escape percent-encodes a segment: what RFC 3986 calls unreserved stays. A segment that
// a skill writes with escapes keeps them.
func escape(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		segment = plain
	}
	return escapeSegment(segment)
}

// escapeSegment percent-encodes the name of a file.
func escapeSegment(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// escapePath percent-encodes the path of a file, segment by segment.
func escapePath(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = escapeSegment(s)
	}
	return strings.Join(segments, "/")
}

// misleading reports whether a character of a name is not shown.
func misleading(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
