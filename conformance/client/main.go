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
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/streamable"
)

// runTime is how long a scenario may take; the suite itself waits for two minutes.
const runTime = 110 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance client:", err)
		os.Exit(1) // this is a program: its status is its answer
	}
}

func run() error {
	if len(os.Args) != 2 {
		return errors.New("usage: MCP_CONFORMANCE_SCENARIO=NAME client URL")
	}
	name, url := os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Args[1]
	run, ok := find(name)
	if !ok {
		known := slices.AppendSeq(slices.Collect(maps.Keys(scenarios)), maps.Keys(signIns))
		slices.Sort(known)
		return fmt.Errorf("unknown scenario %q in MCP_CONFORMANCE_SCENARIO; known are %s", name, strings.Join(known, ", "))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	if err := run(ctx, url); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// find finds what a scenario does with the server at a URL.
func find(name string) (run func(ctx context.Context, url string) error, ok bool) {
	if s, ok := signIns[name]; ok {
		return s.run, true
	}
	do, ok := scenarios[name]
	return func(ctx context.Context, url string) error { return connect(ctx, streamable.URL(url), do) }, ok
}

// connect does something with a server, from the first message to the last.
func connect(ctx context.Context, dialer *streamable.Dialer, do scenario) (err error) {
	c, err := client.Connect(ctx, dialer, options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return do(ctx, c)
}

// options are those of a client that can be asked everything. A server that is silent is none with a
// handshake, since all servers of the suite answer: the machine is busy.
func options() *client.Options {
	return &client.Options{
		Info:          mcp.Implementation{Name: "parley-conformance", Version: "1.0.0"},
		CallTimeout:   runTime,
		DiscoverProbe: runTime,

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
		Extensions: []client.Extension{skills.Extension()},
		Logger:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
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

// suiteContext is what the suite tells in MCP_CONFORMANCE_CONTEXT, some of it
// in each scenario.
type suiteContext struct {
	ToolCalls []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`

	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	PrivateKey   string `json:"private_key_pem"`
	Algorithm    string `json:"signing_algorithm"`

	// WorkloadToken is the JWT of a workload.
	WorkloadToken string `json:"valid_jwt"`

	IDToken                  string `json:"idp_id_token"`
	IdentityProvider         string `json:"idp_issuer"`
	IdentityProviderToken    string `json:"idp_token_endpoint"`
	IdentityProviderClientID string `json:"idp_client_id"`
}

func readContext() (*suiteContext, error) {
	c := new(suiteContext)
	if err := json.Unmarshal([]byte(cmp.Or(os.Getenv("MCP_CONFORMANCE_CONTEXT"), "{}")), c); err != nil {
		return nil, fmt.Errorf("reading MCP_CONFORMANCE_CONTEXT: %w", err)
	}
	return c, nil
}
