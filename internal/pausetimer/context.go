package pausetimer

import (
	"context"
	"sync"
	"time"
)

// A Pauser is a time limit that can be paused: a Timer, or several. Pauses may
// overlap: it continues when there were as many calls of Resume as of Pause. Its
// methods may be called by many goroutines at once.
type Pauser interface {
	Pause()
	Resume()
}

// Key is the key under which a context has the Pauser of the operation that it
// belongs to. That one pauses those of outer contexts too.
type Key struct{}

// none is a Timer that is never started.
var none Timer

// From is the Pauser of a context, or one that does nothing.
func From(ctx context.Context) Pauser {
	if p, ok := ctx.Value(Key{}).(Pauser); ok {
		return p
	}
	return &none
}

// Pause pauses the time limits of ctx and of outer contexts until resume is
// called, for example while a person is asked. The second call of resume does
// nothing.
func Pause(ctx context.Context) (resume func()) {
	p := From(ctx)
	p.Pause()
	return sync.OnceFunc(p.Resume)
}

// Progress restarts the idle limit of the operation that ctx belongs to. It does nothing
// if the Pauser of ctx has no method Progress.
func Progress(ctx context.Context) {
	if p, ok := ctx.Value(Key{}).(interface{ Progress() }); ok {
		p.Progress()
	}
}

// WithTimeout is context.WithTimeoutCause with a limit that can be paused. The
// context tells no deadline, since a pause moves it.
func WithTimeout(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	t := &timeout{Context: ctx, cause: cause}
	own, cancel := context.WithCancelCause(t)
	t.cancel = cancel
	t.timer.Start(&t.scheduler, t, -1, max(limit, 0))
	return own, func() {
		t.timer.Stop()
		t.scheduler.Stop()
		cancel(nil)
	}
}

// A timeout is the parent of the context that WithTimeout returns, and its Pauser.
type timeout struct {
	context.Context //nolint:containedctx // it is one
	scheduler       Scheduler
	timer           Timer
	cancel          context.CancelCauseFunc
	cause           error
}

// Value gives the Pauser, and the values of the outer context.
func (t *timeout) Value(key any) any {
	if key == (Key{}) {
		return t
	}
	return t.Context.Value(key)
}

// Pause pauses the limit, and those of outer contexts.
func (t *timeout) Pause() {
	t.timer.Pause()
	From(t.Context).Pause()
}

// Resume ends one Pause.
func (t *timeout) Resume() {
	From(t.Context).Resume()
	t.timer.Resume()
}

// Progress restarts the idle limit of the outer context: this one has none.
func (t *timeout) Progress() { Progress(t.Context) }

// Expired ends the context.
func (t *timeout) Expired(Limit) { t.cancel(t.cause) }
