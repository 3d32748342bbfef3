package main

import (
	"context"
	"sync"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// changeTools are tools that change the lists of s while clients listen.
func changeTools(s *server.Server) []server.Feature {
	extraTool := server.Tool("test_extra_tool", "Comes and goes.", func(context.Context, mcp.None) (string, error) {
		return "here", nil
	})
	extraPrompt := server.Prompt("test_extra_prompt", "Comes and goes.", func(context.Context, mcp.None) (string, error) {
		return "Are you here?", nil
	})
	return []server.Feature{
		server.Tool("test_trigger_tool_change", "Changes the list of tools.", toggle(
			func() { s.Add(extraTool) }, func() { s.RemoveTools("test_extra_tool") })),
		server.Tool("test_trigger_prompt_change", "Changes the list of prompts.", toggle(
			func() { s.Add(extraPrompt) }, func() { s.RemovePrompts("test_extra_prompt") })),
	}
}

// toggle adds something with the first call, removes it with the second, and
// so on.
func toggle(add, remove func()) func(context.Context, mcp.None) (string, error) {
	var mu sync.Mutex
	there := false
	return func(context.Context, mcp.None) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if there = !there; there {
			add()
			return "added", nil
		}
		remove()
		return "removed", nil
	}
}
