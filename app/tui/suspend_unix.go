//go:build unix

package tui

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// errNoShell says that the program cannot be stopped.
var errNoShell = errors.New("there is no shell to go back to")

// suspend stops the program and its servers until the shell has them go on. Without a shell
// of the same session nobody could, and the system does not stop them.
func suspend() error {
	own, err := unix.Getsid(0)
	if err != nil {
		return err
	}
	if shell, err := unix.Getsid(os.Getppid()); err != nil || shell != own {
		return errNoShell
	}
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return err
	}
	<-goesOn
	return nil
}
