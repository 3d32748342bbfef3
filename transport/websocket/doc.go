// Package websocket carries MCP messages over WebSocket (RFC 6455), a custom
// transport that keeps to the rules of stdio: one text message is one JSON-RPC
// message, or one batch where the revision has them, in either direction at any
// time (spec 2026-07-28, basic/transports, Custom Transports). Both ends must
// agree on the subprotocol "mcp".
//
// [NewHandler] makes the endpoint, an http.Handler; [URL] dials one:
//
//	http.Handle("/ws", websocket.NewHandler(server, nil))
//	client.Connect(ctx, websocket.URL("wss://mcp.example/ws"), nil)
//
// The caller of all requests is the one that opened the connection, with the scopes of
// then; a client that got more opens another. A request whose caller lacks
// scopes gets its error as a message, without a challenge. A connection outlives
// the token that it was opened with, unless authentication in front gives its
// request a context with a deadline, which ends it.
package websocket
