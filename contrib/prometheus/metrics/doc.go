// Package metrics counts the requests of MCP servers and clients and writes
// them as a page that Prometheus reads. It needs nothing but the library:
//
//	m := metrics.New(nil)
//	s.Use(m.Server())
//	s.Observe(m.ServerObserver())
//	http.Handle("/metrics", m)
//
// Programs that have a registry of Prometheus' own client take the package
// above, prommcp, which gives the same counts to the registry.
//
// # What is counted
//
// For servers:
//
//	mcp_server_request_duration_seconds  histogram: method, target, outcome, revision
//	mcp_server_requests_in_flight        gauge: method
//	mcp_server_requests_refused_total    counter: code, limit, method
//	mcp_server_sessions                  gauge: transport, revision
//	mcp_server_session_duration_seconds  histogram: transport, revision, outcome
//
// The first two come from the middleware, the others from the observer. For
// clients there are the same, with mcp_client in their names, but no refusals.
//
// method is that of the request. target is the name of a tool or prompt that the
// server offers (see Client for clients), "other" for names that it does not offer and for those beyond
// Options.MaxNames, and empty for methods about something else. outcome is
// ok, input_required (the server asked a question, and the client will be back
// with the answer: no failure), tool_error (the tool failed, in words for the
// model), refused (an error that the caller can do something about), failed (an
// error of the server, or a panic), cancelled or timed_out; see server.Outcome.
// revision is the protocol's. So clients cannot add series at will.
//
// A request that is asked about is counted once for each round. What the server
// or its transport refuses before middleware runs (malformed messages, rates,
// sessions that are one too many) is counted as refused, by the code of the error
// and the name of the option whose limit it was over, such as Limits.ToolRate;
// methods that are not the protocol's are "other". The outcome of a session is
// failed if its connection broke, else ok; what a session is, server.Observer says.
//
// Counter, Histogram and Page are for what a program counts by itself, on the
// same page.
package metrics
