package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// startTime is how long the fixture server may take until it listens.
const startTime = 20 * time.Second

// runAll runs both legs for every revision. It returns the scenarios that were
// to run and what those gave that did.
func runAll(ctx context.Context, s *suite, output string) ([]scenario, map[scenario]*result, error) {
	var planned []scenario
	for _, revision := range revisions {
		list, err := s.list(ctx, revision)
		if err != nil {
			return nil, nil, err
		}
		planned = append(planned, list...)
	}
	bin := filepath.Join(output, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return nil, nil, err
	}
	build := command(ctx, "go", "build", "-o", bin+string(filepath.Separator), module+"/server", module+"/client")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("building the fixtures: %w\n%s", err, out)
	}
	got := make(map[scenario]*result)
	err := errors.Join(
		runServer(ctx, s, filepath.Join(bin, "server"), output, got),
		runClient(ctx, s, filepath.Join(bin, "client"), output, planned, got))
	return planned, got, err
}

// runServer starts the fixture server and runs the scenarios for servers
// against it, all revisions against one process.
func runServer(ctx context.Context, s *suite, program, output string, got map[scenario]*result) (err error) {
	log, err := os.Create(filepath.Join(output, "server.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	url, stop, err := startServer(ctx, program, log)
	if err != nil {
		return fmt.Errorf("starting the fixture server: %w", err)
	}
	defer func() {
		if stopErr := stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("the fixture server ended badly: %w", stopErr))
		}
	}()
	for _, revision := range revisions {
		dir := filepath.Join(output, legServer+"-"+revision)
		say("%s %s", legServer, revision)
		// The status counts scored scenarios alone; the results say it all.
		if _, err := s.run(ctx, dir, "server", "--url", url, "--requirements", revision); err != nil {
			return fmt.Errorf("server scenarios of %s: %w", revision, err)
		}
		results, err := readResults(dir, legServer)
		if err != nil {
			return err
		}
		for name, r := range results {
			got[scenario{leg: legServer, revision: revision, name: name}] = r
		}
	}
	return nil
}

// startServer starts the fixture on a free port and returns its URL, and a
// function that ends it and waits.
func startServer(ctx context.Context, program string, log io.Writer) (url string, stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	c := command(ctx, program, "--http", "127.0.0.1:0")
	c.Stderr = log
	out, err := c.StdoutPipe()
	if err != nil {
		cancel()
		return "", nil, err
	}
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
	line, err := bufio.NewReader(out).ReadString('\n')
	if !late.Stop() || err != nil {
		return "", nil, errors.Join(errors.New("it did not say where it listens"), stop())
	}
	return strings.TrimSpace(line), stop, nil
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
		status, err := s.run(ctx, dir, "client", "--command", program, "--scenario", sc.name, "--spec-version", sc.revision)
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
