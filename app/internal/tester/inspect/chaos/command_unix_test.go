//go:build unix

package chaos_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/chaos"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport/stdio"
)

// What a command has started ends with it, however that ends: a process that heeds no signal, as one
// that a launcher of servers leaves behind.
func TestRunGrandchild(t *testing.T) {
	mcptest.NoLeaks(t)
	const begets = `exec 3> "$0"; (trap "" TERM; exec sleep 1000 >&-) & `
	for name, test := range map[string]struct {
		script string
		rates  chaos.Rates
		end    func(in *silent, cancel context.CancelCauseFunc) // what ends it, if it is not the server
		want   error
	}{
		"the client ends":       {begets + "exec sleep 1000", chaos.Rates{}, func(in *silent, _ context.CancelCauseFunc) { in.close() }, nil},
		"the program ends":      {begets + "exec sleep 1000", chaos.Rates{}, func(_ *silent, cancel context.CancelCauseFunc) { cancel(errOver) }, errOver},
		"a fault ends it":       {begets + "echo '{}'; exec sleep 1000", chaos.Rates{chaos.Drop: 1}, nil, chaos.ErrDropped},
		"the server ends, well": {begets + "echo '{}'", chaos.Rates{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			server := stdio.Command("sh", "-c", test.script, fifo)
			server.Grace = stdio.Grace{Close: 1, Term: 1}
			in, over := newSilent(), make(chan error, 1)
			go func() {
				over <- chaos.New(chaos.Options{Rates: test.rates}).Run(ctx, chaos.Stream{In: in, Out: &sink{}}, server)
			}()
			alive, err := os.Open(fifo) // waits for the server
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = alive.Close() }()
			if test.end != nil {
				test.end(in, cancel)
			}
			if err := <-over; !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if err := alive.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			if n, err := alive.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("what the server started is left: %d bytes, %v", n, err)
			}
		})
	}
}

// errOver is why a program ends.
var errOver = errors.New("it is over")
