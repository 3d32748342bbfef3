package kit

import "golang.org/x/sys/unix"

// flushTerminal throws away what was typed at a terminal and not read yet.
func flushTerminal(fd int) {
	const read = 1                                        // FREAD
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, read) // no terminal: nothing to flush
}
