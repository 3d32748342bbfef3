package streamable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A stream ends with its answer when somebody else answers for a handler that
// takes too long, even if that never comes to an end.
func TestOverdueStreamEnds(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that both ways to write are met
	for _, version := range []string{v2411, v2506, v2511} {
		for _, wait := range []time.Duration{-1, 0, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				s := newPipes(t, newPeer(map[string]method{"early": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
					if err := notify(ctx, x.Out, 1); err != nil {
						return nil, err
					}
					if wait < 0 {
						_ = x.Out.Send(ctx, big) // more than leaves in one write
					}
					time.Sleep(wait)
					if err := x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Error: jsonrpc.NewError(mcp.CodeTimeout, "late")}); err != nil {
						t.Errorf("answering: %v", err)
					}
					<-g.release
					return nil, errNone
				}}), nil)
				id := s.open(version)
				f := s.follow(http.MethodPost, rpc(1, "early", ""), "Mcp-Session-Id", id)
				if version == v2511 {
					f.primed()
				}
				f.wants(noted(1))
				if wait < 0 {
					f.next()
				}
				f.wants("-31003")
				f.ends()
				s.check("the next", s.send(http.MethodPost, rpc(2, "echo", ""), "Mcp-Session-Id", id), 200, "{}")
				g.release <- struct{}{}
			})
		}
	}
}

// A stream that waits for its client to come back does not keep the request.
func TestStreamLetsGoOfRequest(t *testing.T) {
	mcptest.NoLeaks(t)
	const many, size = 40, 1 << 20
	s := newSite(t, newPeer(map[string]method{"count": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		return jsonrpc.Empty(), notify(ctx, x.Out, 1)
	}}), nil)
	id := s.open(v2511)
	body := rpc(1, "count", `"pad":"`+strings.Repeat("x", size)+`"`)
	round := func() {
		s.check("count", s.send(http.MethodPost, body, "Mcp-Session-Id", id), 200, noted(1), `"result"`)
	}
	round()
	before := usedMemory()
	for range many {
		round()
	}
	if more := usedMemory() - before; more > many*size/4 {
		t.Errorf("%d requests of %d bytes left %d bytes behind", many, size, more)
	}
	runtime.KeepAlive(s)
}

// What can reach nobody any more is refused at once: who asks something would
// wait for an answer in vain.
func TestSendToNobody(t *testing.T) {
	for _, version := range []string{v2411, v2503, v2511} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			sent := make(chan error, 1)
			s := newPipes(t, newPeer(map[string]method{"ask": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
				_, _ = g.wait(ctx, x)
				sent <- notify(ctx, x.Out, 1)
				return jsonrpc.Empty(), nil
			}}), nil)
			id := s.open(version)
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				r, err := s.do(ctx, http.MethodPost, rpc(1, "ask", ""), "Mcp-Session-Id", id)
				if err == nil {
					_ = r.Body.Close()
				}
				gone <- err
			}()
			<-g.entered
			cancel()
			if err := <-gone; err == nil {
				t.Error("the request did not end")
			}
			synctest.Wait()
			g.release <- struct{}{}
			if err := <-sent; err == nil {
				t.Errorf("%s: a message was sent to a client that has gone", version)
			}
		})
	}
}

// Who does not read his refusal keeps nobody else of the session waiting.
func TestRefusalNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := newPipes(t, newPeer(map[string]method{"wait": g.wait}), nil)
		id := s.open(v2506)
		first := s.background(rpc(1, "wait", ""), "Mcp-Session-Id", id)
		<-g.entered
		// The same id again, on a connection that nobody reads.
		dial := s.client.Transport.(*http.Transport).DialContext
		conn, err := dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		send(t, conn, id, rpc(1, "wait", ""))
		synctest.Wait()
		begun := time.Now()
		s.check("another", s.send(http.MethodPost, rpc(2, "echo", ""), "Mcp-Session-Id", id), 200, "{}")
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("another request waited for %v", waited)
		}
		g.release <- struct{}{}
		<-first
	})
}

// background sends a request that is answered later.
func (s *site) background(body string, header ...string) <-chan outcome {
	answer := make(chan outcome, 1)
	go func() { answer <- s.send(http.MethodPost, body, header...) }()
	return answer
}

// send writes a POST to a connection.
func send(t *testing.T, conn net.Conn, session, body string) {
	t.Helper()
	_, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nX-User: ada\r\nContent-Type: application/json\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", session, len(body), body)
	if err != nil {
		t.Fatal(err)
	}
}

// A client has as much time for a large result as for a small one of its size
// in one piece: it cannot have it for ever by taking a little at a time.
func TestLargeResultTrickles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, stall = 10 << 20, 10 * time.Second
		result := make(chan error, 1)
		s := newPipes(t, newPeer(map[string]method{"large": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			result <- x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: large{size: size}})
			return nil, errNone
		}}), &streamable.Options{WriteStall: stall})
		begun := time.Now()
		r, err := s.do(t.Context(), http.MethodPost, modernBody(1, "large", ""))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Body.Close() }()
		piece := make([]byte, 64<<10)
		for err == nil {
			_, err = io.ReadFull(r.Body, piece)
			time.Sleep(stall - time.Second)
		}
		if err := <-result; !errors.Is(err, transport.ErrStalled) {
			t.Errorf("the answer ended with %v, want ErrStalled", err)
		}
		if waited := time.Since(begun); waited > 4*time.Minute {
			t.Errorf("given up after %v", waited)
		}
	})
}

// A liar is a result that is not as long as it says.
type liar struct {
	jsonrpc.Body

	size int64
}

func (l liar) JSONSize() int64 { return l.size }
func (l liar) WriteJSON(w io.Writer) error {
	_, err := w.Write([]byte(`{}`))
	return err
}

// A result that is shorter than it said breaks off, and does not look whole.
func TestLargeResultLies(t *testing.T) {
	mcptest.NoLeaks(t)
	errs := make(chan error, 1)
	s := newSite(t, newPeer(map[string]method{"lie": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		errs <- x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: liar{jsonrpc.Empty(), 1 << 20}})
		return nil, errNone
	}}), nil)
	r, err := s.do(t.Context(), http.MethodPost, modernBody(1, "lie", ""))
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	if err == nil {
		t.Error("the response is whole")
	}
	if err := within(t, "the answer", errs); err == nil {
		t.Error("the answer is said to be sent")
	}
}

// A counted connection says in how many writes a response came.
type counted struct {
	net.Conn
	writes *atomic.Int32
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// What is there when a response of a session begins leaves in one write.
func TestOneWrite(t *testing.T) {
	mcptest.NoLeaks(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the answer is there before a writer is
	h := streamable.NewHandler(newPeer(map[string]method{"count": count(3)}), asUser(nil))
	var writes atomic.Int32
	m := webtest.NewMemory(t)
	webtest.ServeOn(t, countedListener{m, &writes}, &http.Server{Handler: h, ReadHeaderTimeout: patience})
	webtest.ShutDown(t, h.Shutdown)
	s := &site{TB: t, h: h, url: "http://localhost", client: m.Client(), user: "ada"}
	id := s.open(v2511)
	best := int32(100)
	for range 20 {
		writes.Store(0)
		r := s.send(http.MethodPost, rpc(1, "count", ""), "Mcp-Session-Id", id)
		s.check("count", r, 200, "retry: ", noted(0), noted(1), noted(2), `"result"`)
		if n := bytes.Count([]byte(r.body), []byte("id: ")); n != 5 {
			t.Errorf("%d events, want 5: %s", n, r.body)
		}
		best = min(best, writes.Load())
	}
	if best != 1 {
		t.Errorf("a response took %d writes at best, want 1", best)
	}
}

type countedListener struct {
	net.Listener
	writes *atomic.Int32
}

func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return counted{c, l.writes}, err
}

// However often a client loses its stream and comes back for it, it gets each
// event once and in order.
func TestResumedAtRandom(t *testing.T) {
	mcptest.NoLeaks(t)
	const clients, rounds, many = 8, 10, 60
	s := newSite(t, newPeer(map[string]method{"count": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		for i := range many {
			if rand.IntN(4) == 0 {
				runtime.Gosched()
			}
			if err := notify(ctx, x.Out, i); err != nil {
				return nil, err
			}
		}
		return jsonrpc.Empty(), nil
	}}), nil)
	var working sync.WaitGroup
	for range clients {
		working.Go(func() {
			id := s.open(v2511)
			for n := range rounds {
				if err := s.readInParts(id, n, many); err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
}

// readInParts sends a request and reads its stream, a few events from each
// connection.
func (s *site) readInParts(id string, n, many int) error {
	header := []string{"Mcp-Session-Id", id}
	verb, body, seen := http.MethodPost, rpc(n+1, "count", ""), 0
	for {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		r, err := s.do(ctx, verb, body, header...)
		if err != nil {
			cancel()
			return err
		}
		events := eventstream.NewReader(r.Body, 1<<20)
		last := ""
		for range 1 + rand.IntN(20) {
			e, err := events.Next()
			if err != nil {
				cancel()
				return fmt.Errorf("after %d events, status %d: %w", seen, r.StatusCode, err)
			}
			last = e.ID
			if len(e.Data) == 0 {
				continue
			}
			want := noted(seen)
			if seen == many {
				want = `"result"`
			}
			if !strings.Contains(string(e.Data), want) {
				cancel()
				return fmt.Errorf("got %s, want %s", e.Data, want)
			}
			if seen++; seen > many {
				_, err = events.Next()
				cancel()
				if !errors.Is(err, io.EOF) {
					return fmt.Errorf("after the answer: %w", err)
				}
				return r.Body.Close()
			}
		}
		cancel()
		_ = r.Body.Close()
		verb, body, header = http.MethodGet, "", []string{"Mcp-Session-Id", id, "Last-Event-Id", last}
	}
}

// Over HTTP/2 a response whose stream is taken over ends too, and leaves the
// connection as it is.
func TestTakenOverHTTP2(t *testing.T) {
	mcptest.NoLeaks(t)
	g := newGate()
	h := streamable.NewHandler(newPeer(map[string]method{"wait": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		if err := notify(ctx, x.Out, 1); err != nil {
			return nil, err
		}
		return g.wait(ctx, x)
	}}), asUser(nil))
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	s := &site{TB: t, h: h, url: srv.URL, client: srv.Client(), user: "ada"}
	id := s.open(v2511)
	first := s.follow(http.MethodPost, rpc(1, "wait", ""), "Mcp-Session-Id", id)
	if first.r.ProtoMajor != 2 {
		t.Fatalf("protocol %s", first.r.Proto)
	}
	last := first.primed().ID
	first.wants(noted(1))
	<-g.entered
	second := s.follow(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", last)
	second.primed()
	second.wants(noted(1))
	if e, err := first.events.Next(); err == nil {
		t.Errorf("the first response goes on: %+v", e)
	}
	g.release <- struct{}{}
	second.wants(`"result"`)
	second.ends()
	s.check("another", s.send(http.MethodPost, rpc(2, "echo", ""), "Mcp-Session-Id", id), 200, "{}")
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
