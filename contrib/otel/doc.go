// Package otelmcp makes traces and metrics of MCP requests with OpenTelemetry,
// by its semantic conventions for MCP and generative AI:
//
//	s.Use(otelmcp.Server(nil))
//	s.Observe(otelmcp.ServerObserver(nil))
//	o := &client.Options{
//		Middleware: []client.Middleware{otelmcp.Client(nil)},
//		Observers:  []client.Observer{otelmcp.ClientObserver(nil)},
//	}
//
// Its name is not that of its folder: programs that set OpenTelemetry up import
// a package otel already.
//
// # Spans
//
// A request is a span "tools/call get-weather" of kind SERVER at the server and
// CLIENT at the client. Names of tools and prompts that the server does not have
// are not in names of spans, nor in metrics. The server's span is the parent of
// what the handler does in its context, and the child of the client's span, which
// comes in the request's `_meta` (spec 2026-07-28, basic/index: OpenTelemetry
// trace context). A span that is in the context already, such as that of an HTTP
// server, is linked to; it is the parent of requests that bring none.
//
// A question to the client (input required) is no error: all rounds of a request
// are in one trace, each with its span at the server, under one at the client.
// Nor is a request that the client cancelled an error. Arguments and results of
// tools are not recorded. An error's message is, as far as the caller is told it.
//
// Attributes, in addition to those of the conventions:
//
//	parley.outcome  how it went if not well: "input required", "tool error", …
//	parley.round    which round of a request it is, from 1 on, after a question
//	parley.rounds   how many times the server asked, at the client
//	parley.attempts how many messages it took, at the client, if more than that
//
// mcp.session.id is a digest of the session's id, since the id lets its holder
// use the session; it is the same at client and server.
//
// # Metrics
//
// mcp.server.operation.duration and mcp.client.operation.duration, in seconds, are
// made by the middleware. The observers make
//
//	mcp.server.session.duration, mcp.client.session.duration  seconds
//	parley.server.sessions, parley.client.sessions            those that are open
//	parley.server.refused                                     requests
//
// A session that ended by an error has error.type. A refused request, which
// middleware and traces never see, has the code of its error as error.type, its
// method (_OTHER if it is not the protocol's) and, if it was over a limit, in
// parley.limit the name of the option, such as Limits.ToolRate. Refusals have no
// spans and no durations, since any client can cause any number of them in no time.
//
// Codes of errors are labels if package mcp has them, and the first 32 others;
// beyond these error.type is _OTHER, since a peer may make up any number.
//
// The conventions are not stable yet; attributes may change with them.
package otelmcp
