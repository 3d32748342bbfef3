// Package mcptest is for tests of servers, clients and transports: it checks a
// transport against its contract ([TestTransport]) and that a test leaves no
// goroutine behind ([NoLeaks]).
package mcptest
