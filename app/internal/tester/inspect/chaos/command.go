package chaos

import (
	"context"
	"errors"
	"io"

	"github.com/parley-mcp/parley/transport/stdio"
)

// Run starts a server and passes lines between it and a client, as [Proxy.Pipe] does. When it returns
// the process has ended, with all that it started in its process group. The error is an
// [*stdio.ExitError] if the process ended by itself and failed.
func (p *Proxy) Run(ctx context.Context, client Stream, server *stdio.CommandDialer) error {
	process, err := server.Start()
	if err != nil {
		return err
	}
	out := &processOutput{Process: process}
	if err := p.Pipe(ctx, client, Stream{In: out, Out: processInput{process}}); err != nil {
		return err
	}
	if out.failed != nil {
		return out.failed
	}
	return nil
}

// A processOutput is the standard output of a process. Its end is that of the process, however that
// was; closing it ends the process.
type processOutput struct {
	*stdio.Process

	failed *stdio.ExitError // how the process ended by itself, if it failed
}

// Read reads.
func (o *processOutput) Read(p []byte) (int, error) {
	n, err := o.Process.Read(p)
	if errors.As(err, &o.failed) {
		err = io.EOF
	}
	return n, err
}

// A processInput is the standard input of a process, which is to end when it is closed.
type processInput struct{ *stdio.Process }

// Close closes the input. It does not wait.
func (i processInput) Close() error {
	i.End()
	return nil
}
