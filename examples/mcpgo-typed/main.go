// Command mcpgo-typed has one tool with arguments of many kinds, as the example
// typed_tools of mcp-go does. See docs/guide/migration-mcp-go.md.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

type greeting struct {
	Name      string   `json:"name" desc:"Name of the person to greet" minlen:"1"`
	Age       int      `json:"age,omitempty" desc:"Age of the person" min:"0" max:"150"`
	VIP       bool     `json:"is_vip" desc:"Whether the person is a VIP" default:"false"`
	Languages []string `json:"languages,omitempty" desc:"Languages the person speaks"`
	Metadata  struct {
		Location string `json:"location,omitempty" desc:"Current location"`
		Timezone string `json:"timezone,omitempty" desc:"Timezone"`
	} `json:"metadata,omitzero" desc:"Additional information about the person"`
	Any any `json:"any_data,omitempty" desc:"Any kind of data, e.g., an integer"`
}

func greet(_ context.Context, in greeting) (string, error) {
	text := "Hello, " + in.Name + "!"
	if in.Age > 0 {
		text += fmt.Sprintf(" You are %d years old.", in.Age)
	}
	if in.VIP {
		text += " Welcome back, valued VIP customer!"
	}
	if len(in.Languages) > 0 {
		text += fmt.Sprintf(" You speak %d languages: %v.", len(in.Languages), in.Languages)
	}
	if in.Metadata.Location != "" {
		text += " I see you're from " + in.Metadata.Location + "."
	}
	if in.Any != nil {
		text += fmt.Sprintf(" I also received some other data: %v.", in.Any)
	}
	return text, nil
}

func newServer() *server.Server {
	s := server.New("Typed Tools Demo", "1.0.0", nil)
	s.Add(server.Tool("greeting", "Generate a personalized greeting", greet))
	return s
}

func main() {
	if err := stdio.Serve(context.Background(), newServer()); err != nil {
		log.Fatal(err)
	}
}
