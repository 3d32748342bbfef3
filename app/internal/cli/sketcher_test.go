package cli_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"os"
	"sync"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A sketcher is a server that draws, and changes its tool note in the middle of a conversation.
type sketcher struct {
	server *server.Server

	mu     sync.Mutex
	listed chan struct{} // closed at the next list of its tools
}

// sketcherMain is a sketcher as a program.
func sketcherMain() {
	s := &sketcher{server: server.New("sketcher", "1", nil), listed: make(chan struct{})}
	s.server.Use(s.countLists)
	s.server.Add(
		noteTool("Writes a text down."),
		server.Tool("revise", "Changes the tool note.", s.revise),
		server.Tool("draw", "Draws a picture.", func(context.Context, mcp.None) ([]mcp.Content, error) {
			return []mcp.Content{mcp.Text("A picture:"), mcp.Image(picture(color.White), "image/png")}, nil
		}),
	)
	if err := stdio.Serve(context.Background(), s.server); err != nil {
		os.Exit(1)
	}
}

func noteTool(description string) server.Feature {
	return server.Tool("note", description, func(_ context.Context, in jotIn) (string, error) { return "noted: " + in.Text, nil })
}

// revise changes the tool note, and waits until the tools were listed again.
func (s *sketcher) revise(ctx context.Context, _ mcp.None) (string, error) {
	s.mu.Lock()
	listed := s.listed
	s.mu.Unlock()
	s.server.Add(noteTool("Writes a text down, and posts it."))
	select {
	case <-listed:
		return "revised", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// countLists is middleware that tells of lists of tools.
func (s *sketcher) countLists(next server.Func) server.Func {
	return func(c *server.Call) (server.Result, error) {
		r, err := next(c)
		if c.Method() == mcp.MethodToolsList {
			s.mu.Lock()
			defer s.mu.Unlock()
			close(s.listed)
			s.listed = make(chan struct{})
		}
		return r, err
	}
}

// picture is a PNG of one colour.
func picture(c color.Color) []byte {
	const size = 4
	m := image.NewRGBA(image.Rect(0, 0, size, size))
	for i := range size * size {
		m.Set(i%size, i/size, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // memory
	}
	return b.Bytes()
}
