package mcp

import "github.com/parley-mcp/parley/internal/wire"

// Prompt is a template of messages that a person chooses (server/prompts).
type Prompt struct {
	// Name identifies the prompt within its server.
	Name string `json:"name"`
	// Title is the name for people; empty means Name.
	Title string `json:"title,omitzero"`
	// Description says what the prompt is for.
	Description string `json:"description,omitzero"`
	// Arguments are what it can be filled with.
	Arguments []PromptArgument `json:"arguments,omitzero"`
	// Icons are pictures for it.
	Icons []Icon `json:"icons,omitzero"`
	// Meta is metadata.
	Meta Meta `json:"_meta,omitzero"`
}

// PromptArgument is an argument of a prompt.
type PromptArgument struct {
	// Name identifies the argument.
	Name string `json:"name"`
	// Title is the name for people; empty means Name.
	Title string `json:"title,omitzero"`
	// Description says what to give.
	Description string `json:"description,omitzero"`
	// Required says that it must be given.
	Required bool `json:"required,omitzero"`
}

// ListPromptsResult is one page of prompts.
type ListPromptsResult struct {
	ResultBase
	Cacheable
	Page
	// Prompts are the prompts of the page, in the server's order.
	Prompts []Prompt `json:"prompts"`
}

// GetPromptParams get the messages of a prompt.
type GetPromptParams struct {
	RequestBase
	InputBase
	// Name is the prompt.
	Name string `json:"name"`
	// Arguments fill it, by name; nil is absent.
	Arguments map[string]string `json:"arguments,omitzero"`
}

// GetPromptResult is the messages of a prompt.
type GetPromptResult struct {
	ResultBase
	// Description says what the messages are for.
	Description string `json:"description,omitzero"`
	// Messages are the messages, in order.
	Messages []PromptMessage `json:"messages"`
}

// PromptMessage is a message of a prompt.
type PromptMessage struct {
	// Role is the speaker.
	Role Role `json:"role"`
	// Content is what is said: any content but tool use and tool results.
	Content Content `json:"content"`
}

// Role is a speaker in a conversation.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// UnmarshalJSON decodes a message. Content of an unknown type is an error that
// names the type.
func (m *PromptMessage) UnmarshalJSON(data []byte) error {
	var j struct {
		Role    Role     `json:"role"`
		Content RawValue `json:"content"`
	}
	if err := wire.DecodeParams(data, &j); err != nil {
		return err
	}
	c, err := decodeContent(j.Content, false)
	if err != nil {
		return at("content", err)
	}
	*m = PromptMessage{Role: j.Role, Content: c}
	return nil
}
