// Package registry writes and checks server.json, the file that describes a server to registries of
// MCP servers: what it is called, and from which packages or at which URLs it can be had
// (github.com/modelcontextprotocol/registry, docs/reference/server-json, schema of 2025-12-11).
//
// [Check] reads any bytes and returns findings. [Server] is what a file says, for programs that write
// one; the Parse functions make its parts of the texts of a command line.
package registry
