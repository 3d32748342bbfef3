//go:build !linux && !darwin && !windows

package kit

// flushTerminal does nothing on this platform.
func flushTerminal(int) {}
