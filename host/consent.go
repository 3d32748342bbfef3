package host

import (
	"context"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// A Consent asks the person. Questions come one at a time.
type Consent interface {
	// Ask shows the question and returns the decision. It returns when ctx
	// ends. An error means that the person could not be asked, not that they
	// refused; nothing is done then.
	Ask(ctx context.Context, q *Question) (Decision, error)
}

// A Question is what the person is asked. All of it but Server and Origin is a
// stranger's text: a face shows it through [Escape], marked as untrusted.
type Question struct {
	Kind Kind
	// Server is the name of the server in this host, which the person gave,
	// and Origin where it comes from: a command line, a configuration file.
	Server, Origin string
	// Name is what is to be done; for a tool its own name.
	Name string
	// Tool is the definition of the tool, or nil for other kinds. Its title,
	// description and annotations are claims of the server.
	Tool *mcp.Tool
	// Arguments are what would be sent to the tool.
	Arguments mcp.RawValue
	// Secrets are places in Arguments, or in Text, that look like secrets.
	Secrets []Secret
	// Text is what a sampling question is about: the messages that would go
	// to the model, or its answer that would go to the server.
	Text string
	// Why says why the person is asked: which rule asks, or that none matched.
	Why string
	// Changed says that the person agreed earlier to a tool of this name whose
	// definition was different.
	Changed bool
}

// A Grant is what the person answers.
type Grant uint8

// The grants. The zero Grant refuses.
const (
	// Refuse does not do it.
	Refuse Grant = iota
	// Once does it this time.
	Once
	// Always does it, now and for as long as the host lives, unless the
	// definition of the tool changes.
	Always
)

// A Decision is the person's answer.
type Decision struct {
	Grant Grant
	// Reason is what a refusal tells the model, or empty.
	Reason string
}

// An Elicitor lets a server ask the person. Questions come one at a time, and
// never while a Consent is asked.
type Elicitor interface {
	// Elicit shows a form or a URL and returns what the person did. It must
	// leave the way to decline and to cancel open, and must not open a URL by
	// itself.
	//
	// spec 2026-07-28, client/elicitation: clients "MUST make it clear which
	// server is requesting information" and "Provide clear decline and cancel
	// options".
	Elicit(ctx context.Context, q *ElicitQuestion) (*mcp.ElicitResult, error)
}

// An ElicitQuestion is a server's question to the person.
type ElicitQuestion struct {
	// Server and Origin name the server as in [Question].
	Server, Origin string
	// Params are what the server asks: untrusted text, and a form or a URL.
	Params *mcp.ElicitParams
	// Page is the page to visit, with what a person should know about its
	// address; nil for a form.
	Page *client.ElicitPage
}
