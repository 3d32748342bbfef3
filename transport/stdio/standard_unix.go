//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package stdio

import (
	"errors"
	"os"
	"syscall"
)

// takeStandard works below os.Stdout, on the descriptors, so that code in
// other languages and processes that inherit them are kept off as well.
func takeStandard() (*standard, error) {
	in, err := duplicate(syscall.Stdin)
	if err != nil {
		return nil, err
	}
	out, err := duplicate(syscall.Stdout)
	if err != nil {
		_ = syscall.Close(in)
		return nil, err
	}
	if err := redirect(syscall.Stderr, syscall.Stdout); err != nil {
		return nil, errors.Join(err, syscall.Close(in), syscall.Close(out))
	}
	undoIn, undoOut := unblock(in, syscall.Stdin), unblock(out, syscall.Stdout)
	f := os.NewFile(uintptr(out), "/dev/stdout")
	return &standard{
		in:  interruptible(os.NewFile(uintptr(in), "/dev/stdin")),
		out: f,
		restore: func() error {
			err := redirect(out, syscall.Stdout)
			undoIn()
			undoOut()
			return errors.Join(err, f.Close())
		},
	}, nil
}

// duplicate returns another descriptor of the same stream, which children do
// not inherit.
func duplicate(fd int) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	twin, err := syscall.Dup(fd)
	if err == nil {
		syscall.CloseOnExec(twin)
	}
	return twin, err
}

// unblock lets the runtime wait for fd, if it is a pipe or socket, so that
// Close interrupts its user. The setting belongs to the stream, which others
// may have open: it is not made for terminals, nor for what standard error
// shares, and undo, which goes by the original descriptor, takes it back.
func unblock(fd, original int) (undo func()) {
	var st, log syscall.Stat_t
	if syscall.Fstat(fd, &st) != nil {
		return func() {}
	}
	kind := st.Mode & syscall.S_IFMT
	pipe := kind == syscall.S_IFIFO || kind == syscall.S_IFSOCK
	shared := syscall.Fstat(syscall.Stderr, &log) == nil && log.Dev == st.Dev && log.Ino == st.Ino
	if !pipe || shared || syscall.SetNonblock(fd, true) != nil {
		return func() {}
	}
	return func() { _ = syscall.SetNonblock(original, false) } // as processes expect to find it
}
