package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/chaos"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/web"
)

// seedsEnv is with how many seeds clients are tried; default 20.
const seedsEnv = "PARLEY_TEST_SEEDS"

func seeds(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(seedsEnv)
	if text == "" {
		return 20
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		t.Fatalf("%s=%q is no number of seeds", seedsEnv, text)
	}
	return n
}

// A counter is a server that counts how often it was called with each key.
type counter struct {
	*server.Server

	mu    sync.Mutex
	calls map[string]int
}

type keyed struct {
	Key string `json:"key"`
}

func newCounter() *counter {
	c := &counter{Server: server.New("counter", "1", &server.Options{Logger: quiet}), calls: make(map[string]int)}
	c.Add(server.Tool("count", "Counts a call.", func(ctx context.Context, in keyed) (string, error) {
		c.mu.Lock()
		c.calls[in.Key]++
		c.mu.Unlock()
		if err := server.Progress(ctx, 1, 2, "counting"); err != nil {
			return "", err
		}
		return "counted " + in.Key, nil
	}))
	return c
}

func (c *counter) count(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[key]
}

// quiet logs nothing.
var quiet = slog.New(slog.DiscardHandler)

// known are the errors that callers can tell apart.
var known = []error{
	client.ErrClosed, client.ErrDisconnected, client.ErrTimeout, client.ErrNotCapable, client.ErrUnsupportedVersion, client.ErrResultType, client.ErrMalformed,
	client.ErrTooManyRounds, client.ErrPages, client.ErrNoTool, client.ErrOutput,
	transport.ErrClosed, transport.ErrStalled, transport.ErrInterrupted, transport.ErrOtherTransport, transport.ErrNotUnderstood, transport.ErrDenied,
}

// typed says whether a caller can tell what an error is.
func typed(err error) bool {
	for _, k := range known {
		if errors.Is(err, k) {
			return true
		}
	}
	return errors.As(err, new(*jsonrpc.Error)) || errors.As(err, new(*web.StatusError)) || errors.As(err, new(*client.RetryError))
}

// Limits of the calls of a test, and how many there are.
const (
	callTimeout = 5 * time.Second
	maxCallTime = 20 * time.Second
	calls       = 12
	attempts    = 40          // until the client has recovered
	maxPause    = time.Minute // more than a client waits until it connects again
)

// A trial is a client with a counting server behind a proxy.
type trial struct {
	t       *testing.T
	seed    uint64
	counter *counter
	c       *client.Client
}

// errorf fails the test, and says with which seed.
func (x *trial) errorf(format string, args ...any) {
	x.t.Helper()
	x.t.Errorf("seed %d: %s", x.seed, fmt.Sprintf(format, args...))
}

// connect connects, again and again if need be.
func (x *trial) connect(d transport.Dialer, version string) bool {
	var last error
	for range attempts {
		err := x.within("connecting", func(ctx context.Context) (err error) {
			x.c, err = client.Connect(ctx, d, &client.Options{
				Versions: []string{version}, CallTimeout: callTimeout, MaxCallTime: maxCallTime, Eras: client.NewEraMemory(),
			})
			return err
		})
		if err == nil {
			return true
		}
		if !typed(err) {
			x.errorf("connecting: an error without a type: %T %v", err, err)
		}
		last = err
	}
	x.errorf("no connection in %d attempts, the last one with %v", attempts, last)
	return false
}

// within runs what must have an end in the time of a call, and of what may go before it: a new
// connection, with a handshake.
func (x *trial) within(what string, f func(ctx context.Context) error) error {
	const most = 3 * maxCallTime
	began := time.Now()
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Hour)
	defer cancel()
	err := f(ctx)
	if took := time.Since(began); took > most {
		x.errorf("%s took %v, want at most %v: %v", what, took, most, err)
	}
	return err
}

// call makes a call and holds the client to its promises. The error is one that a call may have.
func (x *trial) call(key string) error {
	var result *mcp.CallToolResult
	err := x.within("a call", func(ctx context.Context) (err error) {
		var o *client.CallOptions
		if len(key)%2 == 0 { // the answer has more than one frame
			o = &client.CallOptions{OnProgress: func(float64, float64, string) {}}
		}
		result, err = x.c.CallTool(ctx, "count", keyed{key}, o)
		return err
	})
	n := x.counter.count(key)
	switch {
	case n > 1:
		x.errorf("the call %s ran %d times: %v", key, n, err)
	case err == nil && n != 1:
		x.errorf("the call %s has a result and ran %d times", key, n)
	case err == nil && (len(result.Content) != 1 || result.Content[0].(*mcp.TextContent).Text != "counted "+key):
		x.errorf("the call %s has another result: %v", key, result.Content)
	case err != nil && !typed(err):
		x.errorf("the call %s: an error without a type: %T %v", key, err, err)
	case errors.Is(err, transport.ErrClosed) && !errors.Is(err, transport.ErrInterrupted) && n != 0:
		x.errorf("the call %s ran, though its error says that nothing was sent: %v", key, err)
	}
	return err
}

// run makes calls, in turn and at once, until the client has recovered from the last fault.
func (x *trial) run(d transport.Dialer, version string) {
	if !x.connect(d, version) {
		return
	}
	for i := range calls {
		_ = x.call(fmt.Sprintf("one-%d", i))
	}
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() { _ = x.call(fmt.Sprintf("many-%d", i)) })
	}
	wg.Wait()
	var last error
	recovered := false
	for i := 0; i < attempts && !recovered; i++ {
		time.Sleep(maxPause) // of the bubble's time
		last = x.call(fmt.Sprintf("last-%d", i))
		recovered = last == nil
	}
	if !recovered {
		x.errorf("no call succeeded in %d attempts, the last one with %v", attempts, last)
	}
	if err := x.within("closing", func(context.Context) error { return x.c.Close() }); err != nil && !typed(err) {
		x.errorf("closing: %T %v", err, err)
	}
	x.counter.mu.Lock()
	defer x.counter.mu.Unlock()
	for key, n := range x.counter.calls { // also what ran after its call had ended
		if n > 1 {
			x.errorf("the call %s ran %d times", key, n)
		}
	}
}

// A duplex is a stream of two pipes.
type duplex struct {
	*io.PipeReader
	*io.PipeWriter
}

// Close closes both.
func (d duplex) Close() error { return errors.Join(d.PipeReader.Close(), d.PipeWriter.Close()) }

func newDuplex() (near, far duplex) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	return duplex{r1, w2}, duplex{r2, w1}
}

func (d duplex) stream() chaos.Stream { return chaos.Stream{In: d.PipeReader, Out: d.PipeWriter} }

// A pipeDialer connects to a server through a proxy.
type pipeDialer struct {
	proxy *chaos.Proxy
	h     transport.Handler
	ctx   context.Context //nolint:containedctx // that of the test
	wg    sync.WaitGroup
}

func (d *pipeDialer) Key() string { return "chaos" }

func (d *pipeDialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	near, client := newDuplex()
	server, far := newDuplex()
	d.wg.Go(func() { _ = d.proxy.Pipe(d.ctx, client.stream(), server.stream()) }) // how it ends is part of the chaos
	d.wg.Go(func() {
		_ = stdio.ServeConn(d.ctx, far, d.h, &stdio.Options{Logger: quiet})
		_ = far.Close() // as a process closes its streams
	})
	return stdio.Conn(near).Dial(ctx, in)
}

// eras are a revision of each era.
var eras = []string{"2025-11-25", "2026-07-28"}

// A scenario is one fault at a rate that leaves some calls alone, or all of them.
type scenario struct {
	name  string
	rates chaos.Rates
	to    chaos.Direction
}

// scenarios are one for each fault of a transport, and one of all of them together. A frame to the
// server is not doubled: any server would run it twice, and no client could help it.
func scenarios(over func(chaos.Description) bool) []scenario {
	all := scenario{name: "all", rates: make(chaos.Rates), to: chaos.ToClient}
	var list []scenario
	for _, f := range chaos.Faults() {
		if !over(f) {
			continue
		}
		s := scenario{name: string(f.Fault), rates: chaos.Rates{f.Fault: 0.15}}
		if f.Fault == chaos.Duplicate {
			s.to = chaos.ToClient
		}
		list = append(list, s)
		all.rates[f.Fault] = 0.03
	}
	return append(list, all)
}

// eachTrial runs a trial for each scenario, era and seed, in a bubble with its own time.
func eachTrial(t *testing.T, list []scenario, run func(ctx context.Context, x *trial, p *chaos.Proxy, version string)) {
	t.Helper()
	for _, s := range list {
		for _, version := range eras {
			t.Run(s.name+" "+version, func(t *testing.T) {
				t.Parallel()
				applied := 0
				for seed := range seeds(t) {
					o := chaos.Options{Seed: seed, Rates: s.rates, To: s.to, MaxDelay: 8 * time.Second, Log: func(chaos.Event) { applied++ }}
					synctest.Test(t, func(t *testing.T) {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						run(ctx, &trial{t: t, seed: seed, counter: newCounter()}, chaos.New(o), version)
					})
				}
				if stateless := version == eras[1]; applied == 0 && (s.name != string(chaos.Expire) || !stateless) {
					t.Error("no fault was applied")
				}
			})
		}
	}
}

// A client behind a pipe with faults recovers, or returns an error that says what happened, in its
// time, and never runs a call twice.
func TestClientOverPipe(t *testing.T) {
	t.Parallel()
	list := scenarios(func(f chaos.Description) bool { return f.Pipe })
	eachTrial(t, list, func(ctx context.Context, x *trial, p *chaos.Proxy, version string) {
		ctx, cancel := context.WithCancel(ctx)
		d := &pipeDialer{proxy: p, h: x.counter, ctx: ctx}
		x.run(d, version)
		cancel()
		d.wg.Wait()
	})
}
