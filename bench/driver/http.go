package driver

import (
	"context"
	"fmt"
	"math"
	"net"
	"sync"
	"time"
)

// An Era is how requests are sent over HTTP.
type Era int

// Eras.
const (
	Stateless       Era = iota // the modern revision
	Session                    // the legacy revision, all connections in one session
	LegacyStateless            // the legacy revision, with no session at all
)

// A Load is what goes over a number of connections at once, each with one request
// under way, again and again.
type Load struct {
	Addr  string
	Era   Era
	Conns int
	Call  Call
	Check Check
}

// A Measured is what a load, or a pipe, did in a round.
type Measured struct {
	Requests      int
	Elapsed       time.Duration // from the first byte sent to the last answer
	Notifications int
	Size          int // bytes of the last body
	P50, P99      float64
}

// A Web is a number of open connections with their requests.
type Web struct {
	conns []*conn
	check Check
}

// Open connects, and opens a session if the era has them.
func (l Load) Open(ctx context.Context) (*Web, error) {
	w := &Web{check: l.Check}
	session := ""
	if l.Era == Session {
		opened, err := OpenSessions(ctx, l.Addr, 1)
		if err != nil {
			return nil, err
		}
		opened.Close()
		session = opened.IDs[0]
	}
	for i := range l.Conns {
		c, err := dial(ctx, l.Addr)
		if err != nil {
			w.Close()
			return nil, err
		}
		if l.Era == Stateless {
			c.request = modern(l.Call)
		} else {
			c.request = legacy(l.Call, session)
		}
		// Ids differ between the connections, which may share a session.
		c.id = firstID + uint64(i)*10_000_000
		w.conns = append(w.conns, c)
	}
	return w, nil
}

// Close closes the connections.
func (w *Web) Close() {
	for _, c := range w.conns {
		c.close()
	}
}

// Run sends requests over all connections for a time, at least one over each, and
// waits for the last answers. It returns an error unless every answer passed the check.
func (w *Web) Run(d time.Duration) (Measured, error) { return w.run(d, math.MaxInt) }

// Times is Run for n requests over each connection.
func (w *Web) Times(n int) (Measured, error) { return w.run(longest, n) }

// longest is more time than any number of requests takes.
const longest = time.Hour

func (w *Web) run(d time.Duration, most int) (Measured, error) {
	start := time.Now()
	end := start.Add(d)
	errs := make([]error, len(w.conns))
	var wg sync.WaitGroup
	for i, c := range w.conns {
		c.reset()
		wg.Go(func() { errs[i] = c.run(end, most, w.check) })
	}
	wg.Wait()
	m := Measured{Elapsed: time.Since(start)}
	for i, err := range errs {
		if err != nil {
			return m, fmt.Errorf("connection %d: %w", i, err)
		}
	}
	var all histogram
	for _, c := range w.conns {
		m.Requests += c.latency.n
		m.Notifications += c.notifications
		m.Size = c.size
		all.merge(&c.latency)
	}
	m.P50, m.P99 = all.percentile(50), all.percentile(99)
	return m, nil
}

// A conn is one kept connection.
type conn struct {
	net.Conn

	r       *reader
	request request
	id      uint64

	latency       histogram
	notifications int
	size          int
}

func dial(ctx context.Context, addr string) (*conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, r: newReader(c)}, nil
}

func (c *conn) close() { _ = c.Close() }

func (c *conn) reset() {
	c.latency, c.notifications, c.size = histogram{}, 0, 0
}

// stall is how long a server may be silent before the measurement fails.
const stall = 60 * time.Second

func (c *conn) run(end time.Time, most int, check Check) error {
	if err := c.SetDeadline(end.Add(stall)); err != nil {
		return err
	}
	for now := time.Now(); c.latency.n == 0 || now.Before(end) && c.latency.n < most; {
		c.id++
		c.request.number(c.id)
		res, err := c.exchange(c.request.bytes)
		if err != nil {
			return err
		}
		if res.status != 200 {
			return fmt.Errorf("status %d: %.300q", res.status, res.body)
		}
		n, err := check(res.body)
		if err != nil {
			return err
		}
		c.notifications += n
		c.size = len(res.body)
		after := time.Now()
		c.latency.add(after.Sub(now))
		now = after
	}
	return nil
}

func (c *conn) exchange(request []byte) (response, error) {
	if _, err := c.Write(request); err != nil {
		return response{}, err
	}
	return c.r.next(false)
}

// Sessions are open legacy sessions.
type Sessions struct {
	IDs     []string
	addr    string
	opener  *conn
	streams []*conn
}

// OpenSessions opens n sessions, one after the other over one connection, which
// it keeps.
func OpenSessions(ctx context.Context, addr string, n int) (*Sessions, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	s := &Sessions{addr: addr, opener: c}
	if err := s.More(n); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// More opens n more, over the same connection.
func (s *Sessions) More(n int) error {
	for range n {
		if err := s.open(); err != nil {
			return fmt.Errorf("session %d: %w", len(s.IDs), err)
		}
	}
	return nil
}

func (s *Sessions) open() error {
	res, err := s.opener.exchange(post(handshake))
	if err != nil {
		return err
	}
	if res.status != 200 || res.session == "" {
		return fmt.Errorf("initialize: status %d, session %q: %.300q", res.status, res.session, res.body)
	}
	s.IDs = append(s.IDs, res.session)
	if res, err = s.opener.exchange(post(initialized, inSession(res.session)...)); err != nil {
		return err
	}
	if res.status/100 != 2 {
		return fmt.Errorf("initialized: status %d: %.300q", res.status, res.body)
	}
	return nil
}

// Listen opens the stream of every session that has none yet, each on a
// connection of its own, and leaves them open.
func (s *Sessions) Listen(ctx context.Context) error {
	for _, id := range s.IDs[len(s.streams):] {
		c, err := dial(ctx, s.addr)
		if err != nil {
			return err
		}
		s.streams = append(s.streams, c)
		if _, err := c.Write(get(id)); err != nil {
			return err
		}
		res, err := c.r.next(true)
		if err != nil {
			return err
		}
		if res.status != 200 {
			return fmt.Errorf("the stream of a session: status %d", res.status)
		}
	}
	return nil
}

// Close closes the connections.
func (s *Sessions) Close() {
	s.opener.close()
	for _, c := range s.streams {
		c.close()
	}
}
