// Package client talks to MCP servers. A [Client] is one relation with one
// server, whatever revision it speaks and whatever carries its messages:
//
//	c, err := client.Connect(ctx, stdio.Command("./dbserver"), nil)
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	out, err := client.Call[IndexOut](ctx, c, "index", IndexIn{Repo: "a/b"})
//
// The client finds out which era the server belongs to, answers what the
// server asks (elicitation, sampling, roots) through the handlers in
// [Options], respects capabilities both ways, keeps what the server allows it
// to keep, and comes back by itself after a connection is lost.
//
// # When a server is busy, or gone
//
// A request that the server refused before it ran, because there were too many,
// is sent again as Options.Retries says, at the rate that the server allows; in
// the end the error is a [RetryError].
//
// A connection that is lost is made anew by the next call, with growing pauses,
// and subscriptions are renewed on it. A call that was under way is sent again
// only if doing it twice is harmless: lists, reads, prompts, completion, and
// tools that Options.TrustAnnotations lets the client believe. For any other
// the error is a transport.ErrInterrupted: it may have run. An error that is a
// transport.ErrClosed and no ErrInterrupted says that nothing was sent.
//
// # Questions of the server
//
// The context of a handler that answers a question has the values of the
// context of the call that the question belongs to, where that is known; see
// [RequestFrom].
//
// All methods of a [Client] may be called by many goroutines at once.
// Handlers may call the client, but must not close it.
package client
