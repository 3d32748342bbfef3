//go:build !windows && (!unix || solaris || aix)

package safefile

import (
	"errors"
	"os"
)

// tryLock has no lock to take: without one, secrets would be lost.
func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
