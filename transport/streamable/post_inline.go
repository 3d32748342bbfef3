package streamable

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// A posting is a POST with one request of a session, in one piece of memory but
// for its stream, which may have to wait for its client for much longer. The
// request is handled on the goroutine of its POST, also when the client has gone:
// a disconnect is not cancellation (ruling 13). Mostly it has one answer and
// nothing else, which is written there too; a goroutine of its own writes once
// there is more to say, or the answer takes long.
type posting struct {
	st  *stream
	c   connection
	x   exchange
	ctx sessionContext // the context of its request ends with the connection

	admitted atomic.Bool // the session lets others in again

	// These belong to the session's mutex.
	writer    chan struct{} // closed when that goroutine has ended; nil without one
	working   bool          // it has begun, and the response is its own
	concluded bool          // the response is that of who answers
	overdue   bool          // the answer says that the handler took too long

	out sync.Mutex // held by who answers while he writes

	// These belong to the list of those whose answers may take long.
	late       *lateList
	due        time.Time
	next, prev *posting
}

// serve handles the request m of a POST.
func (s *session) serve(w http.ResponseWriter, r *http.Request, who *principal.Principal, m *jsonrpc.Incoming) {
	if !s.alive(w) {
		return
	}
	p := &posting{ctx: sessionContext{s.ctx, r}}
	p.st = &stream{s: s, post: p, conn: &p.c, waiting: 1}
	p.st.box = &p.st.inbox
	p.st.inbox = mailbox{queue: p.st.one[:0], reader: &p.c}
	p.c.s, p.c.st = s, p.st
	p.c.begin(s.h, w)
	p.c.begun = p.c.wrote
	p.x = exchange{st: p.st, Exchange: transport.Exchange{In: m, Principal: who, Out: &p.x, Carrier: &s.carrier}}
	defer p.conclude() // also if the handler ends its goroutine
	defer p.x.abandon()
	run := s.admit(&p.ctx, &p.x.Exchange)
	p.admitted.Store(true)
	if run == nil {
		return
	}
	s.h.lateFor(s).enter(p)
	defer p.late.leave(p)
	run()
}

// start has a goroutine write what there is to say. The session's mutex is held.
func (p *posting) start() {
	if p.writer != nil || p.concluded || p.st.conn != &p.c {
		return
	}
	p.writer = make(chan struct{})
	p.c.woken = make(chan struct{}, 1)
	p.c.s.h.list.beats.Add(1)
	go p.work()
}

// lost reports whether what is sent now would reach nobody: the client has gone
// and has no id to come back with. The session's mutex is held.
func (p *posting) lost() bool {
	return p.st.conn == &p.c && p.st.number == 0 && p.ctx.r.Context().Err() != nil
}

// work writes the stream until it is over, its client goes or another
// connection takes over; then the request goes on without.
func (p *posting) work() {
	defer p.c.s.h.list.beats.Done()
	defer close(p.writer)
	p.c.s.mu.Lock()
	concluded := p.concluded
	if !concluded {
		p.working = true
	}
	p.c.s.mu.Unlock()
	if concluded {
		return
	}
	if p.ctx.r.Context().Err() == nil {
		p.follow()
	}
	p.c.s.mu.Lock()
	goesOn := p.st.waiting > 0 || p.overdue
	p.c.s.mu.Unlock()
	p.c.detach()
	if goesOn {
		p.hangUp()
	}
}

// hangUp ends a response whose handler goes on without it, as net/http would if
// it returned: with the chunk that is the last, of HTTP/1.1. The connection then
// ends too.
func (p *posting) hangUp() {
	conn, _, err := http.NewResponseController(p.c.ResponseWriter).Hijack()
	if err != nil {
		p.c.giveUp() // over HTTP/2 that ends the stream
		return
	}
	if p.c.failed == nil && p.c.streaming && p.ctx.r.ProtoAtLeast(1, 1) {
		_ = conn.SetWriteDeadline(time.Now().Add(p.c.h.opts.WriteStall))
		_, _ = io.WriteString(conn, "0\r\n\r\n") // who has gone needs no end
	}
	_ = conn.Close() // nobody reads or writes it any more
}

func (p *posting) follow() {
	timer := time.NewTimer(p.c.h.opts.KeepAlive)
	defer timer.Stop()
	p.c.follow(p.ctx.r.Context(), timer)
}

// answered writes the response, on the goroutine that answers: the handler may
// go on for long. The answer is in the box. While the session lets nobody else
// in, a client that reads slowly must not be waited for.
func (p *posting) answered() {
	if !p.admitted.Load() || !p.claim() {
		return
	}
	defer p.out.Unlock()
	if p.overdue {
		p.c.Header().Set("Connection", "close") // as in call.whole
	}
	p.write()
	if p.overdue && p.c.streaming {
		p.hangUp()
	}
}

// claim takes the response, with the lock of who writes it, unless somebody has
// it already.
func (p *posting) claim() bool {
	p.c.s.mu.Lock()
	defer p.c.s.mu.Unlock()
	if p.concluded || p.working {
		return false
	}
	p.concluded = true
	p.out.Lock() // nobody has it
	return true
}

// write writes the response when nothing is to come any more.
func (p *posting) write() {
	switch {
	case p.ctx.r.Context().Err() != nil: // nobody is there to take it
	case p.st.chatty:
		p.follow()
	default:
		p.c.json(false)
	}
}

// conclude sees to it that the response is written. From here on it is
// net/http's, and nothing of the request is kept with the stream.
func (p *posting) conclude() {
	defer p.part()
	if p.claim() {
		p.write()
		p.out.Unlock()
	}
	if p.working {
		<-p.writer
		return
	}
	p.out.Lock()
	defer p.out.Unlock()
	p.c.detach()
}

// part has the stream forget its POST.
func (p *posting) part() {
	p.c.s.mu.Lock()
	p.st.post = nil
	p.c.s.mu.Unlock()
}

// lateFor is the list for requests of a session.
func (h *Handler) lateFor(s *session) *lateList {
	if s.facts.Priming {
		return &h.priming
	}
	return &h.patience
}

// A lateList holds requests in the order in which they came, and has their
// streams begun if they take longer than all of them may. One timer looks at
// the first; while there is none it does not look.
type lateList struct {
	after time.Duration

	mu          sync.Mutex
	first, last *posting
	timer       *time.Timer
	armed       bool
}

func (l *lateList) enter(p *posting) {
	p.late, p.due = l, p.c.begun.Add(l.after)
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.prev = l.last; p.prev != nil {
		p.prev.next = p
	} else {
		l.first = p
	}
	l.last = p
	if !l.armed {
		l.arm(l.after)
	}
}

func (l *lateList) arm(wait time.Duration) {
	l.armed = true
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.look)
	} else {
		l.timer.Reset(wait)
	}
}

// leave takes p out, if it is still there.
func (l *lateList) leave(p *posting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(p)
}

func (l *lateList) remove(p *posting) {
	switch {
	case p.prev != nil:
		p.prev.next = p.next
	case l.first == p:
		l.first = p.next
	default:
		return // it is out already
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		l.last = p.prev
	}
	p.next, p.prev = nil, nil
}

// look begins the streams of those that have taken long.
func (l *lateList) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	now := time.Now()
	for p := l.first; p != nil; p = l.first {
		if wait := p.due.Sub(now); wait > 0 {
			l.arm(wait)
			return
		}
		l.remove(p)
		p.c.s.mu.Lock()
		p.start()
		p.c.s.mu.Unlock()
	}
}

// stop ends the looking.
func (l *lateList) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}
