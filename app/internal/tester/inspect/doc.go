// Package inspect asks a server one thing at a time and gives back what it said, member for
// member: the core of 'parley inspect'. [Methods] is the table of what can be asked; a [Target]
// is the server, a [Session] one connection with it. What a server answers is never decoded and
// written again: what goes out is the text that came in.
//
// The results, failures and exit codes are those of the MCP Inspector's command line, so that
// scripts that use the one may use the other.
package inspect
