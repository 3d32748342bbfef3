package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// stepper is a method that sends one notification for each step, and answers
// when there are no more.
type stepper struct{ steps chan int }

func newStepper() *stepper { return &stepper{make(chan int, 10_000)} }

func (s *stepper) run(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
	for n := range s.steps {
		if err := notify(ctx, x.Out, n); err != nil {
			return nil, err
		}
	}
	return jsonrpc.Empty(), nil
}

// resume comes back for a stream.
func (s *site) resume(session, last string) *feed {
	s.Helper()
	return s.follow(http.MethodGet, "", "Mcp-Session-Id", session, "Last-Event-ID", last)
}

// A client whose connection broke gets what it missed: nothing is lost, nothing
// comes twice, nothing of another stream comes.
func TestStreamResumed(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, version := range []string{v2503, v2506, v2511} {
		one, two := newStepper(), newStepper()
		s := newSite(t, newPeer(map[string]method{"one": one.run, "two": two.run}), nil)
		id := s.open(version)
		one.steps <- 0
		two.steps <- 1000
		f := s.follow(http.MethodPost, rpc(1, "one", ""), "Mcp-Session-Id", id)
		other := s.follow(http.MethodPost, rpc(2, "two", ""), "Mcp-Session-Id", id)
		if version == v2511 {
			f.primed()
			other.primed()
		}
		last := f.wants(noted(0)).ID
		other.wants(noted(1000))
		for n := 1; n <= 30; n++ {
			if n%3 == 0 { // broken off, sometimes with events on their way
				f.hangUp()
				one.steps <- n
				f = s.resume(id, last)
				if version == v2511 {
					if e := f.primed(); e.ID != last {
						t.Errorf("%s: resumed after %s, primed with %s", version, last, e.ID)
					}
				}
			} else {
				one.steps <- n
			}
			last = f.wants(noted(n)).ID
		}
		f.hangUp()
		close(one.steps)
		f = s.resume(id, last)
		if version == v2511 {
			f.primed()
		}
		answer := f.wants(`"id":1`, `"result"`).ID
		f.ends()
		// What was delivered can be delivered again, until it is forgotten.
		f = s.resume(id, last)
		if version == v2511 {
			f.primed()
		}
		f.wants(`"id":1`)
		f.ends()
		f = s.resume(id, answer)
		if version == v2511 {
			f.primed()
		}
		f.ends()
		close(two.steps)
		other.wants(`"id":2`)
		other.ends()
	}
}

// Events of all streams have ids of their own.
func TestEventIDsDiffer(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newSite(t, newPeer(map[string]method{"count": count(5)}), nil)
	id := s.open(v2506)
	seen := make(map[string]bool)
	for n := range 10 {
		f := s.follow(http.MethodPost, rpc(n, "count", ""), "Mcp-Session-Id", id)
		for range 6 {
			e := f.next()
			if !e.HasID || seen[e.ID] {
				t.Fatalf("event id %q (%v), seen %v", e.ID, e.HasID, seen)
			}
			seen[e.ID] = true
		}
		f.ends()
	}
}

// What cannot be resumed is said to be lost.
func TestStreamRefused(t *testing.T) {
	mcptest.NoLeaks(t)
	g := newGate()
	s := newSite(t, newPeer(map[string]method{"count": count(2), "quiet": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		_ = notify(ctx, x.Out, 0)
		_, _ = g.wait(ctx, x)
		return nil, errNone
	}}), nil)
	id, other := s.open(v2506), s.open(v2506)
	f := s.follow(http.MethodPost, rpc(1, "count", ""), "Mcp-Session-Id", id)
	f.next()
	last := f.next().ID
	f.next()
	f.ends()
	for _, bad := range []string{" ", "x", "1-9", "9-1", "0-0", last + "0"} {
		s.check("resume "+bad, s.send(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", bad), 400, "error")
	}
	s.check("two ids", s.send(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", last, "Last-Event-ID", last), 400)
	s.check("another session's", s.send(http.MethodGet, "", "Mcp-Session-Id", other, "Last-Event-ID", last), 400)
	s.check("another user's", s.send(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", last, "X-User", "eve"), 404)

	f = s.follow(http.MethodPost, rpc(2, "quiet", ""), "Mcp-Session-Id", id)
	last = f.next().ID
	g.release <- struct{}{}
	f.ends()
	s.check("without an answer", s.send(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", last), 400, "without an answer")
}

// A newer connection takes over from an older one, which may be half gone.
func TestStreamTakenOver(t *testing.T) {
	mcptest.NoLeaks(t)
	one := newStepper()
	s := newSite(t, newPeer(map[string]method{"one": one.run}), nil)
	id := s.open(v2511)
	one.steps <- 0
	f := s.follow(http.MethodPost, rpc(1, "one", ""), "Mcp-Session-Id", id)
	f.primed()
	last := f.wants(noted(0)).ID
	for n := 1; n < 5; n++ {
		newer := s.resume(id, last)
		newer.primed()
		f.ends()
		one.steps <- n
		last = newer.wants(noted(n)).ID
		f = newer
	}
	own := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
	first := own.primed().ID
	for range 10 { // more often than streams may be open
		newer := s.resume(id, first)
		newer.primed()
		own.ends()
		own = newer
	}
	close(one.steps)
	f.wants(`"result"`)
	f.ends()
}

// A request that takes longer begins its response in time for the client to
// come back, in the revision that has this, and is asked for again.
func TestStreamPriming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := newPipes(t, newPeer(map[string]method{"wait": g.wait}), &streamable.Options{PollAfter: 5 * time.Second, Retry: 700 * time.Millisecond})
		id := s.open(v2511)
		begun := time.Now()
		f := s.follow(http.MethodPost, rpc(1, "wait", ""), "Mcp-Session-Id", id)
		e := f.primed()
		if waited := time.Since(begun); waited != 200*time.Millisecond || e.Retry != 700*time.Millisecond {
			t.Errorf("primed after %v, with retry %v", waited, e.Retry)
		}
		for range 3 {
			f.ends()
			if waited := time.Since(begun); waited != 5*time.Second {
				t.Errorf("asked to come back after %v", waited)
			}
			begun = time.Now()
			f = s.resume(id, e.ID)
			if again := f.primed(); again.ID != e.ID {
				t.Errorf("primed with %s, then with %s", e.ID, again.ID)
			}
		}
		f.hangUp()
		synctest.Wait()
		g.release <- struct{}{}
		synctest.Wait()
		f = s.resume(id, e.ID)
		f.primed()
		f.wants(`"result"`)
		f.ends()
	})
}

// What belongs to no request goes to one of the streams that are open for it,
// the newest, and waits if there is none.
func TestOwnStream(t *testing.T) {
	for _, version := range []string{v2411, v2506, v2511} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(nil)
			s := newPipes(t, p, nil)
			id := s.open(version)
			say := func(n int) {
				t.Helper()
				if err := notify(t.Context(), p.session().conn, n); err != nil {
					t.Fatal(err)
				}
			}
			open := func() *feed {
				f := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
				if version == v2511 {
					f.primed()
				}
				return f
			}
			say(1)
			say(2)
			a := open()
			a.wants(noted(1))
			a.wants(noted(2))
			b := open()
			say(3)
			b.wants(noted(3))
			c, d := open(), open()
			s.check("a fifth", s.send(http.MethodGet, "", "Mcp-Session-Id", id), 409)
			say(4)
			d.wants(noted(4))
			c.hangUp()
			d.hangUp()
			synctest.Wait()
			say(5)
			b.wants(noted(5))
			b.hangUp()
			a.hangUp()
			synctest.Wait()
			say(6)
			open().wants(noted(6))
		})
	}
}

// A stream for what belongs to no request is resumed like any other, and what
// was sent meanwhile comes on it.
func TestOwnStreamResumed(t *testing.T) {
	mcptest.NoLeaks(t)
	p := newPeer(nil)
	s := newSite(t, p, nil)
	id := s.open(v2511)
	conn := p.session().conn
	f := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
	last := f.primed().ID
	for n := range 20 {
		if err := notify(t.Context(), conn, n); err != nil {
			t.Fatal(err)
		}
		if n%4 == 0 {
			f.hangUp()
			f = s.resume(id, last)
			f.primed()
		}
		last = f.wants(noted(n)).ID
	}
	newer := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
	newer.primed()
	if err := notify(t.Context(), conn, 99); err != nil {
		t.Fatal(err)
	}
	newer.wants(noted(99))
	// That was delivered on another stream, and is not replayed on this one.
	f.hangUp()
	f = s.resume(id, last)
	f.primed()
	if err := notify(t.Context(), conn, 100); err != nil {
		t.Fatal(err)
	}
	f.wants(noted(100))
}

// A server asks in a session, on the stream of the request or on its own.
func TestServerAsks(t *testing.T) {
	mcptest.NoLeaks(t)
	ask := func(own bool) method {
		return func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			p := ctx.Value(askKey{}).(*peer)
			via := jsonrpc.Sender(x.Out)
			if own {
				via = p.session().conn
			}
			m, err := p.session().requests.Call(ctx, via, "question", jsonrpc.Empty())
			if err != nil {
				return nil, err
			}
			return jsonrpc.Raw(m.Result.Raw()), nil
		}
	}
	p := newPeer(nil)
	for name, f := range map[string]method{"ask": ask(false), "askOwn": ask(true)} {
		p.methods[name] = func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			return f(context.WithValue(ctx, askKey{}, p), x)
		}
	}
	s := newSite(t, p, nil)
	id := s.open(v2511)
	own := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
	own.primed()
	reply := func(f *feed) {
		t.Helper()
		m, err := jsonrpc.Parse(f.wants(`"method":"question"`).Data, jsonrpc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		s.check("answer", s.send(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"yes":1}}`, m.ID), "Mcp-Session-Id", id), 202)
	}
	f := s.follow(http.MethodPost, rpc(1, "ask", ""), "Mcp-Session-Id", id)
	f.primed()
	reply(f)
	f.wants(`"id":1`, `{"yes":1}`)
	f.ends()
	done := make(chan outcome, 1)
	go func() { done <- s.send(http.MethodPost, rpc(2, "askOwn", ""), "Mcp-Session-Id", id) }()
	reply(own)
	s.check("askOwn", within(t, "the answer", done), 200, `{"yes":1}`)
}

type askKey struct{}

// What waits for a client that is away is bounded in size and time.
func TestStreamAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := make(chan int, 10_000)
		failed := make(chan error, 1)
		p := newPeer(map[string]method{"flood": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			for n := 0; ; n++ {
				if err := notify(ctx, x.Out, n); err != nil {
					failed <- err
					return nil, err
				}
				sent <- n
			}
		}})
		s := newPipes(t, p, &streamable.Options{ReplayBuffer: 4096})
		id := s.open(v2506)
		f := s.follow(http.MethodPost, rpc(1, "flood", ""), "Mcp-Session-Id", id)
		f.wants(noted(0))
		last := f.wants(noted(1)).ID
		f.hangUp()
		synctest.Wait()
		full := len(sent)
		if full < 50 || full > 3000 {
			t.Errorf("%d notifications were taken for a client that is away", full)
		}
		time.Sleep(time.Minute)
		if len(sent) != full {
			t.Errorf("%d more notifications were taken", len(sent)-full)
		}
		f = s.follow(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", last)
		for n := 2; n < full; n++ {
			last = f.wants(noted(n)).ID
		}
		f.hangUp()
		synctest.Wait()
		time.Sleep(6 * time.Minute)
		if err := <-failed; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Send failed with %v, want ErrClosed", err)
		}
		s.check("too late", s.send(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", last), 400)
	})
}

// Nobody listens: what belongs to no request waits, up to a bound, for a while.
func TestNobodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(nil)
		s := newPipes(t, p, &streamable.Options{ReplayBuffer: 4096})
		id := s.open(v2511)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var err error
		n := 0
		for ; err == nil; n++ {
			err = notify(ctx, p.session().conn, n)
		}
		if !errors.Is(err, context.DeadlineExceeded) || n < 50 {
			t.Errorf("notification %d failed with %v", n, err)
		}
		time.Sleep(6 * time.Minute)
		if err := notify(t.Context(), p.session().conn, 1000); err != nil {
			t.Error(err)
		}
		f := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
		f.primed()
		f.wants(noted(1000))
	})
}

// Without ids there is no way back: the request goes on, its messages do not.
func TestGoneForGood(t *testing.T) {
	mcptest.NoLeaks(t)
	g := newGate()
	after := make(chan error, 2)
	s := newSite(t, newPeer(map[string]method{"wait": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		g.entered <- ctx
		<-g.release
		var err error
		for range 1000 { // until the disconnect has been noticed
			if err = x.Out.Send(ctx, big); err != nil {
				break
			}
		}
		after <- errors.Join(err, ctx.Err())
		return nil, errNone
	}}), nil)
	id := s.open(v2411)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if r, err := s.do(ctx, http.MethodPost, rpc(1, "wait", ""), "Mcp-Session-Id", id); err == nil {
			r.Body.Close()
		}
	}()
	within(t, "the request", g.entered)
	cancel()
	<-gone
	g.release <- struct{}{}
	if err := within(t, "the end of the request", after); !errors.Is(err, transport.ErrClosed) || errors.Is(err, context.Canceled) {
		t.Errorf("Send to nobody: %v, want ErrClosed, and no cancellation (ruling 13)", err)
	}
}

// A store keeps events in place of the memory.
type store struct {
	streamable.EventStore
	mu     sync.Mutex
	events map[string][]streamable.Event
	fails  bool
}

func (s *store) Append(_ context.Context, e streamable.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return errors.New("the disk is full")
	}
	e.Data = append([]byte(nil), e.Data...)
	key := e.Session + " " + e.Stream
	if n := len(s.events[key]); uint64(n)+1 != e.Seq {
		return fmt.Errorf("event %d comes after %d", e.Seq, n)
	}
	s.events[key] = append(s.events[key], e)
	return nil
}

func (s *store) After(_ context.Context, session, stream string, seq uint64) ([]streamable.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[session+" "+stream][seq:], nil
}

func (s *store) Forget(_ context.Context, session, stream string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.events {
		if key == session+" "+stream || stream == "" && strings.HasPrefix(key, session+" ") {
			delete(s.events, key)
		}
	}
	return nil
}

func TestEventStore(t *testing.T) {
	mcptest.NoLeaks(t)
	kept := &store{events: make(map[string][]streamable.Event)}
	s := newSite(t, newPeer(map[string]method{"count": count(3)}), &streamable.Options{Events: kept})
	id := s.open(v2506)
	s.check("JSON", s.send(http.MethodPost, rpc(1, "echo", ""), "Mcp-Session-Id", id), 200)
	if len(kept.events) != 0 {
		t.Errorf("a JSON answer is in the store: %v", kept.events)
	}
	f := s.follow(http.MethodPost, rpc(1, "count", ""), "Mcp-Session-Id", id)
	first := f.wants(noted(0)).ID
	f.wants(noted(1))
	f.wants(noted(2))
	f.wants(`"result"`)
	f.ends()
	f = s.resume(id, first)
	f.wants(noted(1))
	f.wants(noted(2))
	f.wants(`"result"`)
	f.ends()

	kept.mu.Lock()
	kept.fails = true
	kept.mu.Unlock()
	f = s.follow(http.MethodPost, rpc(2, "count", ""), "Mcp-Session-Id", id)
	first = f.wants(noted(0)).ID
	f.wants(noted(1))
	f.wants(noted(2))
	f.wants(`"result"`)
	f.ends()
	s.check("a store that failed", s.send(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", first), 400)

	s.check("delete", s.send(http.MethodDelete, "", "Mcp-Session-Id", id), 204)
	if len(kept.events) != 0 {
		t.Errorf("the store keeps %v of a session that has ended", kept.events)
	}
}

// A slowStore keeps events, and is slow to begin with it.
type slowStore struct {
	entered, release chan struct{}

	mu       sync.Mutex
	sessions map[string]int // events
}

func (s *slowStore) Append(_ context.Context, e streamable.Event) error {
	s.entered <- struct{}{}
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[e.Session]++
	return nil
}

func (s *slowStore) After(context.Context, string, string, uint64) ([]streamable.Event, error) {
	return nil, streamable.ErrEventsGone
}

func (s *slowStore) Forget(_ context.Context, session, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session)
	return nil
}

// An event that is stored while its session ends is forgotten all the same:
// nobody would ask for it, or ever drop it.
func TestStoredAtTheEnd(t *testing.T) {
	mcptest.NoLeaks(t)
	store := &slowStore{entered: make(chan struct{}, 10), release: make(chan struct{}), sessions: make(map[string]int)}
	s := newSite(t, newPeer(map[string]method{"count": count(2)}), &streamable.Options{Events: store})
	id := s.open(v2506)
	done := make(chan outcome, 1)
	go func() { done <- s.send(http.MethodPost, rpc(1, "count", ""), "Mcp-Session-Id", id) }()
	within(t, "an event", store.entered)
	s.check("DELETE", s.send(http.MethodDelete, "", "Mcp-Session-Id", id), 204)
	close(store.release)
	within(t, "the end of the response", done)
	store.mu.Lock()
	defer store.mu.Unlock()
	if len(store.sessions) > 0 {
		t.Errorf("events of %d sessions are left", len(store.sessions))
	}
}

// Answers that wait for clients that are away are bounded as they come, not
// when somebody looks.
func TestAnswersAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, silent := newGate(), newGate()
		s := newPipes(t, newPeer(map[string]method{"wait": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			if err := notify(ctx, x.Out, 0); err != nil {
				return nil, err
			}
			return silent.wait(ctx, x)
		}, "later": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			if err := notify(ctx, x.Out, 0); err != nil {
				return nil, err
			}
			if _, err := g.wait(ctx, x); err != nil {
				return nil, err
			}
			return jsonrpc.JSON(map[string]string{"pad": strings.Repeat("a", 3000)}), nil
		}}), &streamable.Options{ReplayBuffer: 1000})
		id := s.open(v2506)
		f := s.follow(http.MethodPost, rpc(10, "wait", ""), "Mcp-Session-Id", id)
		empty := f.wants(noted(0)).ID
		f.hangUp()
		synctest.Wait()
		time.Sleep(time.Millisecond)
		var last []string
		for i := range 6 {
			f := s.follow(http.MethodPost, rpc(i, "later", ""), "Mcp-Session-Id", id)
			last = append(last, f.wants(noted(0)).ID)
			f.hangUp()
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		for range 6 {
			g.release <- struct{}{}
			synctest.Wait()
		}
		s.check("the oldest", s.send(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", last[0]), 400)
		f = s.follow(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", last[5])
		f.wants(`"aaa`)
		f.ends()

		// One that holds nothing does not make room.
		f = s.follow(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", empty)
		silent.release <- struct{}{}
		f.wants(`"result"`)
		f.ends()
	})
}
