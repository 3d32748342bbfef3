// Package mcptest is for tests of servers, clients and transports: it connects a
// client to a server in one line ([Client]), and in every revision and over
// every transport ([EachEra]), plays
// transcripts of raw messages ([Transcript]), checks messages against the
// specification's schemas ([Oracle]), checks a transport against its contract
// ([TestTransport]) and that a test leaves no goroutine behind ([NoLeaks]).
package mcptest
