// Package metrics counts the requests of MCP servers and clients and writes
// them as a page that Prometheus reads. It needs nothing but the library:
//
//	m := metrics.New(nil)
//	s.Use(m.Server())
//	http.Handle("/metrics", m)
//
// Programs that have a registry of Prometheus' own client take the package
// above, prommcp, which gives the same counts to the registry.
//
// # What is counted
//
// There are two families for servers, and the same two for clients with
// mcp_client in their names:
//
//	mcp_server_request_duration_seconds  histogram: method, target, outcome, revision
//	mcp_server_requests_in_flight        gauge: method
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
// refuses before its middleware runs (malformed requests, rate limits) is not
// counted.
package metrics
