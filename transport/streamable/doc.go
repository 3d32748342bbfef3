// Package streamable is the Streamable HTTP transport, for every revision on
// one endpoint: each request stands for itself in the stateless revision, and
// belongs to a session in those with a handshake. [NewHandler] makes the
// endpoint, [Serve] a whole server, [URL] dials one.
package streamable
