package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

var (
	heading = regexp.MustCompile(`^(Server|Client) scenarios `)
	group   = regexp.MustCompile(`^  ([a-z-]+) \(\d+\):$`)
	entry   = regexp.MustCompile(`^ +- (\S+)(?: \[(server|client)\])?$`)
)

// parseList reads what the suite's command "list --requirements" prints for a
// revision: the scenarios that are required, and those that are run besides.
// Left out are the extensions of the protocol, which these fixtures do not
// declare, and authorization.
func parseList(r io.Reader, revision string) ([]scenario, error) {
	var list []scenario
	var leg, kind string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), " \r")
		if m := heading.FindStringSubmatch(line); m != nil {
			leg, kind = strings.ToLower(m[1]), "required"
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
		if m[2] != "" {
			s.leg = m[2]
		}
		if s.leg == "" || kind == "" {
			return nil, fmt.Errorf("the suite lists %q under no heading that is known", s.name)
		}
		if kind == "extension" || strings.HasPrefix(s.name, "auth/") {
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
