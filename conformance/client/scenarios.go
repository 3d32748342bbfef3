package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/mcp"
)

// scenario is what the client does once it is connected.
type scenario func(ctx context.Context, c *client.Client) error

// scenarios are those of the suite that need no authorization.
var scenarios = map[string]scenario{
	"initialize":       listIfOffered,
	"request-metadata": listIfOffered,
	"tools_call":       addNumbers,

	"elicitation-sep1034-client-defaults": callOne("test_client_elicitation_defaults"),
	"sse-retry":                           callOne("test_reconnection"),
	"sep-2322-client-request-state":       stateOfRequests,

	"http-standard-headers":     everyMethod,
	"http-custom-headers":       callAsTold,
	"http-invalid-tool-headers": callAll,

	"json-schema-ref-no-deref":         listIfOffered,
	"json-schema-2020-12-preservation": echoSchema,

	"sep-2640-client-no-prefetch":        listSkills,
	"sep-2640-client-verify-digest":      loadTampered(skills.ReasonDigest),
	"sep-2640-client-verify-size":        loadTampered(skills.ReasonSize),
	"sep-2640-client-verify-frontmatter": loadTampered(skills.ReasonFrontmatter),
}

// collect reads a list to its end.
func collect[T any](list iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

// listIfOffered lists the tools. Some servers of the suite declare none, and
// then the client does not ask.
func listIfOffered(ctx context.Context, c *client.Client) error {
	_, err := collect(c.Tools(ctx))
	if errors.Is(err, client.ErrNotCapable) {
		return nil
	}
	return err
}

func addNumbers(ctx context.Context, c *client.Client) error {
	if _, err := collect(c.Tools(ctx)); err != nil {
		return err
	}
	text, err := client.Call[string](ctx, c, "add_numbers", map[string]int{"a": 5, "b": 3})
	if err != nil {
		return err
	}
	if want := "The sum of 5 and 3 is 8"; text != want {
		return fmt.Errorf("add_numbers answered %q, want %q", text, want)
	}
	return nil
}

// callOne makes a scenario that lists the tools and calls one of them.
func callOne(name string) scenario {
	return func(ctx context.Context, c *client.Client) error {
		if _, err := c.Tool(ctx, name); err != nil {
			return err
		}
		_, err := client.Call[mcp.CallToolResult](ctx, c, name, nil)
		return err
	}
}

// callAll calls every tool that is left after those have been dropped whose
// definition cannot be used.
func callAll(ctx context.Context, c *client.Client) error {
	tools, err := collect(c.Tools(ctx))
	if err != nil {
		return err
	}
	for _, t := range tools {
		if _, err := c.CallTool(ctx, t.Name, map[string]string{"region": "us-west1"}, nil); err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
	}
	return nil
}

// stateOfRequests calls tools that answer in several rounds. The library
// runs the rounds; the suite checks the wire.
func stateOfRequests(ctx context.Context, c *client.Client) error {
	for _, name := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
		if err := callOne(name)(ctx, c); err != nil {
			return fmt.Errorf("tool %s: %w", name, err)
		}
	}
	return nil
}

// everyMethod uses the features whose requests carry a name in their headers,
// with every name that the server lists.
func everyMethod(ctx context.Context, c *client.Client) error {
	tools, err := collect(c.Tools(ctx))
	if err != nil {
		return err
	}
	for _, t := range tools {
		if _, err := c.CallTool(ctx, t.Name, nil, nil); err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
	}
	resources, err := collect(c.Resources(ctx))
	if err != nil {
		return err
	}
	for _, r := range resources {
		if _, err := c.ReadResource(ctx, r.URI, nil); err != nil {
			return fmt.Errorf("resource %s: %w", r.URI, err)
		}
	}
	prompts, err := collect(c.Prompts(ctx))
	if err != nil {
		return err
	}
	for _, p := range prompts {
		if _, err := c.GetPrompt(ctx, p.Name, nil, nil); err != nil {
			return fmt.Errorf("prompt %s: %w", p.Name, err)
		}
	}
	return nil
}

// callAsTold calls the tools that the suite names, with its arguments.
func callAsTold(ctx context.Context, c *client.Client) error {
	told, err := readContext()
	if err != nil {
		return err
	}
	if len(told.ToolCalls) == 0 {
		return errors.New("MCP_CONFORMANCE_CONTEXT names no tool calls")
	}
	for _, call := range told.ToolCalls {
		if _, err := c.Tool(ctx, call.Name); err != nil { // the headers are learnt from the definition
			return err
		}
		if _, err := c.CallTool(ctx, call.Name, mcp.RawValue(call.Arguments), nil); err != nil {
			return fmt.Errorf("tool %s: %w", call.Name, err)
		}
	}
	return nil
}

// echoSchema sends a tool's schema back as it came.
func echoSchema(ctx context.Context, c *client.Client) error {
	t, err := c.Tool(ctx, "json_schema_2020_12_tool")
	if err != nil {
		return err
	}
	_, err = c.CallTool(ctx, "json_schema_echo", map[string]mcp.RawValue{"schema": t.InputSchema}, nil)
	return err
}
