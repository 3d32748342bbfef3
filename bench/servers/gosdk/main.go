// Command gosdk is a server of the official Go SDK, as its documentation shows.
package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-mcp/parley/bench/fixture"
)

func main() { fixture.Main(run) }

func run(c fixture.Config) error {
	s := newServer(c)
	switch {
	case c.Stdio:
		return fixture.ServeStdio(func(ctx context.Context) error { return s.Run(ctx, &mcp.StdioTransport{}) })
	case c.Mem:
		return inMemory(s)
	}
	// It serves the stateless revision, and clients without a session, with one
	// handler, and sessions with another.
	return fixture.ServeHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		Stateless:           c.Mode != fixture.ModeSession,
		JSONResponse:        c.Mode != fixture.ModeSSE,
		MaxRequestBodyBytes: int64(c.MaxMessage),
	}))
}

// Arguments of the tools.
type (
	echoIn struct {
		Text string `json:"text" jsonschema:"What to say."`
	}
	progressIn struct {
		Count int `json:"count" jsonschema:"How often."`
	}
	fillerIn struct {
		Path      string   `json:"path" jsonschema:"Where to begin."`
		Recursive bool     `json:"recursive,omitempty" jsonschema:"Whether to go into folders."`
		Limit     int      `json:"limit,omitempty" jsonschema:"The most results to give."`
		Kinds     []string `json:"kinds,omitempty" jsonschema:"What to look for."`
	}
)

func newServer(c fixture.Config) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: fixture.Server, Version: "1"}, &mcp.ServerOptions{PageSize: c.Tools + 2})
	mcp.AddTool(s, &mcp.Tool{Name: fixture.Echo, Description: fixture.EchoAbout},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoIn) (*mcp.CallToolResult, any, error) {
			return say(in.Text), nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: fixture.Progress, Description: fixture.ProgressAbout}, progress)
	for i := range c.Tools {
		mcp.AddTool(s, &mcp.Tool{Name: fixture.Filler(i), Description: fixture.FillerAbout},
			func(context.Context, *mcp.CallToolRequest, fillerIn) (*mcp.CallToolResult, any, error) {
				return say(""), nil, nil
			})
	}
	if c.Blob > 0 {
		blob := fixture.Blob(c.Blob)
		s.AddResource(&mcp.Resource{URI: fixture.BlobURI, Name: "blob"},
			func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Blob: blob}}}, nil
			})
	}
	return s
}

func progress(ctx context.Context, req *mcp.CallToolRequest, in progressIn) (*mcp.CallToolResult, any, error) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil, nil, errors.New("no progress token")
	}
	for i := range in.Count {
		p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1), Total: float64(in.Count)}
		if err := req.Session.NotifyProgress(ctx, p); err != nil {
			return nil, nil, err
		}
	}
	return say(fixture.Done), nil, nil
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func inMemory(s *mcp.Server) error {
	ctx := context.Background()
	there, here := mcp.NewInMemoryTransports()
	if _, err := s.Connect(ctx, there, nil); err != nil {
		return err
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, here, nil)
	if err != nil {
		return err
	}
	return fixture.ServeMem(func(ctx context.Context, text string) (string, error) {
		r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: fixture.Echo, Arguments: fixture.EchoIn{Text: text}})
		if err != nil || len(r.Content) == 0 {
			return "", err
		}
		t, _ := r.Content[0].(*mcp.TextContent)
		return t.Text, nil
	})
}
