package inspect

import (
	"context"
	"errors"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// metaServerInfo is where a server without a handshake says who it is.
const metaServerInfo = "io.modelcontextprotocol/serverInfo"

// An opening is what a server says of itself, in the form of the Inspector.
type opening struct {
	ServerInfo      mcp.RawValue `json:"serverInfo,omitzero"`
	ProtocolVersion string       `json:"protocolVersion"`
	Capabilities    mcp.RawValue `json:"capabilities,omitzero"`
	Instructions    mcp.RawValue `json:"instructions,omitzero"`
}

// initialize gives what the server said when the connection began.
func initialize(ctx context.Context, s *Session, _ *Args) (*Outcome, error) {
	raw, err := s.said(ctx)
	if err != nil {
		return nil, err
	}
	o, err := strictjson.ParseObject(raw)
	if err != nil {
		return nil, err
	}
	said := opening{ProtocolVersion: s.Version()}
	said.ServerInfo, _ = o.Member("serverInfo")
	if meta, ok := o.Object("_meta"); ok && said.ServerInfo == nil {
		said.ServerInfo, _ = meta.Member(metaServerInfo)
	}
	said.Capabilities, _ = o.Member("capabilities")
	said.Instructions, _ = o.Member("instructions")
	return encoded(&said)
}

// said is the result of initialize or server/discover, as it came.
func (s *Session) said(ctx context.Context) (mcp.RawValue, error) {
	if s.opening != nil {
		return s.opening, nil
	}
	return s.ask(ctx, mcp.MethodDiscover, nil, nil)
}

// A view is what a server says in one era.
type view struct {
	Result mcp.RawValue `json:"result,omitzero"`
	Error  *Error       `json:"error,omitzero"`
}

// discover gives what the server says in both eras, each on a connection of its own. A
// server that speaks only one of them fails in the other, which is no failure of the method.
func discover(ctx context.Context, t *Target, _ *Args) (*Outcome, error) {
	views := make(map[string]*view, 2)
	var failed error
	for _, era := range []struct {
		name     string
		versions []string
	}{{"modern", t.Modern}, {"legacy", t.Legacy}} {
		if len(era.versions) == 0 {
			continue
		}
		raw, err := t.saidIn(ctx, era.versions)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			failed = errors.Join(failed, err)
			views[era.name] = &view{Error: Classify(err)}
		default:
			views[era.name] = &view{Result: raw}
		}
	}
	for _, v := range views {
		if v.Error == nil {
			return encoded(views)
		}
	}
	return nil, failed
}

// saidIn is what the server says of itself in some revisions.
func (t *Target) saidIn(ctx context.Context, versions []string) (raw mcp.RawValue, err error) {
	s, err := t.connect(ctx, versions)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.said(ctx)
}
