package filesystem

import (
	"context"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// readOnly are hints for tools that change nothing.
var readOnly = &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(false)}

// onStep is called by tests with the number of steps that were taken: entries read or looked at, parts of
// files, lines, edits.
var onStep func(n int)

// poll returns the cause once ctx ends. Every loop whose length a caller or the disk decides calls it, at
// least once for maxSteps steps of little cost; n is how many follow.
func poll(ctx context.Context, n int) error {
	if err := ended(ctx); err != nil {
		return err
	}
	if onStep != nil {
		onStep(n)
	}
	return nil
}

// ended returns the cause if ctx has ended.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// maxSteps is the most steps of little cost between two polls.
const maxSteps = 1_000

// A meter counts steps of different cost and polls when they are maxSteps.
type meter int

// add counts n steps.
func (m *meter) add(ctx context.Context, n int) error {
	if *m += meter(n); *m < maxSteps {
		return nil
	}
	*m = 0
	return poll(ctx, maxSteps)
}

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
// stands beside the text, so that programs find the text as they expect it.
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
