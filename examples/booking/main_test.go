package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/examples/page"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// ada is a person who answers what is asked, and has a model.
func ada(p *till) *client.Options {
	return &client.Options{
		OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Params.Message == "When?" {
				return client.Accept(date{Day: "2026-12-24"})
			}
			return client.Accept(map[string]any{"name": "Ada", "meal": "fish"})
		},
		OnElicitURL: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.paid["7"] = true
			return client.Accept(nil)
		},
		OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: mcp.Contents{mcp.Text("Go!")}}, nil
		},
		OnRoots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///work"}}, nil },
	}
}

// Every revision and transport, where the newest revision runs the handler
// again for each question.
func TestEveryRevision(t *testing.T) {
	p := &till{paid: make(map[string]bool)}
	build := func(_ testing.TB, o *server.Options) *server.Server { return newServer(o, p) }
	mcptest.EachEra(t, build, ada(p), func(t *testing.T, era mcptest.Era, c *client.Client) {
		asks := map[string][2]string{
			"advertise": {`{"show":"Cats"}`, "Go!"},
			"folders":   {`{}`, "file:///work"},
		}
		if era.Version >= "2025-06-18" { // forms
			asks["book"] = [2]string{`{"show":"Cats"}`, "2 seats for Ada, meal: fish"}
			asks["trip"] = [2]string{`{}`, "2026-12-24 to 2026-12-24"}
		}
		asks["pay"] = [2]string{`{"order":"7"}`, "Pay at https://pay.example/orders/7, then call again."}
		if era.Version >= "2025-11-25" { // pages
			asks["pay"] = [2]string{`{"order":"7"}`, "Order 7 is paid."}
		}
		for tool, want := range asks {
			got, err := client.Call[string](t.Context(), c, tool, mcp.RawValue(want[0]))
			if err != nil || got != want[1] {
				t.Errorf("%s: %q, %v", tool, got, err)
			}
		}
	})
}

// The page shows what a client gets in the newest revision: a question is the
// answer.
func TestQuestion(t *testing.T) {
	page.Shows(t, "asking.md", page.Exchange(t, newServer(nil, nil), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+
		`"name":"trip","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`))
}

// A handler whose question differs in the second round is caught.
func TestNotDeterministic(t *testing.T) {
	rounds := 0
	s := server.New("random", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})
	s.Add(server.Tool("ask", "Asks something else each time.", func(ctx context.Context, _ mcp.None) (string, error) {
		rounds++
		answer, err := server.Elicit[date](ctx, fmt.Sprintf("Question %d?", rounds))
		return answer.Value.Day, err
	}))
	o := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(date{Day: "2026-12-24"})
	}}
	_, err := client.Call[string](t.Context(), mcptest.Client(t, s, o), "ask", nil)
	if err == nil || !strings.Contains(err.Error(), "handler is not deterministic") || rounds != 2 {
		t.Errorf("%v, after %d rounds", err, rounds)
	}
}

// A person who says no is no error; a client that cannot ask is one.
func TestNoAnswer(t *testing.T) {
	p := &till{paid: make(map[string]bool)}
	no := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return client.Decline() }}
	text, err := client.Call[string](t.Context(), mcptest.Client(t, newServer(nil, p), no), "book", showIn{"Cats"})
	if err != nil || text != "Nothing was booked." {
		t.Errorf("%q, %v", text, err)
	}
	_, err = client.Call[string](t.Context(), mcptest.Client(t, newServer(nil, p)), "book", showIn{"Cats"})
	if refused, ok := errors.AsType[*jsonrpc.Error](err); !ok || refused.Code != mcp.CodeMissingClientCapability {
		t.Errorf("%v", err)
	}
	text, err = client.Call[string](t.Context(), mcptest.Client(t, newServer(nil, p)), "advertise", showIn{"Cats"})
	if err != nil || text != "Come and see Cats!" {
		t.Errorf("%q, %v", text, err)
	}
}
