package stdio

import (
	"context"
	"io"

	"github.com/parley-mcp/parley/internal/tap"
)

// A Process is a server process whose standard input and output are its holder's, as bytes: for
// programs that record what they pass on, or damage it. Read has one caller at a time, and so
// has Write; Close may come at any time, and unblocks both.
type Process struct{ child *child }

var _ io.ReadWriteCloser = (*Process)(nil)

// Start starts the process as [CommandDialer.Dial] does, without a connection. The holder closes it.
// The tap is shown the steps of the process and its standard error.
func (d *CommandDialer) Start() (*Process, error) {
	c, err := d.start(tap.Link(d.Tap))
	if err != nil {
		return nil, err
	}
	return &Process{c}, nil
}

// Read reads from the standard output of the process. At the end of that it sees the process to
// its end, which is an [*ExitError] if the process failed by itself; else io.EOF.
func (p *Process) Read(b []byte) (int, error) {
	n, err := p.child.in.r.Read(b)
	if n > 0 || err == nil || !over(err) {
		return n, err
	}
	asked := p.child.closing.Load()
	p.child.stop()
	<-p.child.done
	if asked || p.child.cmd.ProcessState == nil || p.child.cmd.ProcessState.Success() {
		return 0, io.EOF
	}
	return 0, &ExitError{Name: p.child.name, Status: p.child.status, Reason: p.child.stderr.reason()}
}

// Write writes to the standard input of the process.
func (p *Process) Write(b []byte) (int, error) { return p.child.pipes.out.Write(b) }

// End ends the standard input of the process, and the process within [Grace]. It does not wait:
// what the process still writes can be read to its end.
func (p *Process) End() {
	p.child.closing.Store(true)
	p.child.stop()
}

// Close ends the process within [Grace] and returns when it, and all that it started in its
// process group, is gone.
func (p *Process) Close() error { return p.Shutdown(context.Background()) }

// Shutdown is Close that becomes less polite at the end of ctx.
func (p *Process) Shutdown(ctx context.Context) error {
	p.End()
	stop := context.AfterFunc(ctx, p.child.skipGrace)
	defer stop()
	<-p.child.done
	closeAll(p.child.pipes.in)
	return nil
}
