// Command gosdk-toolschemas has tools whose schemas are made of types, and tools
// whose schemas are written, as the example toolschemas of go-sdk does. See
// docs/guide/migration-go-sdk.md.
package main

import (
	"context"
	"encoding/json"
	"log"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

type input struct {
	Name string `json:"name" desc:"the person to greet"`
}

type output struct {
	Greeting string `json:"greeting" desc:"the greeting to send to the user"`
}

func greet(_ context.Context, in input) (output, error) { return output{"Hi " + in.Name}, nil }

// atMostTen is a schema that is known only at run time.
var atMostTen = mcp.RawValue(`{"type":"object","properties":{"name":{"type":"string","maxLength":10}}}`)

// written takes checked JSON; what it gives is checked too.
func written(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
	var in input
	if err := json.Unmarshal(arguments, &in); err != nil {
		return nil, err
	}
	out, err := json.Marshal(output{"Hi " + in.Name})
	return &mcp.CallToolResult{StructuredContent: out}, err
}

func main() {
	s := server.New("greeter", "1.0.0", nil)
	s.Add(
		server.Tool("simple_greeting", "Schemas made of types.", greet),
		server.Tool("customized_greeting", "Another schema for the same type.", greet).
			With(server.ToolOptions{InputSchema: atMostTen}),
		server.RawTool(mcp.Tool{
			Name:         "manual_greeting",
			Description:  "Schemas that are written.",
			InputSchema:  atMostTen,
			OutputSchema: mcp.RawValue(`{"type":"object","properties":{"greeting":{"type":"string"}}}`),
		}, written),
		server.UncheckedTool(mcp.Tool{
			Name:        "unvalidated_greeting",
			Description: "A schema that nothing is checked against.",
			InputSchema: mcp.RawValue(`{"type":"object","properties":{"name":{"type":"string"}}}`),
		}, written),
	)
	if err := stdio.Serve(context.Background(), s); err != nil {
		log.Fatal(err)
	}
}
