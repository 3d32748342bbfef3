//go:build unix

package secrets

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner refuses what belongs to another user, or has one of the
// permissions in forbidden.
func checkOwner(path string, info fs.FileInfo, forbidden fs.FileMode) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", path)
	}
	if has := info.Mode().Perm(); has&forbidden != 0 {
		return fmt.Errorf("%s is open to other users (mode %04o); chmod it to %04o", path, has, has&^0o077)
	}
	return nil
}
