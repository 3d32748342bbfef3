package gemini

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A request is a GenerateContentRequest.
type request struct {
	SystemInstruction *content          `json:"systemInstruction,omitzero"`
	Contents          []content         `json:"contents"`
	Tools             []tool            `json:"tools,omitzero"`
	GenerationConfig  *generationConfig `json:"generationConfig,omitzero"`
	ContinuationToken string            `json:"continuationToken,omitzero"`
}

// A content is a turn: of the user, results of calls too, or of the model.
type content struct {
	Role  string `json:"role,omitzero"`
	Parts []part `json:"parts"`
}

// The roles of turns.
const (
	roleUser  = "user"
	roleModel = "model"
)

// A part is a part of a turn. One of Text, InlineData, FunctionCall and FunctionResponse is
// set.
type part struct {
	Text             *string           `json:"text,omitempty"`
	Thought          bool              `json:"thought,omitzero"`
	InlineData       *blob             `json:"inlineData,omitzero"`
	FunctionCall     *functionCall     `json:"functionCall,omitzero"`
	FunctionResponse *functionResponse `json:"functionResponse,omitzero"`
	ThoughtSignature string            `json:"thoughtSignature,omitzero"`
}

type blob struct {
	MIMEType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

type functionCall struct {
	ID   string          `json:"id,omitzero"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitzero"`
}

type functionResponse struct {
	ID       string         `json:"id,omitzero"`
	Name     string         `json:"name"`
	Response map[string]any `json:"response"`
	Parts    []part         `json:"parts,omitzero"`
}

type tool struct {
	FunctionDeclarations []functionDeclaration `json:"functionDeclarations"`
}

type functionDeclaration struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Parameters  mcp.RawValue `json:"parameters,omitzero"`
	// ParametersJSONSchema stands in the place of Parameters for schemas that are none of
	// the provider's own.
	ParametersJSONSchema mcp.RawValue `json:"parametersJsonSchema,omitzero"`
}

type generationConfig struct {
	Temperature     *float64        `json:"temperature,omitzero"`
	MaxOutputTokens int             `json:"maxOutputTokens,omitzero"`
	StopSequences   []string        `json:"stopSequences,omitzero"`
	ThinkingConfig  *thinkingConfig `json:"thinkingConfig,omitzero"`
}

type thinkingConfig struct {
	IncludeThoughts bool   `json:"includeThoughts,omitzero"`
	ThinkingLevel   string `json:"thinkingLevel,omitzero"`
	ThinkingBudget  *int   `json:"thinkingBudget,omitzero"`
}

// The bounds of https://ai.google.dev/api/generate-content#generationconfig.
const (
	maxStopSequences = 5
	maxTemperature   = 2
)

// request makes what is sent of what is asked.
func (m *Model) request(r *host.Request) (*request, error) {
	b := builder{model: m}
	for i := range r.Messages {
		b.message(&r.Messages[i])
	}
	b.end()
	if len(b.contents) == 0 {
		return nil, errors.New("the request to " + Provider + " has nothing in it: neither a text nor a result")
	}
	req := &request{Contents: b.contents}
	if r.System != "" {
		if takesSystem(m.name) {
			req.SystemInstruction = &content{Parts: []part{textPart(r.System)}}
		} else {
			req.Contents[0].Parts = append([]part{textPart(r.System)}, req.Contents[0].Parts...)
		}
	}
	if len(r.Tools) > 0 {
		req.Tools = []tool{{declarations(r.Tools)}}
	}
	if generation(m.name) >= 3 {
		signCalls(req.Contents)
	}
	req.GenerationConfig = m.config(r)
	return req, nil
}

// takesSystem reports whether a model takes an instruction apart from the conversation:
// Gemma up to 3 does not.
func takesSystem(name string) bool {
	for _, old := range []string{"gemma-2", "gemma-3"} {
		if strings.HasPrefix(name, old) {
			return false
		}
	}
	return true
}

// config is how the answer shall be made, or nil.
func (m *Model) config(r *host.Request) *generationConfig {
	var c generationConfig
	set := false
	if r.Temperature != nil {
		t := min(max(*r.Temperature, 0), maxTemperature)
		c.Temperature, set = &t, true
	}
	if r.MaxTokens > 0 {
		c.MaxOutputTokens, set = r.MaxTokens, true
	}
	for _, s := range r.Stop {
		if s != "" && len(c.StopSequences) < maxStopSequences {
			c.StopSequences, set = append(c.StopSequences, s), true
		}
	}
	if t := m.thinking; t != nil {
		own := *t
		own.IncludeThoughts = t.IncludeThoughts && !m.thoughtless.Load()
		if own != (thinkingConfig{}) {
			c.ThinkingConfig, set = &own, true
		}
	}
	if !set {
		return nil
	}
	return &c
}

// declarations are the tools as functions. One without arguments has no parameters: an object
// without properties is refused.
func declarations(tools []host.ToolSpec) []functionDeclaration {
	list := make([]functionDeclaration, len(tools))
	for i, t := range tools {
		d := functionDeclaration{Name: t.Name, Description: cmp.Or(t.Description, t.Name)}
		var s schema
		switch err := json.Unmarshal(t.InputSchema, &s); {
		case err != nil && json.Valid(t.InputSchema): // other JSON Schema, such as a list of types
			d.ParametersJSONSchema = t.InputSchema
		case err != nil, len(s.Properties) == 0 && len(s.AnyOf) == 0:
		case s.typed():
			d.Parameters = t.InputSchema
		default:
			d.ParametersJSONSchema = t.InputSchema
		}
		list[i] = d
	}
	return list
}

// A schema is a JSON Schema of arguments, as far as it matters which field it is sent in.
type schema struct {
	Type       string             `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	AnyOf      []*schema          `json:"anyOf"`
}

// typed reports whether the schema is one of the provider's own, the Schema of
// https://ai.google.dev/api/caching#Schema: each has a type, or alternatives, an object has
// properties, and a list has items.
func (s *schema) typed() bool {
	switch {
	case s == nil:
		return false
	case len(s.AnyOf) > 0:
	case s.Type == "", s.Type == "object" && len(s.Properties) == 0, s.Type == "array" && s.Items == nil:
		return false
	}
	for _, p := range s.Properties {
		if !p.typed() {
			return false
		}
	}
	untyped := func(s *schema) bool { return !s.typed() }
	return (s.Items == nil || s.Items.typed()) && !slices.ContainsFunc(s.AnyOf, untyped)
}

// maxName is the longest name of a function.
const maxName = 64

// functionName is the name of a call as the provider takes it: it begins with a letter or an
// underscore. Tools have such names; a model may have called what was never offered.
func functionName(name string) string {
	if name == "" {
		return "_"
	}
	if c := name[0]; c == '-' || '0' <= c && c <= '9' {
		name = "_" + name
	}
	return name[:min(len(name), maxName)]
}

// unsigned stands for the signature of a call that the model did not make: see the questions
// at the end of https://ai.google.dev/gemini-api/docs/thought-signatures.
const unsigned = "skip_thought_signature_validator"

// signCalls gives unsigned to calls that another model made, where Gemini 3 asks for a
// signature: at the first call of each turn of the model after what the person said last.
func signCalls(contents []content) {
	for i := len(contents) - 1; i >= 0; i-- {
		c := &contents[i]
		if c.Role == roleUser {
			for _, p := range c.Parts {
				if p.FunctionResponse == nil {
					return
				}
			}
			continue
		}
		for j := range c.Parts {
			if p := &c.Parts[j]; p.FunctionCall != nil {
				if p.ThoughtSignature == "" {
					p.ThoughtSignature = unsigned
				}
				break
			}
		}
	}
}
