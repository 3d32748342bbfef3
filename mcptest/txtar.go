package mcptest

import (
	"bytes"
	"slices"
)

// An archive is a text file with several named parts, in the format txtar: a
// comment, then parts that each begin with a line "-- name --".
//
// The package reads and writes the format itself. The reader in golang.org/x/tools is part of a large
// module with versions that move with the toolchain, and every import of this public package ends up in
// the module graph of the library's users. The format is small: it has no errors and no escapes, and has
// not changed since it was defined.
type archive struct {
	comment []byte
	parts   []part
}

type part struct {
	name string
	body []byte
}

// parseArchive reads an archive. Every text is one: what does not look like
// the beginning of a part belongs to the part or comment before it.
func parseArchive(data []byte) archive {
	var a archive
	body := &a.comment
	for line := range bytes.Lines(data) {
		name, ok := partName(line)
		if !ok {
			*body = append(*body, line...)
			continue
		}
		a.parts = append(a.parts, part{name: name})
		body = &a.parts[len(a.parts)-1].body
	}
	return a
}

// partName reads the line that begins a part.
func partName(line []byte) (string, bool) {
	line = bytes.TrimRight(line, "\r\n")
	rest, ok := bytes.CutPrefix(line, []byte("-- "))
	if !ok {
		return "", false
	}
	rest, ok = bytes.CutSuffix(rest, []byte(" --"))
	name := string(bytes.TrimSpace(rest))
	return name, ok && name != ""
}

// format writes the archive so that parseArchive reads the same.
func (a archive) format() []byte {
	out := ended(slices.Clone(a.comment))
	for _, p := range a.parts {
		out = append(out, "-- "+p.name+" --\n"...)
		out = ended(append(out, p.body...))
	}
	return out
}

// ended makes a text end with its last line.
func ended(text []byte) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return append(text, '\n')
	}
	return text
}
