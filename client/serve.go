package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// replyTime bounds how long an answer waits for a server that does not read.
const replyTime = 30 * time.Second

// maxQuestionBytes bounds the questions of one connection that are open at
// once; a single one may be as big as a message.
const maxQuestionBytes = 64 << 20

// A question is what a server asks, checked and ready for its handler.
type question struct {
	method string
	ask    func(ctx context.Context) (any, error)
}

// An undeclaredError says that the server asked for what this client did not
// declare. It is an ErrNotCapable.
type undeclaredError struct {
	what string
	code int64
}

func (e *undeclaredError) Error() string {
	return fmt.Sprintf("%v: this client does not offer %s", ErrNotCapable, e.what)
}

func (e *undeclaredError) Is(target error) bool { return target == ErrNotCapable }

// An invalidError says that the server's question is malformed.
type invalidError struct{ err error }

func (e *invalidError) Error() string { return "malformed question of the server: " + e.err.Error() }
func (e *invalidError) Unwrap() error { return e.err }

// prepare checks a question of the server: whether it was declared, and
// whether it is well formed. It is not asked yet (SEC-CAP-1).
func (c *Client) prepare(s *session, of *call, method string, raw wire.RawValue) (*question, error) {
	if len(raw) == 0 {
		raw = wire.RawValue("{}")
	}
	switch method {
	case mcp.MethodElicit:
		var p mcp.ElicitParams
		if c.opts.OnElicit == nil && c.opts.OnElicitURL == nil {
			break
		}
		if err := s.shape.UpParams(method, raw, &p); err != nil {
			return nil, &invalidError{err}
		}
		return c.prepareElicit(of, &p)
	case mcp.MethodCreateMessage:
		var p mcp.CreateMessageParams
		if c.opts.OnSample == nil {
			break
		}
		if err := s.shape.UpParams(method, raw, &p); err != nil {
			return nil, &invalidError{err}
		}
		return c.prepareSample(&p)
	case mcp.MethodRootsList:
		if c.opts.OnRoots != nil {
			return &question{method, c.askRoots}, nil
		}
	}
	return nil, &undeclaredError{fmt.Sprintf("%.64q", method), mcp.CodeMethodNotFound}
}

// prepareSample checks a question for the model.
func (c *Client) prepareSample(p *mcp.CreateMessageParams) (*question, error) {
	if (len(p.Tools) > 0 || p.ToolChoice != nil) && !c.opts.SampleTools {
		return nil, &undeclaredError{mcp.CapSamplingTools, mcp.CodeInvalidParams}
	}
	if !c.opts.SampleContext {
		// Servers SHOULD NOT ask for context that was not declared, and
		// clients may always give less.
		p.IncludeContext = ""
	}
	return &question{mcp.MethodCreateMessage, func(ctx context.Context) (any, error) {
		r, err := c.opts.OnSample(ctx, p)
		if err == nil && r == nil {
			err = errNoAnswer
		}
		return r, err
	}}, nil
}

// askRoots asks for the roots. Spec 2026-07-28, client/roots: a root MUST be a
// file:// URI.
func (c *Client) askRoots(ctx context.Context) (any, error) {
	roots, err := c.opts.OnRoots(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range roots {
		if u, err := url.Parse(r.URI); err != nil || u.Scheme != "file" {
			return nil, fmt.Errorf("root %q is not a file: URI", r.URI)
		}
	}
	if roots == nil {
		roots = []mcp.Root{}
	}
	return &mcp.ListRootsResult{Roots: roots}, nil
}

// request takes a request of the server.
func (cn *conn) request(m *jsonrpc.Incoming) {
	if s := cn.session(); s != nil {
		s.era.request(cn, m)
		return
	}
	cn.serve(m) // a server may ping before the handshake is over
}

// serve answers a request of the server on a goroutine of its own.
func (cn *conn) serve(m *jsonrpc.Incoming) {
	size := int64(len(m.Params.Raw()))
	if all := cn.asked.Add(size); all > maxQuestionBytes && all > size {
		cn.asked.Add(-size)
		cn.refuse(m, jsonrpc.ErrTooMany)
		return
	}
	of, around := cn.c.during(m), cn.c.ctx
	if of.call != nil {
		around = of.ctx
		if m.Method != mcp.MethodPing { // that may be the connection's
			of.ran.Store(true)
		}
	}
	if arrived := cn.c.opts.OnQuestion; arrived != nil {
		var made context.Context
		panicked := cn.c.guard("OnQuestion", func() { made = arrived(around, m.Method) }) // the log has it
		switch {
		case made != nil:
			around = made
		case panicked == nil:
			cn.c.log.Error("OnQuestion returned no context", "method", m.Method)
		}
	}
	ctx, end, err := cn.peer.Begin(around, m.ID)
	if err != nil {
		cn.asked.Add(-size)
		cn.refuse(m, err)
		return
	}
	started := cn.c.spawn(func() {
		defer cn.asked.Add(-size)
		defer end()
		var result jsonrpc.Body
		err := cn.c.guarded(m.Method, func() (err error) {
			result, err = cn.respond(ctx, m, of)
			return err
		})
		switch {
		case cn.c.ctx.Err() == nil && around.Err() != nil:
			// The server may still wait, although it has answered the call.
			result, err = nil, jsonrpc.NewError(mcp.CodeInternalError, "the request that the question belongs to has ended")
		case ctx.Err() != nil:
			return // withdrawn: it SHOULD NOT be answered any more
		}
		cn.reply(&jsonrpc.Outgoing{ID: m.ID, Result: result, Error: wireError(m.Method, err)})
	})
	if !started {
		cn.asked.Add(-size)
		end()
	}
}

// refuse answers what was not even tracked.
func (cn *conn) refuse(m *jsonrpc.Incoming, err error) {
	var e *jsonrpc.Error
	switch {
	case errors.Is(err, jsonrpc.ErrTooMany):
		e = jsonrpc.NewError(mcp.CodeTooManyInFlight, "too many requests in flight; wait for answers first")
	case !errors.As(err, &e):
		return // the connection is over
	}
	select {
	case <-cn.ready:
		cn.reply(&jsonrpc.Outgoing{ID: m.ID, Error: e})
	default:
	}
}

// reply sends an answer.
func (cn *conn) reply(m *jsonrpc.Outgoing) {
	<-cn.ready
	if cn.link == nil {
		return
	}
	ctx, cancel := context.WithTimeout(cn.c.ctx, replyTime)
	defer cancel()
	var route transport.Route
	if s := cn.session(); s != nil && cn.link.Traits().Routes {
		route = s.era.route(&call{})
	}
	if err := cn.link.Post(ctx, m, route); err != nil {
		cn.c.log.Debug("an answer to the server was lost", "id", m.ID.String(), "err", err)
	}
}

// respond carries out a request of the server. What its handler says is encoded
// here, where it can still be refused.
func (cn *conn) respond(ctx context.Context, m *jsonrpc.Incoming, of asker) (jsonrpc.Body, error) {
	c, s := cn.c, cn.session()
	switch {
	case m.Method == mcp.MethodPing:
		return jsonrpc.Empty(), nil
	case s == nil:
		return nil, jsonrpc.NewError(mcp.CodeInvalidRequest, "%s came before the handshake was complete", m.Method)
	case m.ParamsArray:
		return nil, jsonrpc.NewError(mcp.CodeInvalidParams, "params must be an object")
	}
	q, err := c.prepare(s, of.call, m.Method, m.Params.Raw())
	if err != nil {
		return nil, err
	}
	v, err := c.runPaused(ctx, q, of)
	if err == nil {
		v, err = s.shape.DownResult(m.Method, c.extensions.relateAnswer(m, v))
	}
	var raw wire.RawValue
	if err == nil {
		raw, err = wire.Marshal(v)
	}
	if err == nil {
		return jsonrpc.Raw(raw), nil
	}
	if ctx.Err() == nil && !errors.Is(err, ErrPanicked) { // of a panic the log has more
		c.log.Warn("a handler of this client failed to answer the server", "method", m.Method, "err", err)
	}
	return nil, err
}

// runPaused asks a question while the timer of the call that it belongs to is
// paused; if that is not known, those of all calls.
func (c *Client) runPaused(ctx context.Context, q *question, of asker) (any, error) {
	if of.timer != nil {
		of.timer.Pause()
		defer of.timer.Resume()
	}
	if of.outer != nil {
		of.outer.Pause()
		defer of.outer.Resume()
	}
	if of.timer == nil {
		c.pauseAll()
		defer c.resumeAll()
	}
	return c.run(ctx, q)
}

// pauseAll pauses the timers of all calls while a person is asked: on a shared
// channel it is not known which call the question belongs to, and all wait for
// a connection.
func (c *Client) pauseAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking++
	for _, k := range c.calls {
		k.timer.Pause()
	}
	for w := range c.waits {
		w.Pause()
	}
}

func (c *Client) resumeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking--
	for _, k := range c.calls {
		k.timer.Resume()
	}
	for w := range c.waits {
		w.Resume()
	}
}

// rejections are what a server is told when the person refuses (ruling 17).
var rejections = map[string]string{
	mcp.MethodCreateMessage: "User rejected sampling request",
	mcp.MethodRootsList:     "User rejected roots request",
	mcp.MethodElicit:        "User rejected elicitation request",
}

// wireError makes of an error what the server may read of it.
func wireError(method string, err error) *jsonrpc.Error {
	if err == nil {
		return nil
	}
	var (
		undeclared *undeclaredError
		invalid    *invalidError
		ours       *mcp.Error
		wired      *jsonrpc.Error
	)
	switch {
	case errors.As(err, &undeclared):
		return jsonrpc.NewError(undeclared.code, "%v", undeclared)
	case errors.As(err, &invalid):
		return jsonrpc.NewError(mcp.CodeInvalidParams, "%v", invalid)
	case errors.Is(err, ErrRefused):
		return jsonrpc.NewError(mcp.CodeUserRejected, "%s", rejections[method])
	case errors.As(err, &ours):
		e := jsonrpc.NewError(mcp.Code(ours), "%s", ours.Message)
		if ours.Data != nil {
			e = e.With(ours.Data)
		}
		return e
	case errors.As(err, &wired):
		return wired
	}
	return jsonrpc.NewError(mcp.CodeInternalError, "internal error")
}
