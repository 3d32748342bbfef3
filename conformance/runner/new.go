package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// legNew tests a server as "parley new server" writes it.
const legNew = "new"

// newAt is where such a server says that it can be reached.
var newAt = regexp.MustCompile(`serving (http://\S+)`)

// leftOutFile says what is not asked of such a server, and why.
const leftOutFile = "left-out-new.txt"

// vacuous begins the reason of a scenario that is left out although it gives what it must: it takes
// the refusal of a tool that is not there for the refusal that it looks for.
const vacuous = "vacuous:"

// A leaving is a scenario, or one check of it, that is left out.
type leaving struct {
	revision, scenario string
	check              string // empty if it is the whole scenario
	reason             string
}

// parseLeavings reads lines of a revision or *, a scenario or SCENARIO/CHECK, and a reason.
func parseLeavings(r io.Reader) ([]leaving, error) {
	var list []leaving
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		revision, rest, _ := strings.Cut(line, " ")
		name, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
		reason = strings.TrimSpace(reason)
		if reason == "" {
			return nil, fmt.Errorf("line %d: want revision, scenario, reason: %q", n, line)
		}
		if revision != "*" && !slices.Contains(revisions, revision) {
			return nil, fmt.Errorf("line %d: the revision is * or one of %s, not %q", n, strings.Join(revisions, ", "), revision)
		}
		l := leaving{revision: revision, reason: reason}
		l.scenario, l.check, _ = strings.Cut(name, "/")
		list = append(list, l)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading what is left out: %w", err)
	}
	return list, nil
}

func (l *leaving) of(sc scenario) bool {
	return l.scenario == sc.name && (l.revision == "*" || l.revision == sc.revision)
}

// leaveOut takes out of the planned scenarios what is left out, and out of their results the checks
// that are. What is left out without need is an error: a scenario that is not planned, or gives all it
// must, and a check that did not fail.
func leaveOut(list []leaving, planned []scenario, got map[scenario]*result) ([]scenario, error) {
	var problems []string
	var rest []scenario
	used := make([]bool, len(list))
	for _, sc := range planned {
		whole := false
		for i := range list {
			l := &list[i]
			if !l.of(sc) {
				continue
			}
			used[i] = true
			r := got[sc]
			switch {
			case l.check == "":
				whole = true
				if r != nil && r.failure+r.warning == 0 && r.success > 0 && !strings.HasPrefix(l.reason, vacuous) {
					problems = append(problems, fmt.Sprintf("%s is left out, and gives what it must", sc))
				}
			case r == nil || !r.forgive(l.check):
				problems = append(problems, fmt.Sprintf("%s: the check %s is left out, and did not fail", sc, l.check))
			}
		}
		if !whole {
			rest = append(rest, sc)
		}
	}
	for i := range list {
		if !used[i] {
			problems = append(problems, fmt.Sprintf("%s of %s is left out, and the suite does not list it", list[i].scenario, list[i].revision))
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s: %s", leftOutFile, strings.Join(problems, "; "))
	}
	return rest, nil
}

// forgive takes a check that failed or warned out of a result, and reports whether there was one.
func (r *result) forgive(check string) bool {
	i := slices.Index(r.names, check)
	if i < 0 {
		return false
	}
	if strings.HasPrefix(r.complaints[i], "failed") {
		r.failure--
	} else {
		r.warning--
	}
	r.names, r.complaints = slices.Delete(r.names, i, i+1), slices.Delete(r.complaints, i, i+1)
	return true
}

// runNew writes a new server, has its own test and parley doctor pass it as it is, and runs the sets
// of scenarios for servers against it. It returns the scenarios that were to run, without those that
// are left out, and what they gave.
func runNew(ctx context.Context, s *suite, output string) ([]scenario, map[scenario]*result, error) {
	home, err := moduleDir(ctx)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(filepath.Join(home, leftOutFile))
	if err != nil {
		return nil, nil, err
	}
	left, err := parseLeavings(bytes.NewReader(text))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", leftOutFile, err)
	}
	var planned []scenario
	for _, revision := range revisions {
		list, err := s.list(ctx, revision, "--requirements", revision)
		if err != nil {
			return nil, nil, err
		}
		for _, sc := range list {
			if sc.leg == legServer {
				planned = append(planned, scenario{leg: legNew, revision: sc.revision, name: sc.name})
			}
		}
	}
	program, err := makeNew(ctx, filepath.Dir(home), output)
	if err != nil {
		return nil, nil, err
	}
	got := make(map[scenario]*result)
	if err := serveNew(ctx, s, program, output, got); err != nil {
		return nil, nil, err
	}
	planned, err = leaveOut(left, planned, got)
	return planned, got, err
}

// makeNew writes and builds a new server, runs its test, and has it examined.
func makeNew(ctx context.Context, library, output string) (program string, err error) {
	parley, dir := filepath.Join(output, "bin", filepath.Base(bridgeProgram)), filepath.Join(output, "made")
	program = filepath.Join(dir, "made")
	steps := []struct {
		dir  string
		args []string
	}{
		{library, []string{"go", "build", "-o", parley, bridgeProgram}},
		{output, []string{parley, "new", "server", "made", "--module", "example.com/made", "--dir", dir, "--replace", library}},
		{dir, []string{"go", "test", "./..."}},
		{dir, []string{"go", "build", "-o", program, "."}},
		{dir, []string{parley, "doctor", "--fail-on", "warning", "--", program}},
	}
	for _, step := range steps {
		say("%s", strings.Join(step.args, " "))
		c := command(ctx, step.args[0], step.args[1:]...)
		c.Dir = step.dir
		if step.dir != library {
			c.Env = append(os.Environ(), "GOWORK=off")
		}
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(step.args, " "), err, bytes.TrimRightFunc(out, unicode.IsSpace))
		}
	}
	return program, nil
}

// serveNew runs the sets against a new server.
func serveNew(ctx context.Context, s *suite, program, output string, got map[scenario]*result) (err error) {
	log, err := os.Create(filepath.Join(output, legNew+".log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	start := func() (string, func() error, error) {
		return startTelling(ctx, log, newAt, program, "-http", "127.0.0.1:0")
	}
	return withStarted(program, start, func(url string) error { return runSets(ctx, s, url, legNew, output, got) })
}
