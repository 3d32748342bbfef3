package mcptest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// Methods of the peer that TestTransport talks to. They are not MCP's.
const (
	peerEcho    = "kit/echo"    // answers with its params
	peerNotify  = "kit/notify"  // sends count notifications of size bytes, then answers
	peerOwn     = "kit/own"     // the same outside the exchange
	peerWait    = "kit/wait"    // says kit/waiting, then answers after kit/release
	peerRelease = "kit/release" // notification: lets all waits go
	peerAsk     = "kit/ask"     // asks the client, answers with its result
	peerAskOwn  = "kit/askOwn"  // the same outside the exchange
	peerLate    = "kit/late"    // answers, then tries to send and to answer again
	peerReport  = "kit/report"  // answers with what became of kit/late
	peerVanish  = "kit/vanish"  // closes the connection instead of answering
	peerWaiting = "kit/waiting" // notification to the client
	peerTick    = "kit/tick"    // notification to the client, with its number

	// peerShake is MCP's: transports with sessions open them with it. The
	// version asked for is the one negotiated.
	peerShake = mcp.MethodInitialize
)

// TransportPeer returns the handler that [TestTransport] talks to. A transport
// whose server is another process serves it there.
func TransportPeer() transport.Handler { return peerHandler{} }

type peerHandler struct{}

// Serve handles a request that belongs to no connection.
func (peerHandler) Serve(ctx context.Context, x *transport.Exchange) {
	newPeerSession(nil).handle(ctx, x)
}

// Open begins a session.
func (peerHandler) Open(c transport.Conn) (transport.Session, error) {
	return newPeerSession(c), nil
}

// Refused is told of what the transport refuses, which the peer does not count.
func (peerHandler) Refused(context.Context, transport.Refusal) {}

// A peerSession is one connection as the kit's server sees it.
type peerSession struct {
	conn    transport.Conn
	release chan struct{}
	late    chan string
	runs    sync.WaitGroup

	mu      sync.Mutex
	version string // negotiated by peerShake
	asked   map[jsonrpc.ID]chan *jsonrpc.Incoming
	nextID  int64
	cancel  map[*transport.Exchange]context.CancelCauseFunc
	closed  error
}

func newPeerSession(c transport.Conn) *peerSession {
	return &peerSession{
		conn:    c,
		release: make(chan struct{}, 64),
		late:    make(chan string, 1),
		asked:   make(map[jsonrpc.ID]chan *jsonrpc.Incoming),
		cancel:  make(map[*transport.Exchange]context.CancelCauseFunc),
	}
}

// Begin admits every request of an open session.
func (s *peerSession) Begin(ctx context.Context, x *transport.Exchange) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.cancel[x] = cancel
	s.runs.Add(1)
	return func() {
		defer s.runs.Done()
		defer cancel(nil)
		s.handle(ctx, x)
		s.mu.Lock()
		delete(s.cancel, x)
		s.mu.Unlock()
	}
}

// Accept takes responses and kit/release.
func (s *peerSession) Accept(m *jsonrpc.Incoming) {
	if m.Kind == jsonrpc.Response {
		s.mu.Lock()
		answer := s.asked[m.ID]
		delete(s.asked, m.ID)
		s.mu.Unlock()
		if answer != nil {
			answer <- m
		}
		return
	}
	if m.Method == peerRelease {
		select {
		case s.release <- struct{}{}:
		default: // no test needs so many
		}
	}
}

// Rules allows nothing special.
func (s *peerSession) Rules() transport.Rules {
	s.mu.Lock()
	defer s.mu.Unlock()
	return transport.Rules{Version: s.version}
}

func (s *peerSession) Ending() {}

// Close cancels what is under way and waits for it.
func (s *peerSession) Close(cause error) {
	s.mu.Lock()
	s.closed = cause
	for _, cancel := range s.cancel {
		cancel(cause)
	}
	s.mu.Unlock()
	s.runs.Wait()
}

// handle carries out one request.
func (s *peerSession) handle(ctx context.Context, x *transport.Exchange) {
	result, err := s.result(ctx, x)
	switch {
	case errors.Is(err, errAbandoned):
		return
	case err != nil:
		_ = x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Error: jsonrpc.NewError(jsonrpc.CodeInternalError, "%v", err)})
		return
	}
	// An answer that fails is what some tests are about: the client sees it.
	_ = x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: result})
	if x.In.Method == peerLate {
		s.late <- s.afterwards(ctx, x)
	}
}

// errAbandoned says that a request gets no answer.
var errAbandoned = errors.New("abandoned")

func (s *peerSession) result(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
	switch x.In.Method {
	case peerShake:
		return s.shake(x.In.Params)
	case peerEcho:
		return echoOf(x.In.Params), nil
	case peerNotify:
		return s.tick(ctx, x.Out, x.In.Params)
	case peerOwn:
		return s.tick(ctx, s.conn, x.In.Params)
	case peerWait:
		return s.wait(ctx, x.Out)
	case peerAsk:
		return s.ask(ctx, x.Out)
	case peerAskOwn:
		return s.ask(ctx, s.conn)
	case peerLate:
		return jsonrpc.Empty(), nil
	case peerReport:
		return jsonrpc.JSON(map[string]string{"late": <-s.late}), nil
	case peerVanish:
		return nil, errors.Join(errAbandoned, s.conn.Close(errVanish))
	}
	return nil, fmt.Errorf("method %q is not the kit's", x.In.Method)
}

// shake agrees to any version.
func (s *peerSession) shake(params jsonrpc.Object) (jsonrpc.Body, error) {
	version, ok := params.Member("protocolVersion")
	if !ok || len(version) < 2 {
		return nil, errors.New("initialize names no protocolVersion")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = string(version[1 : len(version)-1])
	return jsonrpc.Raw(fmt.Appendf(nil, `{"protocolVersion":%s,"capabilities":{},"serverInfo":{"name":"kit","version":"1"}}`, version)), nil
}

var errVanish = errors.New("the peer was told to vanish")

func echoOf(params jsonrpc.Object) jsonrpc.Body {
	if params.IsZero() {
		return jsonrpc.Empty()
	}
	return jsonrpc.Raw(params.Raw())
}

// tick sends numbered notifications.
func (s *peerSession) tick(ctx context.Context, via jsonrpc.Sender, params jsonrpc.Object) (jsonrpc.Body, error) {
	pad := strings.Repeat("x", number(params, "size"))
	for i := range number(params, "count") {
		m := &jsonrpc.Outgoing{Method: peerTick, Params: jsonrpc.JSON(map[string]any{"number": i, "pad": pad})}
		if err := via.Send(ctx, m); err != nil {
			return nil, err
		}
	}
	return jsonrpc.Empty(), nil
}

// wait waits to be let go.
func (s *peerSession) wait(ctx context.Context, via jsonrpc.Sender) (jsonrpc.Body, error) {
	if err := via.Send(ctx, &jsonrpc.Outgoing{Method: peerWaiting}); err != nil {
		return nil, err
	}
	select {
	case <-s.release:
		return jsonrpc.Empty(), nil
	case <-ctx.Done():
		return nil, errAbandoned
	}
}

// ask sends a request to the client and waits for its answer.
func (s *peerSession) ask(ctx context.Context, via jsonrpc.Sender) (jsonrpc.Body, error) {
	answer := make(chan *jsonrpc.Incoming, 1)
	s.mu.Lock()
	s.nextID++
	id := jsonrpc.IntID(s.nextID)
	s.asked[id] = answer
	s.mu.Unlock()
	if err := via.Send(ctx, &jsonrpc.Outgoing{ID: id, Method: "kit/question", Params: jsonrpc.Empty()}); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return echoOf(m.Result), nil
	case <-ctx.Done():
		return nil, errAbandoned
	}
}

// afterwards says how sending and answering after the answer end.
func (s *peerSession) afterwards(ctx context.Context, x *transport.Exchange) string {
	sent := x.Out.Send(ctx, &jsonrpc.Outgoing{Method: peerTick})
	answered := x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Result: jsonrpc.Empty()})
	if errors.Is(sent, jsonrpc.ErrEnded) && errors.Is(answered, jsonrpc.ErrEnded) {
		return "ended"
	}
	return fmt.Sprintf("send: %v; answer: %v", sent, answered)
}

// number reads an integer member; 0 if there is none.
func number(o jsonrpc.Object, name string) int {
	raw, _ := o.Member(name)
	n, err := strconv.Atoi(string(raw))
	if err != nil {
		return 0
	}
	return n
}
