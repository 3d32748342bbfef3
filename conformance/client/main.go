// Command client is the fixture that the official conformance suite tests as
// a client. The suite starts it with the URL of a server, and says in
// MCP_CONFORMANCE_SCENARIO what to do there. Which revision is spoken is
// found out on the wire, as any user's program does it, so
// MCP_CONFORMANCE_PROTOCOL_VERSION is not looked at.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/streamable"
)

// runTime is how long a scenario may take; the suite itself waits 30 s.
const runTime = 25 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance client:", err)
		os.Exit(1) //nolint:forbidigo // this is a program: its status is its answer
	}
}

func run() (err error) {
	if len(os.Args) != 2 {
		return errors.New("usage: MCP_CONFORMANCE_SCENARIO=NAME client URL")
	}
	name := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	do, ok := scenarios[name]
	if !ok {
		return fmt.Errorf("unknown scenario %q in MCP_CONFORMANCE_SCENARIO; known are %s",
			name, strings.Join(slices.Sorted(maps.Keys(scenarios)), ", "))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	c, err := client.Connect(ctx, streamable.URL(os.Args[1]), options())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := do(ctx, c); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// options are those of a client that can be asked everything.
func options() *client.Options {
	return &client.Options{
		Info:     mcp.Implementation{Name: "parley-conformance", Version: "1.0.0"},
		OnElicit: fillIn,
		OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{
				Role: mcp.RoleAssistant, Model: "none", StopReason: mcp.StopEndTurn,
				Content: mcp.Contents{mcp.Text("There is no model behind this client.")},
			}, nil
		},
		OnRoots: func(context.Context) ([]mcp.Root, error) {
			return []mcp.Root{{URI: "file:///conformance", Name: "conformance"}}, nil
		},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
}

// fillIn sends a form with what it already says, and "yes" where it asks to
// confirm.
func fillIn(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	values := make(map[string]bool)
	if field, ok := r.Form().Properties.Lookup("confirmed"); ok && field.Kind() == mcp.FieldBoolean {
		values["confirmed"] = true
	}
	return client.Accept(values)
}

// suiteContext is what the suite tells in MCP_CONFORMANCE_CONTEXT.
type suiteContext struct {
	ToolCalls []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

func readContext() (*suiteContext, error) {
	c := new(suiteContext)
	if err := json.Unmarshal([]byte(cmp.Or(os.Getenv("MCP_CONFORMANCE_CONTEXT"), "{}")), c); err != nil {
		return nil, fmt.Errorf("reading MCP_CONFORMANCE_CONTEXT: %w", err)
	}
	return c, nil
}
