package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// startTime is how long the fixture server may take until it listens.
const startTime = 2 * time.Minute

// runAll runs all legs for every revision. It returns the scenarios that were
// to run and what those gave that did.
func runAll(ctx context.Context, s *suite, output string) ([]scenario, map[scenario]*result, error) {
	planned, err := s.plan(ctx)
	if err != nil {
		return nil, nil, err
	}
	bin := filepath.Join(output, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return nil, nil, err
	}
	build := command(ctx, "go", "build", "-o", bin+string(filepath.Separator), module+"/server", module+"/client", module+"/issuer")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("building the fixtures: %w\n%s", err, out)
	}
	server := filepath.Join(bin, "server")
	got, err := together(
		func(got map[scenario]*result) error { // one after the other: their folders lie in one
			return errors.Join(runServer(ctx, s, server, legServer, nil, output, got), runExtensions(ctx, s, server, output, planned, got))
		},
		func(got map[scenario]*result) error {
			return runServer(ctx, s, server, legProxy, []string{"--proxy", revisions[1]}, output, got)
		},
		func(got map[scenario]*result) error {
			return runServer(ctx, s, server, legProxyHandshake, []string{"--proxy", revisions[0]}, output, got)
		},
		func(got map[scenario]*result) error {
			return runClient(ctx, s, filepath.Join(bin, "client"), output, planned, got)
		},
		func(got map[scenario]*result) error { return runOldServer(ctx, s, server, output, got) })
	// The suite is told a port for this one, which another leg could take before it does.
	return planned, got, errors.Join(err, runIssuer(ctx, s, filepath.Join(bin, "issuer"), output, got))
}

// together runs legs at once, since scenarios wait most of their time, and returns what all of them
// gave.
func together(legs ...func(got map[scenario]*result) error) (map[scenario]*result, error) {
	results, errs := make([]map[scenario]*result, len(legs)), make([]error, len(legs))
	var group sync.WaitGroup
	for i, leg := range legs {
		results[i] = make(map[scenario]*result)
		group.Go(func() { errs[i] = leg(results[i]) })
	}
	group.Wait()
	all := make(map[scenario]*result)
	for _, got := range results {
		maps.Copy(all, got)
	}
	return all, errors.Join(errs...)
}

// runServer starts the fixture server, or a proxy of it, and runs the scenarios for
// servers against it, all revisions against one process.
func runServer(ctx context.Context, s *suite, program, leg string, args []string, output string, got map[scenario]*result) error {
	return withServer(ctx, program, args, filepath.Join(output, leg+".log"), func(url string) error {
		return runSets(ctx, s, url, leg, output, got)
	})
}

// runSets runs the scenarios for servers of each revision against a URL.
func runSets(ctx context.Context, s *suite, url, leg, output string, got map[scenario]*result) error {
	for _, revision := range revisions {
		dir := filepath.Join(output, leg+"-"+revision)
		say("%s %s", leg, revision)
		// The status counts scored scenarios alone; the results say it all.
		if _, err := s.run(ctx, dir, nil, "server", "--url", url, "--requirements", revision, "--timeout", timeout); err != nil {
			return fmt.Errorf("server scenarios of %s: %w", revision, err)
		}
		results, err := readResults(dir, legServer)
		if err != nil {
			return err
		}
		for name, r := range results {
			got[scenario{leg: leg, revision: revision, name: name}] = r
		}
	}
	return nil
}

// runExtensions runs the scenarios for servers of extensions, one at a time.
func runExtensions(ctx context.Context, s *suite, program, output string, planned []scenario, got map[scenario]*result) error {
	return withServer(ctx, program, nil, filepath.Join(output, "extensions.log"), func(url string) error {
		for _, sc := range planned {
			if sc.leg != legServer || !sc.extension() {
				continue
			}
			say("%s", sc)
			dir := filepath.Join(output, sc.leg+"-"+sc.revision, sc.name)
			// Extensions belong to no revision: without --force they would be skipped.
			if _, err := s.run(ctx, dir, nil, "server", "--url", url, "--scenario", sc.name,
				"--spec-version", sc.revision, "--force", "--timeout", timeout); err != nil {
				return fmt.Errorf("%s: %w", sc, err)
			}
			if err := collect(dir, legServer, sc.revision, got); err != nil {
				return err
			}
		}
		return nil
	})
}

// runOldServer runs the scenarios of the older version of the suite against the
// fixture server.
func runOldServer(ctx context.Context, s *suite, program, output string, got map[scenario]*result) error {
	old := &suite{node: s.node, script: s.old}
	return withServer(ctx, program, nil, filepath.Join(output, "old-server.log"), func(url string) error {
		for _, sc := range oldScenarios {
			say("%s", sc)
			dir := filepath.Join(output, sc.leg, sc.name)
			if _, err := old.run(ctx, dir, nil, "server", "--url", url, "--scenario", sc.name); err != nil {
				return fmt.Errorf("%s: %w", sc, err)
			}
			results, err := readResults(dir, legServer)
			if err != nil {
				return err
			}
			if r := results[sc.name]; r != nil {
				got[sc] = r
			}
		}
		return nil
	})
}

// collect adds the results in a folder, those of one leg and revision, to what
// was got.
func collect(dir, leg, revision string, got map[scenario]*result) error {
	results, err := readResults(dir, leg)
	if err != nil {
		return err
	}
	for name, r := range results {
		got[scenario{leg: leg, revision: revision, name: name}] = r
	}
	return nil
}

// withServer starts a fixture, does something with its URL, and ends it.
func withServer(ctx context.Context, program string, args []string, logFile string, do func(url string) error) (err error) {
	log, err := os.Create(logFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return withStarted(program, func() (string, func() error, error) { return startServer(ctx, program, args, log) }, do)
}

// withStarted starts a program, does something with its URL, and ends it.
func withStarted(program string, start func() (url string, stop func() error, err error), do func(url string) error) (err error) {
	name := filepath.Base(program)
	url, stop, err := start()
	if err != nil {
		return fmt.Errorf("starting the fixture %s: %w", name, err)
	}
	defer func() {
		if stopErr := stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("the fixture %s ended badly: %w", name, stopErr))
		}
	}()
	return do(url)
}

// startServer starts the fixture on a free port and returns its URL, and a
// function that ends it and waits.
func startServer(ctx context.Context, program string, args []string, log io.Writer) (url string, stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	c := command(ctx, program, append([]string{"--http", "127.0.0.1:0"}, args...)...)
	c.Stderr = log
	out, err := c.StdoutPipe()
	if err != nil {
		cancel()
		return "", nil, err
	}
	return started(c, cancel, bufio.NewReader(out), strings.TrimSpace)
}

// started starts a program whose output says where it listens: find finds the URL in a line, or
// returns "". cancel tells the program to end.
func started(c *exec.Cmd, cancel context.CancelFunc, out *bufio.Reader, find func(line string) string) (url string, stop func() error, err error) {
	if err := c.Start(); err != nil {
		cancel()
		return "", nil, err
	}
	stop = func() error {
		cancel()
		err := c.Wait()
		if c.ProcessState != nil && c.ProcessState.Success() {
			return nil // it was told to end, and did
		}
		return err
	}
	// A server that says nothing is ended, which ends the reading too.
	late := time.AfterFunc(startTime, cancel)
	for url == "" && err == nil {
		var line string
		line, err = out.ReadString('\n')
		url = find(line)
	}
	if !late.Stop() || err != nil {
		return "", nil, errors.Join(errors.New("it did not say where it listens"), stop())
	}
	return url, stop, nil
}

// runClient runs the scenarios for clients, one at a time: so the suite minds
// the status of the fixture too.
func runClient(ctx context.Context, s *suite, program, output string, planned []scenario, got map[scenario]*result) error {
	for _, sc := range planned {
		if sc.leg != legClient {
			continue
		}
		dir := filepath.Join(output, legClient+"-"+sc.revision, sc.name)
		say("%s", sc)
		// Extensions belong to no revision: without --force they would be skipped.
		status, err := s.run(ctx, dir, nil, "client", "--command", program, "--scenario", sc.name,
			"--spec-version", sc.revision, "--force", "--timeout", timeout)
		if err != nil {
			return fmt.Errorf("%s: %w", sc, err)
		}
		results, err := readResults(dir, legClient)
		if err != nil {
			return err
		}
		r := results[sc.name]
		if r == nil {
			continue // the comparison tells
		}
		if status != 0 && r.failure+r.warning == 0 {
			r.failure++
			r.complaints = append(r.complaints, "failed: the fixture client ended with an error; see suite.log in "+dir)
		}
		got[sc] = r
	}
	return nil
}
