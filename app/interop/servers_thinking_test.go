package interop_test

import (
	"math/rand/v2"
	"slices"
	"testing"
)

const thinkingJS = "node_modules/@modelcontextprotocol/server-sequential-thinking/dist/index.js"

// Clients of others use 'parley serve thinking'.
func TestServersThinkingClients(t *testing.T) {
	useBuiltin(t, func(*testing.T) useCase {
		return useCase{
			args: []string{"thinking"}, env: []string{"DISABLE_THOUGHT_LOGGING=true"},
			tools: []string{"sequentialthinking"},
			calls: []useCall{
				{tool: "sequentialthinking", args: map[string]any{"thought": "a", "nextThoughtNeeded": true, "thoughtNumber": 2, "totalThoughts": 1}, want: `"totalThoughts": 2`},
				{tool: "sequentialthinking", args: map[string]any{"thought": "b", "nextThoughtNeeded": "false", "thoughtNumber": "2", "totalThoughts": 2}, want: `"nextThoughtNeeded": false`},
			},
		}
	})
}

// The same 500 calls of our tool and of the original: the same states and refusals.
func TestServersThinkingDiffers(t *testing.T) {
	peersDir(t)
	wasNumber := func(in toolCall) bool { // a value that JavaScript makes a number of
		return slices.ContainsFunc([]string{"thoughtNumber", "totalThoughts", "revisesThought"}, func(name string) bool {
			switch v := in.args[name].(type) {
			case bool:
				return v
			case []int:
				return true
			case string:
				return v == "0x10" || v == " 3 " || v == "1e1"
			}
			return false
		})
	}
	d := &differential{
		ours:   builtinDialer(t, []string{"DISABLE_THOUGHT_LOGGING=true"}, "thinking"),
		theirs: originalDialer(t, []string{"DISABLE_THOUGHT_LOGGING=true"}, thinkingJS),
		seed:   6, next: thinkingCall,
		allowed: []knownDifference{
			{"unknown arguments", func(in toolCall, ours, theirs *toolReply) bool {
				return in.args["colour"] != nil && ours.Refused && !theirs.Refused
			}},
			{"what is a number", func(in toolCall, ours, theirs *toolReply) bool {
				return wasNumber(in) && ours.Refused && !theirs.Refused
			}},
		},
	}
	// What one server refuses alone it does not count: the rest of the state must be the same.
	ahead := 0
	d.normalize = func(_ toolCall, a *toolReply) {
		a.Content = nil // the same as text
		if state, ok := a.Structured.(map[string]any); ok {
			state["length"] = state["thoughtHistoryLength"]
			delete(state, "thoughtHistoryLength")
		}
	}
	d.compare = func(in toolCall, ours, theirs *toolReply) {
		if ours.Refused && !theirs.Refused {
			ahead++
		}
		if state, ok := theirs.Structured.(map[string]any); ok {
			state["length"] = state["length"].(float64) - float64(ahead)
		}
	}
	d.run(t)
}

func thinkingCall(r *rand.Rand, i int) toolCall {
	number := func() any {
		return []any{1 + r.IntN(20), 1 + r.IntN(20), 1 + r.IntN(20), 5.0, "7", "12", 0, -1, 1.5, "two", "", nil, "1e400"}[r.IntN(13)]
	}
	good := func() any { return []any{1 + r.IntN(20), "3"}[r.IntN(2)] }
	flag := func() any { return []any{true, false, "true", "False", "TRUE"}[r.IntN(5)] }
	args := map[string]any{"thought": "a thought", "nextThoughtNeeded": flag(), "thoughtNumber": good(), "totalThoughts": good()}
	switch i % 25 {
	case 20:
		args["colour"] = "red"
	case 21:
		args["revisesThought"] = []any{true, []int{5}, "0x10", " 3 ", "1e1"}[r.IntN(5)]
	case 22:
		args["isRevision"] = []any{"yes", 1, nil, "", []string{}}[r.IntN(5)]
	case 23:
		delete(args, []string{"thought", "nextThoughtNeeded", "thoughtNumber", "totalThoughts"}[r.IntN(4)])
	case 24:
		args[[]string{"thoughtNumber", "totalThoughts", "revisesThought", "branchFromThought"}[r.IntN(4)]] = number()
	}
	switch r.IntN(4) {
	case 0:
		args["isRevision"], args["revisesThought"] = flag(), good()
	case 1:
		args["branchFromThought"], args["branchId"] = good(), []string{"a", "b", "naïve", "", "__proto", "z 9"}[r.IntN(6)]
	}
	if _, set := args["revisesThought"]; i%25 == 21 && !set {
		args["revisesThought"] = true
	}
	return toolCall{"sequentialthinking", args}
}
