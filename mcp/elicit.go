package mcp

// ElicitParams ask the user of a client (client/elicitation): with a form, or by
// sending them to a web page. Servers MUST NOT ask for secrets with a form.
type ElicitParams struct {
	RequestBase
	// Mode is [ModeForm] or [ModeURL]; empty means form.
	Mode string `json:"mode,omitzero"`
	// Message tells the user what is asked, and why.
	Message string `json:"message"`
	// RequestedSchema is the form; nil in URL mode.
	RequestedSchema *ElicitSchema `json:"requestedSchema,omitzero"`
	// URL is the page, in URL mode.
	URL string `json:"url,omitzero"`
	// ElicitationID is what notifications/elicitation/complete refers to, in
	// URL mode. Only in 2025-11-25, which requires it.
	ElicitationID string `json:"elicitationId,omitzero"`
}

// The modes of elicitation.
const (
	ModeForm = "form"
	ModeURL  = "url"
)

// IsURL reports whether the user is sent to a web page.
func (p *ElicitParams) IsURL() bool { return p.Mode == ModeURL }

// ElicitResult is what the user answered.
type ElicitResult struct {
	// Action is what the user did. In URL mode accept means consent to open
	// the page, not that anything was done there.
	Action ElicitAction `json:"action"`
	// Content are the values of the form by name: strings, numbers, booleans
	// or lists of strings. Nil unless a form was accepted.
	Content map[string]RawValue `json:"content,omitzero"`
	// Meta is metadata. Handshake revisions only.
	Meta Meta `json:"_meta,omitzero"`
}

// ElicitAction is what a user did when asked.
type ElicitAction string

// The actions.
const (
	// ElicitAccept: sent the form, or agreed to open the page.
	ElicitAccept ElicitAction = "accept"
	// ElicitDecline: said no.
	ElicitDecline ElicitAction = "decline"
	// ElicitCancel: closed the question without a choice.
	ElicitCancel ElicitAction = "cancel"
)

// ElicitationCompleteParams tell that what was begun on a web page is done.
// 2025-11-25 only.
type ElicitationCompleteParams struct {
	NotificationBase
	// ElicitationID is the one of the ElicitParams.
	ElicitationID string `json:"elicitationId"`
}
