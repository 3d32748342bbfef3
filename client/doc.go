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
// All methods of a [Client] may be called by many goroutines at once.
// Handlers may call the client, but must not close it.
package client
