package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

const unreleased = "## Unreleased\n"

// cutChangelog gives what stands under "Unreleased" a version and a date, and
// begins a new section for what comes next.
func cutChangelog(text []byte, version string, now time.Time) ([]byte, error) {
	before, after, found := bytes.Cut(text, []byte(unreleased))
	if !found {
		return nil, errors.New(`there is no section "Unreleased"`)
	}
	section, _, _ := bytes.Cut(after, []byte("\n## "))
	if len(bytes.TrimSpace(section)) == 0 {
		return nil, errors.New(`the section "Unreleased" says nothing: write what changed for users`)
	}
	head := fmt.Sprintf("%s\n## %s - %s\n", unreleased, version, now.Format(time.DateOnly))
	return bytes.Join([][]byte{before, []byte(head), after}, nil), nil
}

// changes returns the section of a version, for the files that carry it.
func changes(text []byte, version string) ([]byte, error) {
	_, after, found := bytes.Cut(text, []byte("\n## "+version+" - "))
	if !found {
		return nil, fmt.Errorf("CHANGELOG.md has no section of %s", version)
	}
	_, after, _ = bytes.Cut(after, []byte("\n"))
	section, _, _ := bytes.Cut(after, []byte("\n## "))
	return append(bytes.TrimSpace(section), '\n'), nil
}
