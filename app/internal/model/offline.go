// Package model holds the models that the program can use.
//
// [Offline] is no language model. It is a small planner without key, network
// or chance: the same request and the same tools always give the same calls.
// It makes the first run real, and tests.
package model

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// Offline plans calls by matching the words of a request with names and
// descriptions of tools. It fills arguments from key=value, from numbers in
// their order, from quoted texts and from the remaining words, and when all
// calls are done it answers with the texts of their results. Several calls are
// written one after the other, with ";" or "then" between. The zero value is
// ready, and may be used by many goroutines.
type Offline struct{}

// Info says that this is no language model.
func (Offline) Info() host.ModelInfo {
	return host.ModelInfo{Name: "offline model", Provider: "parley", Offline: true}
}

// Generate plans the next call, or answers.
func (Offline) Generate(ctx context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(host.Piece{}, err)
			return
		}
		yield(next(r), nil)
	}
}

// next is the one piece of a turn.
func next(r *host.Request) host.Piece {
	request, results, calls := read(r.Messages)
	if len(r.Tools) == 0 && len(results) == 0 {
		return host.Piece{Text: fmt.Sprintf("The offline model cannot think. It was asked: %s", request)}
	}
	steps := split(request)
	done := len(results) >= len(steps)
	for _, result := range results {
		done = done || result.IsError
	}
	if done && len(results) > 0 {
		return host.Piece{Text: report(results)}
	}
	if len(steps) == 0 {
		return host.Piece{Text: "Nothing was asked."}
	}
	tool, args, why := plan(steps[len(results)], r.Tools)
	if tool == "" {
		if len(results) > 0 {
			why = report(results) + "\n" + why
		}
		return host.Piece{Text: why}
	}
	return host.Piece{Call: &mcp.ToolUseContent{ID: fmt.Sprintf("call-%d", calls+1), Name: tool, Input: args}}
}

// read finds the last request of the person, the results since, and the number
// of calls in the whole conversation.
func read(messages []host.Message) (request string, results []*mcp.ToolResultContent, calls int) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			switch c := b.Content.(type) {
			case *mcp.TextContent:
				// What the host says about the conversation is no request.
				if m.Role == mcp.RoleUser && !strings.HasPrefix(c.Text, "[host: ") {
					request, results = c.Text, nil
				}
			case *mcp.ToolUseContent:
				calls++
			case *mcp.ToolResultContent:
				results = append(results, c)
			}
		}
	}
	return request, results, calls
}

// report is the text of all results.
func report(results []*mcp.ToolResultContent) string {
	var lines []string
	for _, result := range results {
		for _, c := range result.Content {
			lines = append(lines, host.ContentText(c))
		}
	}
	if len(lines) == 0 {
		return "The tool gave no text."
	}
	return strings.Join(lines, "\n")
}
