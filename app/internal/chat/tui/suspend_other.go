//go:build !unix

package tui

import (
	"errors"

	tea "charm.land/bubbletea/v2"
)

// suspend does nothing: programs are not stopped here.
func suspend() error { return errors.New("this system stops no programs") }

// whenContinued does nothing.
func whenContinued(func(tea.Msg)) (end func()) { return func() {} }
