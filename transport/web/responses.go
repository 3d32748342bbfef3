package web

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A ResponseOwner is told what concerns its response. Its methods may be called
// at any time between Begin and End, by any goroutine.
type ResponseOwner interface {
	// KeepAlive is called when nothing was written for about KeepAlive. If
	// something is still to come, it writes a sign of life.
	KeepAlive()
	// Cancel is called when nobody waits for the response any more: what is
	// behind it should end, for this reason. It must not wait.
	Cancel(cause error)
}

// A Responses holds the responses of an endpoint that are under way. A deadline
// on the connection for each would cost more than many requests do; one timer
// looks at all of them instead. Its methods may be called by many goroutines at
// once; its fields are set before.
//
//	serving --Close--> closing --Abort--> aborting --Stop--> stopped
type Responses struct {
	// ReadTimeout, WriteStall and KeepAlive are the times of each response.
	ReadTimeout, WriteStall, KeepAlive time.Duration
	// Logger is told what the operator has to mend.
	Logger *slog.Logger

	known  atomic.Value // a type of ResponseWriter that takes deadlines
	warned sync.Once
	work   sync.WaitGroup // goroutines of Go

	phase atomic.Int32 // written with mu held

	mu    sync.Mutex
	first *Response
	timer *time.Timer
	due   int64         // when the timer fires, in Unix nanoseconds; 0: it does not run
	held  int           // responses, and holds
	quiet chan struct{} // closed once closing and nothing is held; nil until somebody asks
}

const (
	phaseServing  int32 = iota
	phaseClosing        // nothing begins any more
	phaseAborting       // nobody is waited for any more
	phaseStopped        // nothing is looked after any more
)

// Start makes r the response of a request whose ServeHTTP calls End at its end.
// bodyRead says that the request has no body.
func (l *Responses) Start(r *Response, w http.ResponseWriter, bodyRead bool) {
	r.w, r.all, r.bodyRead = w, l, bodyRead
}

// Begin looks after r until End, unless the endpoint ends, which it reports.
func (l *Responses) Begin(r *Response, owner ResponseOwner) bool {
	now := time.Now().UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase.Load() != phaseServing {
		return false
	}
	l.held++
	r.owner = owner
	r.wrote.Store(now)
	if r.next = l.first; r.next != nil {
		r.next.prev = r
	}
	l.first = r
	if l.due == 0 {
		l.arm(now, now+l.sweepInterval())
	}
	return true
}

// KeepAliveAt has the owner of r called at that time, if nothing is written
// before. Nothing is being written now.
func (l *Responses) KeepAliveAt(r *Response, at time.Time) {
	due := at.UnixNano()
	r.wrote.Store(due - int64(l.KeepAlive))
	l.mu.Lock()
	defer l.mu.Unlock()
	if due < l.due {
		l.arm(time.Now().UnixNano(), due)
	}
}

// End is the end of a response: nobody uses it any more. What net/http still
// reads and writes by itself gets its time: a little more of a body that was
// refused, then a short answer, or the end of a stream.
func (l *Responses) End(r *Response) {
	if r.owner != nil {
		l.remove(r)
	}
	if r.bodyRead && r.state == responseComplete {
		return
	}
	control, due := http.NewResponseController(r.w), time.Now()
	if !r.bodyRead {
		due = due.Add(l.ReadTimeout)
		_ = control.SetReadDeadline(due) // not every server can
	}
	if r.state == responseStreaming || r.state != responseComplete && l.phase.Load() < phaseAborting {
		_ = control.SetWriteDeadline(due.Add(l.WriteStall))
	}
}

func (l *Responses) remove(r *Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		l.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	}
	r.next, r.prev = nil, nil
	l.release()
}

// Unlimit lifts the deadlines that an HTTP server has for the whole of the
// request r, whose context is ctx: they would cut long calls and streams.
func (l *Responses) Unlimit(ctx context.Context, r *Response) {
	s, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if ok && s.ReadTimeout <= 0 && s.WriteTimeout <= 0 {
		return
	}
	control := http.NewResponseController(r.w)
	_ = control.SetReadDeadline(time.Time{}) // not every server can
	_ = control.SetWriteDeadline(time.Time{})
	if l.Aborting() {
		r.Abort() // it was told so before
	}
}

// Hold counts in what goes on after its request, until Release. It is called
// while something is counted already.
func (l *Responses) Hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held++
}

// Release takes back one Hold.
func (l *Responses) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release()
}

func (l *Responses) release() {
	if l.held--; l.held == 0 && l.quiet != nil && l.phase.Load() != phaseServing {
		close(l.quiet)
	}
}

// Go calls f on a goroutine that Stop waits for.
func (l *Responses) Go(f func()) {
	l.work.Add(1)
	go func() {
		defer l.work.Done()
		f()
	}()
}

// Close lets nothing begin any more; false if that was so already. quiet is
// closed when nothing is under way.
func (l *Responses) Close() (quiet <-chan struct{}, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase.CompareAndSwap(phaseServing, phaseClosing) {
		first = true
		l.quiet = make(chan struct{})
		if l.held == 0 {
			close(l.quiet)
		}
	}
	return l.quiet, first
}

// Abort makes all reads and writes fail, now and from now on, and cancels what
// is behind the responses.
func (l *Responses) Abort(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase.Store(phaseAborting)
	for r := l.first; r != nil; r = r.next {
		r.Abort()
		r.owner.Cancel(cause)
	}
}

// Closing reports whether Close has been called.
func (l *Responses) Closing() bool { return l.phase.Load() >= phaseClosing }

// Aborting reports whether nobody is waited for any more. What begins to wait
// for a request asks, and cancels it itself.
func (l *Responses) Aborting() bool { return l.phase.Load() >= phaseAborting }

// Stop ends the work for the responses, and returns once no sign of life is
// under way. Nothing must be under way any more.
func (l *Responses) Stop() {
	l.mu.Lock()
	l.phase.Store(phaseStopped)
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.work.Wait()
}

// sweepStep is the shortest time between two looks at all responses, so that many
// that are due one after the other cost one look. What is due may be that late.
const sweepStep = 10 * time.Millisecond

// sweepInterval is the longest time between two looks at all responses: what is read or
// written is given its time without a word to the timer.
func (l *Responses) sweepInterval() int64 {
	return int64(max(min(l.KeepAlive, l.ReadTimeout, l.WriteStall)/4, time.Millisecond))
}

// arm has the responses looked at when it is due. mu is held.
func (l *Responses) arm(now, due int64) {
	l.due = due
	wait := time.Duration(due - now)
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.sweep)
	} else {
		l.timer.Reset(wait)
	}
}

// sweep ends what has run out of time, and asks for signs of life. While nothing
// is under way it does not look again.
func (l *Responses) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = 0
	if l.phase.Load() == phaseStopped || l.first == nil {
		return
	}
	now := time.Now().UnixNano()
	next := now + l.sweepInterval()
	for r := l.first; r != nil; r = r.next {
		if due := r.act(now); due > now {
			next = min(next, due)
		}
	}
	l.arm(now, max(next, now+int64(sweepStep)))
}

// act does what is due for a response, or returns when that is.
func (r *Response) act(now int64) (due int64) {
	if due := r.writeDue.Load(); due != 0 {
		if due <= now {
			r.Abort()
		}
		return due
	}
	if due := r.readDue.Load(); due != 0 {
		if due <= now && r.readDue.CompareAndSwap(due, readExpired) {
			_ = http.NewResponseController(r.w).SetReadDeadline(past) // not every server can
		}
		return due
	}
	due = r.wrote.Load() + int64(r.all.KeepAlive)
	if due <= now {
		r.wrote.Store(now)
		r.all.Go(r.owner.KeepAlive)
	}
	return due
}
