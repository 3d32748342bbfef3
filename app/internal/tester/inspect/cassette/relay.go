package cassette

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Process is a server as a stream of bytes, such as a *stdio.Process.
type Process interface {
	io.Reader
	io.Writer
	// End ends what the server reads, and the server in its time, so that Read comes to an end.
	End()
	// Shutdown is End that waits until nothing of the server is left.
	Shutdown(ctx context.Context) error
}

// Relay passes bytes between a client and a server, line by line and as they are, and records
// each line. It returns when the server has ended: by itself, because the client ended its
// input, or at the end of ctx. It closes both. Close of the client's stream must unblock Read.
func (r *Recorder) Relay(ctx context.Context, client io.ReadWriteCloser, server Process) error {
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close() // unblocks both directions
		server.End()
	})
	defer stop()
	input := make(chan struct{})
	go func() { // ends with the client's input, which is closed below
		defer close(input)
		if r.pass(Client, client, server) != nil { // the server reads no more, or the client is gone
			_, _ = io.Copy(io.Discard, client) // the server may still say something, and how it ends
		}
		server.End()
	}()
	err := r.pass(Server, server, client)
	shut := server.Shutdown(ctx)
	closeErr := client.Close()
	<-input
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	return errors.Join(shut, closeErr)
}

// pass copies one direction.
func (r *Recorder) pass(from string, in io.Reader, out io.Writer) error {
	b := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := longLine(b)
		if len(line) > 0 {
			r.Add(from, time.Now(), 0, line)
			if _, err := out.Write(line); err != nil {
				return fmt.Errorf("passing on what the %s sent: %w", from, err)
			}
		}
		if len(line) > MaxFrame { // the rest of the line goes by unrecorded
			err = copyLine(b, out)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
			return nil
		case err != nil:
			return err
		}
	}
}

// longLine reads a line with its end, or the first bytes of one that is longer than a frame.
func longLine(b *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := b.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		case len(line) > MaxFrame:
			return line, nil
		}
	}
}

// copyLine copies the rest of a line.
func copyLine(b *bufio.Reader, out io.Writer) error {
	for {
		part, err := b.ReadSlice('\n')
		if len(part) > 0 {
			if _, err := out.Write(part); err != nil {
				return err
			}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
