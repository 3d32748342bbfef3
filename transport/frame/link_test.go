package frame_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

// An inbox keeps what arrives.
type inbox struct {
	got    []*jsonrpc.Incoming
	closed chan error
}

func (i *inbox) Receive(m *jsonrpc.Incoming) { i.got = append(i.got, m) }
func (i *inbox) Closed(err error)            { i.closed <- err }

// A feed is a pipe that is read from a channel.
type feed struct {
	*script
	lines chan any
}

func (f *feed) Read() ([]byte, error) {
	select {
	case next := <-f.lines:
		if err, ok := next.(error); ok {
			return nil, err
		}
		return []byte(next.(string)), nil
	case <-f.closed:
		return nil, io.ErrClosedPipe
	}
}

func dial(t *testing.T, o *frame.Options) (*feed, transport.Link, *inbox) {
	t.Helper()
	f := &feed{script: newScript(), lines: make(chan any)}
	in := &inbox{closed: make(chan error, 1)}
	link := frame.Dial(f, in, o)
	t.Cleanup(func() {
		if err := link.Close(context.Background()); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return f, link, in
}

// do sends request 1, feeds lines and returns what became of the request.
func do(t *testing.T, o *frame.Options, lines ...any) (*jsonrpc.Incoming, *inbox, error) {
	t.Helper()
	f, link, in := dial(t, o)
	f.gate = make(chan struct{}) // nothing has been written yet
	go func() {
		f.gate <- struct{}{} // the request is on its way
		for _, line := range lines {
			f.lines <- line
		}
	}()
	m, err := link.Do(t.Context(), &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "a"}, transport.Route{})
	return m, in, err
}

// Whoever waits for a response is told when it came and could not be read;
// what concerns nobody does no harm.
func TestUnreadableResponses(t *testing.T) {
	mcptest.NoLeaks(t)
	good := `{"jsonrpc":"2.0","id":1,"result":{"ok":true}}`
	for _, test := range []struct {
		name  string
		lines []any
		want  string // in the error; empty: the good response
	}{
		{"good", []any{good}, ""},
		{"chatter first", []any{"Server started", "", good}, ""},
		{"result is no object", []any{`{"jsonrpc":"2.0","id":1,"result":5}`}, "object"},
		{"duplicate keys", []any{`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`}, "parse error"},
		{"too long", []any{frame.NewTooLongError(10, []byte(`{"jsonrpc":"2.0","id":1,"result":{`))}, "limit of 10 bytes"},
		{"over the limit", []any{`{"jsonrpc":"2.0","id":1,"result":{"a":"` + strings.Repeat("x", 200) + `"}}`}, "limit of 150 bytes"},
		{"bad request of the server", []any{`{"jsonrpc":"2.0","id":1,"method":3}`, good}, ""},
		{"too long request of the server", []any{frame.NewTooLongError(10, []byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":{`)), good}, ""},
		{"in an array", []any{"[" + good + `,{"jsonrpc":"2.0","method":"n"}]`}, ""},
		{"bad in an array", []any{`[{"jsonrpc":"2.0","id":1,"result":5}]`}, "object"},
		{"empty array", []any{"[]", good}, ""},
		{"others first", []any{`{"jsonrpc":"2.0","id":"a","result":{}}`, good}, ""},
		{"id as text", []any{strings.Replace(good, `1,`, `"1",`, 1)}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, _, err := do(t, &frame.Options{MaxMessage: 150}, test.lines...)
			switch {
			case test.want == "" && (err != nil || string(m.Result.Raw()) != `{"ok":true}`):
				t.Errorf("response %v, error %v", m, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

// A body does something while it is encoded.
type body func()

func (b body) AppendJSON(dst []byte) ([]byte, error) {
	b()
	return append(dst, "{}"...), nil
}

// An answer that is there when the context of its request ends is not lost.
func TestAnsweredAtTheEnd(t *testing.T) {
	mcptest.NoLeaks(t)
	f, link, _ := dial(t, nil)
	for id := range int64(50) {
		ctx, cancel := context.WithCancel(t.Context())
		answered := body(func() { // before Do waits
			f.lines <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id)
			f.lines <- "" // by now the answer was dealt with
			cancel()
		})
		if _, err := link.Do(ctx, &jsonrpc.Outgoing{ID: jsonrpc.IntID(id), Method: "a", Params: answered}, transport.Route{}); err != nil {
			t.Fatalf("request %d: %v", id, err)
		}
	}
}

// Proves: MSG-3. Responses that nobody waits for go to the inbox.
func TestUnknownResponse(t *testing.T) {
	_, in, err := do(t, nil, `{"jsonrpc":"2.0","id":5,"result":{}}`, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"?"}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.got) != 2 || in.got[0].ID != jsonrpc.IntID(5) || !in.got[1].ID.IsZero() {
		t.Errorf("the inbox has %v, want responses 5 and without id", in.got)
	}
}

// The end of the connection interrupts, and says why.
func TestLinkEnds(t *testing.T) {
	mcptest.NoLeaks(t)
	broken := errors.New("cable cut")
	for _, test := range []struct{ end, want error }{
		{io.EOF, transport.ErrClosed},
		{broken, broken},
	} {
		_, in, err := do(t, nil, test.end)
		if !errors.Is(err, transport.ErrInterrupted) || !errors.Is(err, test.want) {
			t.Errorf("Do: %v, want ErrInterrupted and %v", err, test.want)
		}
		if err := <-in.closed; !errors.Is(err, test.want) || !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Closed: %v, want %v and ErrClosed", err, test.want)
		}
	}
}

// A request needs an id of its own.
func TestIDs(t *testing.T) {
	f, link, _ := dial(t, nil)
	if _, err := link.Do(t.Context(), &jsonrpc.Outgoing{Method: "a"}, transport.Route{}); err == nil {
		t.Error("a request without id was sent")
	}
	f.gate = make(chan struct{}) // nothing has been written yet
	ctx, cancel := context.WithCancelCause(t.Context())
	q := &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "a"}
	first := make(chan error, 1)
	go func() {
		_, err := link.Do(ctx, q, transport.Route{})
		first <- err
	}()
	f.gate <- struct{}{}
	if _, err := link.Do(t.Context(), q, transport.Route{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("the same id again: %v", err)
	}
	reason := errors.New("no longer wanted")
	cancel(reason)
	if err := <-first; !errors.Is(err, reason) {
		t.Errorf("Do: %v, want the cause", err)
	}
}

// A wait ends with its context even when the peer reads nothing.
func TestCancelUnread(t *testing.T) {
	f, link, _ := dial(t, nil)
	f.gate = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := link.Do(ctx, &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "a"}, transport.Route{})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Do: %v, want context.Canceled", err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	_ = link.Close(ended) // does not wait for the peer
}

// Proves: FLOW-SHUTDOWN. A peer that does not read holds nobody up for long:
// neither a client that closes nor a server whose context ends.
func TestHurry(t *testing.T) {
	const most = 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		f := &feed{script: newScript(), lines: make(chan any)}
		f.gate = make(chan struct{})
		in := &inbox{closed: make(chan error, 1)}
		link := frame.Dial(f, in, nil)
		if err := link.Post(t.Context(), &jsonrpc.Outgoing{Method: "n"}, transport.Route{}); err != nil {
			t.Errorf("posting: %v", err)
		}
		start := time.Now()
		if err := link.Close(t.Context()); err != nil {
			t.Errorf("closing: %v", err)
		}
		if took := time.Since(start); took > most {
			t.Errorf("Close took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		pipe := newScript(ping)
		pipe.held = true
		pipe.gate = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		go func() {
			synctest.Wait() // the answer is being written
			cancel()
		}()
		if err := frame.Serve(ctx, pipe, new(peer), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v, want context.Canceled", err)
		}
		if took := time.Since(start); took > most {
			t.Errorf("Serve took %v to end", took)
		}
	})
}
