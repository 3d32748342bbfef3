package frame_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

// soon is how long a request may hold up those behind it: two ticks.
const soon = 2 * time.Millisecond

// settled is how many requests, close together, are enough for the next one to
// run on the goroutine that reads.
const settled = 20

// A burst is a script whose messages come close together: a clock that stands
// still would tell nothing of them.
type burst struct {
	*script
	read int
}

func (b *burst) Read() ([]byte, error) {
	time.Sleep(10 * time.Microsecond) // fake time
	b.read++
	return b.script.Read()
}

// Buffered says that there is more after the first half, which comes slower.
func (b *burst) Buffered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read > settled && len(b.in) > 0
}

func (b *burst) Room() int { return 0 }

// request is one with a method and an id.
func request(id int, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, id, method)
}

// quicks are n requests with ids from first.
func quicks(first, n int) []any {
	var in []any
	for i := range n {
		in = append(in, request(first+i, "quick"))
	}
	return in
}

// after runs in behind enough quick requests to have it run on the reader, and
// returns the time it took and the lines that were written.
func after(t *testing.T, p *peer, o *frame.Options, in ...any) (time.Duration, []string) {
	t.Helper()
	return behind(t, settled, p, o, in...)
}

// behind runs in behind n quick requests.
func behind(t *testing.T, n int, p *peer, o *frame.Options, in ...any) (time.Duration, []string) {
	t.Helper()
	b := &burst{script: newScript(append(quicks(1000, n), in...)...)}
	start := time.Now()
	if err := frame.Serve(t.Context(), b, p, o); err != nil {
		t.Errorf("Serve: %v", err)
	}
	return time.Since(start) - time.Duration(b.read)*10*time.Microsecond, b.lines()
}

// Answers to requests that have come already leave with one write, in order,
// and no goroutine is started for them.
func TestQuickOnReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const more = 500
		goroutines := map[string]bool{}
		p := &peer{handle: func(ctx context.Context, x *transport.Exchange) {
			if x.In.Method == "look" {
				goroutines[goroutine()] = true
			}
			_ = x.Out.Answer(ctx, result(x, `{}`))
		}}
		b := &burst{script: newScript(quicks(0, settled)...)}
		for i := range more {
			b.in = append(b.in, request(settled+i, "look"))
		}
		if err := frame.Serve(t.Context(), b, p, nil); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if len(goroutines) != 1 {
			t.Errorf("%d requests ran on %d goroutines, want one", more, len(goroutines))
		}
		got := b.lines()
		const most = settled + 1 + 2*5 // at a tick, for every hundred, what is there and what comes meanwhile
		if len(got) != settled+more || b.calls > most {
			t.Fatalf("%d answers in %d writes, want %d in at most %d", len(got), b.calls, settled+more, most)
		}
		for i, line := range got[settled:] {
			if want := fmt.Sprintf(`"id":%d,`, settled+i); !strings.Contains(line, want) {
				t.Fatalf("answer %d is %s", settled+i, line)
			}
		}
	})
}

// goroutine is the number of the goroutine that asks.
func goroutine() string {
	stack := make([]byte, 64)
	return strings.Fields(string(stack[:runtime.Stack(stack, false)]))[1]
}

// What gathers for one write is bounded.
func TestGatherBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := `{"pad":"` + strings.Repeat("x", 10<<10) + `"}`
		p := &peer{handle: func(ctx context.Context, x *transport.Exchange) { _ = x.Out.Answer(ctx, result(x, big)) }}
		b := &burst{script: newScript(quicks(0, settled+100)...)}
		if err := frame.Serve(t.Context(), b, p, nil); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if writes := b.calls - settled; writes < 10 || writes > 20 {
			t.Errorf("a megabyte left in %d writes, want about 15", writes)
		}
	})
}

// Proves: FLOW-CANCEL. A request that runs on the reader and waits holds up
// what comes after it for two ticks, and then it is as if it never had: here
// it waits for the very next request, a notification and the end of the input.
func TestBlockedHandsOn(t *testing.T) {
	for _, test := range []struct {
		name string
		next string
	}{
		{"request", request(2, "free")},
		{"notification", `{"jsonrpc":"2.0","method":"free"}`},
		{"end of input", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				freed := make(chan struct{})
				p := &peer{accept: func(*jsonrpc.Incoming) { close(freed) }}
				p.handle = func(ctx context.Context, x *transport.Exchange) {
					switch x.In.Method {
					case "wait":
						select {
						case <-freed:
						case <-ctx.Done():
						}
					case "free":
						close(freed)
					}
					_ = x.Out.Answer(ctx, result(x, `{}`))
				}
				took, got := after(t, p, nil, request(1, "wait"), test.next)
				if took == 0 || took > soon {
					t.Errorf("it took %v, want more than nothing, since it ran on the reader, and at most %v", took, soon)
				}
				if !slices.Contains(got, `{"jsonrpc":"2.0","id":1,"result":{}}`) {
					t.Errorf("the request was not answered: %q", got)
				}
			})
		})
	}
}

// Only one of several that wait holds the others up: those after it have
// goroutines.
func TestBlockedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		all := make(chan struct{})
		const n = 16
		p := &peer{handle: func(ctx context.Context, x *transport.Exchange) {
			if x.In.Method == "wait" {
				if begun.Add(1) == n {
					close(all)
				}
				<-all
			}
			_ = x.Out.Answer(ctx, result(x, `{}`))
		}}
		var waits []any
		for i := range n {
			waits = append(waits, request(i, "wait"))
		}
		if took, got := after(t, p, &frame.Options{Linger: time.Hour}, waits...); took == 0 || took > soon || len(got) != settled+n {
			t.Errorf("%d answers after %v, want %d after at most %v", len(got), took, settled+n, soon)
		}
	})
}

// Answers that are held go out although the request after them waits.
func TestBlockedLetsAnswersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &burst{script: newScript(append(quicks(0, settled+50), request(1, "wait"), ping)...)}
		p := &peer{handle: func(ctx context.Context, x *transport.Exchange) {
			if x.In.Method == "wait" {
				time.Sleep(soon)
				if got := len(b.lines()); got < settled+50 {
					t.Errorf("after %v %d answers were written, want %d", soon, got, settled+50)
				}
			}
			_ = x.Out.Answer(ctx, result(x, `{}`))
		}}
		if err := frame.Serve(t.Context(), b, p, &frame.Options{Linger: time.Hour}); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// Answers that wait for the reader go out within two ticks, whatever keeps it:
// messages without end, or a session that takes its time over one.
func TestKeptLetsAnswersOut(t *testing.T) {
	const notice = `{"jsonrpc":"2.0","method":"n"}`
	var flood []any
	for range 1000 {
		flood = append(flood, notice)
	}
	var empty []any
	for range 1000 {
		empty = append(empty, " ")
	}
	for _, test := range []struct {
		name  string
		next  []any
		takes time.Duration // each that is not quick
	}{
		{"notifications", flood, 0},
		{"empty lines", append(empty, notice), 0},
		{"a slow notification", []any{notice, notice}, soon},
		{"a slow beginning", []any{request(1, "slow"), notice}, soon},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = settled + 10
				b := &burst{script: newScript(append(quicks(0, n), test.next...)...)}
				var answered atomic.Pointer[time.Time]
				var late time.Duration
				look := func() {
					time.Sleep(test.takes)
					synctest.Wait()
					if since := time.Since(*answered.Load()); since >= soon && late == 0 && len(b.lines()) < n {
						late = since
					}
				}
				p := &peer{accept: func(*jsonrpc.Incoming) { look() }}
				p.begin = func(ctx context.Context, x *transport.Exchange) func() {
					if x.In.Method == "slow" {
						look()
					}
					return func() {
						_ = x.Out.Answer(ctx, result(x, `{}`))
						if x.In.Method == "quick" {
							answered.Store(new(time.Now()))
						}
					}
				}
				if err := frame.Serve(t.Context(), b, p, &frame.Options{Linger: time.Hour}); err != nil {
					t.Errorf("Serve: %v", err)
				}
				if late > 0 {
					t.Errorf("%v after the last answer they were not all written", late)
				}
			})
		})
	}
}

// Whoever sends something hands the reading on at once, also the very first
// that runs on the reader.
func TestSendHandsOn(t *testing.T) {
	for before := range settled + 1 {
		synctest.Test(t, func(t *testing.T) { sendHandsOn(t, before) })
	}
}

func sendHandsOn(t *testing.T, before int) {
	t.Helper()
	freed := make(chan struct{})
	p := &peer{accept: func(*jsonrpc.Incoming) { close(freed) }}
	p.handle = func(ctx context.Context, x *transport.Exchange) {
		if x.In.Method == "ask" {
			if err := x.Out.Send(ctx, &jsonrpc.Outgoing{ID: jsonrpc.IntID(7), Method: "question"}); err != nil {
				t.Errorf("asking: %v", err)
			}
			<-freed
		}
		_ = x.Out.Answer(ctx, result(x, `{}`))
	}
	took, got := behind(t, before, p, &frame.Options{Linger: time.Hour}, request(1, "ask"), `{"jsonrpc":"2.0","id":7,"result":{}}`)
	if took > 0 {
		t.Errorf("behind %d: it took %v, want nothing", before, took)
	}
	if n := len(got); n != before+2 || !strings.Contains(got[n-2], "question") || !strings.Contains(got[n-1], `"id":1,`) {
		t.Errorf("behind %d: written %q, want the question and the answer last", before, got)
	}
}

// A peer that no longer reads is given up when its time is over, to the moment,
// however many writes went well before, and though it is the reader that writes.
func TestStallOnReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var in []any
		for i := range 7 {
			in = append(in, `{"jsonrpc":"2.0","method":"pause"}`, request(i, "quick"))
		}
		b := &burst{script: newScript(append(append(in, quicks(100, settled+1)...), request(99, "last"))...)}
		b.held = true
		b.gate = make(chan struct{}, 1000)
		for range cap(b.gate) {
			b.gate <- struct{}{}
		}
		p := &peer{accept: func(*jsonrpc.Incoming) { time.Sleep(300 * time.Millisecond) }}
		var last time.Time
		p.handle = func(ctx context.Context, x *transport.Exchange) {
			if x.In.Method == "last" {
				last = time.Now()
				for len(b.gate) > 0 {
					<-b.gate
				}
			}
			_ = x.Out.Answer(ctx, result(x, `{}`))
		}
		err := frame.Serve(t.Context(), b, p, &frame.Options{WriteStall: time.Second})
		if !errors.Is(err, transport.ErrStalled) {
			t.Errorf("Serve: %v, want ErrStalled", err)
		}
		if took := time.Since(last); took < time.Second || took > time.Second+soon {
			t.Errorf("given up after %v, want %v", took, time.Second)
		}
	})
}

// A handler that ends its goroutine ends its request, not the reading.
func TestGoexit(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		p := &peer{handle: func(ctx context.Context, x *transport.Exchange) {
			if x.In.Method == "exit" {
				runtime.Goexit()
			}
			_ = x.Out.Answer(ctx, result(x, `{}`))
		}}
		_, got := after(t, p, nil, request(1, "exit"), request(2, "quick"), request(3, "exit"), ping)
		if len(got) != settled+2 || !slices.Contains(got, pong) {
			t.Errorf("%d answers, want %d: %q", len(got), settled+2, got)
		}
	})
}

// A session that panics does so where Serve was called; one that ends its
// goroutine ends the connection.
func TestSessionFaults(t *testing.T) {
	mcptest.NoLeaks(t)
	serving := func(fault func()) (panicked any, err error) {
		p := &peer{accept: func(*jsonrpc.Incoming) { fault() }}
		defer func() { panicked = recover() }()
		pipe := newScript(ping, `{"jsonrpc":"2.0","method":"n"}`)
		pipe.held = true
		return nil, frame.Serve(t.Context(), pipe, p, nil)
	}
	if got, _ := serving(func() { panic("planted") }); got != "planted" {
		t.Errorf("Serve panicked with %v, want what the session did", got)
	}
	if got, err := serving(runtime.Goexit); err == nil || got != nil {
		t.Errorf("Serve: %v, panic %v, want an error", err, got)
	}
}

// Two peers that both write before they read do not wait for each other: while
// the answer of a request that ran on the reader is being written, reading goes
// on.
func TestWriteHandsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &burst{script: newScript(append(quicks(0, settled+1), `{"jsonrpc":"2.0","method":"read"}`)...)}
		b.gate = make(chan struct{}, settled)
		for range settled {
			b.gate <- struct{}{}
		}
		var stuck time.Time
		p := &peer{accept: func(*jsonrpc.Incoming) {
			if waited := time.Since(stuck); waited > soon+10*time.Microsecond {
				t.Errorf("the notification came %v after the answer, want at most %v", waited, soon)
			}
			close(b.gate) // the peer reads at last
		}}
		p.handle = func(ctx context.Context, x *transport.Exchange) {
			stuck = time.Now()
			_ = x.Out.Answer(ctx, result(x, `{}`))
		}
		if err := frame.Serve(t.Context(), b, p, &frame.Options{Linger: time.Hour}); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if got := len(b.lines()); got != settled+1 {
			t.Errorf("%d answers, want %d", got, settled+1)
		}
	})
}

// The end of the context ends a request that holds the reading.
func TestContextEndsOnReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		p := &peer{handle: func(ctx context.Context, x *transport.Exchange) {
			if x.In.Method == "wait" {
				cancel(reason)
				<-ctx.Done()
			}
			_ = x.Out.Answer(ctx, result(x, `{}`))
		}}
		b := &burst{script: newScript(append(quicks(0, settled), request(1, "wait"))...)}
		b.held = true
		if err := frame.Serve(ctx, b, p, nil); !errors.Is(err, reason) {
			t.Errorf("Serve: %v, want the cause", err)
		}
		if got := len(b.lines()); got != settled+1 {
			t.Errorf("%d answers, want %d", got, settled+1)
		}
	})
}

// What the queue has no room for waits on the reader no longer than a tick.
func TestQueueFullOnReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := `{"pad":"` + strings.Repeat("x", 60) + `"}`
		p := &peer{handle: func(ctx context.Context, x *transport.Exchange) { _ = x.Out.Answer(ctx, result(x, big)) }}
		took, got := after(t, p, &frame.Options{MaxQueued: 150, Linger: time.Hour}, quicks(0, 50)...)
		if len(got) != settled+50 || took > 0 {
			t.Errorf("%d answers after %v, want %d at once", len(got), took, settled+50)
		}
	})
}

// A message is read and answered with two allocations of the frame's own: the
// exchange and what Parse makes are all there is.
func TestAllocations(t *testing.T) {
	if racetest.Enabled {
		t.Skip("memory is measured in vain")
	}
	const n = 20000
	line := []byte(request(1, "quick"))
	parse := testing.AllocsPerRun(1000, func() { _, _ = jsonrpc.Parse(line, jsonrpc.Limits{}) })
	answer := &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Result: jsonrpc.Raw(jsonrpc.RawValue(`{}`))}
	var x *transport.Exchange
	run := func() { _ = x.Out.Answer(context.Background(), answer) }
	p := &peer{begin: func(_ context.Context, next *transport.Exchange) func() {
		x = next
		return run
	}}
	best := math.Inf(1)
	for range 20 { // what else goes on is not counted for long
		pipe := &repeat{line: line, left: n}
		before := mallocs()
		if err := frame.Serve(t.Context(), pipe, p, nil); err != nil {
			t.Fatal(err)
		}
		if best = min(best, float64(mallocs()-before)/n-parse); best < 1.2 {
			break
		}
	}
	// Where others use the machine too, requests are slow, and then they have
	// goroutines: that is one more.
	if best > 2.2 {
		t.Errorf("%.2f allocations for each request besides those of Parse (%.0f), want 1, or 2 on a slow machine", best, parse)
	}
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// A repeat is a pipe from which the same message comes over and over.
type repeat struct {
	line []byte
	left int
}

func (r *repeat) Read() ([]byte, error) {
	if r.left == 0 {
		return nil, io.EOF
	}
	r.left--
	return r.line, nil
}

func (r *repeat) Buffered() bool       { return r.left%64 != 0 }
func (r *repeat) Room() int            { return 0 }
func (r *repeat) Write([][]byte) error { return nil }
func (r *repeat) Close() error         { return nil }
