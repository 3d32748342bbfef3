package server

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// A row says how the server handles one method: what the vocabulary says of
// it, how its parameters decode, the function that serves it.
type row struct {
	*mcp.Method
	decode func(c *Call, in *jsonrpc.Incoming) (any, *mcp.RequestMeta, error)
	serve  func(c *Call) (Result, error)
	// limit says in which bucket a request is counted.
	limit limit
	// own are the limits of the tool that a row of tools/call is for.
	own toolLimits
	// required are the members that params must have.
	required []string
	// Of a method of an extension, nil for others.
	ext    *Extension
	method *ExtensionMethod
	next   *row // of the same name, for other revisions; or nil
}

// method makes the row of a method from a function over its typed parameters,
// and the members that they must have.
func method[P any, PP interface {
	*P
	mcp.Params
}](name string, serve func(*Call, PP) (Result, error), limit limit, required ...string) row {
	m, ok := mcp.Lookup(name)
	if !ok {
		panic("server: method " + name + " is not in mcp.Methods")
	}
	return row{
		Method: m,
		limit:  limit, required: required,
		decode: func(c *Call, in *jsonrpc.Incoming) (any, *mcp.RequestMeta, error) {
			p := PP(new(P))
			if raw := in.Params.Raw(); len(raw) > 0 {
				if err := c.shape().UpParams(name, raw, p); err != nil {
					return nil, nil, err
				}
			}
			return p, &p.Base().Meta, nil
		},
		serve: func(c *Call) (Result, error) { return serve(c, c.params.(PP)) },
	}
}

// missing is a member that params must have and have not, or "".
func (r *row) missing(in *jsonrpc.Incoming) string {
	for _, name := range r.required {
		if _, ok := in.Params.Member(name); !ok {
			return name
		}
	}
	return ""
}

// coreRows is what a server does with each method of the specification that a
// client may send and that the core handles after admission. The handshake
// itself is the session's.
func coreRows() map[string]*row {
	rows := make(map[string]*row)
	for _, r := range []row{
		method(mcp.MethodDiscover, (*Call).discover, noRate),
		method(mcp.MethodPing, (*Call).ping, pingRate),
		method(mcp.MethodToolsList, (*Call).listTools, listRate),
		method(mcp.MethodToolsCall, (*Call).callTool, toolRate, "name"),
		method(mcp.MethodPromptsList, (*Call).listPrompts, listRate),
		method(mcp.MethodPromptsGet, (*Call).getPrompt, toolRate, "name"),
		method(mcp.MethodResourcesList, (*Call).listResources, listRate),
		method(mcp.MethodResourcesTemplates, (*Call).listTemplates, listRate),
		method(mcp.MethodResourcesRead, (*Call).readResource, toolRate, "uri"),
		method(mcp.MethodResourcesSubscribe, (*Call).subscribe, toolRate, "uri"),
		method(mcp.MethodResourcesUnsubscribe, (*Call).unsubscribe, toolRate, "uri"),
		method(mcp.MethodListen, (*Call).listen, listRate, "notifications"),
		method(mcp.MethodComplete, (*Call).complete, completionRate, "ref", "argument"),
		method(mcp.MethodSetLevel, (*Call).setLevel, listRate, "level"),
	} {
		rows[r.Name] = &r
	}
	rows[mcp.MethodToolsCall].decode = decodeCallTool
	return rows
}

// limit is a kind of rate limit.
type limit uint8

const (
	toolRate limit = iota // per target; the others count all requests of a method
	listRate
	completionRate
	pingRate
	noRate
)

// enter does what comes before middleware, in this order: the era admits the
// request, its method is looked up, its capability is checked, its parameters
// are decoded once, its rate is checked.
func (c *Call) enter(in *jsonrpc.Incoming) error {
	if err := c.admit(in); err != nil {
		return err
	}
	r := c.rowOf(in.Method)
	if r == nil {
		return jsonrpc.NewError(jsonrpc.CodeMethodNotFound, "unknown method %q in protocol revision %s", clip(in.Method), c.facts.Version)
	}
	if !c.srv.offers(c.facts, r.Capability) {
		return jsonrpc.NewError(jsonrpc.CodeMethodNotFound, "method %s needs the capability %q, which this server does not offer", in.Method, r.Capability)
	}
	c.row = r
	if in.ParamsArray {
		return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "params of %s must be an object, not an array", in.Method)
	}
	if name := r.missing(in); name != "" {
		return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "invalid params of %s: %q is missing", in.Method, name)
	}
	params, meta, err := r.decode(c, in)
	if err != nil {
		return invalidParams(in.Method, err)
	}
	c.params = params
	c.target = c.targetOf(in.Params)
	if meta != nil {
		c.meta = meta
	}
	if err := c.checkTarget(); err != nil {
		return err
	}
	if err := c.era().open(c); err != nil {
		return err
	}
	if err := c.takeToken(); err != nil {
		return err
	}
	return c.declared(r)
}

// rowOf returns the row of a method in the revision of the request, or nil.
func (c *Call) rowOf(method string) *row {
	r := c.srv.rows[method]
	for r != nil && !c.exists(r) {
		r = r.next
	}
	return r
}

// exists reports whether the method of a row is in the revision of the request.
func (c *Call) exists(r *row) bool {
	if r.ext != nil {
		return r.method.opts.Revisions.include(c.facts)
	}
	return c.facts.Has(r.Name)
}

// invalidParams words a decoding error for the peer.
func invalidParams(method string, err error) error {
	var we *wire.Error
	if errors.As(err, &we) {
		return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "invalid params of %s: %v", method, we)
	}
	return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "invalid params of %s: %v", method, err)
}

// targetOf is what the request is about.
func (c *Call) targetOf(params jsonrpc.Object) string {
	switch p := c.params.(type) {
	case *mcp.CallToolParams:
		return p.Name
	case *mcp.ReadResourceParams:
		return p.URI
	}
	raw, ok := params.Member(c.row.Target)
	if !ok {
		return ""
	}
	var s string
	if wire.Decode(raw, &s) != nil {
		return "" // the typed decode says what is wrong
	}
	return s
}

// handle runs an admitted call to its answer.
func (s *Server) handle(c *Call) {
	if err := c.waitForToken(); err != nil {
		if !errors.Is(context.Cause(c), ErrCancelled) {
			c.untrack()
			s.answerWire(c, s.refused(c, err))
		}
		return
	}
	switch {
	case !c.row.Long:
		c.startTimer()
		defer c.timer.Stop()
	case c.row.method != nil: // subscriptions/listen looks at what ends it itself
		defer c.endOnShutdown()()
	}
	res, err := s.run(c, s.serve)
	res, err = s.settle(c, res, err)
	if errors.Is(context.Cause(c), ErrCancelled) {
		return // spec, basic/patterns/cancellation: no response to a cancelled request
	}
	c.lastProgress()
	if err == nil {
		c.untrack()
		if err = s.answer(c, res); err == nil {
			return
		}
	}
	c.untrack()
	s.answerError(c, err)
}

// serveRow is the innermost Func: it serves the request by its row.
func (c *Call) serveRow() (Result, error) {
	res, err := c.row.serve(c)
	if c.pastDeadline(err) {
		c.srv.log.WarnContext(c, "call took longer than its middleware allows", "err", err)
		return nil, mcp.NewError(mcp.CodeTimeout, "the call was ended: it took longer than this server allows: %w", context.DeadlineExceeded)
	}
	return res, c.mapped(err) // middleware sees what the caller will
}

// pastDeadline reports whether err says that the handler took longer than middleware
// allows it, in words that were not made for the caller.
func (c *Call) pastDeadline(err error) bool {
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(c.Err(), context.DeadlineExceeded) || c.first.Err() != nil {
		return false
	}
	_, made := errors.AsType[*mcp.Error](err)
	return !made
}

// settle completes what a run gave. A panic beats a pending ask, a pending ask
// beats whatever was returned. Results and errors of authors have methods that
// may panic.
func (s *Server) settle(c *Call, res Result, err error) (_ Result, out error) {
	defer s.catch(c, &out)
	if err == nil || c.needsInput() && !panicked(err) {
		return c.era().settle(c, res)
	}
	return nil, err
}

func panicked(err error) bool {
	ie, ok := errors.AsType[*internalError](err)
	return ok && ie.panicked
}

// untrack ends the tracking of a request that is about to be answered: its
// peer, once it has the answer, may fill its place at once.
func (c *Call) untrack() {
	switch {
	case c.session != nil:
		c.inbound.End()
	case c.caller != nil:
		c.srv.uncount(c)
	}
}

// undelivered reports whether the peer can no longer receive an answer.
func undelivered(err error) bool {
	return errors.Is(err, jsonrpc.ErrEnded) || errors.Is(err, transport.ErrClosed)
}

// deliver translates a result for the peer's revision and sends it. An error says
// that the peer is to be answered with that; a peer that is gone is none.
func (s *Server) deliver(c *Call, res Result) error {
	body, err := c.encode(res)
	if err != nil {
		return err
	}
	c.reply = jsonrpc.Outgoing{ID: c.ID(), Result: body}
	err = c.x.Out.Answer(context.Background(), &c.reply) // an answer outlives the call's context
	if undelivered(err) {
		return nil
	}
	return err
}

// encode gives a result in the shape of the peer's revision.
func (c *Call) encode(res Result) (jsonrpc.Body, error) {
	if _, typed := res.(mcp.Result); !typed {
		if body, ok := res.(jsonrpc.Body); ok {
			return body, nil
		}
	}
	down, err := c.shape().DownResult(c.Method(), res)
	if err != nil {
		return nil, fmt.Errorf("translating the result of %s: %w", c.Method(), err)
	}
	return bodyOf(down), nil
}

// run calls next, and makes an error of a panic: a handler's mistake
// must not end the process, nor its text reach the peer.
func (s *Server) run(c *Call, next Func) (res Result, err error) {
	done := false
	defer func() {
		if done {
			return
		}
		v := recover()
		res, err = nil, s.recovered(c, v)
		if v == nil { // runtime.Goexit: run does not return, so the peer is answered here
			c.untrack()
			s.answerError(c, err)
		}
	}()
	res, err = next(c)
	done = true
	if err == nil && absent(res) && !c.needsInput() {
		err = fmt.Errorf("%s was answered with a result that is nil; middleware and handlers return a result or an error", c.Method())
	}
	return res, err
}

// absent reports whether a result is nil, or a nil pointer.
func absent(res Result) bool {
	if res == nil {
		return true
	}
	v := reflect.ValueOf(res)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// catch makes an error of a panic. It is deferred.
func (s *Server) catch(c *Call, err *error) {
	if v := recover(); v != nil {
		*err = s.recovered(c, v)
	}
}

// recovered logs a panic, and gives the error that the peer sees of it.
func (s *Server) recovered(c *Call, v any) error {
	ref := reference()
	s.log.ErrorContext(c, "handler panicked", "ref", ref, "panic", v, "stack", string(debug.Stack()))
	return &internalError{ref: ref, panicked: true}
}

// refuse answers a request that was not admitted.
func (s *Server) refuse(ctx context.Context, x *transport.Exchange, facts *revision.Facts, err error) {
	c := s.newCall(ctx, x, nil)
	if c.facts = facts; facts == nil {
		c.facts = revision.Newest()
	}
	if err := x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Error: s.refused(c, err)}); err != nil {
		s.log.DebugContext(c, "refusal not delivered", "err", err)
	}
}
