package mcptest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
)

// oracle is the oracle of the specification, if the environment names it.
func oracle(t *testing.T) *mcptest.Oracle {
	t.Helper()
	dir := os.Getenv(mcptest.SpecVar)
	if dir == "" {
		t.Skipf("%s is not set", mcptest.SpecVar)
	}
	o, err := mcptest.NewOracle(dir)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOracle(t *testing.T) {
	o := oracle(t)
	for _, c := range []struct {
		name, version string
		from          mcp.Side
		answers, raw  string
		wrong         string // part of the error, or empty
	}{
		{"request", "2024-11-05", mcp.FromClient, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, ""},
		{"request of the other side", "2024-11-05", mcp.FromServer, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "does not send"},
		{"both sides ping", "2025-11-25", mcp.FromServer, "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, ""},
		{"newest has no ping", "2026-07-28", mcp.FromClient, "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "does not send"},
		{"newest needs meta", "2026-07-28", mcp.FromClient, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, "_meta"},
		{"only notification", "2026-07-28", mcp.FromClient, "", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, ""},
		{"missing member", "2025-06-18", mcp.FromClient, "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "name"},
		{"result", "2025-06-18", mcp.FromServer, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`, ""},
		{"wrong result", "2025-06-18", mcp.FromServer, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"tools":{}}}`, "tools"},
		{"empty result", "2025-03-26", mcp.FromServer, "logging/setLevel", `{"jsonrpc":"2.0","id":1,"result":{}}`, ""},
		{"result of a question", "2025-06-18", mcp.FromClient, "elicitation/create", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"a":1}}}`, ""},
		{"wrong answer", "2025-06-18", mcp.FromClient, "elicitation/create", `{"jsonrpc":"2.0","id":1,"result":{"action":"maybe"}}`, "action"},
		{"result of nothing", "2025-06-18", mcp.FromServer, "nothing", `{"jsonrpc":"2.0","id":1,"result":{}}`, "does not send"},
		{"asking", "2026-07-28", mcp.FromServer, "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"x"}}`, ""},
		{"asking where none may", "2026-07-28", mcp.FromServer, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"x"}}`, "ListTools"},
		{"error", "2026-07-28", mcp.FromServer, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}`, ""},
		{"error without code", "2024-11-05", mcp.FromServer, "", `{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}`, "code"},
		// Ruling 9: older schemas cannot say that there is no id.
		{"error without id", "2024-11-05", mcp.FromServer, "", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, ""},
		{"unknown revision", "1999-01-01", mcp.FromClient, "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "no schema"},
		{"no message", "2024-11-05", mcp.FromClient, "", `{"id":1,"id":2}`, "not a message"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := o.Check(c.version, c.from, c.answers, mcp.RawValue(c.raw))
			switch {
			case c.wrong == "" && err != nil:
				t.Errorf("a good message is refused: %v", err)
			case c.wrong != "" && err == nil:
				t.Error("a wrong message passes")
			case c.wrong != "" && !strings.Contains(err.Error(), c.wrong):
				t.Errorf("got %v, want something about %q", err, c.wrong)
			}
		})
	}
}

// Every request, notification and response that the specification gives as an
// example fits its own schema, by the oracle's way of finding it.
func TestOracleExamples(t *testing.T) {
	o := oracle(t)
	versions := o.Versions()
	newest := versions[len(versions)-1]
	files, err := filepath.Glob(filepath.Join(os.Getenv(mcptest.SpecVar), newest, "examples", "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("no examples: %v", err)
	}
	answers := map[string]string{
		"CallTool": "tools/call", "Complete": "completion/complete", "Discover": "server/discover", "GetPrompt": "prompts/get",
		"ListPrompts": "prompts/list", "ListResources": "resources/list", "ListResourceTemplates": "resources/templates/list",
		"ListTools": "tools/list", "ReadResource": "resources/read", "SubscriptionsListen": "subscriptions/listen",
	}
	checked := 0
	for _, file := range files {
		kind := filepath.Base(filepath.Dir(file))
		from, method := mcp.FromClient, ""
		switch stem, response := strings.CutSuffix(kind, "ResultResponse"); {
		case response:
			from, method = mcp.FromServer, answers[stem]
		case kind == "CancelledNotification":
		case strings.HasSuffix(kind, "Notification"):
			from = mcp.FromServer
		case !strings.HasSuffix(kind, "Request") || kind == "ElicitRequest" || kind == "CreateMessageRequest" || kind == "ListRootsRequest":
			continue // a part of a message
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		if kind == "ReadResourceResultResponse" {
			continue // the example leaves out members that its schema requires
		}
		if err := o.Check(newest, from, method, raw); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if checked < 20 {
		t.Errorf("only %d of %d examples are messages", checked, len(files))
	}
}

func TestNewOracleFindsNothing(t *testing.T) {
	if _, err := mcptest.NewOracle(t.TempDir()); err == nil {
		t.Error("an empty directory makes an oracle")
	}
}
