package mcp

import "github.com/parley-mcp/parley/internal/wire"

// CompleteParams ask for values of an argument (server/utilities/completion).
type CompleteParams struct {
	RequestBase
	// Ref is what the argument belongs to.
	Ref CompletionRef `json:"ref"`
	// Argument is the argument and what was typed of it.
	Argument CompletionArgument `json:"argument"`
	// Context is what is known already; nil is absent. Not before 2025-06-18.
	Context *CompletionContext `json:"context,omitzero"`
}

// CompletionRef refers to a prompt by name, or to a resource template (or a
// resource) by URI. Make it with [PromptRef] or [ResourceRef].
type CompletionRef struct {
	// Type is [RefPrompt] or [RefResource].
	Type string `json:"type"`
	// Name is the prompt, if Type is RefPrompt.
	Name string `json:"name,omitzero"`
	// Title is the prompt's name for people.
	Title string `json:"title,omitzero"`
	// URI is the URI or URI template, if Type is RefResource.
	URI string `json:"uri,omitzero"`
}

// The types of completion references.
const (
	RefPrompt   = "ref/prompt"
	RefResource = "ref/resource"
)

// PromptRef refers to the prompt called name.
func PromptRef(name string) CompletionRef { return CompletionRef{Type: RefPrompt, Name: name} }

// ResourceRef refers to the resource template uri.
func ResourceRef(uri string) CompletionRef { return CompletionRef{Type: RefResource, URI: uri} }

// MarshalJSON encodes the reference with the members that its type has.
func (r CompletionRef) MarshalJSON() ([]byte, error) {
	if r.Type == RefResource {
		return wire.Marshal(struct {
			Type string `json:"type"`
			URI  string `json:"uri"`
		}{r.Type, r.URI})
	}
	return wire.Marshal(struct {
		Type  string `json:"type"`
		Name  string `json:"name"`
		Title string `json:"title,omitzero"`
	}{r.Type, r.Name, r.Title})
}

// CompletionArgument is the argument to complete.
type CompletionArgument struct {
	// Name is the argument, or the variable of the template.
	Name string `json:"name"`
	// Value is what was typed so far.
	Value string `json:"value"`
}

// CompletionContext is what is known when a completion is asked for.
type CompletionContext struct {
	// Arguments are the arguments that have values already, by name.
	Arguments map[string]string `json:"arguments,omitzero"`
}

// CompleteResult are values for an argument.
type CompleteResult struct {
	ResultBase
	// Completion are the values.
	Completion Completion `json:"completion"`
}

// MaxCompletions is the most values that a [Completion] may hold
// (server/utilities/completion: "Maximum 100 items per response").
const MaxCompletions = 100

// Completion are values for an argument, best first.
type Completion struct {
	// Values are at most [MaxCompletions] values.
	Values []string `json:"values"`
	// Total is how many there are in all; nil is unknown.
	Total *int64 `json:"total,omitzero"`
	// HasMore says that there are more than Values.
	HasMore bool `json:"hasMore,omitzero"`
}
