// Package conformance stands at the head of the module that holds Parley to
// the official conformance suite of the Model Context Protocol.
//
// It is a module of its own so that what the suite needs never becomes a
// dependency of the library or of the program. The fixture server and the
// fixture client that the suite talks to, its runner and the counts expected
// of it come with the Streamable HTTP transport, because the suite reaches a
// server through HTTP. An expected failure is then listed by scenario with
// its reason; a failure that is not listed, or a listed one that passes,
// fails the build.
package conformance
