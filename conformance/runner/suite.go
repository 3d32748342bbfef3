package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// installTime and runTime bound the installation and each run of the suite. None of these times comes
	// near its bound, on a busy machine either: they end what hangs.
	installTime = 15 * time.Minute
	runTime     = 15 * time.Minute
	// timeout is how long one scenario may take, in milliseconds.
	timeout = "120000"
	// endTime is how long a process gets to end once it is told to.
	endTime = time.Minute
	// leastNode is the least major version of Node.js that the suite runs on.
	leastNode = 22
)

// suite is the installed suite.
type suite struct {
	// node is Node.js, script the suite, old an older version of it.
	node, script, old string
}

// oldScenarios are those of the older version that ask for more than the newer
// one does.
var oldScenarios = []scenario{
	// Requests of a session in several supported revisions.
	{leg: legOldServer, revision: "2025-11-25", name: "server-sse-multiple-streams"},
}

// install makes .suite below home hold what suite/package-lock.json says. No
// script of a package is run, and what is there already is kept.
func install(ctx context.Context, home string) (*suite, error) {
	from, to := filepath.Join(home, "suite"), filepath.Join(home, ".suite")
	modules := filepath.Join(to, "node_modules")
	lock, err := os.ReadFile(filepath.Join(from, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	// installed is written last, so that a half installation is none.
	installed := filepath.Join(to, "installed.json")
	if old, err := os.ReadFile(installed); err != nil || !bytes.Equal(old, lock) {
		manifest, err := os.ReadFile(filepath.Join(from, "package.json"))
		if err != nil {
			return nil, err
		}
		err = errors.Join(os.MkdirAll(to, 0o755),
			os.WriteFile(filepath.Join(to, "package.json"), manifest, 0o644),
			os.WriteFile(filepath.Join(to, "package-lock.json"), lock, 0o644))
		if err != nil {
			return nil, err
		}
		say("installing the suite")
		ctx, cancel := context.WithTimeout(ctx, installTime)
		defer cancel()
		npm := command(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
		npm.Dir = to
		if out, err := npm.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("installing the suite with npm: %w\n%s", err, out)
		}
		if err := os.WriteFile(installed, lock, 0o644); err != nil {
			return nil, err
		}
	}
	node, err := findNode(ctx, modules)
	if err != nil {
		return nil, err
	}
	return &suite{
		node:   node,
		script: filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js"),
		old:    filepath.Join(modules, "conformance-old", "dist", "index.js"),
	}, nil
}

// findNode takes the pinned Node.js, or where none is pinned for the platform
// the one of the machine, if it is new enough.
func findNode(ctx context.Context, modules string) (string, error) {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	pinned := filepath.Join(modules, "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(pinned); err == nil {
		return pinned, nil
	}
	out, err := command(ctx, "node", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("no Node.js is pinned for %s/%s, and the machine's does not run: %w", runtime.GOOS, runtime.GOARCH, err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < leastNode {
		return "", fmt.Errorf("the suite needs Node.js %d or later; the machine has %s", leastNode, bytes.TrimSpace(out))
	}
	return "node", nil
}

// command makes a command that is asked to end with ctx, and made to soon after.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = endTime
	return c
}

// list returns the scenarios that the suite lists for a revision; which ones
// the flags say.
func (s *suite) list(ctx context.Context, revision string, flags ...string) ([]scenario, error) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	out, err := command(ctx, s.node, append([]string{s.script, "list"}, flags...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the scenarios of %s: %w", revision, err)
	}
	return parseList(bytes.NewReader(out), revision)
}

// plan returns all scenarios that are run: those of the sets of each revision,
// those of authorization that only a revision without a set has, those for
// authorization servers, which are in no set, and those of the older version.
func (s *suite) plan(ctx context.Context) ([]scenario, error) {
	old, err := s.list(ctx, oldestRevision, "--client", "--spec-version", oldestRevision)
	if err != nil {
		return nil, err
	}
	planned := slices.DeleteFunc(old, func(sc scenario) bool { return !sc.authorization() })
	for _, revision := range revisions {
		list, err := s.list(ctx, revision, "--requirements", revision)
		if err != nil {
			return nil, err
		}
		planned = append(planned, list...)
	}
	newest := revisions[len(revisions)-1]
	list, err := s.list(ctx, newest, "--authorization", "--spec-version", newest)
	if err != nil {
		return nil, err
	}
	all, err := s.list(ctx, newest)
	return slices.Concat(planned, proxied(planned, legProxy, legProxyHandshake), extensionScenarios(all), list, oldScenarios), err
}

// extensionScenarios are those of extensions, which are in no set. Those for clients are run
// with a handshake too. A proxy does not pass extensions on.
func extensionScenarios(all []scenario) []scenario {
	var out []scenario
	for _, sc := range all {
		if !sc.extension() {
			continue
		}
		out = append(out, sc)
		if sc.leg == legClient {
			out = append(out, scenario{leg: sc.leg, revision: revisions[0], name: sc.name})
		}
	}
	return out
}

// askedInOrder are scenarios of the newest revision that a proxy of a server with a
// handshake cannot pass, and why: such a server's questions have no keys, and a
// handler that asks three things one after another asks them one at a time.
var askedInOrder = []string{
	"input-required-result-basic-elicitation",       // wants the question under the key that the handler chose
	"input-required-result-multiple-input-requests", // wants three questions in one round
	"input-required-result-ignore-extra-params",     // answers under the key that the handler chose
}

// proxied are the scenarios for servers among those that are planned, once more for
// each proxy: one that speaks the newest revision to the server, and one with a handshake.
func proxied(planned []scenario, newest, handshake string) []scenario {
	var out []scenario
	for _, leg := range []string{newest, handshake} {
		for _, sc := range planned {
			if sc.leg == legServer && (leg == newest || !slices.Contains(askedInOrder, sc.name)) {
				out = append(out, scenario{leg: leg, revision: sc.revision, name: sc.name})
			}
		}
	}
	return out
}

// run runs the suite with its results in dir, and what it says in a file
// there, and for listener, unless that is nil. It returns the status with which
// the suite ended: what went wrong is to be found in the results.
func (s *suite) run(ctx context.Context, dir string, listener io.Writer, args ...string) (status int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, runTime, fmt.Errorf("it may take %v", runTime))
	defer cancel()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	log, err := os.Create(filepath.Join(dir, "suite.log"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	c := command(ctx, s.node, slices.Concat([]string{s.script}, args, []string{"-o", dir})...)
	// A writer that is no file, so that a process that the suite leaves behind
	// does not hold up Wait.
	c.Stdout = io.MultiWriter(log)
	if listener != nil {
		c.Stdout = io.MultiWriter(log, listener)
	}
	c.Stderr = c.Stdout
	err = c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("the suite was stopped: %w", context.Cause(ctx))
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode(), nil
	case err != nil:
		return 0, fmt.Errorf("running the suite: %w", err)
	}
	return 0, nil
}
