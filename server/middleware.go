package server

// Result is what a request is answered with: a pointer to a result type of
// package mcp, a jsonrpc.Body, or any other value that encodes as a JSON
// object. A result that has been returned belongs to the server, which
// completes it; it must not be kept or shared.
type Result any

// Func handles a request.
type Func func(c *Call) (Result, error)

// Middleware wraps the handling of every request that is admitted, initialize
// among them: logging, limits, audit, authorization. What is malformed, unknown
// or over a rate is refused before. It runs in each round of an asked request;
// see Call.Round. Next gets c, or what Call.WithContext makes of it.
type Middleware func(next Func) Func

// Kind says what an Item is.
type Kind string

// The kinds of items.
const (
	KindTool     Kind = "tool"
	KindPrompt   Kind = "prompt"
	KindResource Kind = "resource"
	KindTemplate Kind = "template"
)

// An Item is something that a caller may or may not see.
type Item struct {
	Kind Kind
	// Name is the name of a tool or prompt, the URI of a resource, or the
	// URI template of a template; of what is mounted, as it is called on the
	// server whose Visible is asked.
	Name string
	// Labels are what the author attached to the feature.
	Labels []string
	// Scopes are what a caller must have been granted to use it.
	Scopes []string
}
