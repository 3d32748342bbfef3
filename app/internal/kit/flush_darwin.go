package kit

import "golang.org/x/sys/unix"

// flushTerminal discards terminal input that has not been read yet.
func flushTerminal(fd int) {
	const read = 1                                        // FREAD
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, read) // no terminal: nothing to flush
}
