package chaos_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/chaos"
	"github.com/parley-mcp/parley/transport/stdio"
)

// shell runs a script behind a proxy whose client says nothing until the server has ended.
func shell(t *testing.T, o chaos.Options, script string) (out string, err error) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh")
	}
	end, client := &sink{}, newSilent()
	client.err = os.ErrClosed
	err = chaos.New(o).Run(t.Context(), chaos.Stream{In: client, Out: end}, stdio.Command("sh", "-c", script))
	return end.String(), err
}

// What a process wrote arrives, also long after it has ended.
func TestRunDelayed(t *testing.T) {
	t.Parallel()
	var once sync.Once
	lines := strings.Repeat("{}\n", 30000) // more than a buffer holds
	o := chaos.Options{Rates: chaos.Rates{chaos.Delay: 0.01}, Sleep: func(context.Context, time.Duration) error {
		once.Do(func() { <-time.After(3 * time.Second / 2) }) // longer than the end of a stream is waited for
		return nil
	}}
	out, err := shell(t, o, "yes '{}' | head -n 30000")
	if err != nil || out != lines {
		t.Errorf("%d bytes of %d, %v", len(out), len(lines), err)
	}
}

// A process that has ended is not waited for because another one has its output.
func TestRunInherited(t *testing.T) {
	t.Parallel()
	out, err := shell(t, chaos.Options{Rates: chaos.Rates{}}, "sleep 10 & echo '{}'")
	if err != nil || out != "{}\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// How a process ended is told if nobody asked for it, and how a start failed.
func TestRunErrors(t *testing.T) {
	t.Parallel()
	out, err := shell(t, chaos.Options{Rates: chaos.Rates{}}, "echo '{}'; exit 7")
	var ended *stdio.ExitError
	if !errors.As(err, &ended) || out != "{}\n" || err.Error() != `server process "sh" ended (exit status 7)` {
		t.Errorf("%q, %v", out, err)
	}
	err = chaos.New(chaos.Options{}).Run(t.Context(), chaos.Stream{In: newSilent(), Out: &sink{}}, stdio.Command("./none"))
	if err == nil || !strings.HasPrefix(err.Error(), `starting "./none": `) {
		t.Errorf("%v", err)
	}
}

// A server that does not end with its input is ended.
func TestRunStubborn(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh")
	}
	in := newSilent()
	said := &noted{told: in.close} // the client ends when the server has begun
	client := chaos.Stream{In: in, Out: &sink{}}
	server := stdio.Command("sh", "-c", "echo here >&2; exec sleep 1000")
	server.Stderr, server.Grace = said, stdio.Grace{Close: 1, Term: time.Minute}
	err := chaos.New(chaos.Options{}).Run(t.Context(), client, server)
	if err != nil || said.text.String() != "here\n" {
		t.Errorf("%v, %q", err, &said.text)
	}
}

// A noted text tells when something is written to it.
type noted struct {
	text bytes.Buffer
	told func()
}

// Write writes.
func (n *noted) Write(p []byte) (int, error) {
	defer n.told()
	return n.text.Write(p)
}
