package server

import (
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// stateless is the era in which every request stands for itself.
type stateless struct{}

// admitStateless checks version and required `_meta` of a modern request.
//
// spec 2026-07-28, basic/index: a request missing a required field "MUST" be
// rejected with -32602; basic/versioning: an unknown version with -32022.
func (c *Call) admitStateless(version string, declared bool) error {
	c.use(revision.Newest())
	if err := checkVersion(&c.x.Route, version); err != nil {
		return err
	}
	f, ok := revision.Lookup(version)
	if !ok || f.Handshake || !c.srv.allows(f) {
		return unsupportedVersion(version, c.srv.Versions())
	}
	c.use(f)
	if err := c.checkMethod(); err != nil {
		return err
	}
	if !declared {
		return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "_meta lacks the required member %q", mcp.MetaClientCapabilities)
	}
	return nil
}

// admitByRoute refuses a request that only its transport says to be modern
// (ruling 1).
func (c *Call) admitByRoute() error {
	c.use(revision.Newest())
	if f, ok := revision.Lookup(c.x.Route.Version); !ok || !c.srv.allows(f) {
		return unsupportedVersion(c.x.Route.Version, c.srv.Versions())
	}
	return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "_meta lacks the required member %q", mcp.MetaProtocolVersion)
}

func (stateless) open(c *Call) error {
	if c.meta.ClientCapabilities == nil {
		return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "_meta member %q must be an object", mcp.MetaClientCapabilities)
	}
	c.caps = c.meta.ClientCapabilities
	if l := c.meta.LogLevel; l != "" && !l.Valid() { // Ruling 25
		return jsonrpc.NewError(jsonrpc.CodeInvalidParams, "_meta member %q is no log level", mcp.MetaLogLevel)
	}
	if !c.row.Asks {
		return nil
	}
	return c.resume()
}

// settle makes "input required" of a call that asked, and completes the
// result of one that did not.
func (stateless) settle(c *Call, res Result) (Result, error) {
	if c.needsInput() {
		return c.suspend()
	}
	c.fillResult(res, mcp.ResultComplete)
	return res, nil
}

// fillResult fills in what every result of the revision has.
func (c *Call) fillResult(res Result, resultType string) {
	r, ok := res.(mcp.Result)
	if !ok {
		return
	}
	base := r.Base()
	if base.ResultType == "" {
		base.ResultType = resultType
	}
	if !c.srv.opts.HideInfo && base.Meta.ServerInfo == nil {
		base.Meta.ServerInfo = &c.srv.info
	}
}

func (stateless) level(c *Call) mcp.LogLevel { return c.meta.LogLevel }

func (stateless) refusal(_ *Call, err *NotCapableError) *jsonrpc.Error {
	return toWire(missingCapability(err))
}
