package dev

import (
	"io"

	"github.com/parley-mcp/parley/transport"
)

// NewRunner makes a Runner whose processes are what start connects to.
func NewRunner(start func() transport.Dialer, o *Options) *Runner {
	return newRunner(func(func(io.Writer) io.Writer) transport.Dialer { return start() }, o)
}

// Dialer connects to the current process, as the proxy that clients use does.
func Dialer(r *Runner) transport.Dialer { return (*dialer)(r) }
