package mcp

import "github.com/parley-mcp/parley/internal/wire"

// Tool is something that a model can have done by a server (server/tools).
// Everything in it is the server's claim.
type Tool struct {
	// Name identifies the tool within its server.
	Name string `json:"name"`
	// Title is the name for people; empty means Name.
	Title string `json:"title,omitzero"`
	// Description tells the model what the tool does.
	Description string `json:"description,omitzero"`
	// InputSchema is the JSON Schema of the arguments; its type is "object".
	InputSchema RawValue `json:"inputSchema"`
	// OutputSchema is the JSON Schema of StructuredContent; nil promises
	// nothing. Before the newest revision its type was "object" always.
	OutputSchema RawValue `json:"outputSchema,omitzero"`
	// Annotations are hints about the tool's behaviour.
	Annotations *ToolAnnotations `json:"annotations,omitzero"`
	// Icons are pictures for it.
	Icons []Icon `json:"icons,omitzero"`
	// Meta is metadata.
	Meta Meta `json:"_meta,omitzero"`
}

// ToolAnnotations are hints, not promises: decide nothing by them unless the
// server is trusted. A nil hint was not given, which is not "no".
type ToolAnnotations struct {
	// Title is the name for people, older than Tool.Title, which comes first.
	Title string `json:"title,omitzero"`
	// ReadOnlyHint says that the tool changes nothing.
	ReadOnlyHint *bool `json:"readOnlyHint,omitzero"`
	// DestructiveHint says that the tool may destroy, not only add.
	DestructiveHint *bool `json:"destructiveHint,omitzero"`
	// IdempotentHint says that calling again with the same arguments changes
	// nothing more.
	IdempotentHint *bool `json:"idempotentHint,omitzero"`
	// OpenWorldHint says that the tool deals with the world outside.
	OpenWorldHint *bool `json:"openWorldHint,omitzero"`
}

// ReadOnly is the hint with its default, false. It may be called on nil.
func (a *ToolAnnotations) ReadOnly() bool {
	return a != nil && a.ReadOnlyHint != nil && *a.ReadOnlyHint
}

// Idempotent is the hint with its default, false. It may be called on nil.
func (a *ToolAnnotations) Idempotent() bool {
	return a != nil && a.IdempotentHint != nil && *a.IdempotentHint
}

// Destructive is the hint with its default, true; a read-only tool destroys
// nothing. It may be called on nil.
func (a *ToolAnnotations) Destructive() bool {
	if a.ReadOnly() {
		return false
	}
	return a == nil || a.DestructiveHint == nil || *a.DestructiveHint
}

// OpenWorld is the hint with its default, true. It may be called on nil.
func (a *ToolAnnotations) OpenWorld() bool {
	return a == nil || a.OpenWorldHint == nil || *a.OpenWorldHint
}

// ListToolsResult is one page of tools.
type ListToolsResult struct {
	ResultBase
	Cacheable
	Page
	// Tools are the tools of the page, in the server's order.
	Tools []Tool `json:"tools"`
}

// CallToolParams call a tool.
type CallToolParams struct {
	RequestBase
	InputBase
	// Name is the tool.
	Name string `json:"name"`
	// Arguments are a JSON object for the tool's input schema; nil is absent.
	Arguments RawValue `json:"arguments,omitzero"`
}

// CallToolResult is what a tool gave, its failures included.
type CallToolResult struct {
	ResultBase
	// Content is what the model reads.
	Content Contents `json:"content"`
	// StructuredContent is the result as JSON, for the tool's output schema;
	// nil is absent. Before the newest revision it was an object always.
	StructuredContent RawValue `json:"structuredContent,omitzero"`
	// IsError says that the tool failed; Content tells the model why.
	IsError bool `json:"isError,omitzero"`
}

// Untold returns the structured content if no text of the content has it, or nil. A text has it if it is
// the same as JSON, or the only member of it, which some servers wrap a text in. It is for those who show
// a result to a model or a user as text.
//
// It takes time in proportion to the size of the result: a text that is much shorter than the structured
// content is not compared with it.
func (r *CallToolResult) Untold() RawValue {
	const short, longer = 256, 16 // bytes that are always compared; times the shortest spelling of a value
	if len(r.StructuredContent) == 0 {
		return nil
	}
	same := []RawValue{r.StructuredContent}
	if o, err := wire.ParseObject(r.StructuredContent, wire.Limits{}); err == nil && o.Len() == 1 {
		_, only := o.At(0)
		same = append(same, only)
	}
	for _, block := range r.Content {
		text, ok := block.(*TextContent)
		if !ok {
			continue
		}
		for _, value := range same {
			if len(value) > max(short, longer*len(text.Text)) {
				continue
			}
			if value[0] == '"' && wire.Text(value) == text.Text || wire.Equal(RawValue(text.Text), value) {
				return nil
			}
		}
	}
	return r.StructuredContent
}
