package anthropic

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A request is the body of a request for an answer.
type request struct {
	Model       string          `json:"model"`
	MaxTokens   int             `json:"max_tokens"`
	System      []*block        `json:"system,omitempty"`
	Messages    []*message      `json:"messages"`
	Tools       []*tool         `json:"tools,omitempty"`
	ToolChoice  *kind           `json:"tool_choice,omitempty"`
	Stop        []string        `json:"stop_sequences,omitempty"`
	Temperature *float64        `json:"temperature,omitempty"`
	Thinking    *thinkingConfig `json:"thinking,omitempty"`
	Output      *outputConfig   `json:"output_config,omitempty"`
	Stream      bool            `json:"stream"`
}

// A kind is an object that has a type only.
type kind struct {
	Type string `json:"type"`
}

type thinkingConfig struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *kind           `json:"cache_control,omitempty"`
}

type message struct {
	Role    mcp.Role `json:"role"`
	Content []*block `json:"content"`
}

// A block is a block of content. If raw is set, it is that and nothing else.
type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text,omitempty"`
	Source       *source         `json:"source,omitempty"`
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	Content      []*block        `json:"content,omitempty"`
	CacheControl *kind           `json:"cache_control,omitempty"`

	raw json.RawMessage
}

// MarshalJSON writes the block.
func (b *block) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type plain block // without this method
	return unescaped((*plain)(b))
}

// A source is an image.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// request makes a request that the API takes.
func (m *Model) request(r *host.Request) (*request, error) {
	c := &conversation{maxImage: m.info.MaxImage, origin: m.origin, used: make(map[string]bool)}
	for i := range r.Messages {
		c.add(&r.Messages[i])
	}
	c.end()
	if len(c.list) == 0 {
		return nil, errors.New("the model is asked nothing: the conversation is empty")
	}
	body := &request{Model: m.model, MaxTokens: m.maxTokens, Messages: c.list, Stream: true}
	if r.MaxTokens > 0 {
		body.MaxTokens = r.MaxTokens
	}
	if strings.TrimSpace(r.System) != "" {
		body.System = []*block{{Type: "text", Text: r.System}}
	}
	for _, t := range r.Tools {
		schema := json.RawMessage(t.InputSchema)
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		body.Tools = append(body.Tools, &tool{Name: t.Name, Description: t.Description, InputSchema: schema})
	}
	if len(r.Tools) == 0 { // the API wants definitions where there are calls
		for _, name := range c.names {
			body.Tools = append(body.Tools, &tool{Name: name, Description: "It is not there any more.", InputSchema: json.RawMessage(`{"type":"object"}`)})
			body.ToolChoice = &kind{"none"}
		}
	}
	for _, text := range r.Stop {
		if strings.TrimSpace(text) != "" { // which the API refuses
			body.Stop = append(body.Stop, text)
		}
	}
	m.tune(body, r.Temperature)
	body.cache()
	return body, nil
}

// tune sets how the model thinks, and its temperature if it takes one.
func (m *Model) tune(body *request, temperature *float64) {
	switch {
	case m.thinking > 0:
		budget := max(m.thinking, leastThinking)
		body.Thinking = &thinkingConfig{Type: "enabled", Budget: budget}
		if body.MaxTokens <= budget { // it counts the tokens of reasoning
			body.MaxTokens += budget
		}
	case m.thinking == ThinkingAdaptive:
		body.Thinking = &thinkingConfig{Type: "adaptive", Display: "summarized"}
	case m.thinking == ThinkingOff:
		body.Thinking = &thinkingConfig{Type: "disabled"}
	}
	if m.effort != "" {
		body.Output = &outputConfig{m.effort}
	}
	thinks := m.thinking > 0 || m.thinking == ThinkingAdaptive
	if temperature != nil && !thinks && !m.noTemperature.Load() {
		t := min(max(*temperature, 0), 1)
		body.Temperature = &t
	}
}

// cache marks what the provider keeps for the next request: the tools, the instruction,
// and the conversation until the last two messages of the user. Four marks are allowed:
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching.
func (r *request) cache() {
	keep := &kind{"ephemeral"}
	if n := len(r.Tools); n > 0 {
		r.Tools[n-1].CacheControl = keep
	}
	if n := len(r.System); n > 0 {
		r.System[n-1].CacheControl = keep
	}
	marks := 0
	for i := len(r.Messages) - 1; i >= 0 && marks < 2; i-- {
		if m := r.Messages[i]; m.Role == mcp.RoleUser {
			m.Content[len(m.Content)-1].CacheControl = keep
			marks++
		}
	}
}
