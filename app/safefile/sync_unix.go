//go:build unix

package safefile

import (
	"errors"
	"os"
)

// syncFolder makes what was renamed in a folder last.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
