package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A Stream is one end of a pipe: what the client or the server at that end writes is read from
// In, and what it is to read is written to Out. Closing In must unblock a Read, and closing Out a
// Write.
type Stream struct {
	In  io.ReadCloser
	Out io.WriteCloser
}

// Pipe passes lines between a client and a server until the server has ended its output, a fault
// has ended the connection (ErrDropped), the client can no longer be written to, or ctx has ended
// (its cause). The end of the client's output is passed on. Everything of both streams is closed
// at the end.
func (p *Proxy) Pipe(ctx context.Context, client, server Stream) error {
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	number := p.connections.Add(1)
	towards := func(d Direction, w io.Writer) *relay {
		return &relay{flow: &flow{proxy: p, connection: number, key: fmt.Sprintf("pipe %d", number), direction: d}, at: onPipe, w: w}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		<-inner.Done()
		// What was written reaches the client before its end, also where both ends of it are one.
		for _, c := range []io.Closer{client.Out, client.In, server.In, server.Out} {
			_ = c.Close() // what could not be written was told by Write
		}
	})
	wg.Go(func() {
		err := towards(ToServer, server.Out).lines(inner, client.In)
		if errors.Is(err, ErrDropped) {
			end(err)
			return
		}
		if err != nil { // the server reads no more, and may still have something to say
			_, _ = io.Copy(io.Discard, client.In) // to its end, whatever that is
		}
		_ = server.Out.Close() // the server has the rest of its time
	})
	wg.Go(func() { end(towards(ToClient, client.Out).lines(inner, server.In)) })
	wg.Wait()
	err := context.Cause(inner)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.Canceled): // the server has ended its output
		return nil
	case errors.Is(err, ErrDropped):
		return err
	}
	return fmt.Errorf("passing on what the server says: %w", err)
}

// lines passes lines on until there are no more.
func (r *relay) lines(ctx context.Context, from io.Reader) error {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		line, long, err := readLine(in)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case long:
			if err := r.passLong(line, in); err != nil {
				return err
			}
		case len(line) > 0:
			if err := r.pass(ctx, lineFrame(line)); err != nil {
				return err
			}
		}
		if err != nil {
			return r.release()
		}
	}
}

// readLine reads a line with its end. A line that is too long to be one frame is cut.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, false, err
		}
		if len(line) > MaxFrame {
			return line, true, nil
		}
	}
}

// passLong passes a line on that is too long to have a fault, and what was held after it.
func (r *relay) passLong(begin []byte, in *bufio.Reader) error {
	r.frames++
	for part := begin; ; {
		if _, err := r.w.Write(part); err != nil {
			return err
		}
		next, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			part = next
			continue
		}
		if _, writeErr := r.w.Write(next); writeErr != nil {
			return writeErr
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return r.release() // the end is seen by the next read
	}
}
