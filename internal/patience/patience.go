// Package patience lets whoever asks a person stop the time limits of those
// who wait for the answer, without knowing them: they meet in a context.
package patience

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Clock is a time limit that can stand still. Pauses may overlap: it goes on
// when there were as many calls of Resume. Its methods may be called by many
// goroutines at once.
type Clock interface {
	Pause()
	Resume()
}

// Key is the key under which a context has the Clock of whoever waits for what
// is done in it.
type Key struct{}

// ErrDenied says that the server, or who guards it, does not let the caller in.
var ErrDenied = errors.New("access denied")

// Of is the Clock of a context, or nil.
func Of(ctx context.Context) Clock {
	c, _ := ctx.Value(Key{}).(Clock)
	return c
}

// Waiting stops the Clock of ctx until resume is called. It does nothing if
// there is none, and resume does nothing the second time.
func Waiting(ctx context.Context) (resume func()) {
	c := Of(ctx)
	if c == nil {
		return func() {}
	}
	c.Pause()
	return sync.OnceFunc(c.Resume)
}

// WithTimeout is context.WithTimeoutCause for a time that stands still while a
// person is asked, as do the Clocks around it.
func WithTimeout(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	t := &timeout{around: Of(ctx), left: limit}
	own, end := context.WithCancelCause(context.WithValue(ctx, Key{}, Clock(t)))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began = time.Now()
	t.timer = time.AfterFunc(limit, func() { end(cause) })
	return own, func() {
		t.stop()
		end(nil)
	}
}

// A timeout is a timer that can stand still.
type timeout struct {
	around Clock

	mu      sync.Mutex
	timer   *time.Timer
	began   time.Time
	left    time.Duration
	pauses  int
	stopped bool
}

// Pause stops the timer, unless it has run out.
func (t *timeout) Pause() {
	if t.around != nil {
		t.around.Pause()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pauses++
	if t.pauses == 1 && !t.stopped {
		t.timer.Stop()
		t.left -= time.Since(t.began)
	}
}

// Resume lets it go on with what was left.
func (t *timeout) Resume() {
	t.mu.Lock()
	t.pauses--
	if t.pauses == 0 && !t.stopped {
		t.began = time.Now()
		t.timer.Reset(max(t.left, 0))
	}
	t.mu.Unlock()
	if t.around != nil {
		t.around.Resume()
	}
}

func (t *timeout) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}
