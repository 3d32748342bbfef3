//go:build unix

package gogit

import (
	"os"
	"syscall"
)

// nonblock has a pipe opened without waiting for its other end.
const nonblock = syscall.O_NONBLOCK

// Foreign reports whether a folder belongs to another user than the one of this process and root. It is false
// on systems without such owners.
func Foreign(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid != 0 && int64(s.Uid) != int64(os.Geteuid())
}
