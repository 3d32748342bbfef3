package server

import (
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// Offered reports whether the server has the tool or prompt that the request
// names; it is false for requests that name neither. Clients choose the names
// that are not offered, as many as they like, so these do not belong into the
// labels of metrics and the names of spans.
func (c *Call) Offered() bool {
	ok := false
	switch c.params.(type) {
	case *mcp.CallToolParams:
		_, ok = c.srv.allTools().byKey[c.target]
	case *mcp.GetPromptParams:
		_, ok = c.srv.allPrompts().byKey[c.target]
	}
	return ok
}

// ErrorCode is the code of the JSON-RPC error that the caller gets for err, which
// next returned to middleware, or 0 if err is nil.
func ErrorCode(c *Call, err error) int64 {
	if err == nil {
		return 0
	}
	if e := c.srv.shown(c, err); e != nil {
		return e.Code
	}
	return jsonrpc.CodeInternalError
}
