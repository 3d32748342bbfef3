package streamable_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Ruling 13: closing the stream of a modern request cancels it, before as
// well as after its response has begun.
func TestDisconnectCancels(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, begun := range []bool{false, true} {
		g := newGate()
		ended := make(chan error, 1)
		s := newSite(t, newPeer(map[string]method{"wait": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			if begun {
				if err := notify(ctx, x.Out, 0); err != nil {
					return nil, err
				}
			}
			_, _ = g.wait(ctx, x)
			ended <- ctx.Err()
			return nil, errNone
		}}), nil)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			r, err := s.do(ctx, http.MethodPost, modernBody(1, "wait", ""))
			if err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
		}()
		within(t, "the request", g.entered)
		cancel()
		if err := within(t, "the end of the handler", ended); !errors.Is(err, context.Canceled) {
			t.Errorf("response begun %v: the handler ended with %v", begun, err)
		}
		<-gone
	}
}

// What comes too late is told so, and never reaches the response of another
// request on the same connection.
func TestLateSend(t *testing.T) {
	for _, version := range []string{v2607, v2511} {
		synctest.Test(t, func(t *testing.T) { // what takes 200 ms is an event stream in a session
			var late []*transport.Exchange
			s := newPipes(t, newPeer(map[string]method{"late": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
				for _, other := range late {
					if err := notify(ctx, other.Out, 1); !errors.Is(err, jsonrpc.ErrEnded) {
						t.Errorf("%s: a late Send: %v, want ErrEnded", version, err)
					}
					if err := other.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: jsonrpc.Empty()}); !errors.Is(err, jsonrpc.ErrEnded) {
						t.Errorf("%s: a late Answer: %v, want ErrEnded", version, err)
					}
				}
				late = append(late, x)
				return jsonrpc.Empty(), nil
			}}), nil)
			header := []string{"MCP-Protocol-Version", version}
			if version == v2511 {
				header = append(header, "Mcp-Session-Id", s.open(version))
			}
			for i := range 5 {
				r := s.send(http.MethodPost, rpc(i, "late", ""), header...)
				s.check("late", r, 200, `{"jsonrpc":"2.0","id":`, `"result":{}}`)
				if r.header.Get("Content-Type") != "application/json" || strings.Contains(r.body, "note") {
					t.Errorf("%s: response %v %s", version, r.header, r.body)
				}
			}
		})
	}
}

// A handler that goes on although its time is up and somebody else has answered
// keeps nothing from the client: neither the answer, nor the next request. The
// codes are those of package mcp.
func TestAnswerLeavesAtOnce(t *testing.T) {
	mcptest.NoLeaks(t)
	g := newGate()
	s := newSite(t, newPeer(map[string]method{"early": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		if err := x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Error: jsonrpc.NewError(mcp.CodeTimeout, "late")}); err != nil {
			t.Errorf("answering: %v", err)
		}
		<-g.release
		return nil, errNone
	}}), nil)
	s.check("early", s.modern("early", ""), 200, "-31003")
	id := s.open(v2511)
	s.check("early", s.send(http.MethodPost, rpc(1, "early", ""), "Mcp-Session-Id", id), 200, "-31003")
	g.release <- struct{}{}
	g.release <- struct{}{}
}

// All notifications of a request arrive, in order, however slowly they are
// read; those that nobody reads stop their sender.
func TestManyNotifications(t *testing.T) {
	mcptest.NoLeaks(t)
	const many = 1000
	s := newSite(t, newPeer(map[string]method{"count": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		for i := range many {
			m := &jsonrpc.Outgoing{Method: "note", Params: jsonrpc.JSON(map[string]any{"n": i, "pad": strings.Repeat("x", 8<<10)})}
			if err := x.Out.Send(ctx, m); err != nil {
				return nil, err
			}
		}
		return jsonrpc.Empty(), nil
	}}), nil)
	for _, header := range [][]string{{"MCP-Protocol-Version", v2607}, {"Mcp-Session-Id", s.open(v2411)}, {"Mcp-Session-Id", s.open(v2506)}} {
		f := s.follow(http.MethodPost, rpc(1, "count", ""), header...)
		for i := range many {
			e := f.next()
			m, err := jsonrpc.Parse(e.Data, jsonrpc.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			n, _ := m.Params.Member("n")
			if got := string(n); got != string(appendInt(i)) {
				t.Fatalf("notification %s, want %d", got, i)
			}
		}
		f.wants(`"result"`)
		f.ends()
	}
}

func appendInt(i int) []byte {
	b, _ := jsonrpc.IntID(int64(i)).AppendJSON(nil)
	return b
}

// A client that reads nothing is given up after WriteStall.
func TestCallStall(t *testing.T) {
	for _, version := range []string{v2607, v2411} {
		synctest.Test(t, func(t *testing.T) {
			stalled := make(chan error, 1)
			gone := make(chan struct{}, 1)
			p := newPeer(map[string]method{"flood": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
				context.AfterFunc(ctx, func() { gone <- struct{}{} })
				for {
					if err := x.Out.Send(context.Background(), big); err != nil {
						stalled <- err
						return nil, err
					}
				}
			}})
			s := newPipes(t, p, &streamable.Options{WriteStall: 10 * time.Second})
			header := []string{"MCP-Protocol-Version", version}
			if version != v2607 {
				header = []string{"Mcp-Session-Id", s.open(version)}
			}
			begun := time.Now()
			s.follow(http.MethodPost, rpc(1, "flood", ""), header...)
			if err := <-stalled; !errors.Is(err, transport.ErrStalled) {
				t.Errorf("%s: Send failed with %v, want ErrStalled", version, err)
			}
			// A second more for each 64 KiB of 256 KiB, and a chunk more.
			if waited := time.Since(begun); waited < 10*time.Second || waited > 16*time.Second {
				t.Errorf("%s: given up after %v", version, waited)
			}
			if version == v2607 {
				<-gone
			}
		})
	}
}

// What a handler leaves undone is answered in its place.
func TestCallAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // what takes 200 ms begins with an event in a session
		s := newPipes(t, newPeer(map[string]method{
			"nothing": func(context.Context, *transport.Exchange) (jsonrpc.Body, error) { return nil, errNone },
			"half": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
				return nil, errors.Join(errNone, notify(ctx, x.Out, 1))
			},
		}), nil)
		s.check("modern", s.modern("nothing", ""), 200, `"id":1`, "-32603")
		f := s.follow(http.MethodPost, modernBody(1, "half", ""))
		f.wants(noted(1))
		f.ends()
		id := s.open(v2511)
		f = s.follow(http.MethodPost, rpc(1, "nothing", ""), "Mcp-Session-Id", id)
		f.ends()
	})
}

// A result that cannot be encoded leaves room for an error.
func TestUnencodable(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newSite(t, newPeer(map[string]method{"bad": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		bad := jsonrpc.JSON(func() {})
		if err := x.Out.Send(ctx, &jsonrpc.Outgoing{Method: "note", Params: bad}); err == nil {
			t.Error("a function was sent")
		}
		if err := x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: bad}); err == nil {
			t.Error("a function was answered")
		}
		return nil, errors.New("sorry")
	}}), nil)
	s.check("modern", s.modern("bad", ""), 200, "-32603", "sorry")
	s.check("legacy", s.send(http.MethodPost, rpc(1, "bad", ""), "Mcp-Session-Id", s.open(v2511)), 200, "-32603", "sorry")
}

// Handlers send from several goroutines; each event stays whole.
func TestConcurrentSends(t *testing.T) {
	mcptest.NoLeaks(t)
	const senders, each = 8, 50
	s := newSite(t, newPeer(map[string]method{"many": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		done := make(chan error, senders)
		for range senders {
			go func() {
				var err error
				for i := range each {
					err = errors.Join(err, notify(ctx, x.Out, i))
				}
				done <- err
			}()
		}
		var err error
		for range senders {
			err = errors.Join(err, <-done)
		}
		return jsonrpc.Empty(), err
	}}), nil)
	for _, header := range [][]string{{"MCP-Protocol-Version", v2607}, {"Mcp-Session-Id", s.open(v2511)}} {
		f := s.follow(http.MethodPost, rpc(1, "many", ""), header...)
		if header[1] != v2607 {
			f.primed()
		}
		for range senders * each {
			f.wants(`"method":"note"`)
		}
		f.wants(`"result"`)
		f.ends()
	}
}
