package kit

import "golang.org/x/sys/windows"

// flushTerminal throws away what was typed at a terminal and not read yet.
func flushTerminal(fd int) { _ = windows.FlushConsoleInputBuffer(windows.Handle(fd)) } // no console: nothing to flush
