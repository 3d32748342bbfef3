package client

import (
	"errors"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// A body is the params of a request: what the caller gave, which is never
// written to, and members that the protocol adds.
type body struct {
	params any    // encodes to an object; nil is an empty one
	extra  []byte // members, without braces
}

// AppendJSON encodes the params once, at the end of the carrier's buffer.
func (b *body) AppendJSON(dst []byte) ([]byte, error) {
	start := len(dst)
	if b.params == nil {
		dst = append(dst, '{')
	} else {
		var err error
		if dst, err = wire.Append(dst, b.params); err != nil {
			return nil, err
		}
		if len(dst) < start+2 || dst[start] != '{' || dst[len(dst)-1] != '}' {
			return nil, errors.New("params do not encode to an object")
		}
		dst = dst[:len(dst)-1]
	}
	if len(dst) > start+1 && len(b.extra) > 0 {
		dst = append(dst, ',')
	}
	return append(append(dst, b.extra...), '}'), nil
}

// extra encodes what the protocol adds to the params of one request.
func (k *call) extra(s *session, id mcp.ID, rd *round) []byte {
	dst := make([]byte, 0, 512)
	dst = append(dst, `"_meta":{`...)
	start := len(dst)
	dst = s.era.meta(dst)
	if k.tracker != nil {
		dst = appendMember(dst, start, mcp.MetaProgressToken)
		dst, _ = id.AppendJSON(dst)
	}
	dst = k.appendTrace(dst, start)
	for name, value := range k.meta {
		dst = append(appendMember(dst, start, name), value...)
	}
	if len(dst) == start {
		dst = dst[:0]
	} else {
		dst = append(dst, '}')
	}
	if rd == nil {
		return dst
	}
	if rd.responses != nil {
		dst = appendMember(dst, 0, "inputResponses")
		// Each value is JSON already, so that this cannot fail.
		dst, _ = wire.Append(dst, rd.responses)
	}
	if rd.state != nil {
		dst = wire.AppendString(appendMember(dst, 0, "requestState"), *rd.state)
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
