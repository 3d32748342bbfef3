//go:build unix

package repo

import "syscall"

// Nonblock has a pipe opened without waiting for its other end.
const Nonblock = syscall.O_NONBLOCK
