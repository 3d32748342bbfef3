package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrDropped says that a connection was ended by the fault [Drop].
var ErrDropped = errors.New("the connection was dropped")

// pieces is the most that a slow frame is written in.
const pieces = 32

// A relay passes frames of a flow on, with faults.
type relay struct {
	*flow

	at   place
	w    io.Writer
	held *frame // waits for the next frame
}

// pass applies a fault to the next frame, or none, and writes what comes of it.
func (r *relay) pass(ctx context.Context, f frame) error {
	r.frames++
	d := r.decide(r.frames, r.at, func(fault Fault) bool {
		return f.takes(fault) && (fault != Reorder || r.held == nil)
	})
	if d == nil {
		return r.write(f)
	}
	switch d.fault {
	case Delay:
		wait := r.proxy.delay(d)
		r.log(r.frames, d.fault, len(f.bytes), wait.String())
		if err := r.proxy.opts.Sleep(ctx, wait); err != nil {
			return err
		}
		return r.write(f)
	case Slow:
		r.log(r.frames, d.fault, len(f.bytes), "")
		if _, err := io.Copy(r.w, r.proxy.slowly(ctx, f.bytes, d)); err != nil {
			return err
		}
		return r.release()
	case Drop:
		n := d.rand.IntN(len(f.bytes))
		r.log(r.frames, d.fault, len(f.bytes), fmt.Sprintf("after %d bytes", n))
		if _, err := r.w.Write(f.bytes[:n]); err != nil {
			return err
		}
		return ErrDropped
	case Reorder:
		r.log(r.frames, d.fault, len(f.bytes), "")
		r.held = &f
		return nil
	case Duplicate:
		r.log(r.frames, d.fault, len(f.bytes), "")
		if _, err := r.w.Write(f.bytes); err != nil {
			return err
		}
		return r.write(f)
	default:
		changed, detail := f.changed(d)
		r.log(r.frames, d.fault, len(f.bytes), detail)
		return r.write(changed)
	}
}

// write writes a frame, and then one that was held for it.
func (r *relay) write(f frame) error {
	if _, err := r.w.Write(f.bytes); err != nil {
		return err
	}
	return r.release()
}

// release writes what is held: the next frame was written, or there is none.
func (r *relay) release() error {
	if r.held == nil {
		return nil
	}
	f := *r.held
	r.held = nil
	_, err := r.w.Write(f.bytes)
	return err
}

// delay is how long a frame is delayed.
func (p *Proxy) delay(d *decision) time.Duration {
	return 1 + time.Duration(d.rand.Int64N(int64(p.opts.MaxDelay)))
}

// slowly is a reader of bytes that come in pieces, with pauses.
func (p *Proxy) slowly(ctx context.Context, b []byte, d *decision) io.Reader {
	size := max(1, (len(b)+pieces-1)/pieces)
	return &slowReader{
		rest: b, size: size, left: size,
		pause: func() error {
			return p.opts.Sleep(ctx, 1+time.Duration(d.rand.Int64N(max(1, int64(p.opts.MaxDelay)/(pieces/2)))))
		},
	}
}

// A slowReader gives bytes in pieces.
type slowReader struct {
	rest       []byte
	size, left int // of a piece, and what is left of this one
	pause      func() error
}

// Read pauses before each piece but the first.
func (r *slowReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	if r.left == 0 {
		if err := r.pause(); err != nil {
			return 0, err
		}
		r.left = r.size
	}
	n := copy(p[:min(len(p), r.left)], r.rest)
	r.rest, r.left = r.rest[n:], r.left-n
	return n, nil
}
