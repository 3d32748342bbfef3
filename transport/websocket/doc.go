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
package websocket
