package kit

import "golang.org/x/sys/unix"

// flushTerminal throws away what was typed at a terminal and not read yet.
func flushTerminal(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) } // no terminal: nothing to flush
