// Package servers has the code that the built-in servers share. Each server is a package below it, and
// does not depend on the others.
package servers

import (
	"context"
	"encoding/json"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Options returns the options of a server: a copy of given, which may be nil, with the texts that
// people and models read of it.
func Options(given *server.Options, title, description, instructions string) *server.Options {
	var o server.Options
	if given != nil {
		o = *given
	}
	o.Title, o.Description, o.Instructions = title, description, instructions
	return &o
}

// Scopes lists a scope that callers need; none for "".
func Scopes(scope string) []string {
	if scope == "" {
		return nil
	}
	return []string{scope}
}

// Hints are the annotations of a tool that reaches nothing but what its server is for.
func Hints(readOnly, destructive, idempotent bool) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{
		ReadOnlyHint: new(readOnly), DestructiveHint: new(destructive), IdempotentHint: new(idempotent), OpenWorldHint: new(false),
	}
}

// Indent is the JSON of a value with two spaces for each level.
func Indent(v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return string(text), err
}

// sure is the form of Confirm.
type sure struct {
	Sure bool `json:"sure" title:"Go ahead"`
}

// Confirm asks the user whether something may be done, if the client can ask. The error says that
// they did not agree.
func Confirm(ctx context.Context, question string) error {
	if !server.CanElicit(ctx) {
		return nil
	}
	answer, err := server.Elicit[sure](ctx, question)
	if err == nil && (!answer.Accepted() || !answer.Value.Sure) {
		err = mcp.Errorf("the person did not agree, and nothing was changed")
	}
	return err
}
