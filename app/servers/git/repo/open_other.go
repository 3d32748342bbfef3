//go:build !unix

package repo

// Nonblock has no meaning here.
const Nonblock = 0
