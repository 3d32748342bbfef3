//go:build !unix

package gogit

import "io/fs"

// nonblock has no meaning here.
const nonblock = 0

// foreign is always false here: files have no such owner.
func foreign(fs.FileInfo) bool { return false }
