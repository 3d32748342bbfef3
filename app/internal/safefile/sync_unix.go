//go:build unix

package safefile

import (
	"errors"
	"os"
)

// SyncFolder makes what was made, renamed and removed in a folder last: it is on the disk.
func SyncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
