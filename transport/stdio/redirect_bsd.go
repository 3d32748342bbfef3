//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package stdio

import "syscall"

// redirect makes to another descriptor of the stream that from is.
func redirect(from, to int) error { return syscall.Dup2(from, to) }
