//go:build !unix

package tasks_test

import (
	"errors"
	"os"
)

// lock is for the tests of server processes, which are skipped.
func lock(*os.File) error { return errors.ErrUnsupported }
