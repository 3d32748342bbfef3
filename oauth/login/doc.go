// Package login signs a client in to protected resources: it follows the
// challenges of a resource server to its authorization server, registers,
// takes the person through the browser, keeps and refreshes tokens, and puts
// them on requests.
//
//	signIn := login.New(&login.Options{ClientName: "My app"})
//	d := streamable.URL("https://api.example/mcp")
//	d.Client = signIn.HTTPClient(nil)
//	c, err := client.Connect(ctx, d, nil)
//
// [Client.Source] gives tokens for other uses, [Options] has what a program
// without a person needs (Grant), and [Client.Diagnose] tells people why
// signing in does not work. spec 2026-07-28, basic/authorization.
package login
