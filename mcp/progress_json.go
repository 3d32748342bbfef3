package mcp

import "github.com/parley-mcp/parley/internal/wire"

// AppendJSON appends the JSON encoding of the parameters, of which there may be
// thousands for one request, without reflection.
func (p *ProgressParams) AppendJSON(dst []byte) ([]byte, error) {
	m := &p.Meta
	if !m.SubscriptionID.IsZero() || m.TraceParent != "" || m.TraceState != "" || m.Baggage != "" || len(m.Extra) > 0 ||
		!finite(p.Progress) || p.Total != nil && !finite(*p.Total) {
		return wire.Append(dst, p)
	}
	out := append(dst, `{"progressToken":`...)
	out, _ = p.ProgressToken.AppendJSON(out) // never fails
	out = append(out, `,"progress":`...)
	out = wire.AppendNumber(out, p.Progress)
	if p.Total != nil {
		out = append(out, `,"total":`...)
		out = wire.AppendNumber(out, *p.Total)
	}
	if p.Message != "" {
		ok := false
		if out, ok = wire.AppendText(append(out, `,"message":`...), p.Message); !ok {
			return wire.Append(dst, p) // it says where
		}
	}
	return append(out, '}'), nil
}

func finite(f float64) bool { return f-f == 0 }
