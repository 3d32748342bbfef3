package archtest

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxWidth is the longest line of prose, in characters. It is wrapped near
// column 100.
const maxWidth = 110

// The part of a page between these lines is written by a program.
const (
	generatedBegin = "<!-- measured: begin -->"
	generatedEnd   = "<!-- measured: end -->"
)

// unbreakable is what cannot be wrapped: an address, or code.
var unbreakable = regexp.MustCompile("\\S{60,}|`[^`]{60,}`|\\]\\([^)]{60,}\\)")

// exampleOutput is the comment of an Example that says what it prints.
var exampleOutput = regexp.MustCompile(`(?i)^(unordered )?output:`)

// preformatted is a directive, or an indented line of a doc comment.
var preformatted = regexp.MustCompile(`^//([a-z]|\t|  )`)

// Width reports lines of prose that are longer than 110 characters: in Markdown
// all but tables, code, headings and generated parts, and in Go the lines of
// comments that hold nothing else. An error says that a file cannot be read.
func (t *Tree) Width() ([]Problem, error) {
	found := t.wideComments()
	err := fs.WalkDir(t.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && ignored(d.Name()):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		data, err := fs.ReadFile(t.fsys, name)
		if err != nil {
			return err
		}
		found = append(found, wideProse(name, string(data))...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the pages: %w", err)
	}
	return found, nil
}

func (t *Tree) wideComments() []Problem {
	var found []Problem
	for _, src := range t.sources {
		for _, group := range src.file.Comments {
			if src.test && exampleOutput.MatchString(group.Text()) {
				continue
			}
			for _, c := range group.List {
				p := t.set.Position(c.Pos())
				for i, line := range strings.Split(c.Text, "\n") {
					if tooWide(line) && !preformatted.MatchString(line) {
						found = append(found, Problem{File: p.Filename, Line: p.Line + i, Text: wideText})
					}
				}
			}
		}
	}
	return found
}

var wideText = fmt.Sprintf("a line of prose with more than %d characters: wrap it near column 100", maxWidth)

func tooWide(line string) bool {
	return utf8.RuneCountInString(line) > maxWidth && !unbreakable.MatchString(line)
}

// wideProse reports the wide lines of a Markdown page.
func wideProse(name, text string) []Problem {
	var found []Problem
	fence, generated := "", false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
		case trimmed == generatedBegin, trimmed == generatedEnd:
			generated = trimmed == generatedBegin
		case generated, strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, "#"),
			strings.HasPrefix(trimmed, "<!--"), strings.HasPrefix(line, "    "), strings.HasPrefix(line, "\t"):
		case tooWide(line):
			found = append(found, Problem{File: name, Line: i + 1, Text: wideText})
		}
	}
	return found
}
