//go:build !unix

package repo

import "io/fs"

// Nonblock has no meaning here.
const Nonblock = 0

// foreign is always false here: files have no such owner.
func foreign(fs.FileInfo) bool { return false }
