// Package parley is the Model Context Protocol in Go: a library for servers,
// clients and hosts, and the program parley (in the module app).
//
// This package holds no code; its examples show how the others fit together.
//
//   - server offers tools, resources and prompts; one handler serves every
//     revision of the protocol, from the first to the stateless one.
//   - client connects to servers, finds out what they speak, and answers what
//     they ask.
//   - transport/streamable, transport/stdio and transport/mem carry the
//     messages: over HTTP, over pipes, child processes and sockets, and within
//     a process. transport/sse and transport/websocket are for those who need
//     them.
//   - mcp has the vocabulary: the types and methods as the newest revision
//     says them.
//   - strictjson reads and writes JSON as the library does: nothing ambiguous.
//   - schema makes JSON Schemas of Go types and checks values against them.
//   - oauth and the packages beneath it are authorization, for clients, servers
//     and authorization servers; netguard fetches what strangers name.
//   - ext/tasks makes tasks of calls that take long, ext/skills serves and loads folders
//     of instructions for a model, ext/apps shows the results of tools in pages: the
//     official extensions.
//   - host puts policy, consent and budgets between a model and its servers.
//   - mcptest joins a client and a server in every revision and transport, for
//     your tests.
package parley
