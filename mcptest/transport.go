package mcptest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// testTimeout ends a test that hangs.
const testTimeout = 60 * time.Second

// TransportOptions are requirements of a pair.
type TransportOptions struct {
	// MaxMessage is the limit of bytes per message that the server must keep
	// to; 0 leaves it to the transport, which must take 2 MiB.
	MaxMessage int
}

// TestTransport tests a transport against the contract of package transport:
// echoes one at a time and at once, order, back-pressure, size limits, closing
// and vanishing with requests under way, exactly one answer, cancelled waits,
// requests of the server, and that nothing is left behind.
//
// newPair is called once for each test. It serves h, which is always
// [TransportPeer], until the test ends, and returns a dialer for it. A
// transport whose server is another process ignores h and serves
// TransportPeer there.
func TestTransport(t *testing.T, newPair func(t *testing.T, h transport.Handler, o TransportOptions) transport.Dialer) {
	t.Helper()
	tests := []struct {
		name string
		o    TransportOptions
		f    func(*transportTest)
	}{
		{name: "echo", f: (*transportTest).echo},
		{name: "concurrent", f: (*transportTest).concurrent},
		{name: "order", f: (*transportTest).order},
		{name: "order outside an exchange", f: (*transportTest).orderOwn},
		{name: "slow reader", f: (*transportTest).slowReader},
		{name: "big message", f: (*transportTest).big},
		{name: "too big message", o: TransportOptions{MaxMessage: 64 << 10}, f: (*transportTest).tooBig},
		{name: "close in flight", f: (*transportTest).closeInFlight},
		{name: "close twice", f: (*transportTest).closeTwice},
		{name: "close at once", f: (*transportTest).closeAtOnce},
		{name: "peer vanishes", f: (*transportTest).vanish},
		{name: "late send", f: (*transportTest).late},
		{name: "cancelled wait", f: (*transportTest).cancelled},
		{name: "ended context", f: (*transportTest).endedContext},
		{name: "server asks", f: (*transportTest).asks},
		{name: "two links", f: (*transportTest).twoLinks},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			NoLeaks(t)
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			t.Cleanup(cancel)
			k := &transportTest{T: t, ctx: ctx, dialer: newPair(t, TransportPeer(), test.o)}
			test.f(k)
		})
	}
}

// A transportTest is one test with its pair.
type transportTest struct {
	*testing.T
	ctx    context.Context //nolint:containedctx // lives as long as one test
	dialer transport.Dialer
	lastID atomic.Int64
}

// A testInbox keeps what arrives outside of answers.
type testInbox struct {
	messages chan *jsonrpc.Incoming
	over     chan struct{} // closed to let a blocked Receive go
	closed   chan error
	once     sync.Once
	ends     atomic.Int64
}

// Receive keeps m, and blocks when there is no room.
func (i *testInbox) Receive(m *jsonrpc.Incoming) {
	select {
	case i.messages <- m:
	case <-i.over:
	}
}

// Closed keeps the reason of the end.
func (i *testInbox) Closed(err error) {
	if i.ends.Add(1) == 1 {
		i.closed <- err
	}
}

// dial connects with room for so many messages in the inbox.
func (k *transportTest) dial(room int) (transport.Link, *testInbox) {
	k.Helper()
	in := &testInbox{messages: make(chan *jsonrpc.Incoming, room), over: make(chan struct{}), closed: make(chan error, 1)}
	link, err := k.dialer.Dial(k.ctx, in)
	if err != nil {
		k.Fatalf("dialling: %v", err)
	}
	k.Cleanup(func() { k.hangUp(link, in) })
	return link, in
}

// hangUp closes a link and checks that the inbox was told once.
func (k *transportTest) hangUp(link transport.Link, in *testInbox) {
	in.once.Do(func() {
		close(in.over)
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		if err := link.Close(ctx); err != nil {
			k.Errorf("closing the link: %v", err)
		}
		if n := in.ends.Load(); n != 1 {
			k.Errorf("Inbox.Closed was called %d times, want once before Close returns", n)
		}
	})
}

// request makes a request with a fresh id. params is JSON text.
func (k *transportTest) request(method, params string) *jsonrpc.Outgoing {
	return &jsonrpc.Outgoing{
		ID:     jsonrpc.IntID(k.lastID.Add(1)),
		Method: method,
		Params: jsonrpc.Raw(jsonrpc.RawValue(params)),
	}
}

// try sends a request and returns its result as text.
func (k *transportTest) try(link transport.Link, method, params string) (string, error) {
	q := k.request(method, params)
	m, err := link.Do(k.ctx, q, transport.Route{})
	switch {
	case err != nil:
		return "", err
	case m.Error != nil:
		return "", m.Error
	case m.ID != q.ID:
		return "", fmt.Errorf("response has id %s, the request %s", m.ID, q.ID)
	}
	return string(m.Result.Raw()), nil
}

// must is try for what has to work.
func (k *transportTest) must(link transport.Link, method, params string) string {
	k.Helper()
	result, err := k.try(link, method, params)
	if err != nil {
		k.Fatalf("%s: %v", method, err)
	}
	return result
}

// next takes the next message from the inbox.
func (k *transportTest) next(in *testInbox) *jsonrpc.Incoming {
	k.Helper()
	select {
	case m := <-in.messages:
		return m
	case err := <-in.closed:
		k.Fatalf("the link ended: %v", err)
	case <-k.ctx.Done():
		k.Fatal("nothing arrived in time")
	}
	return nil
}

func (k *transportTest) echo() {
	link, in := k.dial(1)
	for _, params := range []string{`{}`, `{"text":"héllo \u0000 \\ \" 👋"}`, `{"a":[1,2.50,null,true,{"b":{}}]}`} {
		if got := k.must(link, peerEcho, params); got != params {
			k.Errorf("echo of %s is %s", params, got)
		}
	}
	if n := len(in.messages); n != 0 {
		k.Errorf("%d messages arrived outside of answers, want none", n)
	}
}

func (k *transportTest) concurrent() {
	link, in := k.dial(1)
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := range 25 {
				params := fmt.Sprintf(`{"g":%d,"i":%d,"pad":%q}`, g, i, strings.Repeat("p", g*i))
				if got, err := k.try(link, peerEcho, params); err != nil || got != params {
					k.Errorf("echo of %s is %s, error %v", params, got, err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(in.messages); n != 0 {
		k.Errorf("%d messages arrived outside of answers, want none: each request has exactly one answer", n)
	}
}

func (k *transportTest) order() { k.ordered(peerNotify, 500) }

func (k *transportTest) orderOwn() { k.ordered(peerOwn, 500) }

// ordered checks that notifications arrive whole, in order, and, those of an
// exchange, before its answer.
func (k *transportTest) ordered(method string, count int) {
	link, in := k.dial(count)
	k.must(link, method, fmt.Sprintf(`{"count":%d,"size":10}`, count))
	if method == peerNotify && len(in.messages) != count {
		k.Errorf("%d notifications had arrived before the answer, want %d", len(in.messages), count)
	}
	k.ticks(in, count)
}

// ticks takes count numbered notifications.
func (k *transportTest) ticks(in *testInbox, count int) {
	k.Helper()
	for i := range count {
		m := k.next(in)
		if m.Method != peerTick || number(m.Params, "number") != i {
			k.Fatalf("message %d is %s number %d", i, m.Method, number(m.Params, "number"))
		}
	}
}

// slowReader checks that more than all buffers hold waits for the reader.
func (k *transportTest) slowReader() {
	link, in := k.dial(0)
	const count = 3000
	done := make(chan error, 1)
	go func() {
		_, err := k.try(link, peerNotify, fmt.Sprintf(`{"count":%d,"size":4096}`, count))
		done <- err
	}()
	first := k.next(in)
	if number(first.Params, "number") != 0 {
		k.Fatalf("the first notification has number %d", number(first.Params, "number"))
	}
	for i := 1; i < count; i++ {
		if got := number(k.next(in).Params, "number"); got != i {
			k.Fatalf("notification %d has number %d", i, got)
		}
	}
	if err := <-done; err != nil {
		k.Errorf("the request behind the notifications: %v", err)
	}
}

func (k *transportTest) big() {
	link, _ := k.dial(1)
	params := `{"text":"` + strings.Repeat("b", 1<<20) + `"}`
	if got := k.must(link, peerEcho, params); got != params {
		k.Errorf("an echo of %d bytes came back with %d", len(params), len(got))
	}
}

// tooBig checks SEC-DOS-1: the message is refused, the connection lives.
func (k *transportTest) tooBig() {
	link, _ := k.dial(1)
	for range 2 {
		params := `{"text":"` + strings.Repeat("b", 256<<10) + `"}`
		if _, err := k.try(link, peerEcho, params); err == nil {
			k.Error("a message over the limit was taken")
		}
		k.must(link, peerEcho, `{"still":"here"}`)
	}
}

// waiting begins kit/wait and returns its end, once it waits.
func (k *transportTest) waiting(link transport.Link, in *testInbox) <-chan error {
	k.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := k.try(link, peerWait, `{}`)
		done <- err
	}()
	if m := k.next(in); m.Method != peerWaiting {
		k.Fatalf("%s arrived, want %s", m.Method, peerWaiting)
	}
	return done
}

func (k *transportTest) closeInFlight() {
	link, in := k.dial(1)
	done := k.waiting(link, in)
	k.hangUp(link, in)
	if err := <-done; !errors.Is(err, transport.ErrInterrupted) {
		k.Errorf("the request under way ended with %v, want ErrInterrupted", err)
	}
	if _, err := k.try(link, peerEcho, `{}`); err == nil || errors.Is(err, transport.ErrInterrupted) {
		k.Errorf("a request after Close ended with %v, want an error that is not ErrInterrupted: it cannot have run", err)
	}
	if err := link.Post(k.ctx, &jsonrpc.Outgoing{Method: peerRelease}, transport.Route{}); err == nil {
		k.Error("a notification after Close was taken")
	}
}

func (k *transportTest) closeTwice() {
	link, in := k.dial(1)
	k.must(link, peerEcho, `{}`)
	k.hangUp(link, in)
	if err := link.Close(k.ctx); err != nil {
		k.Errorf("the second Close: %v", err)
	}
}

// closeAtOnce leaves no polite time at all.
func (k *transportTest) closeAtOnce() {
	link, in := k.dial(1)
	done := k.waiting(link, in)
	ended, cancel := context.WithCancel(k.ctx)
	cancel()
	_ = link.Close(ended) // may say that it was impolite
	if err := <-done; err == nil {
		k.Error("the request under way has an answer")
	}
}

func (k *transportTest) vanish() {
	link, in := k.dial(1)
	done := k.waiting(link, in)
	go func() { _, _ = k.try(link, peerVanish, `{}`) }() // the other Do sees the end
	if err := <-done; !errors.Is(err, transport.ErrInterrupted) {
		k.Errorf("the request under way ended with %v, want ErrInterrupted", err)
	}
	select {
	case err := <-in.closed:
		if err == nil {
			k.Error("Inbox.Closed was given no reason")
		}
	case <-k.ctx.Done():
		k.Error("Inbox.Closed was not called")
	}
}

func (k *transportTest) late() {
	link, in := k.dial(4)
	k.must(link, peerLate, `{}`)
	if got, want := k.must(link, peerReport, `{}`), `{"late":"ended"}`; got != want {
		k.Errorf("after the answer: %s, want %s", got, want)
	}
	if n := len(in.messages); n != 0 {
		k.Errorf("%d messages arrived after the answer, want none", n)
	}
}

func (k *transportTest) cancelled() {
	link, in := k.dial(8)
	reason := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(k.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := link.Do(ctx, k.request(peerWait, `{}`), transport.Route{})
		done <- err
	}()
	k.next(in)
	cancel(reason)
	if err := <-done; !errors.Is(err, reason) {
		k.Errorf("the wait ended with %v, want its cause", err)
	}
	if link.Traits().Abandons {
		k.must(link, peerEcho, `{}`)
		return
	}
	if err := link.Post(k.ctx, &jsonrpc.Outgoing{Method: peerRelease}, transport.Route{}); err != nil {
		k.Fatalf("posting: %v", err)
	}
	if m := k.next(in); m.Kind != jsonrpc.Response {
		k.Errorf("the answer that nobody waits for is %v, want a response in the inbox", m)
	}
	k.must(link, peerEcho, `{}`)
}

func (k *transportTest) endedContext() {
	link, _ := k.dial(1)
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	if _, err := link.Do(ctx, k.request(peerEcho, `{}`), transport.Route{}); !errors.Is(err, context.Canceled) {
		k.Errorf("Do with an ended context: %v, want context.Canceled", err)
	}
	if l, err := k.dialer.Dial(ctx, &testInbox{closed: make(chan error, 1)}); err == nil {
		k.Error("Dial with an ended context connected")
		_ = l.Close(k.ctx)
	}
	k.must(link, peerEcho, `{}`)
}

// asks checks requests of the server to the client.
func (k *transportTest) asks() {
	link, in := k.dial(1)
	for _, method := range []string{peerAsk, peerAskOwn} {
		done := make(chan string, 1)
		go func() {
			result, err := k.try(link, method, `{}`)
			done <- fmt.Sprint(result, err)
		}()
		q := k.next(in)
		if q.Kind != jsonrpc.Request {
			k.Fatalf("%s: %s arrived, want a request", method, q.Method)
		}
		answer := &jsonrpc.Outgoing{ID: q.ID, Result: jsonrpc.Raw(jsonrpc.RawValue(`{"yes":1}`))}
		if err := link.Post(k.ctx, answer, transport.Route{}); err != nil {
			k.Fatalf("answering: %v", err)
		}
		if got, want := <-done, `{"yes":1}<nil>`; got != want {
			k.Errorf("%s: result %s, want %s", method, got, want)
		}
	}
}

// twoLinks checks that links share nothing.
func (k *transportTest) twoLinks() {
	one, inOne := k.dial(1)
	done := k.waiting(one, inOne)
	two, inTwo, ok := k.second()
	if ok {
		k.must(two, peerEcho, `{}`)
		k.hangUp(two, inTwo)
	}
	if err := one.Post(k.ctx, &jsonrpc.Outgoing{Method: peerRelease}, transport.Route{}); err != nil {
		k.Fatalf("posting: %v", err)
	}
	if err := <-done; err != nil {
		k.Errorf("the request on the first link: %v", err)
	}
}

// second dials again, where the dialer can.
func (k *transportTest) second() (transport.Link, *testInbox, bool) {
	in := &testInbox{messages: make(chan *jsonrpc.Incoming, 1), over: make(chan struct{}), closed: make(chan error, 1)}
	link, err := k.dialer.Dial(k.ctx, in)
	if err != nil {
		k.Logf("this dialer is for one link: %v", err)
		return nil, nil, false
	}
	k.Cleanup(func() { k.hangUp(link, in) })
	return link, in, true
}
