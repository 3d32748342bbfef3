// Package flows holds no code but the end-to-end tests of the library: each
// flow of the protocol from one end to the other, with a real client and a
// real server, in every revision that has it; and what other implementations
// are known to have got wrong. The tests are named after the flow.
package flows
