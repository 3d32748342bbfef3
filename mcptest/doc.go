// Package mcptest is for tests of servers, clients and transports: it joins a
// client and a server in every revision and transport ([EachEra]), plays
// transcripts of raw messages ([Transcript]), checks messages against the
// specification's schemas ([Oracle]), checks a transport against its contract
// ([TestTransport]) and that a test leaves no goroutine behind ([NoLeaks]).
package mcptest
