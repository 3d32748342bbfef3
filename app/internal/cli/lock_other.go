//go:build !unix && !windows

package cli

import "os"

// lockFile cannot lock here: the store finds out when two processes write to a session.
func lockFile(*os.File) error { return nil }
