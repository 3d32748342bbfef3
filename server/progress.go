package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// ErrNoProgress says that a progress value was not greater than the one before.
var ErrNoProgress = errors.New("progress must increase")

// maxProgressMessage bounds the message of a progress notification, in bytes.
const maxProgressMessage = 1024

// Progress tells the client how far the request is: progress of total, both in
// a unit of the author's choice, and a short text for people. A total of 0 is
// unknown. Each call of a request must have a greater progress than the one
// before (ErrNoProgress). All are delivered in order, unless
// Options.ProgressEvery merges them; when the peer reads slowly Progress waits,
// until ctx ends. When ctx has ended it fails with context.Cause(ctx), and when
// the client turns out to have left with an ErrCancelled. Otherwise it does
// nothing if the client did not ask for progress, or outside of a request. An
// extension may watch the progress of a detached call: see DetachOptions.
//
// spec 2026-07-28, basic/patterns/progress: the value "MUST increase".
func Progress(ctx context.Context, progress, total float64, message string) error {
	c := CallFrom(ctx)
	if c == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.timer.Progress()
	watch := c.watchesProgress()
	if c.meta.ProgressToken.IsZero() && watch == nil {
		return nil
	}
	if math.IsNaN(progress) || math.IsInf(progress, 0) || math.IsNaN(total) || math.IsInf(total, 0) {
		return fmt.Errorf("progress %v of %v: not a finite number: %w", progress, total, ErrNoProgress)
	}
	st := &c.extras().progress
	if err := st.lock(ctx); err != nil { // held while sending, so that order is kept
		return err
	}
	defer st.unlock()
	if st.any && progress <= st.last {
		return fmt.Errorf("progress %v after %v: %w", progress, st.last, ErrNoProgress)
	}
	st.any, st.last = true, progress
	n := new(progressNotice)
	p := &n.params
	p.ProgressToken, p.Progress, p.Message = c.meta.ProgressToken, progress, scrubText(message, maxProgressMessage)
	if total != 0 {
		n.total = total
		p.Total = &n.total
	}
	if watch != nil {
		watch(p)
		return nil
	}
	if every := c.srv.opts.ProgressEvery; every > 0 {
		now := time.Now()
		if now.Sub(st.at) < every {
			st.held = p
			return nil
		}
		st.at, st.held = now, nil
	}
	return c.send(ctx, &n.message, mcp.NotifyProgress, p)
}

// lock waits until no other goroutine sends progress of the request, unless ctx
// ends first.
func (p *progressState) lock(ctx context.Context) error {
	p.once.Do(func() { p.busy = make(chan struct{}, 1) })
	select {
	case p.busy <- struct{}{}:
		return nil
	default:
	}
	select {
	case p.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *progressState) unlock() { <-p.busy }

// A progressNotice is a notification in one piece of memory.
type progressNotice struct {
	params  mcp.ProgressParams
	total   float64
	message jsonrpc.Outgoing
}

// lastProgress sends what ProgressEvery kept back, before the answer.
func (c *Call) lastProgress() {
	m := c.more.Load()
	if m == nil {
		return
	}
	if m.progress.lock(c) != nil {
		return
	}
	defer m.progress.unlock()
	p := m.progress.held
	if p == nil {
		return
	}
	m.progress.held = nil
	if err := c.notify(c, mcp.NotifyProgress, p); err != nil {
		c.srv.log.DebugContext(c, "last progress not delivered", "err", err)
	}
}

// notify sends a notification that belongs to the request.
func (c *Call) notify(ctx context.Context, method string, params any) error {
	return c.send(ctx, new(jsonrpc.Outgoing), method, params)
}

// send is notify with memory for the message.
func (c *Call) send(ctx context.Context, m *jsonrpc.Outgoing, method string, params any) error {
	down, err := c.shape().DownParams(method, params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	m.Method, m.Params = method, bodyOf(down)
	err = c.x.Out.Send(ctx, m)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case undelivered(err):
		return &peerGoneError{method, err}
	}
	return fmt.Errorf("%s: %w", method, err)
}

// peerGoneError says that the peer of a notification was gone before the
// context of the request ended for the same reason. It is ErrCancelled.
type peerGoneError struct {
	method string
	err    error
}

func (e *peerGoneError) Error() string      { return e.method + ": the client has left: " + e.err.Error() }
func (e *peerGoneError) Unwrap() error      { return e.err }
func (*peerGoneError) Is(target error) bool { return target == ErrCancelled }

// bodyOf returns v if it encodes itself, else a body that encodes it.
func bodyOf(v any) jsonrpc.Body {
	if body, ok := v.(jsonrpc.Body); ok {
		return body
	}
	return jsonrpc.JSON(v)
}

// scrubText makes a text fit to be shown by a peer: without control characters
// that a terminal would obey, and bounded.
func scrubText(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
