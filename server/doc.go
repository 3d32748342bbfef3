// Package server offers tools, resources, prompts and completion to MCP
// clients of every protocol revision.
//
// A feature is written once, as a straight function:
//
//	s := server.New("hello", "1.0.0", nil)
//	s.Add(server.Tool("greet", "Greets a person by name.", greet)) // func(ctx, In) (Out, error)
//	err := stdio.Serve(ctx, s)
//
// The same function serves the handshake revisions and the stateless one. What
// belongs to the request under way is reached through functions of its
// context: [Progress], [Log], [Elicit], [ElicitURL], [Sample], [Roots],
// [Once]. An ask looks like a blocking call. In the handshake revisions it is
// one. In the stateless revision the server answers "input required", and runs
// the function again from the top when the client brings the answers: asks
// that were answered return at once. So ask first and act after, and put what
// must not be repeated into [Once].
//
// [Middleware] sees every request, the handshake among them. It hands a context
// on with [Call.WithContext], and [OutcomeOf] tells it how the request went. An
// [Observer] is told of what middleware never sees: what was refused before it, and
// sessions.
//
// What is known only at run time is served by [RawTool], [RawPrompt],
// [RawResource] and [RawTemplate]. Constructors panic on mistakes in the program;
// each has a form that returns an error, such as [NewTool], and so has Add:
// [Server.TryAdd].
//
// A [Server] is a transport.Handler: any transport of this module serves it.
// Every limit is on by default; see [Limits].
package server
