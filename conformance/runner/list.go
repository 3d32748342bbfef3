package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

var (
	heading = regexp.MustCompile(`^(Server|Client|Authorization server) scenarios `)
	group   = regexp.MustCompile(`^  ([a-z-]+) \(\d+\):$`)
	entry   = regexp.MustCompile(`^ +- (\S+)(?: \[([a-z0-9,-]+)\])?$`)
)

// parseList reads what the suite's command "list" prints: with --requirements
// the scenarios that are required of a revision, and those that are run
// besides; with --spec-version those that apply to it, with neither all. Left out of
// the sets are extensions, but for those of authorization.
func parseList(r io.Reader, revision string) ([]scenario, error) {
	var list []scenario
	var leg, kind string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), " \r")
		if m := heading.FindStringSubmatch(line); m != nil {
			leg, kind = strings.ReplaceAll(strings.ToLower(m[1]), " ", "-"), "required"
			continue
		}
		if m := group.FindStringSubmatch(line); m != nil {
			leg, kind = "", m[1]
			continue
		}
		m := entry.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		s := scenario{leg: leg, revision: revision, name: m[1]}
		if m[2] == legServer || m[2] == legClient { // else it is a list of revisions
			s.leg = m[2]
		}
		if s.leg == "" || kind == "" {
			return nil, fmt.Errorf("the suite lists %q under no heading that is known", s.name)
		}
		if kind == "extension" && !s.authorization() {
			continue
		}
		list = append(list, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the list of scenarios: %w", err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the suite lists no scenario for %s", revision)
	}
	return list, nil
}
