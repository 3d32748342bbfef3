package jsonrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
)

var errCause = errors.New("the cause")

// sender is a Sender made of a function.
type sender func(context.Context, *jsonrpc.Outgoing) error

func (s sender) Send(ctx context.Context, m *jsonrpc.Outgoing) error { return s(ctx, m) }

// sink sends into a channel.
func sink(c chan *jsonrpc.Outgoing) sender {
	return func(ctx context.Context, m *jsonrpc.Outgoing) error {
		select {
		case c <- m:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func begin(t *testing.T, p *jsonrpc.Peer, id jsonrpc.ID) (context.Context, func()) {
	t.Helper()
	ctx, end, err := p.Begin(t.Context(), id)
	if err != nil {
		t.Fatalf("Begin(%v): %v", id, err)
	}
	return ctx, end
}

// Proves: MSG-3 (inbound). Ruling 7: a duplicate id in flight is refused.
func TestPeerBegin(t *testing.T) {
	p := jsonrpc.NewPeer(&jsonrpc.PeerOptions{MaxInFlight: 2})
	one, two, three := jsonrpc.IntID(1), jsonrpc.StringID("1"), jsonrpc.IntID(3)
	ctx, end := begin(t, p, one)
	_, endTwo := begin(t, p, two)
	_, _, err := p.Begin(t.Context(), one)
	var wire *jsonrpc.Error
	if !errors.Is(err, jsonrpc.ErrDuplicateID) || !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidRequest {
		t.Errorf("second Begin of an id: %v", err)
	}
	if _, endNone, err := p.Begin(t.Context(), three); !errors.Is(err, jsonrpc.ErrTooMany) {
		t.Errorf("third Begin: %v, want ErrTooMany", err)
	} else {
		endNone() // does nothing, also not to others
	}
	if _, _, err := p.Begin(t.Context(), jsonrpc.ID{}); err == nil {
		t.Error("Begin without id is accepted")
	}
	if got, _ := p.InFlight(); got != 2 {
		t.Errorf("%d in flight, want 2", got)
	}
	end()
	if ctx.Err() == nil {
		t.Error("the context outlives its request")
	}
	_, endAgain := begin(t, p, one)
	end() // of the earlier request: must not end the later one
	if got, _ := p.InFlight(); got != 2 {
		t.Errorf("%d in flight after ending an ended request, want 2", got)
	}
	endAgain()
	endTwo()
	p.Close(nil)
}

// A tracking cancels its own request alone: not a later one with the same id,
// and none at all if it was never used. Proves: SEC-CANCEL-1.
func TestInboundCancel(t *testing.T) {
	p, id := jsonrpc.NewPeer(nil), jsonrpc.IntID(1)
	var unused, first, second jsonrpc.Inbound
	unused.Cancel(errCause)
	one, err := p.Track(t.Context(), id, &first)
	if err != nil {
		t.Fatal(err)
	}
	first.End()
	two, err := p.Track(t.Context(), id, &second)
	if err != nil {
		t.Fatal(err)
	}
	first.Cancel(errCause)
	if two.Err() != nil || errors.Is(context.Cause(one), errCause) {
		t.Errorf("the causes are %v and %v", context.Cause(one), context.Cause(two))
	}
	second.Cancel(errCause)
	if !errors.Is(context.Cause(two), errCause) {
		t.Errorf("cause is %v, want %v", context.Cause(two), errCause)
	}
	second.End()
	p.Close(nil)
}

// Proves: SEC-CANCEL-1 (only one's own active request can be cancelled).
func TestPeerCancel(t *testing.T) {
	mine, theirs := jsonrpc.NewPeer(nil), jsonrpc.NewPeer(nil)
	id := jsonrpc.IntID(1)
	ctx, end := begin(t, mine, id)
	if theirs.Cancel(id, errCause) || mine.Cancel(jsonrpc.StringID("1"), errCause) {
		t.Error("a request that is not there was cancelled")
	}
	if ctx.Err() != nil {
		t.Fatal("a stranger's cancellation reached the request")
	}
	if !mine.Cancel(id, errCause) || !errors.Is(context.Cause(ctx), errCause) {
		t.Errorf("cause is %v, want %v", context.Cause(ctx), errCause)
	}
	if _, _, err := mine.Begin(t.Context(), id); !errors.Is(err, jsonrpc.ErrDuplicateID) {
		t.Errorf("a cancelled request that still runs is not tracked: %v", err)
	}
	end()
	if mine.Cancel(id, errCause) {
		t.Error("a request that has ended was cancelled")
	}
}

// Proves: MSG-3 (outbound): own id space, fresh ids, answers find their calls.
func TestPeerCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := jsonrpc.NewPeer(nil)
		sent := make(chan *jsonrpc.Outgoing, 3)
		_, end := begin(t, p, jsonrpc.IntID(1)) // theirs, not ours
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				in, err := p.Call(t.Context(), sink(sent), fmt.Sprint("m", i), jsonrpc.Empty())
				if err != nil || in.Error == nil || in.Error.Message != fmt.Sprint("m", i) {
					t.Errorf("call %d: %v, %v", i, in, err)
				}
			})
		}
		synctest.Wait()
		seen := map[jsonrpc.ID]bool{}
		for range 3 {
			m := <-sent
			if seen[m.ID] || m.ID.IsZero() {
				t.Errorf("id %v is used twice", m.ID)
			}
			seen[m.ID] = true
			if !p.Resolve(&jsonrpc.Incoming{Kind: jsonrpc.Response, ID: m.ID, Error: jsonrpc.NewError(1, "%s", m.Method)}) {
				t.Errorf("nobody waits for %v", m.ID)
			}
		}
		wg.Wait()
		if in, out := p.InFlight(); in != 1 || out != 0 {
			t.Errorf("in flight: %d and %d, want the inbound one", in, out)
		}
		end()
	})
}

// Proves: Ruling 43. The ids of requests differ between peers, and none follows from the one before.
func TestPeerIDs(t *testing.T) {
	seen := make(map[jsonrpc.ID]bool)
	for range 2 {
		p, prefix := jsonrpc.NewPeer(nil), "none"
		answered := sender(func(_ context.Context, m *jsonrpc.Outgoing) error {
			text := m.ID.String()
			if seen[m.ID] || len(text) != len(`"ABCDEFGHIJKLM"`) || strings.HasPrefix(text, prefix) {
				t.Fatalf("the id %s after one that begins with %s", text, prefix)
			}
			seen[m.ID], prefix = true, text[:len(text)/2]
			p.Resolve(&jsonrpc.Incoming{Kind: jsonrpc.Response, ID: m.ID})
			return nil
		})
		for range 100 {
			if _, err := p.Call(t.Context(), answered, "m", nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Proves: MSG-3 (an unknown response is dropped and logged).
func TestPeerResolveUnknown(t *testing.T) {
	var log bytes.Buffer
	p := jsonrpc.NewPeer(&jsonrpc.PeerOptions{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if p.Resolve(&jsonrpc.Incoming{Kind: jsonrpc.Response, ID: jsonrpc.StringID("x")}) {
		t.Error("an unknown response was taken")
	}
	if !strings.Contains(log.String(), "DEBUG") || !strings.Contains(log.String(), "x") {
		t.Errorf("log is %q", log.String())
	}
}

func TestPeerCallAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := jsonrpc.NewPeer(nil)
		sent := make(chan *jsonrpc.Outgoing, 1)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errCause)
		defer cancel()
		start := time.Now()
		in, err := p.Call(ctx, sink(sent), "m", nil)
		var abandoned *jsonrpc.AbandonedError
		if in != nil || !errors.As(err, &abandoned) || !errors.Is(err, errCause) {
			t.Fatalf("Call = %v, %v", in, err)
		}
		if m := <-sent; abandoned.ID != m.ID || abandoned.Method != "m" || time.Since(start) != time.Minute {
			t.Errorf("abandoned %+v of %+v after %v", abandoned, m, time.Since(start))
		}
		if p.Resolve(&jsonrpc.Incoming{Kind: jsonrpc.Response, ID: abandoned.ID}) {
			t.Error("a late response was taken")
		}
		if in, out := p.InFlight(); in != 0 || out != 0 {
			t.Errorf("in flight: %d and %d", in, out)
		}
	})
}

func TestPeerCallFailsToSend(t *testing.T) {
	p := jsonrpc.NewPeer(&jsonrpc.PeerOptions{MaxOutbound: 1})
	fail := sender(func(context.Context, *jsonrpc.Outgoing) error { return errCause })
	for range 2 { // the place is free again
		if _, err := p.Call(t.Context(), fail, "m", nil); !errors.Is(err, errCause) || !strings.Contains(err.Error(), "m") {
			t.Errorf("Call: %v", err)
		}
	}
	nested := sender(func(ctx context.Context, _ *jsonrpc.Outgoing) error {
		_, err := p.Call(ctx, fail, "n", nil)
		return err
	})
	if _, err := p.Call(t.Context(), nested, "m", nil); !errors.Is(err, jsonrpc.ErrTooMany) {
		t.Errorf("a second call at once: %v, want ErrTooMany", err)
	}
}

// An answer that comes while the message is still being sent is not lost.
func TestPeerResolveDuringSend(t *testing.T) {
	p := jsonrpc.NewPeer(nil)
	want := &jsonrpc.Incoming{Kind: jsonrpc.Response}
	quick := sender(func(_ context.Context, m *jsonrpc.Outgoing) error {
		want.ID = m.ID
		p.Resolve(want)
		return nil
	})
	if got, err := p.Call(t.Context(), quick, "m", nil); got != want || err != nil {
		t.Errorf("Call = %v, %v", got, err)
	}
}

func TestPeerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := jsonrpc.NewPeer(nil)
		ctx, end := begin(t, p, jsonrpc.IntID(1))
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := p.Call(t.Context(), sink(make(chan *jsonrpc.Outgoing, 1)), "m", nil)
			if !errors.Is(err, errCause) || !errors.Is(err, jsonrpc.ErrClosed) {
				t.Errorf("Call: %v", err)
			}
		})
		synctest.Wait()
		var closed [2]bool
		for i := range closed {
			wg.Go(func() {
				p.Close(errCause)
				closed[i] = true
			})
		}
		synctest.Wait()
		if closed != [2]bool{} {
			t.Fatal("Close did not wait for the request")
		}
		if !errors.Is(context.Cause(ctx), errCause) {
			t.Errorf("cause is %v", context.Cause(ctx))
		}
		if _, _, err := p.Begin(t.Context(), jsonrpc.IntID(2)); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("Begin after Close: %v", err)
		}
		if _, err := p.Call(t.Context(), nil, "m", nil); !errors.Is(err, jsonrpc.ErrClosed) || !errors.Is(err, errCause) {
			t.Errorf("Call after Close: %v", err)
		}
		end()
		end()
		wg.Wait()
		if closed != [2]bool{true, true} {
			t.Error("Close did not return")
		}
		p.Close(nil)
	})
}

// Everything at once, for the race detector.
func TestPeerConcurrent(t *testing.T) {
	p := jsonrpc.NewPeer(nil)
	echo := sender(func(_ context.Context, m *jsonrpc.Outgoing) error {
		p.Resolve(&jsonrpc.Incoming{Kind: jsonrpc.Response, ID: m.ID, Method: m.Method})
		return nil
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				id := jsonrpc.IntID(int64(i*1000 + j))
				_, end, err := p.Begin(t.Context(), id)
				if err != nil {
					t.Error(err)
					return
				}
				method := fmt.Sprint(i, j)
				if in, err := p.Call(t.Context(), echo, method, nil); err != nil || in.Method != method {
					t.Errorf("got %v, %v, want %s", in, err, method)
				}
				p.Cancel(id, errCause)
				p.InFlight()
				end()
			}
		})
	}
	wg.Wait()
	p.Close(nil)
	if in, out := p.InFlight(); in != 0 || out != 0 {
		t.Errorf("in flight: %d and %d", in, out)
	}
}

func TestPeerBeginAllocations(t *testing.T) {
	p := jsonrpc.NewPeer(nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	id := jsonrpc.IntID(1)
	if got := testing.AllocsPerRun(100, func() {
		_, end, err := p.Begin(ctx, id)
		if err != nil {
			t.Error(err)
		}
		end()
	}); got > 4 {
		t.Errorf("Begin and end allocate %v times, want at most 4", got)
	}
}
