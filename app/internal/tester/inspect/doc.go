// Package inspect is the core of 'parley inspect': it sends single requests to a server and
// returns the results unchanged, field by field. [Methods] is the table of supported methods. A
// [Target] is the server, a [Session] one connection to it. The package never decodes and
// re-encodes a result: it outputs the text it received.
//
// The results, errors and exit codes match the MCP Inspector's command line, so that scripts
// can use either program.
package inspect
