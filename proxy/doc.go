// Package proxy makes a server of a connection to another server. What that
// server offers, behind any transport and in any revision, is offered to clients
// of every revision, alone or together with more:
//
//	gh, err := proxy.Connect(ctx, stdio.Command("gh-mcp"), nil)
//	if err != nil {
//		return err
//	}
//	defer gh.Close()
//	top := server.New("tools", "1.0.0", nil)
//	top.Mount("gh", gh.Server())
//	return stdio.Serve(ctx, top)
//
// The server behind the proxy is called the upstream server here, and a client of
// the proxy is a caller.
//
// # What travels
//
// Tools, prompts, resources and templates are offered with the definitions that
// the upstream server gave. Their lists are read when the proxy connects, again
// when the upstream server says that they changed, and from time to time if it
// does not say so; callers are told of changes. URIs that no list names are read
// too. Arguments and structured results pass as they are: each end of the way
// checks them. For models whose provider does not take every JSON Schema,
// Options.Schemas reduces the input schemas that callers see. Completion, progress,
// cancellation, log messages, subscriptions to
// resources and errors with their codes and data pass both ways. A refusal that the
// proxy's client has repeated in vain (too many requests, an unknown version) passes as
// an internal error, so that callers do not repeat it as well. Results are not kept
// across callers. Where the proxy is mounted, Mount rewrites the URIs in what passes,
// in both directions.
//
// # Questions
//
// What the upstream server asks in the middle of a call reaches the caller of
// that call: forms, URLs, sampling, roots. How depends on the era of both sides:
//
//	caller     upstream   how a question travels
//	handshake  handshake  live, while both calls wait
//	handshake  stateless  live to the caller; the proxy sends the next round upstream
//	stateless  stateless  the rounds of both sides are the same: what the upstream
//	                      server sealed travels in what the proxy's server seals,
//	                      and any replica may take the next round
//	stateless  handshake  the upstream call is kept in this process while the
//	                      caller's rounds go on: Options.MaxKept and KeptTime
//
// A server with a handshake need not say which of several calls a question belongs
// to, and on a pipe it cannot. The proxy therefore has it run the calls of one caller
// at a time, unless Options.NoQuestions leaves nothing to ask. Calls of the same caller
// run concurrently; while one runs, no new one begins before the waiting call of
// another caller. While all calls under way wait for the answers to questions, or for a
// person who is busy on a page that a question led to, others run:
//
//   - those of the same caller. Once the call of another caller has waited for ten
//     seconds, no new one begins before it.
//   - those of other callers, one at a time, unless the tool, prompt or resource has
//     asked before: it has its turn when no question of another caller is open. An
//     answer waits until such a call is over, for ten seconds at most.
//
// A question without a stream of its own is refused while calls of several callers are
// under way; what may have asked it has its turn from then on, as if it had asked. A
// question is open for Options.KeptTime, a call waits for its turn for
// Options.QueueTime, and Options.MaxQueued bounds how many wait. Anonymous callers
// are told apart by their session; without one, each of their calls is another
// caller's.
//
// A stateless upstream server is told with each request what the caller of that
// request can answer. One with a handshake was told before there was a caller that
// everything can be answered; what the caller of the moment cannot answer is then
// refused as a client without the capability refuses it.
//
// # Identity
//
// The upstream server sees one client: the proxy, with the proxy's credentials.
// All callers act with them, so put a guard in front of a proxy that more than
// one person can reach, and hide with Visible and middleware of Proxy.Server what
// not every caller may use. A question is shown only to the caller of its own call;
// for a minute after a call was cancelled, which the upstream server may go on with,
// a question that may be its own is refused to other callers.
// A log message is sent to the caller whose call it belongs to, and to none if
// that is not certain.
package proxy
