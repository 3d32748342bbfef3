package safefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// suffix ends the names of temporary files.
const suffix = ".tmp"

// Replace replaces a file as a whole, or makes it, with the permissions mode: a reader, also after a
// crash, has the old content or the new. When it returns, the new content is on the disk. A process
// that is killed meanwhile may leave a temporary file: see RemoveTemporary.
func Replace(path string, data []byte, mode os.FileMode) error {
	return ReplaceIf(path, data, mode, func() error { return nil })
}

// partSize is the most that ReplaceIf writes between two calls of check.
const partSize = 1 << 20

// ReplaceIf is like Replace, but calls check again and again until the file is replaced. An error of check
// leaves the old file there and is returned.
func ReplaceIf(path string, data []byte, mode os.FileMode, check func() error) (err error) {
	// CreateTemp makes files for their owner alone.
	f, err := os.CreateTemp(filepath.Dir(path), prefix(path)+"*"+suffix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // what is half is nothing
		}
	}()
	for part := range slices.Chunk(data, partSize) {
		if err == nil {
			err = check()
		}
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err == nil && mode != 0o600 {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	if err := SyncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return nil
}

// ErrFolder is in an error of Replace that replaced the file and could not sync its folder: a failure of
// the machine can bring the old file back.
var ErrFolder = errors.New("the folder cannot be synced")

// prefix begins the names of temporary files of the file at path.
func prefix(path string) string { return "." + filepath.Base(path) + "." }

// RemoveTemporary removes what processes that were killed in Replace have left beside the file at path.
// Call it under the lock that each process holds when it replaces the file.
func RemoveTemporary(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	for _, name := range names {
		random, of := strings.CutPrefix(name, prefix(path))
		random, temporary := strings.CutSuffix(random, suffix)
		if of && temporary && random != "" && strings.Trim(random, "0123456789") == "" { // as CreateTemp names them
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(path), name)))
		}
	}
	return err
}
