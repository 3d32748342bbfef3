package main

import (
	"context"
	"iter"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema/provider"
)

// A script stands for a language model. A message such as `hello__greet {"name":"Ada"}`
// makes it call the tool, and then it says what the tool said.
type script struct{}

func (script) Info() host.ModelInfo {
	return host.ModelInfo{Name: "script", Provider: "example", Window: 8_000, Schemas: provider.Any}
}

func (script) Generate(ctx context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(host.Piece{}, err)
			return
		}
		last := r.Messages[len(r.Messages)-1]
		piece, stop := next(last)
		usage := &host.Usage{Input: int64(len(r.Messages)), Output: 1}
		_ = yield(piece, nil) && yield(host.Piece{Usage: usage}, nil) && yield(host.Piece{Stop: stop}, nil)
	}
}

// next is what follows the last message: a call, or words.
func next(last host.Message) (host.Piece, host.StopReason) {
	switch c := last.Blocks[0].Content.(type) {
	case *mcp.ToolResultContent:
		return host.Piece{Text: "The tool says: " + host.ContentText(c.Content[0])}, host.StopEnd
	case *mcp.TextContent:
		if tool, arguments, ok := strings.Cut(c.Text, " "); ok && strings.Contains(tool, "__") {
			call := &mcp.ToolUseContent{ID: "1", Name: tool, Input: mcp.RawValue(arguments)}
			return host.Piece{Call: call}, host.StopCalls
		}
	}
	return host.Piece{Text: `Write the name of a tool and its arguments.`}, host.StopEnd
}
