package streamable

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// An open is one HTTP request that is under way, and its ResponseWriter: its
// body is read, or its response is written. A deadline on the connection for
// each would cost more than many requests do; one timer looks at all of them
// instead.
type open struct {
	http.ResponseWriter
	// When what is read or written now must be done, in Unix nanoseconds; 0 if
	// nothing is. They are set by who reads or writes.
	readDue, writeDue atomic.Int64
	call              atomic.Pointer[call] // the modern request, if it is one
	flushed           bool                 // nothing waits to be written by net/http, or it has its time for that

	// These belong to the list.
	next, prev *open
}

// Unwrap gives package http the writer it knows.
func (o *open) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// late reports whether a deadline has passed.
func late(due *atomic.Int64, now int64) bool {
	at := due.Load()
	return at != 0 && at <= now
}

// past is a deadline that makes a blocked read or write fail, and those to come.
var past = time.Unix(1, 0)

// giveUp makes reads and writes fail. net/http then ends the request's context
// too: over HTTP/1 since the connection cannot be read any more (but see cut),
// over HTTP/2 since the stream cannot be written.
func (o *open) giveUp() {
	control := http.NewResponseController(o.ResponseWriter)
	_ = control.SetReadDeadline(past) // not every server can
	_ = control.SetWriteDeadline(past)
}

// unlimited lifts the deadlines that an HTTP server has for the whole of a
// request: they would cut long calls and streams.
func (l *openList) unlimited(ctx context.Context, o *open) {
	s, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if ok && s.ReadTimeout <= 0 && s.WriteTimeout <= 0 {
		return
	}
	control := http.NewResponseController(o.ResponseWriter)
	_ = control.SetReadDeadline(time.Time{}) // not every server can
	_ = control.SetWriteDeadline(time.Time{})
	if l.hurry.Load() {
		o.giveUp() // it was told so before
	}
}

// attend makes c the modern request of o, before its handler begins.
func (l *openList) attend(o *open, c *call, cause error) {
	o.call.Store(c)
	if l.hurry.Load() {
		l.cut(o, cause)
	}
}

// cut makes reads and writes fail, now and from now on, and cancels the modern
// request behind them. net/http ends its context when it can no longer read the
// connection, but does not read while it has the beginning of the next request
// already: the write that fails then ends it.
func (l *openList) cut(o *open, cause error) {
	o.giveUp()
	switch c := o.call.Load(); {
	case c == nil:
	case c.cancel != nil:
		c.cancel(cause)
	default:
		l.beats.Go(c.beat)
	}
}

// An openList holds what is under way: of it some needs a sign of life, some has
// run out of time, and all an end when nobody is waited for any more.
type openList struct {
	every time.Duration // between two looks
	keep  time.Duration

	mu     sync.Mutex
	first  *open
	timer  *time.Timer
	armed  bool
	closed bool          // nothing is begun any more
	over   bool          // nobody looks any more
	under  int           // those in the list, and requests of sessions
	quiet  chan struct{} // closed once closed and nothing is under way
	beats  sync.WaitGroup

	hurry atomic.Bool // nobody is waited for any more
}

func (l *openList) init(h *Handler) {
	l.quiet = make(chan struct{})
	l.keep = h.opts.KeepAlive
	l.every = max(min(l.keep, h.opts.ReadTimeout, h.opts.WriteStall)/4, time.Millisecond)
}

// enter counts an HTTP request in, unless the endpoint ends.
func (l *openList) enter(o *open) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.under++
	if l.first != nil {
		l.first.prev = o
	}
	o.next, l.first = l.first, o
	if l.armed {
		return true
	}
	l.armed = true
	if l.timer == nil {
		l.timer = time.AfterFunc(l.every, l.look)
	} else {
		l.timer.Reset(l.every)
	}
	return true
}

// leave counts an HTTP request out: nobody uses its writer any more.
func (l *openList) leave(o *open) {
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
	l.less()
}

// hold counts in what goes on after its HTTP request. Whoever calls it is
// counted already.
func (l *openList) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under++
}

// done takes back one hold.
func (l *openList) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.less()
}

func (l *openList) less() {
	if l.under--; l.under == 0 && l.closed {
		close(l.quiet)
	}
}

// close lets nothing begin any more; false if that was so already.
func (l *openList) close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.closed = true
	if l.under == 0 {
		close(l.quiet)
	}
	return true
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
			_ = http.NewResponseController(o.ResponseWriter).SetReadDeadline(past) // not every server can
		default:
			if c := o.call.Load(); c != nil && c.silent(l.keep-l.every) {
				l.beats.Go(c.beat)
			}
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
	l.hurry.Store(true)
	for o := l.first; o != nil; o = o.next {
		l.cut(o, cause)
	}
}
