package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// A row says how the server handles one method: what the vocabulary says of
// it, how its parameters decode, who serves it.
type row struct {
	*mcp.Method
	decode func(c *Call, raw wire.RawValue) (any, *mcp.RequestMeta, error)
	serve  func(c *Call) (Result, error)
	// limit gives the name and rate of the bucket a request is counted in.
	limit func(c *Call) (what string, perSecond float64)
	ext   *Extension // whose method it is, or nil
	def   *MethodDef
}

// method makes the row of a method from a function over its typed parameters.
func method[P any, PP interface {
	*P
	mcp.Params
}](name string, serve func(*Call, PP) (Result, error), limit func(*Call) (string, float64)) row {
	m, ok := mcp.Lookup(name)
	if !ok {
		panic("server: method " + name + " is not in mcp.Methods")
	}
	return row{
		Method: m,
		limit:  limit,
		decode: func(c *Call, raw wire.RawValue) (any, *mcp.RequestMeta, error) {
			p := PP(new(P))
			if len(raw) > 0 {
				if err := c.shape.UpParams(name, raw, p); err != nil {
					return nil, nil, err
				}
			}
			return p, &p.Base().Meta, nil
		},
		serve: func(c *Call) (Result, error) { return serve(c, c.params.(PP)) },
	}
}

// coreRows is what a server does with each method of the specification that a
// client may send and that the core handles after admission. The handshake
// itself is the session's.
func coreRows() map[string]row {
	rows := make(map[string]row)
	for _, r := range []row{
		method(mcp.MethodDiscover, (*Call).discover, listRate),
		method(mcp.MethodPing, (*Call).ping, pingRate),
		method(mcp.MethodToolsList, (*Call).listTools, listRate),
		method(mcp.MethodToolsCall, (*Call).callTool, toolRate),
		method(mcp.MethodPromptsList, (*Call).listPrompts, listRate),
		method(mcp.MethodPromptsGet, (*Call).getPrompt, toolRate),
		method(mcp.MethodResourcesList, (*Call).listResources, listRate),
		method(mcp.MethodResourcesTemplates, (*Call).listTemplates, listRate),
		method(mcp.MethodResourcesRead, (*Call).readResource, toolRate),
		method(mcp.MethodResourcesSubscribe, (*Call).subscribe, toolRate),
		method(mcp.MethodResourcesUnsubscribe, (*Call).unsubscribe, toolRate),
		method(mcp.MethodListen, (*Call).listen, listRate),
		method(mcp.MethodComplete, (*Call).complete, completionRate),
		method(mcp.MethodSetLevel, (*Call).setLevel, listRate),
	} {
		rows[r.Name] = r
	}
	return rows
}

func toolRate(c *Call) (string, float64) { return c.method + " " + c.target, c.srv.limits.ToolRate }
func listRate(c *Call) (string, float64) { return "lists", c.srv.limits.ListRate }
func completionRate(c *Call) (string, float64) {
	return "completion", c.srv.limits.CompletionRate
}
func pingRate(c *Call) (string, float64) { return "ping", c.srv.limits.PingRate }

// enter does what comes before middleware, in this order: the era admits the
// request, its method is looked up, the capability and the rate are checked,
// the parameters are decoded once.
func (c *Call) enter(in *jsonrpc.Incoming) error {
	if err := c.admit(in); err != nil {
		return err
	}
	r, ok := c.srv.rows[in.Method]
	if !ok || !c.exists(&r) {
		return jsonrpc.NewError(jsonrpc.CodeMethodNotFound, "unknown method %q in protocol revision %s", clip(in.Method), c.facts.Version)
	}
	if !c.srv.offers(c.facts, r.Capability) {
		return jsonrpc.NewError(jsonrpc.CodeMethodNotFound, "method %s needs the capability %q, which this server does not offer", in.Method, r.Capability)
	}
	c.row = &r
	if in.ParamsArray {
		return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "params of %s must be an object, not an array", in.Method)
	}
	c.target = member(in.Params, r.Target)
	if r.limit != nil {
		what, perSecond := r.limit(c)
		if wait := c.srv.rates.wait(c.principal.LimitKey(), what, perSecond); wait > 0 {
			return rateLimited(wait)
		}
	}
	params, meta, err := r.decode(c, in.Params.Raw())
	if err != nil {
		return invalidParams(in.Method, err)
	}
	c.params = params
	if meta != nil {
		c.meta = meta
	}
	if err := c.era.open(c); err != nil {
		return err
	}
	return c.declared(&r)
}

// exists reports whether the revision has the method. Those of extensions are
// asked for by name in the client's capabilities, or exist in every revision.
func (c *Call) exists(r *row) bool {
	return c.facts.Has(r.Name) || c.extends(r)
}

// invalidParams words a decoding error for the peer.
func invalidParams(method string, err error) error {
	var we *wire.Error
	if errors.As(err, &we) {
		return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "invalid params of %s: %v", method, we)
	}
	return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "invalid params of %s: %v", method, err)
}

// member is the text of a string member, or "".
func member(o jsonrpc.Object, name string) string {
	if name == "" {
		return ""
	}
	raw, ok := o.Member(name)
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
	if !c.row.Long {
		c.clock.start(c, s.limits.CallTimeout, s.limits.MaxCallTime)
		defer c.clock.stop()
	}
	res, err := s.run(c)
	// A panic beats a pending ask, a pending ask beats whatever was returned.
	var ie *internalError
	if err == nil || c.asks.waits() && !(errors.As(err, &ie) && ie.panicked) {
		res, err = c.era.settle(c, res)
	}
	if errors.Is(context.Cause(c.Context), errCancelled) {
		return // spec, basic/patterns/cancellation: no response to a cancelled request
	}
	if err == nil {
		err = s.answer(c, res)
		if err == nil || errors.Is(err, jsonrpc.ErrEnded) || errors.Is(err, transport.ErrClosed) {
			return
		}
	}
	if err := c.out.Answer(context.WithoutCancel(c), &jsonrpc.Outgoing{ID: c.id, Error: s.wireError(c, err)}); err != nil {
		s.log.Debug("answer not delivered", "method", c.method, "err", err)
	}
}

// answer translates a result for the peer's revision and sends it.
func (s *Server) answer(c *Call, res Result) error {
	body, ok := res.(jsonrpc.Body)
	if !ok {
		down, err := c.shape.DownResult(c.method, res)
		if err != nil {
			return fmt.Errorf("translating the result of %s: %w", c.method, err)
		}
		body = jsonrpc.JSON(down)
	}
	return c.out.Answer(context.WithoutCancel(c), &jsonrpc.Outgoing{ID: c.id, Result: body})
}

// run calls the chain, and makes an error of a panic: a handler's mistake
// must not end the process, nor its text reach the peer.
func (s *Server) run(c *Call) (res Result, err error) {
	done := false
	defer func() {
		if done {
			return
		}
		v := recover() // nil after runtime.Goexit, which must not leave the peer waiting either
		ref := reference()
		s.log.Error("handler panicked", "method", c.method, "target", c.target, "ref", ref, "panic", v, "stack", string(debug.Stack()))
		res, err = nil, &internalError{ref: ref, panicked: true}
	}()
	res, err = s.serve(c)
	done = true
	return res, err
}

// refuse answers a request that was not admitted.
func (s *Server) refuse(ctx context.Context, x *transport.Exchange, facts *revision.Facts, err error) {
	c := &Call{Context: ctx, srv: s, method: x.In.Method, facts: facts}
	if c.facts == nil {
		c.facts = revision.Newest()
	}
	if err := x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Error: s.wireError(c, err)}); err != nil {
		s.log.Debug("refusal not delivered", "err", err)
	}
}
