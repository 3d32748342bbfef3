package frame_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

// A script is a pipe whose input is known beforehand.
type script struct {
	mu      sync.Mutex
	in      []any // string or error; at the end io.EOF or, if held, silence
	held    bool
	written []string
	calls   int
	gate    chan struct{} // if not nil each Write waits for a value, or Close
	closed  chan struct{}
	once    sync.Once
}

func newScript(in ...any) *script { return &script{in: in, closed: make(chan struct{})} }

func (s *script) Read() ([]byte, error) {
	s.mu.Lock()
	if len(s.in) == 0 {
		s.mu.Unlock()
		if s.held {
			<-s.closed
			return nil, io.ErrClosedPipe
		}
		return nil, io.EOF
	}
	next := s.in[0]
	s.in = s.in[1:]
	s.mu.Unlock()
	switch next := next.(type) {
	case error:
		return nil, next
	}
	return []byte(next.(string)), nil
}

func (s *script) Write(messages [][]byte) error {
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-s.closed:
			return io.ErrClosedPipe
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	for _, m := range messages {
		s.written = append(s.written, string(m))
		for i := range m {
			m[i] = '!' // the slices are ours until we return
		}
	}
	return nil
}

func (s *script) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// lines is what was written.
func (s *script) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.written...)
}

// A peer is a handler made of functions. Its zero value answers every request
// with {}.
type peer struct {
	rules  transport.Rules
	begin  func(ctx context.Context, x *transport.Exchange) func()
	handle func(ctx context.Context, x *transport.Exchange)
	accept func(m *jsonrpc.Incoming)
	open   func(c transport.Conn) error

	runs    sync.WaitGroup
	cause   error
	closing chan struct{} // if not nil, closed by Close
}

func (*peer) Refused(context.Context, transport.Refusal) {}

func (p *peer) Serve(ctx context.Context, x *transport.Exchange) { p.run(ctx, x) }

func (p *peer) Open(c transport.Conn) (transport.Session, error) {
	if p.open != nil {
		if err := p.open(c); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *peer) Begin(ctx context.Context, x *transport.Exchange) func() {
	if p.begin != nil {
		return p.begin(ctx, x)
	}
	p.runs.Add(1)
	return func() {
		defer p.runs.Done()
		p.run(ctx, x)
	}
}

func (p *peer) run(ctx context.Context, x *transport.Exchange) {
	if p.handle != nil {
		p.handle(ctx, x)
		return
	}
	_ = x.Out.Answer(ctx, result(x, `{}`))
}

func (p *peer) Accept(m *jsonrpc.Incoming) {
	if p.accept != nil {
		p.accept(m)
	}
}

func (p *peer) Rules() transport.Rules { return p.rules }

func (p *peer) Ending() {}

func (p *peer) Close(cause error) {
	p.cause = cause
	if p.closing != nil {
		close(p.closing)
	}
	p.runs.Wait()
}

func result(x *transport.Exchange, text string) *jsonrpc.Outgoing {
	return &jsonrpc.Outgoing{ID: x.In.ID, Result: jsonrpc.Raw(jsonrpc.RawValue(text))}
}

// serve runs a script to its end and returns what was written.
func serve(t *testing.T, p *peer, o *frame.Options, in ...any) []string {
	t.Helper()
	pipe := newScript(in...)
	if err := frame.Serve(t.Context(), pipe, p, o); err != nil {
		t.Errorf("Serve: %v", err)
	}
	return pipe.lines()
}

// one joins lines for comparison.
func one(lines []string) string { return strings.Join(lines, "\n") }
