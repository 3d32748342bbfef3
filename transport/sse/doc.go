// Package sse is the HTTP+SSE transport of revision 2024-11-05: the client's
// GET opens a stream of events, on which the server sends all its messages;
// the first event names the address to which the client posts each of its own
// (spec 2024-11-05, basic/transports, "HTTP with SSE"). The stream is the
// connection: when it ends, the session does.
//
// Deprecated: Streamable HTTP has taken its place. Use package streamable; to
// reach servers that may be old, dial both with transport.First, and to serve
// clients that may be old, mount both, at paths of their own.
package sse
