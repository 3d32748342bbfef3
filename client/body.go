package client

import (
	"errors"
	"unicode/utf8"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// A body is the params of a request: what the caller gave, which is never
// written to, and members that the protocol adds.
type body struct {
	k      *call
	s      *session
	id     mcp.ID
	params any // encodes to an object; nil is an empty one
	rd     *round
}

// A message is one request with its body, in one piece of memory.
type message struct {
	jsonrpc.Outgoing

	body body
}

// message makes the message that carries the call, once.
func (k *call) message(s *session, id mcp.ID, params any, rd *round) *jsonrpc.Outgoing {
	m := &message{body: body{k: k, s: s, id: id, params: params, rd: rd}}
	m.Outgoing = jsonrpc.Outgoing{ID: id, Method: k.method, Params: &m.body}
	return &m.Outgoing
}

// AppendJSON encodes the params once, at the end of the transport's buffer.
func (b *body) AppendJSON(dst []byte) ([]byte, error) {
	start := len(dst)
	var err error
	switch p := b.params.(type) {
	case nil:
		dst = append(dst, '{')
	case *toolParams:
		if dst, err = p.append(dst); err != nil {
			return nil, err
		}
	default:
		if text, ok := p.(wire.RawValue); ok && b.k.encoded(text) {
			dst = append(dst, text[:len(text)-1]...)
			break
		}
		if dst, err = wire.Append(dst, p); err != nil {
			return nil, err
		}
		if len(dst) < start+2 || dst[start] != '{' || dst[len(dst)-1] != '}' {
			return nil, errors.New("params do not encode to an object")
		}
		dst = dst[:len(dst)-1]
	}
	return append(b.extra(dst, start+1), '}'), nil
}

// encoded reports whether a text is what take made, which needs no check and no other form.
func (k *call) encoded(text wire.RawValue) bool {
	return len(text) > 0 && len(text) == len(k.text) && &text[0] == &k.text[0]
}

// toolParams are the params of the call of a tool, all of which is in the call.
type toolParams call

// append adds the params without the brace at the end. The arguments were
// encoded before.
func (p *toolParams) append(dst []byte) ([]byte, error) {
	if !utf8.ValidString(p.target) {
		return nil, errors.New("the name of the tool is not valid UTF-8")
	}
	dst = wire.AppendString(append(dst, `{"name":`...), p.target)
	if len(p.args) > 0 {
		dst = append(append(dst, `,"arguments":`...), p.args...)
	}
	return dst, nil
}

// extra adds what the protocol adds to the params of one request, whose first
// member is at start.
func (b *body) extra(dst []byte, start int) []byte {
	k, before := b.k, len(dst)
	dst = append(appendMember(dst, start, "_meta"), '{')
	first := len(dst)
	dst = b.s.era.meta(dst, k)
	dst = k.appendTrace(dst, first)
	for name, value := range k.opts.Meta {
		dst = append(appendMember(dst, first, name), value...)
	}
	if k.token && !k.tried.token && !b.s.refusesTokens.Load() { // at the end: all else is as in the request before
		dst = appendMember(dst, first, mcp.MetaProgressToken)
		dst, _ = b.id.AppendJSON(dst)
	}
	if len(dst) == first {
		dst = dst[:before]
	} else {
		dst = append(dst, '}')
	}
	if k.added != nil {
		for name, value := range k.added.members {
			dst = append(appendMember(dst, start, name), value...)
		}
	}
	if b.rd == nil {
		return dst
	}
	if b.rd.responses != nil {
		dst = appendMember(dst, start, "inputResponses")
		// Each value is JSON already, so that this cannot fail.
		dst, _ = wire.Append(dst, b.rd.responses)
	}
	if b.rd.state != nil {
		dst = wire.AppendString(appendMember(dst, start, "requestState"), *b.rd.state)
	}
	return dst
}

// appendTrace adds the trace context of the call's context.
func (k *call) appendTrace(dst []byte, start int) []byte {
	t, _ := k.ctx.Value(traceKey{}).(*trace)
	if t == nil {
		return dst
	}
	if t.dropped != "" {
		k.c.log.Warn("invalid trace context was left out", "method", k.method, "keys", t.dropped)
	}
	if t.parent != "" {
		dst = wire.AppendString(appendMember(dst, start, mcp.MetaTraceParent), t.parent)
	}
	if t.state != "" {
		dst = wire.AppendString(appendMember(dst, start, mcp.MetaTraceState), t.state)
	}
	if t.baggage != "" {
		dst = wire.AppendString(appendMember(dst, start, mcp.MetaBaggage), t.baggage)
	}
	return dst
}

// appendMember begins a member of the object whose first member is at start.
func appendMember(dst []byte, start int, name string) []byte {
	if len(dst) > start {
		dst = append(dst, ',')
	}
	return append(wire.AppendString(dst, name), ':')
}
