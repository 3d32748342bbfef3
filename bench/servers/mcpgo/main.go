// Command mcpgo is a server of mcp-go, as its documentation shows, with the
// validation of arguments that it recommends and the others always do.
package main

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/parley-mcp/parley/bench/fixture"
)

func main() { fixture.Main(run) }

func run(c fixture.Config) error {
	s := newServer(c)
	switch {
	case c.Stdio:
		return fixture.ServeStdio(func(context.Context) error { return server.ServeStdio(s) })
	case c.Mem:
		return inMemory(s)
	}
	o := server.WithStateLess(true)
	if c.Mode == fixture.ModeSession {
		o = server.WithStateful(true)
	}
	return fixture.ServeHTTP(server.NewStreamableHTTPServer(s, o))
}

func newServer(c fixture.Config) *server.MCPServer {
	s := server.NewMCPServer(fixture.Server, "1",
		server.WithToolCapabilities(true),
		server.WithResourceCapabilities(true, true),
		server.WithInputSchemaValidation(),
		server.WithRecovery(),
	)
	s.AddTool(mcp.NewTool(fixture.Echo, mcp.WithDescription(fixture.EchoAbout),
		mcp.WithString("text", mcp.Required(), mcp.Description("What to say."))),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := req.RequireString("text")
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText(text), nil
		})
	s.AddTool(mcp.NewTool(fixture.Progress, mcp.WithDescription(fixture.ProgressAbout),
		mcp.WithNumber("count", mcp.Required(), mcp.Description("How often."))),
		func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return progress(ctx, s, req, req.GetInt("count", 0))
		})
	for i := range c.Tools {
		s.AddTool(mcp.NewTool(fixture.Filler(i), mcp.WithDescription(fixture.FillerAbout),
			mcp.WithString("path", mcp.Required(), mcp.Description("Where to begin.")),
			mcp.WithBoolean("recursive", mcp.Description("Whether to go into folders.")),
			mcp.WithNumber("limit", mcp.Description("The most results to give.")),
			mcp.WithArray("kinds", mcp.Description("What to look for."), mcp.WithStringItems()),
		), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(""), nil
		})
	}
	if c.Blob > 0 {
		blob := fixture.Blob(c.Blob)
		s.AddResource(mcp.NewResource(fixture.BlobURI, "blob"),
			func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
				// The library takes the blob encoded.
				return []mcp.ResourceContents{mcp.BlobResourceContents{URI: req.Params.URI, Blob: base64.StdEncoding.EncodeToString(blob)}}, nil
			})
	}
	return s
}

// progress goes on when a notification finds the queue full, and is lost: with a
// handler that gives up, the call would fail.
func progress(ctx context.Context, s *server.MCPServer, req mcp.CallToolRequest, count int) (*mcp.CallToolResult, error) {
	if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
		return nil, errors.New("no progress token")
	}
	for i := range count {
		_ = s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
			"progressToken": req.Params.Meta.ProgressToken, "progress": float64(i + 1), "total": float64(count),
		})
	}
	return mcp.NewToolResultText(fixture.Done), nil
}

func inMemory(s *server.MCPServer) error {
	ctx := context.Background()
	c, err := client.NewInProcessClient(s)
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{}); err != nil {
		return err
	}
	return fixture.ServeMem(func(ctx context.Context, text string) (string, error) {
		var req mcp.CallToolRequest
		req.Params.Name, req.Params.Arguments = fixture.Echo, fixture.EchoIn{Text: text}
		r, err := c.CallTool(ctx, req)
		if err != nil || len(r.Content) == 0 {
			return "", err
		}
		t, _ := r.Content[0].(mcp.TextContent)
		return t.Text, nil
	})
}
