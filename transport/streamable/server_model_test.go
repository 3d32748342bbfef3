package streamable_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// modelSteps is how many steps the model takes; PARLEY_TEST_STEPS says otherwise.
func modelSteps(t *testing.T) int {
	text := os.Getenv("PARLEY_TEST_STEPS")
	if text == "" {
		return 4000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal("PARLEY_TEST_STEPS:", err)
	}
	return n
}

// Requests of a session whose connections break, are taken over, are read slowly
// and come back, in random order: of each request the client gets every message
// once, in order, and the answer once and last. The reference is what the handler
// has sent.
func TestModel(t *testing.T) {
	const walk = 200
	for seed := range modelSteps(t) / walk {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, uint64(seed))
			defer m.release()
			for range walk {
				m.step()
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			m.finish()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

// A model is a client, a scripted server, and what both know.
type model struct {
	t       *testing.T
	s       *site
	random  *rand.Rand
	session string

	mu       sync.Mutex
	requests map[int]*modelRequest
	next     int
}

// A modelRequest is one request. What the handler does is told by orders.
type modelRequest struct {
	id      int
	orders  chan string
	sent    int  // notifications that the handler could send
	over    bool // the handler was told to end
	answers bool // by an answer

	// What the client knows; the model's mutex holds.
	conn    *modelConn
	got     []int
	results int
	last    string // id of the last event; empty if there is none
	ended   bool   // the server has ended the stream, or has nothing more to say
	lost    bool   // the client has left without an id to come back with
}

// A modelConn is one connection of a client.
type modelConn struct {
	cancel context.CancelFunc
	slow   chan struct{} // not nil: closed when reading goes on
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, random: rand.New(rand.NewPCG(seed, 1)), requests: make(map[int]*modelRequest)} // it must be repeatable
	m.s = newPipes(t, newPeer(map[string]method{"act": m.act}), &streamable.Options{
		Events: m.store(seed), ReplayTime: 24 * time.Hour, SessionIdle: 24 * time.Hour,
	})
	m.session = m.s.open(v2511)
	return m
}

// store is the one in memory, or every other time one that is slow.
func (m *model) store(seed uint64) streamable.EventStore {
	if seed%2 == 0 {
		return nil
	}
	return &lateStore{store{events: make(map[string][]streamable.Event)}}
}

// lateStore takes some time for what it does.
type lateStore struct{ store }

func (s *lateStore) Append(ctx context.Context, e streamable.Event) error {
	time.Sleep(time.Millisecond)
	return s.store.Append(ctx, e)
}

func (s *lateStore) After(ctx context.Context, session, stream string, seq uint64) ([]streamable.Event, error) {
	time.Sleep(time.Millisecond)
	return s.store.After(ctx, session, stream, seq)
}

// act is the handler: it does what it is told.
func (m *model) act(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
	raw, _ := x.In.Params.Member("n")
	n, _ := strconv.Atoi(string(raw))
	m.mu.Lock()
	r := m.requests[n]
	m.mu.Unlock()
	for order := range r.orders {
		switch order {
		case "say":
			if err := notify(ctx, x.Out, r.sent); err == nil {
				r.sent++
			} else if !m.isLost(r) {
				m.t.Errorf("request %d: sending: %v", r.id, err)
			}
		case "answer":
			return jsonrpc.Empty(), nil
		case "none":
			return nil, errNone
		}
	}
	return nil, errNone
}

func (m *model) isLost(r *modelRequest) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return r.lost
}

// release lets handlers go and ends connections that a failure has left.
func (m *model) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.requests {
		close(r.orders)
		if r.conn != nil {
			r.conn.cancel()
			if r.conn.slow != nil {
				close(r.conn.slow)
			}
		}
	}
}

// step does one thing, and waits until all that follows from it has happened.
func (m *model) step() {
	defer synctest.Wait()
	if len(m.requests) < 4 {
		m.begin()
		return
	}
	ids := make([]int, 0, len(m.requests))
	for id := range m.requests {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	r := m.requests[ids[m.random.IntN(len(ids))]]
	m.mu.Lock()
	conn, last, ended, lost := r.conn, r.last, r.ended, r.lost
	m.mu.Unlock()
	switch n := m.random.IntN(20); {
	case n < 8 && !r.over:
		for range 1 + m.random.IntN(3) {
			r.orders <- "say"
		}
	case n < 9 && !r.over:
		r.over, r.answers = true, m.random.IntN(4) > 0
		r.orders <- map[bool]string{true: "answer", false: "none"}[r.answers]
	case n < 11 && conn != nil:
		m.leave(r)
	case n < 14 && last != "" && !ended: // perhaps in place of a connection that is there
		m.comeBack(r)
	case n < 16 && conn != nil:
		m.slow(conn)
	case n < 19:
		time.Sleep(time.Duration(m.random.IntN(100)) * time.Millisecond)
	default:
		time.Sleep(20 * time.Second) // signs of life
	}
	if r.over && conn == nil && (ended || lost) {
		m.check(r)
	}
}

// begin sends a request.
func (m *model) begin() {
	m.next++
	r := &modelRequest{id: m.next, orders: make(chan string, 1000)}
	m.mu.Lock()
	m.requests[r.id] = r
	m.mu.Unlock()
	m.connect(r, http.MethodPost, rpc(r.id, "act", fmt.Sprintf(`"n":%d`, r.id)))
}

// comeBack asks for what follows the last event.
func (m *model) comeBack(r *modelRequest) {
	m.mu.Lock()
	last := r.last
	m.mu.Unlock()
	m.connect(r, http.MethodGet, "", "Last-Event-ID", last)
}

// leave breaks the connection of a request.
func (m *model) leave(r *modelRequest) {
	m.mu.Lock()
	r.lost = r.lost || r.last == ""
	r.conn.cancel()
	if r.conn.slow != nil {
		close(r.conn.slow)
	}
	r.conn = nil
	m.mu.Unlock()
}

// slow stops the reading of a connection, or lets it go on.
func (m *model) slow(c *modelConn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.slow != nil {
		close(c.slow)
		c.slow = nil
		return
	}
	c.slow = make(chan struct{})
}

// connect reads a response in the background, which takes the place of another.
func (m *model) connect(r *modelRequest, httpMethod, body string, header ...string) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &modelConn{cancel: cancel}
	m.mu.Lock()
	if old := r.conn; old != nil && old.slow != nil {
		close(old.slow)
		old.slow = nil
	}
	r.conn = c
	m.mu.Unlock()
	go func() {
		defer cancel()
		resp, err := m.s.do(ctx, httpMethod, body, append(header, "Mcp-Session-Id", m.session)...)
		if err != nil {
			m.left(r, c, false)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		m.left(r, c, m.read(r, c, resp))
	}()
}

// left notes that a connection is over, and whether nothing more will come.
func (m *model) left(r *modelRequest, c *modelConn, ended bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.ended = r.ended || ended
	if r.conn == c {
		r.conn = nil
		r.lost = r.lost || r.last == "" && !r.ended
	}
}

// read reads one response, and reports whether it is the last of its request.
func (m *model) read(r *modelRequest, c *modelConn, resp *http.Response) (last bool) {
	switch {
	case resp.StatusCode == http.StatusBadRequest: // it ended without an answer, and nothing was missed
		if r.answers {
			m.t.Errorf("request %d: 400, and there is an answer", r.id)
		}
		return true
	case resp.StatusCode != http.StatusOK:
		m.t.Errorf("request %d: status %d", r.id, resp.StatusCode)
		return true
	case resp.Header.Get("Content-Type") == "application/json":
		data, err := io.ReadAll(resp.Body)
		if err == nil {
			m.take(r, c, eventstream.Event{Data: data})
		}
		return err == nil
	}
	events := eventstream.NewReader(bufio.NewReader(resp.Body), 1<<20)
	for {
		m.mu.Lock()
		slow := c.slow
		m.mu.Unlock()
		if slow != nil {
			<-slow
		}
		e, err := events.Next()
		if err != nil {
			return false
		}
		if m.take(r, c, e) {
			return true
		}
	}
}

// take notes an event of the connection that is the request's, and reports
// whether it is the answer. One that another has replaced is read in vain.
func (m *model) take(r *modelRequest, c *modelConn, e eventstream.Event) (answer bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.conn != c {
		return false
	}
	if e.HasID {
		r.last = e.ID
	}
	if len(e.Data) == 0 {
		return false
	}
	var text struct {
		ID     *int
		Params struct{ N int }
	}
	if err := json.Unmarshal(e.Data, &text); err != nil {
		m.t.Errorf("request %d: %s: %v", r.id, e.Data, err)
	}
	if text.ID != nil {
		r.results++
		return true
	}
	if r.results > 0 {
		m.t.Errorf("request %d: a message after the answer", r.id)
	}
	r.got = append(r.got, text.Params.N)
	return false
}

// check compares what the client got with what the handler sent.
func (m *model) check(r *modelRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.requests, r.id)
	if r.lost {
		return
	}
	want := make([]int, r.sent)
	for i := range want {
		want[i] = i
	}
	results := map[bool]int{true: 1}[r.answers]
	if !slices.Equal(r.got, want) || r.results != results {
		m.t.Errorf("request %d: got %v and %d answers, want 0 to %d and %d", r.id, r.got, r.results, r.sent-1, results)
	}
}

// finish ends all requests, comes back for what is missing, and ends the
// endpoint, whose goroutines the test waits for.
func (m *model) finish() {
	for _, r := range m.requests {
		if !r.over {
			r.over, r.answers = true, true
			r.orders <- "answer"
		}
		synctest.Wait()
		for round := 0; ; round++ {
			m.mu.Lock()
			conn, last, done := r.conn, r.last, r.ended || r.lost
			m.mu.Unlock()
			switch {
			case conn != nil && conn.slow != nil:
				m.slow(conn)
			case conn == nil && !done && last != "":
				m.comeBack(r)
			}
			if done {
				break
			}
			if round > 100 {
				m.t.Fatalf("request %d does not end", r.id)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if m.mu.Lock(); r.conn != nil {
			r.conn.cancel()
		}
		m.mu.Unlock()
		synctest.Wait()
		m.check(r)
	}
}
