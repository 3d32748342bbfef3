package streamable

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// An open is one HTTP request that is under way: its body is read, or its
// response is written. A deadline on the connection for each would cost more
// than many requests do; one timer looks at all of them instead.
type open struct {
	w http.ResponseWriter
	// When what is read or written now must be done, in Unix nanoseconds; 0 if
	// nothing is. They are set by who reads or writes.
	readDue, writeDue atomic.Int64
	call              *call // the modern request, if this is its response

	// These belong to the list.
	next, prev *open
}

// within sets a deadline.
func within(due *atomic.Int64, d time.Duration) { due.Store(time.Now().Add(d).UnixNano()) }

// late reports whether a deadline has passed.
func late(due *atomic.Int64, now int64) bool {
	at := due.Load()
	return at != 0 && at <= now
}

// past is a deadline that makes a blocked read or write fail, and those to come.
var past = time.Unix(1, 0)

// giveUp makes reads and writes fail. net/http then ends the request's context
// too: over HTTP/1 since the connection cannot be read any more, over HTTP/2
// since the stream cannot be written.
func (o *open) giveUp() {
	control := http.NewResponseController(o.w)
	_ = control.SetReadDeadline(past) // not every server can
	_ = control.SetWriteDeadline(past)
}

// unlimited lifts the deadlines that an HTTP server has for the whole of a
// request: they would cut long calls and streams.
func unlimited(ctx context.Context, w http.ResponseWriter) {
	s, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if ok && s.ReadTimeout <= 0 && s.WriteTimeout <= 0 {
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // not every server can
	_ = control.SetWriteDeadline(time.Time{})
}

// An openList holds what is under way: of it some needs a sign of life, some has
// run out of time, and all an end when nobody is waited for any more.
type openList struct {
	every time.Duration // between two looks
	keep  time.Duration

	mu    sync.Mutex
	first *open
	timer *time.Timer
	armed bool
	hurry bool // nobody is waited for any more
	over  bool
	beats sync.WaitGroup
}

func (l *openList) init(h *Handler) {
	l.keep = h.opts.KeepAlive
	l.every = max(min(l.keep, h.opts.ReadTimeout, h.opts.WriteStall)/4, time.Millisecond)
}

func (l *openList) add(o *open) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first != nil {
		l.first.prev = o
	}
	o.next, l.first = l.first, o
	if l.hurry {
		o.giveUp()
	}
	if l.armed || l.over {
		return
	}
	l.armed = true
	if l.timer == nil {
		l.timer = time.AfterFunc(l.every, l.look)
		return
	}
	l.timer.Reset(l.every)
}

func (l *openList) remove(o *open) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		l.first = o.next
	}
	if o.next != nil {
		o.next.prev = o.prev
	}
	o.next, o.prev = nil, nil
}

// look ends what has run out of time, and gives a sign of life on behalf of
// modern requests that have been silent for long: those of sessions look after
// themselves. While nothing is open it does not look again.
func (l *openList) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	if l.over || l.first == nil {
		return
	}
	l.armed = true
	l.timer.Reset(l.every)
	now := time.Now().UnixNano()
	for o := l.first; o != nil; o = o.next {
		switch {
		case late(&o.writeDue, now):
			o.giveUp()
		case late(&o.readDue, now):
			_ = http.NewResponseController(o.w).SetReadDeadline(past) // not every server can
		case o.call != nil && o.call.silent(l.keep-l.every):
			l.beats.Go(o.call.beat)
		}
	}
}

// stop ends the looking, and returns once no sign of life is under way.
func (l *openList) stop() {
	l.mu.Lock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.beats.Wait()
}

// expire makes all reads and writes fail, now and from now on, and cancels what
// is behind modern requests.
func (l *openList) expire(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hurry = true
	for o := l.first; o != nil; o = o.next {
		o.giveUp()
		if o.call != nil {
			o.call.fail(cause)
		}
	}
}
