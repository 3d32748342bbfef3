package main

import (
	"context"
	"fmt"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// schema2020 is the schema that the suite compares word by word. No Go type
// has all of its keywords, so the tool is a raw one.
const schema2020 = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {
		"address": {
			"$anchor": "addressDef",
			"type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
		}
	},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

// routedIn has arguments that clients repeat in headers.
type routedIn struct {
	Region   string `json:"region" desc:"Goes into the header Mcp-Param-Region." header:"Region"`
	Priority int    `json:"priority,omitzero" desc:"Goes into the header Mcp-Param-Priority." header:"Priority"`
	Query    string `json:"query,omitzero" desc:"Is in the body alone."`
}

// schemaTools are tools whose schemas are what matters.
func schemaTools() []server.Feature {
	return []server.Feature{
		server.RawTool(mcp.Tool{
			Name:        "json_schema_2020_12_tool",
			Description: "Has an input schema with much of JSON Schema 2020-12.",
			InputSchema: mcp.RawValue(schema2020),
		}, func(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("called with " + string(arguments))}}, nil
		}),
		server.Tool("test_x_mcp_header", "Has arguments that are repeated in headers.", func(_ context.Context, in routedIn) (string, error) {
			return fmt.Sprintf("region %q, priority %d, query %q", in.Region, in.Priority, in.Query), nil
		}),
	}
}
