package mcp_test

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/parley-mcp/parley/mcp"
)

// A tool's result is content for the model; a failure that the model should
// read is a result too.
func ExampleText() {
	result := &mcp.CallToolResult{
		Content: []mcp.Content{
			mcp.Text("two files:"),
			mcp.Link("file:///src/a.go", "a.go"),
			mcp.Link("file:///src/b.go", "b.go"),
		},
	}
	for _, c := range result.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			fmt.Println(c.Text)
		case *mcp.ResourceLink:
			fmt.Println("-", c.Name)
		}
	}
	// Output:
	// two files:
	// - a.go
	// - b.go
}

// The text of an error made with Errorf reaches the peer; errors.Is still finds
// what it wraps.
func ExampleErrorf() {
	err := mcp.Errorf("there is no file called %q: %w", "a.go", fs.ErrNotExist)
	fmt.Println(err)
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output:
	// there is no file called "a.go": file does not exist
	// true
}

func ExampleLookup() {
	m, ok := mcp.Lookup("tools/call")
	fmt.Println(ok, m.Capability, m.Target, m.Asks)
	// Output: true tools name true
}

func ExampleClientCapabilities_HasForm() {
	c := mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}}
	fmt.Println(c.HasForm(), c.HasURL())
	// Output: true false
}
