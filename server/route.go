package server

import (
	"strings"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// What a transport says outside the body (HTTP headers) must say the same as the
// body: a proxy between may have routed or allowed the request by it.
//
// spec 2026-07-28, basic/transports/streamable-http, Server Validation: a
// server "MUST reject requests where the values specified in the headers do
// not match the corresponding values in the request body", with -32020.

// mismatch words a difference.
func mismatch(format string, args ...any) error {
	return jsonrpc.NewError(mcp.CodeHeaderMismatch, "header mismatch: "+format, args...)
}

// checkVersion compares the header that names the version.
func checkVersion(r *transport.Route, version string) error {
	switch {
	case !r.Carried || r.Version == version && r.Invalid == "":
		return nil
	case r.Invalid != "":
		return mismatch("%s", r.Invalid)
	case r.Version == "":
		return mismatch("MCP-Protocol-Version is missing; _meta names %q", clip(version))
	}
	return mismatch("MCP-Protocol-Version is %q, _meta names %q", clip(r.Version), clip(version))
}

// checkMethod compares the header that names the method.
func (c *Call) checkMethod() error {
	r := &c.x.Route
	switch {
	case !r.Carried || !c.facts.RouteHeaders || r.Method == c.Method():
		return nil
	case r.Method == "":
		return mismatch("Mcp-Method is missing; the body says %q", clip(c.Method()))
	}
	return mismatch("Mcp-Method is %q, the body says %q", clip(r.Method), clip(c.Method()))
}

// checkTarget compares the headers that name the target of the request and,
// for tools, arguments. It comes after decoding.
func (c *Call) checkTarget() error {
	r := &c.x.Route
	if !r.Carried || !c.facts.RouteHeaders {
		return nil
	}
	switch {
	case !c.row.named() || r.Name == c.target:
	case r.Name == "":
		return mismatch("Mcp-Name is missing; the body says %q", clip(c.target))
	default:
		return mismatch("Mcp-Name is %q, the body says %q", clip(r.Name), clip(c.target))
	}
	if c.Method() != mcp.MethodToolsCall {
		return nil
	}
	t, ok := c.srv.allTools().byKey[c.target]
	if !ok || len(t.in.Headers()) == 0 || !c.visibleTo(t) {
		return nil
	}
	return c.checkFields(t)
}

// checkFields compares the headers that a tool wants for arguments. Others
// that look like them are ignored.
func (c *Call) checkFields(t *tool) error {
	arguments := c.tool.Arguments
	if arguments == nil {
		arguments = mcp.RawValue("{}")
	}
	headers := t.in.Headers()
	for i := range headers {
		h := &headers[i]
		given := c.x.Route.Fields[strings.ToLower(h.Name)]
		value, present, err := h.Value(arguments)
		switch {
		case err != nil:
			continue // the check of the arguments refuses it
		case len(given) > 1:
			return mismatch("Mcp-Param-%s is there %d times", h.Name, len(given))
		case present && len(given) == 0:
			return mismatch("Mcp-Param-%s is missing; the argument %s has a value", h.Name, strings.Join(h.Path, "."))
		case !present && len(given) > 0:
			return mismatch("Mcp-Param-%s has a value; the argument %s has none", h.Name, strings.Join(h.Path, "."))
		case present && !h.Equal(given[0], value):
			return mismatch("Mcp-Param-%s does not match the argument %s", h.Name, strings.Join(h.Path, "."))
		}
	}
	return nil
}
