//go:build !unix

package gogit

// nonblock has no meaning here.
const nonblock = 0

// Foreign is always false here: folders have no such owner.
func Foreign(string) bool { return false }
