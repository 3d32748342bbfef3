// Package conformance stands at the head of the module that holds Parley to
// the official conformance suite of the Model Context Protocol.
//
// It is a module of its own so that what the suite needs never becomes a
// dependency of the library or of the program. The commands server, client and
// issuer beneath it are the fixtures that the suite talks to, written with the
// public packages alone; the command runner installs the suite as
// suite/package-lock.json pins it, runs it, and counts its checks. The file
// expected.txt says how many of each scenario must succeed: one fewer, one
// more, a failure or a warning fails the run. README.md tells how to run it.
package conformance
