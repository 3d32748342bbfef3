//go:build unix

package stdio_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A tape is a stream with a given input that keeps its output.
type tape struct {
	io.Reader
	mu  sync.Mutex
	out bytes.Buffer
}

func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(p)
}

func (t *tape) Close() error { return nil }

// play serves input to its end and returns the output.
func play(tb testing.TB, input io.Reader, o *stdio.Options) string {
	tb.Helper()
	rec := &tape{Reader: input}
	if err := stdio.ServeConn(context.Background(), rec, mcptest.TransportPeer(), o); err != nil {
		tb.Errorf("ServeConn: %v", err)
	}
	return rec.out.String()
}

const (
	hello = `{"jsonrpc":"2.0","id":"last","method":"kit/echo","params":{"n":1}}`
	world = `{"jsonrpc":"2.0","id":"last","result":{"n":1}}`
)

// Lines end with \n or \r\n or the input; a line that is too long is refused
// alone.
func TestLines(t *testing.T) {
	mcptest.NoLeaks(t)
	long := `{"jsonrpc":"2.0","id":8,"method":"kit/echo","params":{"x":"` + strings.Repeat("x", 200<<10) + `"}}`
	for _, test := range []struct {
		name, in string
		answers  int
	}{
		{"newline", hello + "\n", 1},
		{"carriage return", hello + "\r\n", 1},
		{"no end", hello, 1},
		{"blank lines", "\n\r\n  \n" + hello + "\n\n", 1},
		{"long before", long + "\n" + hello + "\n", 2},
		{"long after", hello + "\n" + long + "\n", 2},
		{"long without end", hello + "\n" + long, 2},
		{"nothing", "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(test.in), iotest.OneByteReader(strings.NewReader(test.in))} {
				out := play(t, r, &stdio.Options{MaxMessage: 100 << 10})
				if n := strings.Count(out, "\n"); n != test.answers {
					t.Errorf("%d lines in %q, want %d", n, out, test.answers)
				}
				if test.answers > 0 && !strings.Contains(out, world+"\n") {
					t.Errorf("no answer in %q", out)
				}
				if test.answers == 2 && !strings.Contains(out, `"id":8,"error":{"code":-32700`) {
					t.Errorf("no error for the long line in %q", out)
				}
			}
		})
	}
}

// Proves: SEC-DOS-1. A line of exactly the limit passes, one byte more does not.
func TestLimitIsExact(t *testing.T) {
	for _, limit := range []int{len(hello), 40 << 10, 100 << 10} {
		line := hello + strings.Repeat(" ", limit-len(hello))
		for _, end := range []string{"\n", "\r\n", ""} {
			if out := play(t, strings.NewReader(line+end), &stdio.Options{MaxMessage: limit}); out != world+"\n" {
				t.Errorf("limit %d, end %q: %q", limit, end, out)
			}
			if out := play(t, strings.NewReader(" "+line+end), &stdio.Options{MaxMessage: limit}); !strings.Contains(out, "-32700") {
				t.Errorf("limit %d and one, end %q: %q", limit, end, out)
			}
		}
	}
}

// Defect M2. An endless line is read to its end, but not held.
func TestEndlessLine(t *testing.T) {
	const length = 256 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out := play(t, io.MultiReader(io.LimitReader(endless{}, length), strings.NewReader("\n"+hello+"\n")), nil)
	runtime.ReadMemStats(&after)
	if !strings.Contains(out, world) || !strings.Contains(out, "limit of 4194304 bytes") {
		t.Errorf("answered %q", out)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
		t.Errorf("%d bytes were allocated for a line of %d", n, length)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Line breaks of a body that was given as text become spaces.
func TestOneLine(t *testing.T) {
	near, far := net.Pipe()
	background(t, func(ctx context.Context) error {
		return stdio.ServeConn(ctx, far, mcptest.TransportPeer(), nil)
	})
	link, _ := dial(t, stdio.Conn(near))
	m, err := link.Do(t.Context(), &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "kit/echo", Params: pretty("{\n\"a\":\r\n1}")}, transport.Route{})
	if err != nil || string(m.Result.Raw()) != "{ \"a\":  1}" {
		t.Errorf("echo is %v, error %v", m, err)
	}
}

// pretty is a body that does not care about lines.
type pretty string

func (p pretty) AppendJSON(dst []byte) ([]byte, error) { return append(dst, p...), nil }

// A caller over a network is its address and nobody else; one over a pipe is
// the owner of the process.
func TestPrincipal(t *testing.T) {
	mcptest.NoLeaks(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan *principal.Principal, 2)
	h := &linktest.Handler{Handler: mcptest.TransportPeer(), OnOpen: func(c transport.Conn) error {
		seen <- c.Principal()
		return nil
	}}
	background(t, func(ctx context.Context) error { return stdio.ServeListener(ctx, ln, h, nil) })
	link, _ := dial(t, stdio.Dial("tcp", ln.Addr().String()))
	if p := <-seen; p.Identity() != "" || p.Remote != "127.0.0.1" {
		t.Errorf("over TCP the caller is %+v", p)
	}
	hangUp(t, link)
	play(t, strings.NewReader(hello), nil)
	if err := stdio.ServeConn(t.Context(), &tape{Reader: strings.NewReader("")}, h, nil); err != nil {
		t.Fatal(err)
	}
	if p := <-seen; p != principal.Local {
		t.Errorf("over a pipe the caller is %+v", p)
	}
}

// Proves: SEC-DOS-1. No more connections than MaxConns are served at once; the
// next is served when one has ended.
func TestMaxConns(t *testing.T) {
	mcptest.NoLeaks(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open, most atomic.Int64
	h := &linktest.Handler{
		Handler: mcptest.TransportPeer(),
		OnOpen: func(transport.Conn) error {
			n := open.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return nil
		},
		OnClose: func(error) { open.Add(-1) },
	}
	background(t, func(ctx context.Context) error {
		return stdio.ServeListener(ctx, ln, h, &stdio.Options{MaxConns: 2})
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			link, err := stdio.Dial("tcp", ln.Addr().String()).Dial(t.Context(), linktest.NewInbox())
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := ask(t.Context(), link, "kit/echo"); err != nil {
				t.Error(err)
			}
			if err := link.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n > 2 {
		t.Errorf("%d connections were served at once, want at most 2", n)
	}
}

// A stream can be dialled once; an address that nobody serves says so.
func TestDialErrors(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	d := stdio.Conn(near)
	dial(t, d)
	if _, err := d.Dial(t.Context(), linktest.NewInbox()); err == nil {
		t.Error("a stream was dialled twice")
	}
	if _, err := stdio.Dial("unix", "/no/such/socket").Dial(t.Context(), linktest.NewInbox()); err == nil || !strings.Contains(err.Error(), "/no/such/socket") {
		t.Errorf("error %v does not name the address", err)
	}
}

// Proves: FLOW-SHUTDOWN. The end of the context closes listener and
// connections.
func TestListenerEnds(t *testing.T) {
	mcptest.NoLeaks(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reason := errors.New("closing time")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- stdio.ServeListener(ctx, ln, mcptest.TransportPeer(), nil) }()
	link, in := dial(t, stdio.Dial("tcp", ln.Addr().String()))
	if _, err := ask(t.Context(), link, "kit/echo"); err != nil {
		t.Fatal(err)
	}
	cancel(reason)
	if err := <-done; !errors.Is(err, reason) {
		t.Errorf("ServeListener: %v, want the cause", err)
	}
	if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the client was told %v", err)
	}
}

// Whatever bytes come, the session neither panics nor ends before its input.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "hello", hello, hello + "\r", "[" + hello + "]", `{"jsonrpc":"2.0","id":1}`, "\x00\xff\n{",
		`{"jsonrpc":"2.0","id":1,"method":"kit/notify","params":{"count":3}}`,
		`{"jsonrpc":"2.0","method":"kit/release"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		strings.Repeat("x", 5000), `{"id":1,"id":2,"jsonrpc":"` + strings.Repeat("[", 3000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, word := range []string{"vanish", "wait", "ask", "report", "own", "late", "notify", `\u`} {
			if bytes.Contains(data, []byte(word)) {
				return // these do end the session, or wait for what does not come
			}
		}
		input := append(append(data, '\n'), hello+"\n"...)
		if out := play(t, bytes.NewReader(input), &stdio.Options{MaxMessage: 2000, Linger: time.Minute}); !strings.Contains(out, world+"\n") {
			t.Errorf("no answer to the last request in %q", out)
		}
	})
}

func BenchmarkEcho(b *testing.B) {
	near, far := osPipes(b)
	background(b, func(ctx context.Context) error {
		return stdio.ServeConn(ctx, far, mcptest.TransportPeer(), nil)
	})
	link, err := stdio.Conn(near).Dial(b.Context(), linktest.NewInbox())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = link.Close(context.Background()) }()
	params := jsonrpc.Raw(jsonrpc.RawValue(`{"name":"echo","arguments":{"message":"hello"}}`))
	var id atomic.Int64
	echo := func() error {
		_, err := link.Do(context.Background(), &jsonrpc.Outgoing{ID: jsonrpc.IntID(id.Add(1)), Method: "kit/echo", Params: params}, transport.Route{})
		return err
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := echo(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("many", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := echo(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
