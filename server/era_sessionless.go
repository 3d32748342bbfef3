package server

import (
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// sessionless is the era of sessions without one: an endpoint that keeps no
// sessions serves each request of a client of that era by itself. Nothing is
// known of the client and nothing is kept for it, so that it cannot be asked
// (needs are missing before ask is reached), hears of no changes, and sets no
// log level.
type sessionless struct{ handshake }

func (sessionless) open(*Call) error { return nil }

func (sessionless) level(*Call) mcp.LogLevel { return mcp.LogInfo }

// sessionless reports whether the request is of a revision with sessions and
// belongs to none.
func (c *Call) sessionless() bool { return c.session == nil && c.facts.Handshake }

// admitSessionless checks the version that the transport found.
func (c *Call) admitSessionless() error {
	f, ok := revision.Lookup(c.x.Version)
	if !ok || !f.Handshake || !c.srv.allows(f) {
		c.use(revision.NewestHandshake())
		return jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"protocol version %q is not served here: name one of %v in MCP-Protocol-Version", clip(c.x.Version), c.srv.Versions())
	}
	c.use(f)
	if revision.Stateful(c.Method()) {
		return jsonrpc.NewError(jsonrpc.CodeMethodNotFound, "method %s needs a session, and this server keeps none", c.Method())
	}
	return nil
}

// initializeSessionless serves an initialize request that opens no session: the client is told
// what it can have without one, and brings the revision with each request. An
// error refuses it before middleware.
func (s *Server) initializeSessionless(c *Call) error {
	c.use(revision.NewestHandshake())
	if c.x.Batched { // ruling 10
		return jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "initialize cannot be part of a JSON-RPC batch; send it by itself")
	}
	params, f, err := s.agree(c.x.In)
	if err != nil {
		return err
	}
	c.use(f)
	c.params, c.caps = params, &params.Capabilities
	c.row = initializeRow(s.initializeResult(f, s.capabilitiesSessionless(f)))
	answer, err := s.run(c, s.serve)
	c.untrack()
	if err == nil {
		err = s.answer(c, answer)
	}
	if err != nil {
		s.answerError(c, err)
	}
	return nil
}

// capabilitiesSessionless are what the server offers in a revision with
// sessions to clients that have none: no notices of changes, no subscriptions,
// and nothing of extensions, which clients would have to ask for by declaring them.
// Logging stays, since log messages of a request may go on its own stream.
func (s *Server) capabilitiesSessionless(f *revision.Facts) *mcp.ServerCapabilities {
	caps := s.capabilities(f, nil)
	caps.Extensions, caps.Extra = nil, nil
	if caps.Tools != nil {
		caps.Tools = &mcp.ToolsCapability{}
	}
	if caps.Prompts != nil {
		caps.Prompts = &mcp.PromptsCapability{}
	}
	if caps.Resources != nil {
		caps.Resources = &mcp.ResourcesCapability{}
	}
	return caps
}
