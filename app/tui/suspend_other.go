//go:build !unix

package tui

import "errors"

// suspend does nothing: programs are not stopped here.
func suspend() error { return errors.New("this system stops no programs") }
