package control_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/bench/control"
)

// role makes the test binary a child.
const role = "PARLEY_BENCH_ROLE"

func TestMain(m *testing.M) {
	if r := os.Getenv(role); r != "" {
		if err := play(r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var sink [][]byte

func play(r string) error {
	switch r {
	case "server":
		return control.Serve("127.0.0.1:1234", nil)
	case "runner":
		return control.Serve("", func(calls, concurrency int) error {
			if concurrency > 1 {
				return errors.New("one at a time")
			}
			for range calls {
				sink = append(sink, make([]byte, 1<<10))
			}
			return nil
		})
	case "echo":
		go func() { _, _ = io.Copy(os.Stdout, os.Stdin) }()
		return control.Serve("", nil)
	case "greedy":
		return control.Serve("", func(calls, _ int) error {
			b := make([]byte, calls)
			for i := range b {
				b[i] = 1
			}
			return nil
		})
	case "broken":
		return errors.New("it broke")
	case "deaf":
		_ = control.Serve("", nil)
		<-time.After(time.Hour)
		return nil
	}
	return errors.New("no such role")
}

func start(t *testing.T, r string, stdio bool) *control.Child {
	t.Helper()
	c, err := control.Start(t.Context(), program(r, stdio))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func program(r string, stdio bool) control.Program {
	return control.Program{Path: os.Args[0], Env: []string{role + "=" + r}, Stdio: stdio}
}

func TestStats(t *testing.T) {
	c := start(t, "server", false)
	if c.Addr != "127.0.0.1:1234" {
		t.Errorf("listens on %q", c.Addr)
	}
	first, err := c.Stats()
	if err != nil {
		t.Fatal(err)
	}
	for what, n := range map[string]int64{
		"mallocs": first.Mallocs, "bytes": first.TotalAlloc, "heap": first.Heap, "stack": first.Stack, "goroutines": first.Goroutines,
	} {
		if n <= 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
	second, err := c.Settled()
	if err != nil {
		t.Fatal(err)
	}
	if second.CPU < first.CPU || second.Mallocs <= first.Mallocs || second.TotalAlloc <= first.TotalAlloc {
		t.Errorf("%+v after %+v", second, first)
	}
}

func TestRun(t *testing.T) {
	c := start(t, "runner", false)
	ran, err := c.Run(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	if ran.Mallocs < 1000 || ran.Bytes < 1000<<10 || ran.Elapsed <= 0 {
		t.Errorf("%+v for 1000 times 1 KiB", ran)
	}
	if _, err := c.Run(1, 2); err == nil || !strings.Contains(err.Error(), "one at a time") {
		t.Errorf("the error of the child: %v", err)
	}
	if _, err := c.Stats(); err != nil {
		t.Errorf("after an error: %v", err)
	}
}

func TestRunnerMissing(t *testing.T) {
	if _, err := start(t, "server", false).Run(1, 1); err == nil {
		t.Error("a server ran calls")
	}
}

func TestStdio(t *testing.T) {
	c := start(t, "echo", true)
	if _, err := io.WriteString(c.In, "a line\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c.Out).ReadString('\n')
	if err != nil || line != "a line\n" {
		t.Errorf("%q, %v", line, err)
	}
}

func TestPeak(t *testing.T) {
	const more = 64 << 20
	c := start(t, "greedy", false)
	peak := func() int64 {
		t.Helper()
		n, err := c.PeakRSS()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := peak()
	if _, err := c.Run(more, 1); err != nil {
		t.Fatal(err)
	}
	during := peak()
	if during < before+more*9/10 {
		t.Errorf("peak %d after %d, with %d more", during, before, more)
	}
	if _, err := c.Settled(); err != nil {
		t.Fatal(err)
	}
	if err := c.ResetPeak(); err != nil {
		t.Fatal(err)
	}
	now, err := c.RSS()
	if err != nil {
		t.Fatal(err)
	}
	if after := peak(); after > during-more/2 || after < now/2 {
		t.Errorf("peak %d after the reset, was %d, now %d in use", after, during, now)
	}
}

func TestNoHello(t *testing.T) {
	_, err := control.Start(t.Context(), program("broken", false))
	if err == nil || !strings.Contains(err.Error(), "it broke") {
		t.Errorf("want what it said: %v", err)
	}
	if _, err := control.Start(t.Context(), control.Program{Path: "/nowhere"}); err == nil {
		t.Error("nothing was started without an error")
	}
}

func TestStartCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	// It waits for its input, and says nothing on the channel.
	_, err := control.Start(ctx, control.Program{Path: "/bin/cat", Stdio: true})
	if err == nil {
		t.Error("a program that says no hello was taken")
	}
}

func TestStopDeaf(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a child has to end")
	}
	c, err := control.Start(t.Context(), program("deaf", false))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("a child that does not end: %v", err)
	}
}
