//go:build unix

package tui

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	tea "charm.land/bubbletea/v2"
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
	// A child that is stopped between fork and exec would never let go of the thread that waits for it in the
	// kernel (vfork), and with it not this process: the shell would not see it stop. So no child is started now.
	syscall.ForkLock.RLock()
	err = syscall.Kill(0, syscall.SIGTSTP)
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	<-goesOn
	return nil
}

// whenContinued has the screen left and shown again when the program goes on after something
// else than Ctrl-Z has stopped it, until end is called: the terminal is then as the shell wants
// it. (A signal that stops cannot be left to the system any more once it was asked for.)
func whenContinued(send func(tea.Msg)) (end func()) {
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGCONT)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-signals:
			send(outsideMsg{func() tea.Msg { return suspendedMsg{} }})
		case <-over:
		}
	})
	return func() {
		signal.Stop(signals)
		close(over)
		waiting.Wait()
	}
}
