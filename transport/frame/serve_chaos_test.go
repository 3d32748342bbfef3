package frame_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

// A wire is a pipe of a few messages each way, that says too little of what it
// could do, or too much, as it likes.
type wire struct {
	in, out chan string
	shut    chan struct{}
	close   func()
}

func newWire() *wire {
	w := &wire{in: make(chan string, 8), out: make(chan string, 4), shut: make(chan struct{})}
	w.close = sync.OnceFunc(func() { close(w.shut) })
	return w
}

func (w *wire) Read() ([]byte, error) {
	select {
	case m, ok := <-w.in:
		if !ok {
			return nil, io.EOF
		}
		return []byte(m), nil
	case <-w.shut:
		return nil, os.ErrClosed
	}
}

func (w *wire) Write(messages [][]byte) error {
	for _, m := range messages {
		select {
		case w.out <- string(m):
		case <-w.shut:
			return io.ErrClosedPipe
		}
		clear(m) // it is ours until we return
	}
	return nil
}

func (w *wire) Buffered() bool { return len(w.in) > 0 || rand.IntN(8) == 0 }
func (w *wire) Room() int      { return rand.IntN(cap(w.out) - len(w.out) + 1) }
func (w *wire) Close() error   { w.close(); return nil }

// What requests may do, by their method, and how often each is asked for.
var deeds = []struct {
	method string
	often  int
	do     func(ctx context.Context, x *transport.Exchange)
	answer bool // there is one for sure
}{
	{"quick", 400, answer, true},
	{"slow", 4, func(ctx context.Context, x *transport.Exchange) {
		select {
		case <-time.After(rand.N(4 * time.Millisecond)):
		case <-ctx.Done():
		}
		answer(ctx, x)
	}, true},
	{"say", 10, func(ctx context.Context, x *transport.Exchange) {
		_ = x.Out.Send(ctx, &jsonrpc.Outgoing{Method: "said" + x.In.ID.String()})
		answer(ctx, x)
	}, true},
	{"exit", 2, func(context.Context, *transport.Exchange) { runtime.Goexit() }, false},
	{"answer and exit", 2, func(ctx context.Context, x *transport.Exchange) {
		answer(ctx, x)
		runtime.Goexit()
	}, true},
	{"nothing", 4, func(context.Context, *transport.Exchange) {}, false},
	{"twice", 4, func(ctx context.Context, x *transport.Exchange) {
		answer(ctx, x)
		answer(ctx, x)
	}, true},
	{"race", 30, func(ctx context.Context, x *transport.Exchange) {
		go answer(ctx, x)
		runtime.Gosched()
	}, false},
	{"delegate", 10, func(ctx context.Context, x *transport.Exchange) {
		done := make(chan struct{})
		go func() { defer close(done); answer(ctx, x) }()
		<-done
	}, true},
	{"large", 4, func(ctx context.Context, x *transport.Exchange) {
		_ = x.Out.Answer(ctx, result(x, `{"pad":"`+strings.Repeat("x", 40<<10)+`"}`))
	}, true},
}

func answer(ctx context.Context, x *transport.Exchange) { _ = x.Out.Answer(ctx, result(x, `{}`)) }

// draw draws a deed.
func draw() int {
	all := 0
	for _, d := range deeds {
		all += d.often
	}
	n := rand.IntN(all)
	for i, d := range deeds {
		if n -= d.often; n < 0 {
			return i
		}
	}
	panic("the sum is wrong")
}

// Whatever requests do, on the reader and beside it: each is answered at most
// once and, if it answers at all, surely once; what it said comes before that;
// and Serve comes to its end.
func TestAnything(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, cut := range []bool{false, true} {
		for range 4 {
			anything(t, cut)
		}
	}
}

// An orderly is a peer that begins nothing once it is closed.
type orderly struct {
	peer
	mu    sync.Mutex
	ended bool
}

func (o *orderly) Open(transport.Conn) (transport.Session, error) { return o, nil }

func (o *orderly) Begin(ctx context.Context, x *transport.Exchange) func() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return nil
	}
	return o.peer.Begin(ctx, x)
}

func (o *orderly) Close(cause error) {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.peer.Close(cause)
}

// anything sends thousands of requests; if cut is set the connection is ended
// while they are under way.
func anything(t *testing.T, cut bool) {
	t.Helper()
	const n = 4000
	w := newWire()
	asked := make([]int, n)
	for i := range asked {
		asked[i] = draw()
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	enough := errors.New("enough")
	var sending sync.WaitGroup
	sending.Go(func() {
		defer close(w.in)
		for i, d := range asked {
			select {
			case w.in <- request(i, deeds[d].method):
			case <-w.shut:
				return
			}
			if i%97 == 0 {
				time.Sleep(rand.N(time.Millisecond)) // a peer that pauses
			}
			if cut && i == n/2 {
				cancel(enough)
			}
		}
	})
	answers, said := make([]atomic.Int32, n), make([]atomic.Int32, n)
	served := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case m := <-w.out:
				note(t, m, answers, said)
				if rand.IntN(500) == 0 {
					time.Sleep(rand.N(5 * time.Millisecond)) // and does not read
				}
			case <-served:
				for len(w.out) > 0 {
					note(t, <-w.out, answers, said)
				}
				return
			}
		}
	})
	p := &orderly{peer: peer{handle: func(ctx context.Context, x *transport.Exchange) {
		for _, d := range deeds {
			if d.method == x.In.Method {
				d.do(ctx, x)
			}
		}
	}}}
	err := frame.Serve(ctx, w, p, &frame.Options{Linger: time.Minute, MaxQueued: 100 << 10})
	close(served)
	sending.Wait()
	reading.Wait()
	switch {
	case cut && !errors.Is(err, enough):
		t.Errorf("Serve: %v, want the cause", err)
	case !cut && err != nil:
		t.Errorf("Serve: %v", err)
	}
	for i, d := range asked {
		d, got := deeds[d], answers[i].Load()
		if got > 1 || !cut && d.answer && got != 1 {
			t.Errorf("request %d, %s: %d answers", i, d.method, got)
		}
		if !cut && d.method == "say" && said[i].Load() != 1 {
			t.Errorf("request %d said %d things, want 1", i, said[i].Load())
		}
	}
}

// note notes what came of a message.
func note(t *testing.T, line string, answers, said []atomic.Int32) {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(line), jsonrpc.Limits{})
	if err != nil {
		t.Errorf("%.100q was written: %v", line, err)
		return
	}
	var id int
	if m.Kind == jsonrpc.Response {
		_, err = fmt.Sscan(m.ID.String(), &id)
		answers[id].Add(1)
	} else {
		_, err = fmt.Sscanf(m.Method, "said%d", &id)
		if answers[id].Load() > 0 {
			t.Errorf("request %d said something after its answer", id)
		}
		said[id].Add(1)
	}
	if err != nil {
		t.Errorf("%.100q was written: %v", line, err)
	}
}
