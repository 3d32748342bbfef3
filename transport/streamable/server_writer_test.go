package streamable_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Ruling 10: elements of an array are known as such, also when an earlier one
// has sent something, so that the answers are events.
func TestBatchedAfterEvents(t *testing.T) {
	sent, batched := make(chan struct{}), make(chan bool, 1)
	p := newPeer(map[string]method{
		"first": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			err := notify(ctx, x.Out, 1)
			close(sent)
			return jsonrpc.Empty(), err
		},
		"last": func(_ context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			batched <- x.Batched
			return jsonrpc.Empty(), nil
		},
	})
	p.accepted = make(chan *jsonrpc.Incoming) // the notification between them waits
	s := newSite(t, p, nil)
	id := s.open(v2503)
	go func() {
		<-sent
		<-p.accepted
	}()
	s.send(http.MethodPost, "["+rpc(1, "first", "")+`,{"jsonrpc":"2.0","method":"between"},`+rpc(2, "last", "")+"]", "Mcp-Session-Id", id)
	if !<-batched {
		t.Error("the last element is taken for a message by itself")
	}
}

// A message finds room although answers wait for others of their array: they
// leave as events then.
func TestBatchMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(map[string]method{
			"big": func(context.Context, *transport.Exchange) (jsonrpc.Body, error) {
				return jsonrpc.JSON(strings.Repeat("x", 40<<10)), nil
			},
			"say": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
				time.Sleep(time.Second) // the other one is answered
				begun := time.Now()
				err := notify(ctx, x.Out, 1)
				if waited := time.Since(begun); waited > 0 {
					t.Errorf("sending took %v", waited)
				}
				return jsonrpc.Empty(), err
			},
		})
		s := newPipes(t, p, &streamable.Options{Sessionless: true})
		r := s.send(http.MethodPost, "["+rpc(1, "big", "")+","+rpc(2, "say", "")+"]", "MCP-Protocol-Version", v2503)
		s.check("array", r, http.StatusOK, `"id":1`, `"id":2`, noted(1))
	})
}

// Without a session each request of an array is answered, in events too, and the
// status is 200 whatever its errors are.
func TestSessionlessBatchAbandoned(t *testing.T) {
	said := make(chan struct{})
	s := newSite(t, newPeer(map[string]method{
		"say": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			defer close(said)
			return jsonrpc.Empty(), notify(ctx, x.Out, 1)
		},
		"none": func(context.Context, *transport.Exchange) (jsonrpc.Body, error) {
			<-said
			return nil, errNone
		},
		"scopes": needs(`{"scopes":["a"]}`),
	}), &streamable.Options{Sessionless: true})
	r := s.send(http.MethodPost, "["+rpc(1, "say", "")+","+rpc(2, "none", "")+"]", "MCP-Protocol-Version", v2503)
	s.check("events", r, http.StatusOK, `"id":1`, `"id":2`, "without an answer")
	r = s.send(http.MethodPost, "["+rpc(1, "scopes", "")+"]", "MCP-Protocol-Version", v2503)
	s.check("scopes", r, http.StatusOK, `"error"`)
}

// panicking is a large result whose author has made a mistake.
type panicking struct{}

func (panicking) JSONSize() int64                       { return 100 << 10 }
func (panicking) AppendJSON(dst []byte) ([]byte, error) { return append(dst, "{}"...), nil }
func (panicking) WriteJSON(io.Writer) error             { panic("planted") }

// A panic in the middle of an answer costs its connection and nothing more.
func TestPanicWhileWriting(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newSite(t, newPeer(map[string]method{"big": func(context.Context, *transport.Exchange) (jsonrpc.Body, error) {
		return panicking{}, nil
	}}), nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := s.do(ctx, http.MethodPost, modernBody(1, "big", ""), "MCP-Protocol-Version", v2607, "Mcp-Method", "big")
	if err == nil {
		_, err = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	if err == nil || ctx.Err() != nil {
		t.Errorf("error %v, want a connection that ends", err)
	}
	s.check("after it", s.modern("echo", ""), http.StatusOK)
}

// A large result of a session that cannot be encoded is answered with an error.
func TestLargeResultOfSession(t *testing.T) {
	s := newSite(t, newPeer(map[string]method{"torn": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		err := x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: large{size: 1 << 20, torn: true}})
		if !errors.Is(err, errTorn) {
			t.Errorf("Answer: %v, want the reason", err)
		}
		return nil, err
	}}), nil)
	s.check("torn", s.send(http.MethodPost, rpc(1, "torn", ""), "Mcp-Session-Id", s.open(v2511)), http.StatusOK, errTorn.Error())
}

// failing is a writer whose first write waits, and which then fails.
type failing struct {
	*httptest.ResponseRecorder
	entered, leave chan struct{}
}

func (w *failing) Write([]byte) (int, error) {
	select {
	case <-w.entered:
	default:
		close(w.entered)
	}
	<-w.leave
	return 0, errors.New("gone")
}

func (w *failing) FlushError() error                { return nil }
func (w *failing) SetWriteDeadline(time.Time) error { return nil }
func (w *failing) SetReadDeadline(time.Time) error  { return nil }

// An answer that is written by somebody else says so if that fails.
func TestAnswerBehindFailingWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &failing{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		var got error
		h := streamable.NewHandler(newPeer(map[string]method{"m": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			if err := notify(ctx, x.Out, 1); err != nil {
				t.Error(err)
			}
			<-w.entered
			time.AfterFunc(time.Second, func() { close(w.leave) })
			got = x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: jsonrpc.Empty()})
			return nil, errNone
		}}), nil)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader([]byte(modernBody(1, "m", ""))))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("MCP-Protocol-Version", v2607)
		r.Header.Set("Mcp-Method", "m")
		r.Host = "localhost"
		h.ServeHTTP(w, r)
		if !errors.Is(got, transport.ErrClosed) {
			t.Errorf("Answer: %v, want ErrClosed", got)
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// heldStore waits before it takes the second event.
type heldStore struct {
	store
	entered, leave chan struct{}
}

func (s *heldStore) Append(ctx context.Context, e streamable.Event) error {
	if e.Seq == 2 {
		close(s.entered)
		<-s.leave
	}
	return s.store.Append(ctx, e)
}

// Two resumptions while an event is put into the store: the last one gets all,
// the other one an event stream that ends.
func TestResumedTwiceWhileStoring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &heldStore{store{events: make(map[string][]streamable.Event)}, make(chan struct{}), make(chan struct{})}
		st := newStepper()
		s := newPipes(t, newPeer(map[string]method{"m": st.run}), &streamable.Options{Events: kept})
		id := s.open(v2506)
		st.steps <- 0
		f := s.follow(http.MethodPost, rpc(1, "m", ""), "Mcp-Session-Id", id)
		first := f.wants(noted(0)).ID
		st.steps <- 1
		<-kept.entered
		two := s.later(http.MethodGet, "Mcp-Session-Id", id, "Last-Event-ID", first)
		synctest.Wait()
		three := s.later(http.MethodGet, "Mcp-Session-Id", id, "Last-Event-ID", first)
		synctest.Wait()
		close(kept.leave)
		r := <-two
		s.check("the one before", r, http.StatusOK)
		if kind := r.header.Get("Content-Type"); kind != "text/event-stream" {
			t.Errorf("the one before has type %q", kind)
		}
		close(st.steps)
		s.check("the last one", <-three, http.StatusOK, noted(1), `"id":1`)
	})
}

// panickingStore cannot give back what it has taken.
type panickingStore struct{ store }

func (*panickingStore) After(context.Context, string, string, uint64) ([]streamable.Event, error) {
	panic("planted")
}

// A panic of the store of events while a stream is resumed costs its connection
// and nothing more.
func TestPanicWhileResuming(t *testing.T) {
	mcptest.NoLeaks(t)
	st := newStepper()
	s := newSite(t, newPeer(map[string]method{"m": st.run}), &streamable.Options{
		Events: &panickingStore{store{events: make(map[string][]streamable.Event)}},
	})
	id := s.open(v2506)
	st.steps <- 0
	f := s.follow(http.MethodPost, rpc(1, "m", ""), "Mcp-Session-Id", id)
	first := f.wants(noted(0)).ID
	st.steps <- 1
	f.wants(noted(1))
	if r, err := s.do(t.Context(), http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-ID", first); err == nil {
		_ = r.Body.Close()
		t.Errorf("status %d, want a connection that ends", r.StatusCode)
	}
	close(st.steps)
	s.check("after it", s.send(http.MethodPost, rpc(2, "echo", ""), "Mcp-Session-Id", id), http.StatusOK)
}

// appendPanics is a store that panics when events are added.
type appendPanics struct{ store }

func (*appendPanics) Append(context.Context, streamable.Event) error { panic("planted") }

// A panic of the store while a GET, or the end of a POST, writes what waits leaves
// the session as it was.
func TestPanicWhileStoring(t *testing.T) {
	mcptest.NoLeaks(t)
	p := newPeer(nil)
	s := newSite(t, p, &streamable.Options{
		Events: &appendPanics{store{events: make(map[string][]streamable.Event)}},
	})
	id := s.open(v2506)
	if err := p.session().conn.Send(t.Context(), &jsonrpc.Outgoing{Method: "notifications/message", Params: jsonrpc.Empty()}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.do(t.Context(), http.MethodGet, "", "Mcp-Session-Id", id); err == nil {
		_ = r.Body.Close() // net/http asks again where a connection breaks at once
	}
	s.check("after it", s.send(http.MethodPost, rpc(2, "echo", ""), "Mcp-Session-Id", id), http.StatusOK)
}

// later is send in the background.
func (s *site) later(httpMethod string, header ...string) <-chan outcome {
	c := make(chan outcome, 1)
	go func() { c <- s.send(httpMethod, "", header...) }()
	return c
}

// seemingDeadlines is a writer that has the methods and nothing behind them.
type seemingDeadlines struct{ http.ResponseWriter }

func (seemingDeadlines) SetWriteDeadline(time.Time) error { return http.ErrNotSupported }
func (seemingDeadlines) SetReadDeadline(time.Time) error  { return http.ErrNotSupported }

// Shutdown cancels requests also where deadlines cannot.
func TestShutdownWithoutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled := false
		h := streamable.NewHandler(newPeer(map[string]method{"wait": func(ctx context.Context, _ *transport.Exchange) (jsonrpc.Body, error) {
			select {
			case <-ctx.Done():
				cancelled = true
			case <-time.After(time.Hour):
			}
			return jsonrpc.Empty(), nil
		}}), nil)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(modernBody(1, "wait", "")))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("MCP-Protocol-Version", v2607)
		r.Header.Set("Mcp-Method", "wait")
		r.Host = "localhost"
		go h.ServeHTTP(seemingDeadlines{httptest.NewRecorder()}, r)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || !cancelled {
			t.Errorf("Shutdown: %v, cancelled: %v", err, cancelled)
		}
	})
}

// A connection stays where no handler holds it: the handler of a request that is
// polled for has a goroutine of its own.
func TestPolledAnswerKeepsConnection(t *testing.T) {
	s := newSite(t, newPeer(map[string]method{"late": func(context.Context, *transport.Exchange) (jsonrpc.Body, error) {
		return nil, jsonrpc.NewError(-31003, "too long")
	}}), &streamable.Options{PollAfter: time.Minute})
	r, err := s.do(t.Context(), http.MethodPost, rpc(1, "late", ""), "Mcp-Session-Id", s.open(v2511))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if r.Close {
		t.Error("the connection ends")
	}
}
