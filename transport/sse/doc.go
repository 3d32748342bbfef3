// Package sse is the HTTP+SSE transport of revision 2024-11-05: the client's
// GET opens a stream of events, on which the server sends all its messages;
// the first event names the address to which the client posts each of its own
// (spec 2024-11-05, basic/transports, "HTTP with SSE"). The stream is the
// connection: when it ends, the session does.
//
// Each POST is answered with 202 before its request is handled, so that a
// request whose caller lacks scopes gets its error on the stream, without a
// challenge. The caller of all requests is the one that opened the stream, with the
// scopes of then: a client that got more opens another. Only the same identity
// may post to it. The stream outlives the token that it was opened with, unless
// authentication in front gives its request a context with a deadline, which
// ends it; messages are authenticated one by one.
//
// Deprecated: Streamable HTTP has taken its place. Use package streamable; to
// reach servers that may be old, dial both with transport.First, and to serve
// clients that may be old, mount both, at paths of their own.
package sse
