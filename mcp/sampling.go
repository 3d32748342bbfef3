package mcp

import (
	"bytes"

	"github.com/parley-mcp/parley/internal/wire"
)

// CreateMessageParams ask a client for an answer of its model (client/sampling).
// Deprecated by the newest revision: call a model from the server.
type CreateMessageParams struct {
	RequestBase
	// Messages are the conversation.
	Messages []SamplingMessage `json:"messages"`
	// ModelPreferences say which model would be good. Only hints.
	ModelPreferences *ModelPreferences `json:"modelPreferences,omitzero"`
	// SystemPrompt is a system prompt that the client may change or drop.
	SystemPrompt string `json:"systemPrompt,omitzero"`
	// IncludeContext asks for the context of servers: one of the constants
	// that begin with Include. Empty means none.
	IncludeContext string `json:"includeContext,omitzero"`
	// Temperature is how daring the model is; nil is the client's choice.
	Temperature *float64 `json:"temperature,omitzero"`
	// MaxTokens is the most tokens to generate; the client may make fewer.
	MaxTokens int64 `json:"maxTokens"`
	// StopSequences end the answer.
	StopSequences []string `json:"stopSequences,omitzero"`
	// Metadata is for the model's provider, a JSON object.
	Metadata RawValue `json:"metadata,omitzero"`
	// Tools are tools that the model may use; only if the client offers
	// sampling.tools. Not before 2025-11-25.
	Tools []Tool `json:"tools,omitzero"`
	// ToolChoice says how to use them; nil means auto. Not before 2025-11-25.
	ToolChoice *ToolChoice `json:"toolChoice,omitzero"`
}

// The values of IncludeContext.
const (
	IncludeNone = "none"
	// IncludeThisServer asks for the context of the asking server; only if the
	// client offers sampling.context.
	//
	// Deprecated: put what the model needs into the messages.
	IncludeThisServer = "thisServer"
	// IncludeAllServers asks for the context of all servers; only if the
	// client offers sampling.context.
	//
	// Deprecated: put what the model needs into the messages.
	IncludeAllServers = "allServers"
)

// ModelPreferences say which model would be good. A nil priority was not given.
type ModelPreferences struct {
	// Hints are parts of model names, best first; they come before priorities.
	Hints []ModelHint `json:"hints,omitzero"`
	// CostPriority is from 0, cost does not matter, to 1.
	CostPriority *float64 `json:"costPriority,omitzero"`
	// SpeedPriority is from 0, speed does not matter, to 1.
	SpeedPriority *float64 `json:"speedPriority,omitzero"`
	// IntelligencePriority is from 0, intelligence does not matter, to 1.
	IntelligencePriority *float64 `json:"intelligencePriority,omitzero"`
}

// ModelHint hints at a model.
type ModelHint struct {
	// Name is a part of the model's name.
	Name string `json:"name,omitzero"`
}

// ToolChoice says how a model uses tools.
type ToolChoice struct {
	// Mode is one of the constants that begin with ToolChoice. Empty means
	// auto.
	Mode string `json:"mode,omitzero"`
}

// The modes of [ToolChoice].
const (
	ToolChoiceAuto     = "auto"
	ToolChoiceRequired = "required"
	ToolChoiceNone     = "none"
)

// SamplingMessage is a message of the conversation.
type SamplingMessage struct {
	// Role is the speaker.
	Role Role `json:"role"`
	// Content is what is said: text, images, audio, tool use, tool results.
	// In JSON a single block is written alone, several as a list (which is
	// new in 2025-11-25); a list of one that was decoded stays a list.
	Content Contents `json:"content"`
	// Meta is metadata. Not before 2025-11-25.
	Meta Meta `json:"_meta,omitzero"`

	// list says that Content was a list when it was decoded.
	list bool
}

// CreateMessageResult is the answer of a client's model.
type CreateMessageResult struct {
	// Role is the speaker: the assistant.
	Role Role `json:"role"`
	// Content is what is said, as in [SamplingMessage].
	Content Contents `json:"content"`
	// Model is the name of the model that answered.
	Model string `json:"model"`
	// StopReason is why it ended: one of the constants that begin with Stop,
	// or another word.
	StopReason string `json:"stopReason,omitzero"`
	// Meta is metadata.
	Meta Meta `json:"_meta,omitzero"`

	// list says that Content was a list when it was decoded.
	list bool
}

// The known reasons for which a model stops.
const (
	StopEndTurn      = "endTurn"
	StopStopSequence = "stopSequence"
	StopMaxTokens    = "maxTokens"
	StopToolUse      = "toolUse"
)

type samplingMessageJSON struct {
	Role    Role     `json:"role"`
	Content RawValue `json:"content"`
	Meta    Meta     `json:"_meta,omitzero"`
}

// MarshalJSON encodes the message; see Content.
func (m SamplingMessage) MarshalJSON() ([]byte, error) {
	content, err := encodeSampling(m.Content, m.list)
	if err != nil {
		return nil, err
	}
	return wire.Marshal(samplingMessageJSON{m.Role, content, m.Meta})
}

// UnmarshalJSON decodes a message. Content of an unknown type is an error that
// names the type.
func (m *SamplingMessage) UnmarshalJSON(data []byte) error {
	var j samplingMessageJSON
	if err := wire.DecodeParams(data, &j); err != nil {
		return err
	}
	content, list, err := decodeSampling(j.Content)
	if err != nil {
		return at("content", err)
	}
	*m = SamplingMessage{Role: j.Role, Content: content, Meta: j.Meta, list: list}
	return nil
}

type createMessageResultJSON struct {
	Role       Role     `json:"role"`
	Content    RawValue `json:"content"`
	Model      string   `json:"model"`
	StopReason string   `json:"stopReason,omitzero"`
	Meta       Meta     `json:"_meta,omitzero"`
}

// MarshalJSON encodes the result; see Content.
func (r CreateMessageResult) MarshalJSON() ([]byte, error) {
	content, err := encodeSampling(r.Content, r.list)
	if err != nil {
		return nil, err
	}
	return wire.Marshal(createMessageResultJSON{r.Role, content, r.Model, r.StopReason, r.Meta})
}

// UnmarshalJSON decodes a result. Content of an unknown type is an error that
// names the type.
func (r *CreateMessageResult) UnmarshalJSON(data []byte) error {
	var j createMessageResultJSON
	if err := wire.DecodeParams(data, &j); err != nil {
		return err
	}
	content, list, err := decodeSampling(j.Content)
	if err != nil {
		return at("content", err)
	}
	*r = CreateMessageResult{
		Role: j.Role, Content: content, Model: j.Model,
		StopReason: j.StopReason, Meta: j.Meta, list: list,
	}
	return nil
}

func encodeSampling(c Contents, list bool) (RawValue, error) {
	if len(c) == 1 && !list {
		return wire.Marshal(c[0])
	}
	return wire.Marshal(c)
}

func decodeSampling(data RawValue) (c Contents, list bool, err error) {
	if bytes.HasPrefix(data, []byte("[")) {
		c, err = decodeContents(data, true)
		return c, true, err
	}
	one, err := decodeContent(data, true)
	if err != nil {
		return nil, false, err
	}
	return Contents{one}, false, nil
}
