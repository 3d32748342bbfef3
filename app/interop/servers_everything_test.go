package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// Clients of others use 'parley serve everything'.
func TestServersEverythingClients(t *testing.T) {
	useBuiltin(t, func(*testing.T) useCase {
		return useCase{
			args: []string{"everything"},
			tools: []string{
				"add", "drop-table", "echo", "fail", "get-annotated-message", "get-env", "get-resource-links", "get-resource-reference",
				"get-roots-list", "get-structured-content", "get-sum", "get-tiny-audio", "get-tiny-image", "gzip-file-as-resource", "log-messages", "measure-shape", "show-palette",
				"simulate-backup", "simulate-order", "simulate-research", "simulate-research-query", "toggle-extra-tool",
				"toggle-simulated-logging", "toggle-subscriber-updates", "trigger-elicitation-request", "trigger-elicitation-request-async",
				"trigger-long-running-operation", "trigger-sampling-request", "trigger-sampling-request-async", "trigger-url-elicitation", "weather",
			},
			calls: []useCall{{tool: "echo", args: map[string]any{"message": "héllo"}, want: "héllo"}},
			read:  "demo://text", readWant: "does not change",
		}
	})
}

// The same 500 calls of our demonstration and of the original, with the tools that both have.
func TestServersEverythingDiffers(t *testing.T) {
	peersDir(t)
	clock := regexp.MustCompile(`created at .*`)
	d := &differential{
		ours: builtinDialer(t, nil, "everything"), theirs: originalDialer(t, nil, everythingJS, "stdio"),
		seed: 6, next: everythingCall,
		normalize: func(_ toolCall, a *toolReply) {
			everyText(a.Content, func(name, text string) string {
				if name == "data" || name == "blob" {
					return "bytes" // pictures and times are each server's own
				}
				// The original calls blobs plain text, by the type that it gives them.
				text = strings.Replace(text, "binary blob resource", "plaintext resource", 1)
				return clock.ReplaceAllString(text, "created at …")
			})
		},
		allowed: []knownDifference{
			{"unknown arguments", func(in toolCall, ours, theirs *toolReply) bool {
				return in.args["colour"] != nil && ours.Refused && !theirs.Refused
			}},
			{"echo", func(in toolCall, ours, theirs *toolReply) bool {
				message, _ := in.args["message"].(string)
				return in.tool == "echo" && !ours.Refused && !theirs.Refused && textOf(theirs) == "Echo: "+textOf(ours) && textOf(ours) == message
			}},
			{"get-tiny-image", func(in toolCall, ours, theirs *toolReply) bool {
				return in.tool == "get-tiny-image" && !ours.Refused && strings.Contains(textOf(theirs), "image")
			}},
			{"long-running", func(in toolCall, ours, theirs *toolReply) bool {
				return in.tool == "trigger-long-running-operation" && !ours.Refused && !theirs.Refused
			}},
		},
	}
	d.run(t)
}

// What the original lists we have under the same names: tools with their arguments, prompts with theirs,
// resources and templates, for a client that can be asked everything and runs tasks.
func TestServersEverythingLists(t *testing.T) {
	peersDir(t)
	ours, theirs := everythingLists(t, builtinDialer(t, nil, "everything")), everythingLists(t, originalDialer(t, nil, everythingJS, "stdio"))
	for name := range theirs {
		if !ours[name] {
			t.Errorf("the original has %s", name)
		}
	}
	for _, name := range []string{"tool trigger-url-elicitation errorPath", "tool trigger-sampling-request-async maxTokens", "prompt args-prompt state", "resource demo://resource/static/document/features.md"} {
		if !theirs[name] {
			t.Errorf("the original does not list %s: the comparison proves too little", name)
		}
	}
}

// everythingLists are the names of all that a server lists.
func everythingLists(t *testing.T, d transport.Dialer) map[string]bool {
	t.Helper()
	refuse := errors.New("nothing is called")
	c, err := client.Connect(bounded(t), d, &client.Options{
		Eras: client.NewEraMemory(), Versions: []string{legacy},
		Extensions: []client.Extension{{ID: "com.example/tasks", Capabilities: []client.Capability{{
			Name: "tasks", Revisions: client.CoreTasks,
			Value: map[string]any{"requests": map[string]any{
				"sampling": map[string]any{"createMessage": struct{}{}}, "elicitation": map[string]any{"create": struct{}{}},
			}},
		}}}},
		OnElicit:    func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return nil, refuse },
		OnElicitURL: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return nil, refuse },
		OnSample:    func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return nil, refuse },
		OnRoots:     func(context.Context) ([]mcp.Root, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // no request is in flight
	names := make(map[string]bool)
	keep := func(err error, words ...string) {
		if err != nil {
			t.Fatal(err)
		}
		names[strings.Join(words, " ")] = true
	}
	for tool, err := range c.Tools(t.Context()) {
		keep(err, "tool", tool.Name)
		var schema struct{ Properties map[string]any }
		keep(json.Unmarshal(tool.InputSchema, &schema), "tool", tool.Name)
		for argument := range schema.Properties {
			keep(nil, "tool", tool.Name, argument)
		}
	}
	for prompt, err := range c.Prompts(t.Context()) {
		keep(err, "prompt", prompt.Name)
		for _, argument := range prompt.Arguments {
			keep(nil, "prompt", prompt.Name, argument.Name)
		}
	}
	for resource, err := range c.Resources(t.Context()) {
		keep(err, "resource", resource.URI)
	}
	for template, err := range c.ResourceTemplates(t.Context()) {
		keep(err, "template", template.URITemplate)
	}
	return names
}

func everythingCall(r *rand.Rand, i int) toolCall {
	if i%20 == 19 {
		return toolCall{[]string{"get-sum", "get-structured-content", "get-resource-links"}[r.IntN(3)], map[string]any{"colour": "red", "a": 1, "b": 2, "location": "Chicago", "count": 1}}
	}
	switch r.IntN(9) {
	case 0:
		return toolCall{"echo", map[string]any{"message": []any{"héllo", "", "日本 🎈", 5, nil}[r.IntN(5)]}}
	case 1, 2:
		n := func() any { return []any{r.IntN(1000), 0.5, -3, 1e6, "5", nil, true}[r.IntN(7)] }
		return toolCall{"get-sum", map[string]any{"a": n(), "b": n()}}
	case 3:
		return toolCall{"get-structured-content", map[string]any{"location": []any{"New York", "Chicago", "Los Angeles", "Paris", nil}[r.IntN(5)]}}
	case 4:
		args := map[string]any{"messageType": []any{"error", "success", "debug", "info"}[r.IntN(4)]}
		if r.IntN(2) == 0 {
			args["includeImage"] = []any{true, false, "yes"}[r.IntN(3)]
		}
		return toolCall{"get-annotated-message", args}
	case 5:
		return toolCall{"get-resource-links", []map[string]any{{}, {"count": 1}, {"count": 10}, {"count": 0}, {"count": 11}, {"count": "3"}}[r.IntN(6)]}
	case 6, 7:
		args := map[string]any{}
		if r.IntN(3) > 0 {
			args["resourceType"] = []any{"Text", "Blob", "text", 1}[r.IntN(4)]
		}
		if r.IntN(3) > 0 {
			args["resourceId"] = []any{1, 7, 99, 0, -1, 1.5, "2"}[r.IntN(7)]
		}
		return toolCall{"get-resource-reference", args}
	}
	if r.IntN(2) == 0 {
		return toolCall{"get-tiny-image", map[string]any{}}
	}
	return toolCall{"trigger-long-running-operation", map[string]any{"duration": 0.01, "steps": 1 + r.IntN(3)}}
}

// everyText replaces all texts in decoded JSON; change gets the name of the member.
func everyText(v any, change func(name, text string) string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			everyText(e, change)
		}
	case map[string]any:
		for name, e := range v {
			if text, ok := e.(string); ok {
				v[name] = change(name, text)
			} else {
				everyText(e, change)
			}
		}
	}
}

// textOf is the text of the first content.
func textOf(a *toolReply) string {
	if len(a.Content) == 0 {
		return ""
	}
	first, _ := a.Content[0].(map[string]any)
	text, _ := first["text"].(string)
	return text
}
