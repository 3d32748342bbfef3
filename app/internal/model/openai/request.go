package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
)

// A request is the body of one for a chat completion.
type request struct {
	Model               string         `json:"model"`
	Messages            []message      `json:"messages"`
	Tools               []tool         `json:"tools,omitempty"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
	MaxTokens           int            `json:"max_tokens,omitempty"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
	Temperature         *float64       `json:"temperature,omitempty"`
	Stop                []string       `json:"stop,omitempty"`
	ReasoningEffort     string         `json:"reasoning_effort,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// parameters is a set of parameters of requests that are not needed for an answer.
type parameters uint

const (
	maxTokens parameters = 1 << iota
	maxCompletionTokens
	temperature
	stop
	usage
	effort
	reasoning
)

// names are what providers call the parameters in errors.
var names = []struct {
	name string
	is   parameters
}{
	{"max_tokens", maxTokens},
	{"max_completion_tokens", maxCompletionTokens},
	{"temperature", temperature},
	{"stop", stop},
	{"stream_options", usage},
	{"reasoning_effort", effort},
	{"reasoning", reasoning},
	{"reasoning_content", reasoning},
	{"reasoning_details", reasoning},
}

// request is what is sent for a turn: without what the model has refused before.
func (m *Model) request(r *host.Request, messages []message) *request {
	m.mu.Lock()
	refused := m.refused
	m.mu.Unlock()
	takes := func(p parameters) bool { return refused&p == 0 }
	req := &request{Model: m.name, Messages: messages, Stream: true}
	for _, t := range r.Tools {
		schema := json.RawMessage(t.InputSchema)
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		req.Tools = append(req.Tools, tool{Type: "function", Function: function{t.Name, t.Description, schema}})
	}
	if takes(usage) {
		req.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if r.MaxTokens > 0 {
		bound, other := &req.MaxTokens, &req.MaxCompletionTokens
		one, two := maxTokens, maxCompletionTokens
		if m.server.completionTokens {
			bound, other, one, two = other, bound, two, one
		}
		switch {
		case takes(one):
			*bound = r.MaxTokens
		case takes(two):
			*other = r.MaxTokens
		}
	}
	if takes(temperature) {
		req.Temperature = r.Temperature
	}
	if takes(stop) {
		req.Stop = m.stops(r.Stop)
	}
	if takes(effort) {
		req.ReasoningEffort = m.effort
	}
	if !takes(reasoning) {
		req.Messages = withoutReasoning(messages)
	}
	return req
}

// stops are the texts that stop an answer, as many as the provider takes.
func (m *Model) stops(texts []string) []string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
	if n := m.server.maxStop; n > 0 && len(texts) > n {
		texts = texts[:n]
	}
	return texts
}

// withoutReasoning is a copy of messages without what the model thought.
func withoutReasoning(messages []message) []message {
	list := slices.Clone(messages)
	for i := range list {
		list[i].thought = thought{}
	}
	return list
}

// has tells whether a parameter is sent.
func (r *request) has(p parameters) bool {
	switch p {
	case maxTokens:
		return r.MaxTokens > 0
	case maxCompletionTokens:
		return r.MaxCompletionTokens > 0
	case temperature:
		return r.Temperature != nil
	case stop:
		return len(r.Stop) > 0
	case usage:
		return r.StreamOptions != nil
	case effort:
		return r.ReasoningEffort != ""
	case reasoning:
		return slices.ContainsFunc(r.Messages, func(m message) bool { return !m.empty() })
	}
	return false
}

// refusals are the words with which providers say that a parameter is not for a model.
// OpenAI: "Unsupported parameter: 'max_tokens' is not supported with this model. Use
// 'max_completion_tokens' instead." Servers in Python: "Extra inputs are not permitted".
var refusals = []string{"support", "not permitted", "not allowed", "unknown", "unrecognized", "unexpected", "deprecated"}

// learn tells whether an error is the refusal of a parameter that was sent and is not needed.
// If so, it is not sent again.
func (m *Model) learn(err error, sent *request) bool {
	fault := new(provider.Error)
	if !errors.As(err, &fault) || fault.Status != http.StatusBadRequest && fault.Status != http.StatusUnprocessableEntity {
		return false
	}
	text := strings.ToLower(fault.Text)
	if !slices.ContainsFunc(refusals, func(word string) bool { return strings.Contains(text, word) }) {
		return false
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range names {
		if slices.Contains(words, p.name) && sent.has(p.is) {
			m.refused |= p.is
			return true
		}
	}
	return false
}
