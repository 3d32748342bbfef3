package tui_test

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/parley-mcp/parley/app/internal/chat/tui"
	"github.com/parley-mcp/parley/app/internal/ui"
)

// An input that fails, as that of a terminal whose window was closed, is a terminal that is gone.
func TestTerminalFails(t *testing.T) {
	t.Parallel()
	h, s := open(t)
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	in, far := os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "far")
	defer in.Close()
	if _, err := io.WriteString(in, "x"); err != nil {
		t.Fatal(err)
	}
	if err := far.Close(); err != nil { // with what it has not read: the other end is reset
		t.Fatal(err)
	}
	screen := tui.New(&tui.Options{In: in, Out: newTerminal(), Environ: []string{"TERM=xterm-256color"}})
	if err := screen.Run(t.Context(), ui.OfHost(h), ui.OfSession(s, nil)); !errors.Is(err, tui.ErrTerminal) {
		t.Errorf("error %v, want %v", err, tui.ErrTerminal)
	}
}
