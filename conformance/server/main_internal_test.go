package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// asked are handlers for everything that the fixtures ask, and answers that
// fit every form of theirs.
var asked = &client.Options{
	OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		answers := map[string]any{
			"username": "ada", "email": "ada@example.com", "name": "Ada", "color": "blue", "ok": true, "context": "the sea",
		}
		maps.DeleteFunc(answers, func(name string, _ any) bool {
			_, there := r.Form().Properties.Lookup(name)
			return !there
		})
		return client.Accept(answers)
	},
	OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "test", Content: mcp.Contents{mcp.Text("Paris")}}, nil
	},
	OnRoots: func(context.Context) ([]mcp.Root, error) {
		return []mcp.Root{{URI: "file:///work"}}, nil
	},
}

// eachEra runs body with a client for every revision that the suite has a set of
// scenarios for, in memory, so that the fixtures' pauses take no time. HTTP is
// what the suite itself is for.
func eachEra(t *testing.T, body func(t *testing.T, c *client.Client)) {
	t.Helper()
	build := func(_ testing.TB, o *server.Options) *server.Server { return newServer(o) }
	for _, era := range mcptest.Eras(t, build) {
		if era.Transport != "mem" || era.Version != "2025-11-25" && era.Version != "2026-07-28" {
			continue
		}
		t.Run(era.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { body(t, mcptest.Join(t, build, asked, era)) })
		})
	}
}

// Proves: FLOW-TOOL-P. Each tool that the suite names is there, and none else,
// and answers in both eras.
func TestTools(t *testing.T) {
	texts := map[string]string{
		"greet":                   "Hello, Ada!",
		"test_simple_text":        "This is a simple text response for testing.",
		"test_tool_with_logging":  "Tool with logging executed.",
		"test_tool_with_progress": "Tool with progress executed.",
		"test_logging_tool":       "logged",
		"test_reconnection":       "Reconnection test completed.",
		"test_elicitation":        "Elicitation completed: action=accept, content={Username:ada Email:ada@example.com}",
		"test_elicitation_sep1034_defaults": "Elicitation completed: action=accept, content=" +
			"{Name:Ada Age:30 Score:95.5 Status:active Verified:true}",
		"test_elicitation_sep1330_enums": "Elicitation completed: action=accept, 0 fields",
		"test_streaming_elicitation":     "Elicitation completed: action=accept, content={Username:ada Email:ada@example.com}",
		"test_sampling":                  "LLM response: Paris",
		"test_missing_capability":        "Paris",
		"json_schema_2020_12_tool":       `called with {"email":"a"}`,
		"test_x_mcp_header":              `region "eu", priority 0, query ""`,
		"test_trigger_tool_change":       "added",
		"test_trigger_prompt_change":     "added",

		"test_input_required_result_elicitation":     "Hello, Ada!",
		"test_input_required_result_sampling":        "Paris",
		"test_input_required_result_list_roots":      "1 roots: file:///work",
		"test_input_required_result_request_state":   "state-ok, confirmed: true",
		"test_input_required_result_tampered_state":  "state-ok, confirmed: true",
		"test_input_required_result_multiple_inputs": "Hello, Ada!\nParis\n1 roots: file:///work",
		"test_input_required_result_multi_round":     "Ada likes blue.",
		"test_input_required_result_capabilities":    "Hello, Ada!\nParis\n1 roots: file:///work",
	}
	arguments := map[string]map[string]string{
		"test_elicitation":         {"message": "Who are you?"},
		"test_sampling":            {"prompt": "What is the capital of France?"},
		"json_schema_2020_12_tool": {"email": "a"},
		"test_x_mcp_header":        {"region": "eu"},
		"greet":                    {"name": "Ada"},
	}
	others := []string{
		"test_image_content", "test_audio_content", "test_embedded_resource", "test_multiple_content_types", "test_error_handling",
	}
	// The suite calls these as tasks.
	asTasks := []string{"slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"}
	eachEra(t, func(t *testing.T, c *client.Client) {
		var names []string
		for tool, err := range c.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		want := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(texts)), others, asTasks)))
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("tools are %q\nwant %q", names, want)
		}
		for name, want := range texts {
			got, err := client.Call[string](t.Context(), c, name, arguments[name])
			if err != nil || got != want {
				t.Errorf("%s: %q, %v; want %q", name, got, err, want)
			}
		}
		for _, name := range others {
			_, err := client.Call[mcp.CallToolResult](t.Context(), c, name, nil)
			var failed *client.ToolError
			if wants := name == "test_error_handling"; err != nil && !wants || wants && !errors.As(err, &failed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Proves: FLOW-PROMPT-P, FLOW-RES. Each prompt and resource that the suite names
// is there and answers in both eras.
func TestPromptsAndResources(t *testing.T) {
	eachEra(t, func(t *testing.T, c *client.Client) {
		for name, args := range map[string]map[string]string{
			"test_simple_prompt":                 nil,
			"test_prompt_with_arguments":         {"arg1": "hello", "arg2": "world"},
			"test_prompt_with_embedded_resource": {"resourceUri": "test://example"},
			"test_prompt_with_image":             nil,
			"test_input_required_result_prompt":  nil,
		} {
			if res, err := c.GetPrompt(t.Context(), name, args, nil); err != nil || len(res.Messages) == 0 {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		}
		for uri, want := range map[string]string{
			"test://static-text":       "static text",
			"test://watched-resource":  "T",
			"test://template/123/data": `"id":"123"`,
		} {
			res, err := c.ReadResource(t.Context(), uri, nil)
			if err != nil || len(res.Contents) != 1 || !strings.Contains(res.Contents[0].Text, want) {
				t.Errorf("%s: %+v, %v; want it to contain %q", uri, res, err, want)
			}
		}
		if res, err := c.ReadResource(t.Context(), "test://static-binary", nil); err != nil || len(res.Contents[0].Blob) == 0 {
			t.Errorf("test://static-binary: %+v, %v", res, err)
		}
		if _, err := c.ReadResource(t.Context(), "test://nonexistent", nil); err == nil {
			t.Error("what does not exist was read")
		}
	})
}
