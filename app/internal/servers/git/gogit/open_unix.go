//go:build unix

package gogit

import (
	"io/fs"
	"os"
	"syscall"
)

// nonblock has a pipe opened without waiting for its other end.
const nonblock = syscall.O_NONBLOCK

// foreign reports whether a file belongs to another user than the one of this process and root.
func foreign(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid != 0 && int64(s.Uid) != int64(os.Geteuid())
}
