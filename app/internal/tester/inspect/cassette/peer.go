package cassette

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
	"github.com/parley-mcp/parley/strictjson"
	"github.com/parley-mcp/parley/transport"
)

// A peer is a connection to a server over which messages go that another client wrote.
type peer struct {
	link transport.Link
	next atomic.Int64

	mu       sync.Mutex
	settled  bool                              // the link knows the revision
	bindings map[string][]schema.HeaderBinding // by tools
}

// ownID is what ids of requests begin with that nobody asked for.
const ownID = "parley-"

// dialPeer connects. What the server sends outside of answers goes to receive; closed is told of
// the end of the connection.
func dialPeer(ctx context.Context, d transport.Dialer, receive func(p *peer, m *jsonrpc.Incoming), closed func(err error)) (*peer, error) {
	p := &peer{bindings: make(map[string][]schema.HeaderBinding)}
	ready := make(chan struct{})
	defer close(ready)
	link, err := d.Dial(ctx, &inbox{func(m *jsonrpc.Incoming) {
		<-ready
		receive(p, m)
	}, closed})
	p.link = link
	return p, err
}

// An inbox takes messages.
type inbox struct {
	receive func(m *jsonrpc.Incoming)
	closed  func(err error)
}

// Receive takes a message.
func (i *inbox) Receive(m *jsonrpc.Incoming) { i.receive(m) }

// Closed takes the end.
func (i *inbox) Closed(err error) { i.closed(err) }

// nextID is an id that was not used.
func (p *peer) nextID() jsonrpc.ID { return jsonrpc.IntID(p.next.Add(1)) }

// do sends a request and waits for its answer.
func (p *peer) do(ctx context.Context, id jsonrpc.ID, method string, params json.RawMessage) (*jsonrpc.Incoming, error) {
	p.settle(ctx, params)
	out := p.outgoing(method, params)
	out.ID = id
	in, err := p.link.Do(ctx, out, p.route(ctx, method, params))
	if err != nil || in.Error != nil {
		return in, err
	}
	switch method {
	case mcp.MethodInitialize:
		version := textOf(memberOf(json.RawMessage(in.Result.Raw()), "protocolVersion"))
		p.first()
		if err := p.link.Establish(ctx, transport.Established{Version: version, Handshake: true}); err != nil {
			return nil, fmt.Errorf("after initialize: %w", err)
		}
	case mcp.MethodToolsList:
		p.learn(json.RawMessage(in.Result.Raw()))
	}
	return in, nil
}

// post sends a notification.
func (p *peer) post(ctx context.Context, method string, params json.RawMessage) error {
	return p.link.Post(ctx, p.outgoing(method, params), p.route(ctx, method, params))
}

func (p *peer) outgoing(method string, params json.RawMessage) *jsonrpc.Outgoing {
	out := &jsonrpc.Outgoing{Method: method}
	if len(params) > 0 {
		out.Params = jsonrpc.Raw(jsonrpc.RawValue(params))
	}
	return out
}

// settle tells the link of a revision without handshake, which every request names.
func (p *peer) settle(ctx context.Context, params json.RawMessage) {
	version := textOf(memberOf(params, "_meta", mcp.MetaProtocolVersion))
	if version == "" || !p.first() {
		return
	}
	_ = p.link.Establish(ctx, transport.Established{Version: version}) // an unknown one is the server's to refuse
}

// first reports, once, that the link does not know the revision yet.
func (p *peer) first() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.settled
	p.settled = true
	return !before
}

// headersOf are the arguments of a tool that go into headers; false if they are not known.
func (p *peer) headersOf(tool string) ([]schema.HeaderBinding, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, ok := p.bindings[tool]
	return list, ok
}

// route is what a stateless revision repeats in HTTP headers.
func (p *peer) route(ctx context.Context, method string, params json.RawMessage) transport.Route {
	version := textOf(memberOf(params, "_meta", mcp.MetaProtocolVersion))
	if version == "" || !p.link.Traits().Routes {
		return transport.Route{}
	}
	r := transport.Route{Carried: true, Version: version, Method: method}
	if row, ok := mcp.Lookup(method); ok && row.Target != "" {
		r.Name = textOf(memberOf(params, row.Target))
	}
	if method != mcp.MethodToolsCall {
		return r
	}
	if _, known := p.headersOf(r.Name); !known {
		meta := json.RawMessage(`{"_meta":` + string(memberOf(params, "_meta")) + `}`)
		id := jsonrpc.StringID(fmt.Sprint(ownID, p.next.Add(1)))
		_, _ = p.do(ctx, id, mcp.MethodToolsList, meta) // without it the call tells what is missing
	}
	arguments := memberOf(params, "arguments")
	bindings, _ := p.headersOf(r.Name)
	for _, b := range bindings {
		if value, present, err := b.Value(jsonrpc.RawValue(arguments)); present && err == nil {
			if r.Fields == nil {
				r.Fields = make(map[string][]string)
			}
			r.Fields[b.Name] = []string{value}
		}
	}
	return r
}

// learn notes which arguments of tools go into headers.
func (p *peer) learn(result json.RawMessage) {
	var list struct {
		Tools []struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		} `json:"tools"`
	}
	if strictjson.Unmarshal(result, &list, &strictjson.Options{MaxDepth: maxDepth}) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range list.Tools {
		p.bindings[t.Name] = nil
		if compiled, err := schema.Compile(jsonrpc.RawValue(t.InputSchema), &schema.Limits{Lenient: true}); err == nil {
			p.bindings[t.Name] = compiled.Headers()
		}
	}
}
