package dev

import (
	"io"

	"github.com/parley-mcp/parley/transport"
)

// NewRunner makes a Runner whose processes are what start connects to.
func NewRunner(start func() transport.Dialer, o *Options) *Runner {
	return newRunner(func(func(io.Writer) io.Writer) transport.Dialer { return start() }, o)
}
