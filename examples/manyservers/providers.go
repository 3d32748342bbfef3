package main

import (
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// providers are the tools in the JSON of each model provider.
var providers = map[string]func([]*host.Tool) any{"anthropic": anthropic, "openai": openAI, "gemini": gemini}

// anthropic is "tools" of a request to Anthropic's Messages API.
func anthropic(tools []*host.Tool) any {
	type definition struct {
		Name        string       `json:"name"`
		Description string       `json:"description,omitempty"`
		InputSchema mcp.RawValue `json:"input_schema"`
	}
	list := []definition{}
	for _, t := range tools {
		list = append(list, definition{t.ModelName, t.Def.Description, t.Def.InputSchema})
	}
	return list
}

// openAI is "tools" of a request to OpenAI's Chat Completions API, which many
// other providers take as well.
func openAI(tools []*host.Tool) any {
	type function struct {
		Name        string       `json:"name"`
		Description string       `json:"description,omitempty"`
		Parameters  mcp.RawValue `json:"parameters"`
	}
	type definition struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	list := []definition{}
	for _, t := range tools {
		list = append(list, definition{"function", function{t.ModelName, t.Def.Description, t.Def.InputSchema}})
	}
	return list
}

// gemini is "tools" of a request to the Gemini API: one tool with many
// functions. "parameters" would be OpenAPI's dialect; the other takes JSON Schema.
func gemini(tools []*host.Tool) any {
	type function struct {
		Name        string       `json:"name"`
		Description string       `json:"description"`
		Schema      mcp.RawValue `json:"parametersJsonSchema"`
	}
	type declarations struct {
		Functions []function `json:"functionDeclarations"`
	}
	all := declarations{Functions: []function{}}
	for _, t := range tools {
		all.Functions = append(all.Functions, function{t.ModelName, t.Def.Description, t.Def.InputSchema})
	}
	return []declarations{all}
}
