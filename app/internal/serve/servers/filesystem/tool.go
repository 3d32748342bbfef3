package filesystem

import (
	"context"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// readOnly are hints for tools that change nothing.
var readOnly = &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(false)}

// textOut is the structured result of the tools, which is their text again.
type textOut struct {
	Content string `json:"content"`
}

// tool makes a tool whose result is text, of a function that works with the directories
// that the caller may use.
func tool[In any](s *service, name, description string, fn func(ctx context.Context, d *directories, in In) (string, error)) *server.ToolFeature {
	return noted(s, name, description, func(ctx context.Context, d *directories, in In) (text, note string, err error) {
		text, err = fn(ctx, d, in)
		return text, "", err
	})
}

// noted is tool for functions whose result may be incomplete. What the note says of that
// stands next to the text, so that programs find the text as they expect it.
func noted[In any](s *service, name, description string, fn func(ctx context.Context, d *directories, in In) (text, note string, err error)) *server.ToolFeature {
	return server.Tool(name, description, func(ctx context.Context, in In) (mcp.With[textOut], error) {
		d, err := s.directories(ctx)
		if err != nil {
			return mcp.With[textOut]{}, err
		}
		defer s.dirs.release(d)
		text, note, err := fn(ctx, d, in)
		if err != nil {
			return mcp.With[textOut]{}, err
		}
		out := mcp.With[textOut]{Value: textOut{text}, Content: []mcp.Content{mcp.Text(text)}}
		if note != "" {
			out.Content = append(out.Content, mcp.Text(note))
		}
		return out, nil
	})
}
