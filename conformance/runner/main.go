// Command runner holds the library to the official conformance suite: it
// installs the suite, pinned, starts the fixtures, runs every scenario that
// does not need an extension that they lack, and compares what the checks gave,
// counted by status, with the committed table expected.txt.
//
// A tick of the suite says little: a scenario that checks nothing passes. So
// each scenario must give exactly the successes that are expected of it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// module is the module of the fixtures; its folder holds the rest.
const module = "github.com/parley-mcp/parley/conformance"

// revisions are those whose sets of scenarios the suite has.
var revisions = []string{"2025-11-25", "2026-07-28"}

// oldestRevision has no set, but two scenarios of authorization that are in none.
const oldestRevision = "2025-03-26"

// errUnexpected says that the problems have been told.
var errUnexpected = errors.New("not what is expected")

func main() {
	update := flag.Bool("update", false, "write what the scenarios gave into expected.txt; failures and warnings never become expected")
	bridge := flag.Bool("bridge", false, "run the scenarios for servers through parley bridge instead, and compare with expected-bridge.txt")
	made := flag.Bool("new", false, "run the scenarios for servers that need no fixture against a server that parley new server writes, and compare with expected-new.txt")
	output := flag.String("o", "", "`folder` for the suite's results (default: a temporary one, kept if something is wrong)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &options{update: *update, bridge: *bridge, made: *made, output: *output})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1) // this is a program: its status is its answer
	}
}

// options are the flags.
type options struct {
	update, bridge, made bool
	output               string
}

// legsOf are what runs the legs that are asked for, the file with what is expected of them, and the
// flags that write it.
func (o *options) legsOf() (run func(context.Context, *suite, string) ([]scenario, map[scenario]*result, error), file, flags string) {
	switch {
	case o.bridge:
		return runBridges, "expected-bridge.txt", "-bridge -update"
	case o.made:
		return runNew, "expected-new.txt", "-new -update"
	}
	return runAll, "expected.txt", "-update"
}

func run(ctx context.Context, o *options) (err error) {
	start := time.Now()
	if o.bridge && o.made {
		return errors.New("-bridge and -new are two runs: give one of them")
	}
	home, err := moduleDir(ctx)
	if err != nil {
		return err
	}
	s, err := install(ctx, home)
	if err != nil {
		return err
	}
	output := o.output
	if output == "" {
		if output, err = os.MkdirTemp("", "conformance"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				err = os.RemoveAll(output)
				return
			}
			err = fmt.Errorf("%w; the results are in %s", err, output)
		}()
	}
	all, file, flags := o.legsOf()
	path := filepath.Join(home, file)
	planned, got, err := all(ctx, s, output)
	if err != nil {
		return err
	}
	expected, err := readTable(path)
	if err != nil {
		return err
	}
	if o.update {
		expected.update(planned, got)
		if err := os.WriteFile(path, []byte(strings.Replace(expected.String(), "-update", flags, 1)), 0o644); err != nil {
			return err
		}
	}
	if problems := compare(expected, planned, got); len(problems) > 0 {
		say("\n%s", report(problems))
		return fmt.Errorf("%d problems in %d scenarios: %w", len(problems), len(planned), errUnexpected)
	}
	checks := 0
	for _, sc := range planned {
		checks += got[sc].success
	}
	say("%d scenarios gave what they must, %d checks succeeded (%.0fs)", len(planned), checks, time.Since(start).Seconds())
	return nil
}

// moduleDir finds the folder of the module, wherever in the workspace the
// program is started.
func moduleDir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("finding the module %s: %w; run this inside of the repository", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}

func readTable(path string) (table, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return make(table), nil // what is expected is told by -update
	}
	if err != nil {
		return nil, err
	}
	t, err := parseTable(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// say tells the person how far the run is.
func say(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) // closed: nothing is lost
}
