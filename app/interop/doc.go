// Package interop holds tests of Parley against the programs of others: SDKs
// in Go and TypeScript, as clients of our server and as servers of our client,
// over every transport and revision that both sides have, and authorization
// with the servers and clients of others. README.md shows the tables of pairs
// and what the others do differently.
//
// The module stands outside of the workspace, so that no user of the
// library gets the SDKs of others: run it with GOWORK=off, or "make interop".
package interop
