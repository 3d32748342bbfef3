package audit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/audit"
	"github.com/parley-mcp/parley/app/internal/racetest"
)

const (
	// logEnv tells the test binary to append to the log at a path until it is killed, and to print the
	// name of each entry once it was acknowledged.
	logEnv = "PARLEY_TEST_AUDIT"
	// stepEnv is the step at which that process kills itself, as "NAME:TIMES"; default: it does not.
	stepEnv = "PARLEY_TEST_AUDIT_STEP"
	// keepEnv is how many renamed files it keeps.
	keepEnv = "PARLEY_TEST_AUDIT_KEEP"
	// killsEnv is how many processes are killed at any moment; default 20.
	killsEnv = "PARLEY_TEST_KILLS"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(logEnv); path != "" {
		fmt.Fprintln(os.Stderr, appendForever(path))
		os.Exit(1) // it was to be killed
	}
	os.Exit(m.Run())
}

func appendForever(path string) error {
	keep, err := strconv.Atoi(os.Getenv(keepEnv))
	if err != nil {
		return err
	}
	log := audit.New(path, &audit.Options{MaxSize: maxSize, Keep: keep})
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	step, text, _ := strings.Cut(os.Getenv(stepEnv), ":")
	if step != "" {
		times, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		log.OnStep(func(name string) {
			if name == step {
				times--
			}
			if times == 0 {
				_ = self.Kill() // an error would end the test
				select {}
			}
		})
	}
	for i := 0; ; i++ {
		name := fmt.Sprintf("%d-%d", os.Getpid(), i)
		if err := log.Append(context.Background(), entry{name + strings.Repeat(" ", 100+rand.N(200))}); err != nil {
			return err
		}
		fmt.Println(name)
	}
}

// killed runs a process that appends to a log until it kills itself at a step, or, with none, is killed
// after it has acknowledged so many entries; it returns these.
func killed(t *testing.T, path, step string, keep, after int) (acknowledged []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), logEnv+"="+path, stepEnv+"="+step, keepEnv+"="+strconv.Itoa(keep), "GORACE=atexit_sleep_ms=0")
	said := new(strings.Builder)
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		acknowledged = append(acknowledged, lines.Text())
		if step == "" && len(acknowledged) == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	_, _ = io.Copy(io.Discard, out) // a line that was cut off was not acknowledged
	_ = cmd.Wait()                  // it was killed
	if cmd.ProcessState.Exited() {
		t.Errorf("it was not killed: %s", said)
	}
	return acknowledged
}

// look verifies a log, and finds every entry that was acknowledged, once.
func look(t *testing.T, path string, acknowledged []string) {
	t.Helper()
	if _, err := audit.Verify(t.Context(), path, nil); err != nil && !strings.Contains(err.Error(), "is incomplete") {
		t.Errorf("after a kill: %v", err)
	}
	if err := audit.New(path, nil).Append(t.Context(), entry{"after"}); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Verify(t.Context(), path, nil); err != nil {
		t.Errorf("after a kill and a line: %v", err)
	}
	times := make(map[string]int)
	if _, err := audit.Query(t.Context(), path, &audit.Filter{}, func(_ []byte, l *audit.Line) error {
		times[strings.TrimSpace(l.Event)]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range acknowledged {
		if times[name] != 1 {
			t.Errorf("entry %s is there %d times", name, times[name])
		}
	}
}

// A process is killed at each step of an append, also of one that renames and removes files. No entry
// that it acknowledged is lost, and the chain is whole.
func TestKilledAtSteps(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"opened", "written", "synced", "renamed", "removed"} {
		for keep := range 2 {
			if step == "removed" && keep == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s, keeps %d", step, keep), func(t *testing.T) {
				t.Parallel()
				path := newPath(t)
				for round := range 4 {
					acknowledged := killed(t, path, step+":"+strconv.Itoa(round+1), keep, 0)
					if keep > 0 {
						acknowledged = nil // some of them are removed
					}
					look(t, path, acknowledged)
				}
			})
		}
	}
}

// Two processes append at once and are killed, again and again, at any moment. PARLEY_TEST_KILLS is how
// often; default 20.
func TestKilled(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	kills := 20
	if n, err := strconv.Atoi(os.Getenv(killsEnv)); err == nil {
		kills = n
	}
	for keep := range 2 {
		t.Run(fmt.Sprintf("keeps %d", keep), func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			other := make(chan []string, 1)
			for range kills / 2 {
				go func() { other <- killed(t, path, "", keep, 1+rand.N(10)) }()
				acknowledged := append(killed(t, path, "", keep, 1+rand.N(10)), <-other...)
				if keep > 0 {
					acknowledged = nil
				}
				look(t, path, acknowledged)
			}
		})
	}
}
