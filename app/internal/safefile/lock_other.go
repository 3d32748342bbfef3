//go:build !windows && (!unix || solaris || aix)

package safefile

import (
	"errors"
	"os"
)

// TryLock fails with errors.ErrUnsupported: this system has no lock.
func TryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
