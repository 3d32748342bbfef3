// Package dev serves a server that is being worked on: a command that is started again when files
// change, while the clients stay connected.
//
// Two proxies (package proxy) stand behind each other. The outer one is what clients are connected
// to, and lasts. Its upstream server is whichever process is the current one, through a link in
// memory (link.go). Each process has a proxy of its own, which speaks the process's revision:
//
//	clients ── outer proxy ── link ──┬── proxy ── process 2 (current)
//	                                 └── proxy ── process 1 (finishes its calls)
//
// A start never ends what runs: the new process becomes the current one once it has answered and
// listed what it offers, and if it does not, the one before goes on serving. New requests wait while
// a process is starting. Requests under way, and calls that wait for the answer of a person, finish
// at the process where they began, for Options.Drain at most. Then a call of a tool ends with an error
// that says that it may have run; everything else is asked of the new process.
//
// With Options.StopFirst the current process ends before the new one starts, for servers that hold
// something alone. A server that offers nothing is the current one in between.
package dev
