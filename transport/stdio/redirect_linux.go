package stdio

import "syscall"

// redirect makes to another descriptor of the stream that from is.
func redirect(from, to int) error { return syscall.Dup3(from, to, 0) }
