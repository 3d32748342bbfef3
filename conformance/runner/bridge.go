package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// The legs with parley bridge in front of the fixture server, which is its child process: it
// speaks the newest revision to it, and the last one with a handshake.
const (
	legBridge          = "bridge"
	legBridgeHandshake = "bridge-handshake"
)

// bridgeProgram is the program with the command bridge.
const bridgeProgram = "github.com/parley-mcp/parley/app/cmd/parley"

// bridgeAt is where the bridge says that it can be reached.
var bridgeAt = regexp.MustCompile(`at (http://\S+); Ctrl-C`)

// runBridges runs the sets of scenarios for servers through the bridge. It returns the scenarios
// that were to run and what those gave that did.
func runBridges(ctx context.Context, s *suite, output string) ([]scenario, map[scenario]*result, error) {
	var planned []scenario
	for _, revision := range revisions {
		list, err := s.list(ctx, revision, "--requirements", revision)
		if err != nil {
			return nil, nil, err
		}
		planned = append(planned, list...)
	}
	bin := filepath.Join(output, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return nil, nil, err
	}
	build := command(ctx, "go", "build", "-o", bin+string(filepath.Separator), module+"/server", bridgeProgram)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("building the fixture and the bridge: %w\n%s", err, out)
	}
	got, err := together(
		func(got map[scenario]*result) error {
			return runBridge(ctx, s, bin, legBridge, revisions[1], output, got)
		},
		func(got map[scenario]*result) error {
			return runBridge(ctx, s, bin, legBridgeHandshake, revisions[0], output, got)
		})
	return proxied(planned, legBridge, legBridgeHandshake), got, err
}

// runBridge runs all sets through a bridge that speaks one revision to the fixture. All callers are
// one, which the suite is, as in the legs of the proxy.
func runBridge(ctx context.Context, s *suite, bin, leg, revision, output string, got map[scenario]*result) (err error) {
	log, err := os.Create(filepath.Join(output, leg+".log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	program := filepath.Join(bin, filepath.Base(bridgeProgram))
	start := func() (string, func() error, error) {
		return startTelling(ctx, log, bridgeAt, program, "bridge", "--http", "127.0.0.1:0", "--single-user", "--max-connections", "200",
			"--protocol", revision, "--", filepath.Join(bin, "server"), "--stdio")
	}
	return withStarted(program, start, func(url string) error {
		return runSets(ctx, s, url, leg, output, got)
	})
}

// startTelling starts a program that tells on standard error where it listens, at the first group of
// a pattern. What it says goes to log.
func startTelling(ctx context.Context, log io.Writer, at *regexp.Regexp, program string, args ...string) (url string, stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	c := command(ctx, program, args...)
	c.Stdout = log
	said, err := c.StderrPipe()
	if err != nil {
		cancel()
		return "", nil, err
	}
	lines := bufio.NewReader(io.TeeReader(said, log))
	url, stop, err = started(c, cancel, lines, func(line string) string {
		if m := at.FindStringSubmatch(line); m != nil {
			return m[1]
		}
		return ""
	})
	if err == nil {
		go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the program
	}
	return url, stop, err
}
