// Command gosdk-elicitation asks for settings by a form, as the example
// elicitation of go-sdk does. See docs/guide/migration-go-sdk.md.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

type settings struct {
	Endpoint string `json:"serverEndpoint" desc:"Server endpoint URL"`
	Retries  int    `json:"maxRetries" min:"1" max:"10" default:"3"`
	Logs     bool   `json:"enableLogs,omitempty" desc:"Enable debug logging"`
}

func configure(ctx context.Context, _ mcp.None) (string, error) {
	answer, err := server.Elicit[settings](ctx, "Please provide your configuration settings")
	return fmt.Sprintf("Configuration received: %+v", answer.Value), err
}

func main() {
	s := server.New("config-server", "1.0.0", nil)
	s.Add(server.Tool("configure", "Asks for the settings.", configure))
	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(s, nil), &client.Options{
		OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Println("Server requests:", r.Params.Message)
			return client.Accept(map[string]any{"serverEndpoint": "https://api.example.com", "enableLogs": true})
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "configure", nil))
}
