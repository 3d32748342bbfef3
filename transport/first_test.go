package transport_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// A scripted dialer, whose links answer with its name or its error.
type scripted struct {
	name   string
	refuse error                           // of Dial
	answer error                           // of Do
	hold   func(ctx context.Context) error // in Dial
	ends   bool                            // the link ends before it answers

	mu    sync.Mutex
	links []*scriptedLink
}

func (d *scripted) Key() string { return "key of " + d.name }

func (d *scripted) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	if d.hold != nil {
		if err := d.hold(ctx); err != nil {
			return nil, err
		}
	}
	if d.refuse != nil {
		return nil, d.refuse
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &scriptedLink{d: d, in: in}
	d.links = append(d.links, l)
	return l, nil
}

// left returns how many links are not closed.
func (d *scripted) left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, l := range d.links {
		if l.closes.Load() == 0 {
			n++
		}
	}
	return n
}

type scriptedLink struct {
	d           *scripted
	in          transport.Inbox
	once        sync.Once
	closes      atomic.Int64
	posts       atomic.Int64
	established atomic.Bool
}

func (l *scriptedLink) Do(_ context.Context, m *jsonrpc.Outgoing, _ transport.Route) (*jsonrpc.Incoming, error) {
	l.in.Receive(&jsonrpc.Incoming{Kind: jsonrpc.Notification, Method: "from " + l.d.name})
	if l.d.ends {
		l.end()
	}
	if l.d.answer != nil {
		return nil, l.d.answer
	}
	return &jsonrpc.Incoming{Kind: jsonrpc.Response, ID: m.ID, Method: l.d.name}, nil
}

func (l *scriptedLink) end() {
	l.once.Do(func() { l.in.Closed(fmt.Errorf("%s ended", l.d.name)) })
}

func (l *scriptedLink) Post(context.Context, *jsonrpc.Outgoing, transport.Route) error {
	l.posts.Add(1)
	return nil
}

func (l *scriptedLink) Establish(context.Context, transport.Established) error {
	l.established.Store(true)
	return nil
}

func (l *scriptedLink) Traits() transport.Traits { return transport.Traits{Routes: l.d.name == "one"} }

func (l *scriptedLink) Close(context.Context) error {
	l.closes.Add(1)
	l.once.Do(func() { l.in.Closed(fmt.Errorf("%s closed", l.d.name)) })
	return nil
}

// A firstInbox keeps what arrives.
type firstInbox struct {
	mu       sync.Mutex
	messages []string
	ends     []string
}

func (i *firstInbox) Receive(m *jsonrpc.Incoming) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.messages = append(i.messages, m.Method)
}

func (i *firstInbox) Closed(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ends = append(i.ends, err.Error())
}

// told checks how often and why the inbox was told of the end.
func (i *firstInbox) told(t *testing.T, want ...string) {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	if !slices.Equal(i.ends, want) {
		t.Errorf("the inbox was told %q, want %q", i.ends, want)
	}
}

var initialize = &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "initialize"}

func dialFirst(t *testing.T, dialers ...transport.Dialer) (transport.Link, *firstInbox) {
	t.Helper()
	in := new(firstInbox)
	link, err := transport.First(dialers...).Dial(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return link, in
}

// Proves: FLOW-INIT. A server that speaks another transport is asked again
// over the next, which then carries all the rest; of the first nothing is left
// and nothing is told.
func TestFirst(t *testing.T) {
	for _, ends := range []bool{false, true} {
		one := &scripted{name: "one", answer: fmt.Errorf("405: %w", transport.ErrOtherTransport)}
		two := &scripted{name: "two", refuse: transport.ErrOtherTransport, hold: func(context.Context) error {
			if ends { // the first may end by itself meanwhile
				one.links[0].end()
			}
			return nil
		}}
		three := &scripted{name: "three"}
		link, in := dialFirst(t, one, two, three)
		if !link.Traits().Routes {
			t.Error("the traits are not those of the first link")
		}
		m, err := link.Do(t.Context(), initialize, transport.Route{})
		if err != nil || m.Method != "three" || m.ID != initialize.ID {
			t.Fatalf("answer %v, error %v, want that of the third", m, err)
		}
		if link.Traits().Routes {
			t.Error("the traits are not those of the third link")
		}
		in.told(t)
		if one.left() != 0 || three.left() != 1 {
			t.Errorf("open are %d links of the first and %d of the third, want 0 and 1", one.left(), three.left())
		}
		_ = link.Establish(t.Context(), transport.Established{})
		_ = link.Post(t.Context(), initialize, transport.Route{})
		if l := three.links[0]; !l.established.Load() || l.posts.Load() != 1 {
			t.Error("the third link does not carry the rest")
		}
		one.links[0].in.Receive(&jsonrpc.Incoming{Method: "late"})
		if err := link.Close(t.Context()); err != nil {
			t.Error(err)
		}
		in.told(t, "three closed")
		if want := []string{"from one", "from three"}; !slices.Equal(in.messages, want) {
			t.Errorf("the inbox has %q, want %q", in.messages, want)
		}
	}
}

// A server that answers stays, whatever it answers; after the negotiation so
// does one that would speak another transport.
func TestFirstStays(t *testing.T) {
	one, two := &scripted{name: "one"}, &scripted{name: "two"}
	link, in := dialFirst(t, one, two)
	if m, err := link.Do(t.Context(), initialize, transport.Route{}); err != nil || m.Method != "one" {
		t.Errorf("answer %v, error %v, want that of the first", m, err)
	}
	refusal := errors.New("no")
	one.answer = refusal
	if _, err := link.Do(t.Context(), initialize, transport.Route{}); !errors.Is(err, refusal) {
		t.Errorf("error is %v, want that of the first", err)
	}
	_ = link.Establish(t.Context(), transport.Established{})
	one.answer = transport.ErrOtherTransport
	if _, err := link.Do(t.Context(), initialize, transport.Route{}); !errors.Is(err, transport.ErrOtherTransport) {
		t.Errorf("error is %v, want that of the first", err)
	}
	if len(two.links) != 0 {
		t.Error("the second was dialled")
	}
	_ = link.Close(t.Context())
	in.told(t, "one closed")
}

// If the next one cannot be reached, or there is none, the first stays and
// both reasons are told.
func TestFirstNoNext(t *testing.T) {
	unreachable := errors.New("no route to host")
	for name, dialers := range map[string][]transport.Dialer{
		"unreachable": {&scripted{name: "two", refuse: unreachable}},
		"none":        nil,
	} {
		one := &scripted{name: "one", answer: transport.ErrOtherTransport, ends: true}
		link, in := dialFirst(t, append([]transport.Dialer{one}, dialers...)...)
		_, err := link.Do(t.Context(), initialize, transport.Route{})
		if !errors.Is(err, transport.ErrOtherTransport) || name == "unreachable" && !errors.Is(err, unreachable) {
			t.Errorf("%s: error is %v, want all reasons", name, err)
		}
		in.told(t, "one ended")
		_ = link.Close(t.Context())
		in.told(t, "one ended")
		if one.left() != 0 {
			t.Errorf("%s: the first link is still open", name)
		}
	}
}

// Proves: FLOW-SHUTDOWN. Close gives up a dialling, and waits for it.
func TestFirstCloseWhileDialling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := &scripted{name: "one", answer: transport.ErrOtherTransport}
		two := &scripted{name: "two", hold: func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		link, in := dialFirst(t, one, two)
		done := make(chan error)
		go func() {
			_, err := link.Do(t.Context(), initialize, transport.Route{})
			done <- err
		}()
		synctest.Wait()
		_ = link.Close(t.Context())
		if err := <-done; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("error is %v, want ErrClosed", err)
		}
		in.told(t, "one closed")
		if one.left() != 0 {
			t.Error("the first link is still open")
		}
	})
}

// Who waits for another to find the next transport need not wait for longer
// than its context lasts.
func TestFirstWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := &scripted{name: "one", answer: transport.ErrOtherTransport}
		two := &scripted{name: "two", hold: func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		link, _ := dialFirst(t, one, two)
		first := make(chan error)
		go func() {
			_, err := link.Do(t.Context(), initialize, transport.Route{})
			first <- err
		}()
		synctest.Wait()
		reason := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, reason)
		defer cancel()
		if _, err := link.Do(ctx, initialize, transport.Route{}); !errors.Is(err, reason) {
			t.Errorf("error is %v, want the cause", err)
		}
		_ = link.Close(t.Context())
		<-first //nolint:errcheck // that it ended is enough
	})
}

// Requests that find out at the same time go on together.
func TestFirstAtOnce(t *testing.T) {
	one := &scripted{name: "one", answer: transport.ErrOtherTransport}
	two := &scripted{name: "two"}
	link, in := dialFirst(t, one, two)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if m, err := link.Do(t.Context(), initialize, transport.Route{}); err != nil || m.Method != "two" {
				t.Errorf("answer %v, error %v, want that of the second", m, err)
			}
		})
	}
	wg.Wait()
	if len(two.links) != 1 {
		t.Errorf("the second was dialled %d times, want once", len(two.links))
	}
	_ = link.Close(t.Context())
	in.told(t, "two closed")
}

func TestFirstDial(t *testing.T) {
	refusal := errors.New("no")
	if _, err := transport.First(&scripted{refuse: refusal}, &scripted{}).Dial(t.Context(), new(firstInbox)); !errors.Is(err, refusal) {
		t.Errorf("error is %v, want that of the first dialer", err)
	}
	if _, err := transport.First().Dial(t.Context(), new(firstInbox)); err == nil {
		t.Error("no dialer at all made a link")
	}
	if got := transport.First().Key(); got != "" {
		t.Errorf("key is %q, want none", got)
	}
	if got, want := transport.First(&scripted{name: "one"}, &scripted{name: "two"}).Key(), "key of one"; got != want {
		t.Errorf("key is %q, want %q", got, want)
	}
}
