package kit

import "golang.org/x/sys/unix"

// flushTerminal discards terminal input that has not been read yet.
func flushTerminal(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) } // no terminal: nothing to flush
