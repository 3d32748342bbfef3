package skills

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/parley-mcp/parley/mcp"
)

// Bounds of a frontmatter.
const (
	// maxFrontmatter is the longest frontmatter, in bytes.
	maxFrontmatter = 64 << 10
	// maxValues is the most values of a frontmatter, those of aliases counted as often
	// as they are used.
	maxValues = 10_000
	// maxFrontmatterJSON is the longest JSON that a frontmatter becomes, in bytes.
	maxFrontmatterJSON = 256 << 10
	// maxFrontmatterDepth is how many mappings and sequences may be open at once. It
	// leaves room for the message around the frontmatter.
	maxFrontmatterDepth = 32
)

// A FrontmatterError says what is wrong with the frontmatter of a SKILL.md.
type FrontmatterError struct {
	// Line is the line of the file, from 1, or 0 if it is not about one line.
	Line int
	// Reason says what is wrong and what to do.
	Reason string
}

// Error is line and reason.
func (e *FrontmatterError) Error() string {
	if e.Line == 0 {
		return "frontmatter: " + e.Reason
	}
	return fmt.Sprintf("frontmatter, line %d: %s", e.Line, e.Reason)
}

// Frontmatter returns the frontmatter of the text of a SKILL.md as a JSON object, all
// members in their order, and the text that follows it. The file may begin with a
// byte order mark, and lines may end with CR LF.
//
// Types are those of YAML's core schema (YAML 1.2.2, 10.3): a date is a string, and so
// are yes and no; 0o7 is 7; integers are exact. Refused are members twice, keys that
// are no strings, infinity and NaN, merge keys, tags of other schemas, the line
// separators of Unicode, and what is beyond bounds: 64 KiB, 32 levels, 10,000 values
// where aliases are counted as often as they are used. The error is a
// [FrontmatterError].
//
// SEP-2640, Frontmatter: rendered "verbatim as a JSON object".
func Frontmatter(file []byte) (frontmatter mcp.RawValue, body []byte, err error) {
	text, body, err := splitFrontmatter(file)
	if err != nil {
		return nil, nil, err
	}
	root, err := parseYAML(text)
	if err != nil {
		return nil, nil, err
	}
	r := renderer{left: maxValues}
	if err := r.append(root, 0); err != nil {
		return nil, nil, err
	}
	return r.out, body, nil
}

// splitFrontmatter finds the lines between the first two that are "---".
func splitFrontmatter(file []byte) (text, body []byte, err error) {
	rest := bytes.TrimPrefix(file, []byte("\xef\xbb\xbf"))
	first, rest, found := bytes.Cut(rest, []byte("\n"))
	if !found || !isFence(first) {
		return nil, nil, &FrontmatterError{Line: 1, Reason: `the file must begin with a line "---", then YAML with name and description, then a line "---"`}
	}
	for at := 0; at <= maxFrontmatter; {
		line, after, more := bytes.Cut(rest[at:], []byte("\n"))
		if isFence(line) {
			text = rest[:at]
			if !utf8.Valid(text) {
				return nil, nil, &FrontmatterError{Reason: "it is not valid UTF-8; save the file as UTF-8"}
			}
			if i := bytes.IndexAny(text, oldBreaks); i >= 0 {
				return nil, nil, &FrontmatterError{
					Line: 2 + bytes.Count(text[:i], []byte("\n")), Reason: oldBreak,
				}
			}
			return text, after, nil
		}
		if !more {
			return nil, nil, &FrontmatterError{Reason: `it has no end; close it with a line "---"`}
		}
		at += len(line) + 1
	}
	return nil, nil, &FrontmatterError{Reason: fmt.Sprintf(`it is longer than %d bytes, or has no end; close it with a line "---"`, maxFrontmatter)}
}

// oldBreaks are characters that end a line in YAML 1.1, which the parser reads, and none
// in YAML 1.2 and in what a person sees (YAML 1.2.2, 5.4).
const oldBreaks = "\u0085\u2028\u2029"

const oldBreak = "it holds a line separator (U+0085, U+2028 or U+2029), " +
	"which some parsers take for a new line; write a new line or a space"

// isFence reports whether a line is "---", perhaps with spaces or CR behind it.
func isFence(line []byte) bool {
	return string(bytes.TrimRight(line, " \t\r")) == "---"
}

// parseYAML parses one document and returns its mapping.
func parseYAML(text []byte) (root *yaml.Node, err error) {
	// The text is a stranger's: if it can make the parser panic, that is an error too.
	defer func() {
		if v := recover(); v != nil {
			root, err = nil, &FrontmatterError{Reason: "it cannot be parsed as YAML"}
		}
	}()
	// The empty line stands for the first "---", so that lines are those of the file.
	d := yaml.NewDecoder(io.MultiReader(strings.NewReader("\n"), bytes.NewReader(text)))
	var doc, second yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, &FrontmatterError{Reason: "it is empty; write name and description"}
	case err != nil:
		return nil, &FrontmatterError{Reason: strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &FrontmatterError{Reason: "it is more than one YAML document; remove the line \"...\""}
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, &FrontmatterError{Reason: "it is no YAML mapping; write lines such as \"name: git-workflow\""}
	}
	return doc.Content[0], nil
}
