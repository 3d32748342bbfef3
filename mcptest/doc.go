// Package mcptest is for tests of servers, clients and transports.
//
//   - [Client] connects a client to a server in one line.
//   - [EachEra] runs a test in every protocol revision and over every transport;
//     filters ([Over], [In], [Stateless], [Sessions]) choose among them.
//   - [Transcript] plays transcripts of raw messages, and [Oracle] checks messages
//     against the specification's schemas.
//   - [TestTransport] holds a transport to its contract.
//   - [NoLeaks] checks that a test leaves no goroutine behind.
package mcptest
