package kit

import "golang.org/x/sys/windows"

// flushTerminal discards terminal input that has not been read yet.
func flushTerminal(fd int) { _ = windows.FlushConsoleInputBuffer(windows.Handle(fd)) } // no console: nothing to flush
