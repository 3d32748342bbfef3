// Package registry writes and checks server.json, the file that describes a server to MCP server
// registries: its name, and its packages or URLs
// (github.com/modelcontextprotocol/registry, docs/reference/server-json, schema of 2025-12-11).
//
// [Check] reads any bytes and returns findings. [Server] represents the content of a file, for
// programs that write one; the Parse functions create its parts from command line arguments.
package registry
