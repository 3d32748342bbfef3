package mcp

// InputBase is what parameters of requests that may ask back have in common
// (basic/patterns/mrtr; schema InputResponseRequestParams). Both fields are
// absent in a first request, and in handshake revisions.
type InputBase struct {
	// InputResponses are the answers to the InputRequests of the last round,
	// by the same keys; nil is absent.
	InputResponses InputResponses `json:"inputResponses,omitzero"`
	// RequestState is the one of the last round, unchanged. Nil is absent,
	// which is not the empty string.
	RequestState *string `json:"requestState,omitzero"`
}

// Input returns b itself, so that all such parameters implement [Retryable].
func (b *InputBase) Input() *InputBase { return b }

// Retryable are parameters of requests that may be answered with an
// [InputRequiredResult] and are then sent again: [*CallToolParams],
// [*GetPromptParams], [*ReadResourceParams].
type Retryable interface {
	Params
	// Input returns the answers and the state; never nil.
	Input() *InputBase
}

// InputRequiredResult asks for more before a request can be completed
// (basic/patterns/mrtr). ResultType is [ResultInputRequired].
type InputRequiredResult struct {
	ResultBase
	// InputRequests are the questions by keys of the server's choice; nil is
	// absent: the client only sends the request again, with RequestState.
	InputRequests InputRequests `json:"inputRequests,omitzero"`
	// RequestState is to be sent back unchanged with the answers; nil is
	// absent, which is not the empty string.
	RequestState *string `json:"requestState,omitzero"`
}

// InputRequests are questions by key.
type InputRequests map[string]*InputRequest

// InputRequest is a question: elicitation/create, sampling/createMessage or
// roots/list.
type InputRequest struct {
	// Method is the method.
	Method string `json:"method"`
	// Params are its parameters: [ElicitParams], [CreateMessageParams],
	// [ListRootsParams] as JSON; nil is absent.
	Params RawValue `json:"params,omitzero"`
}

// InputResponses are answers by key: [ElicitResult], [CreateMessageResult],
// [ListRootsResult] as JSON.
type InputResponses map[string]RawValue
