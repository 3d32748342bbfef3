package losses_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/losses"
	"github.com/parley-mcp/parley/mcp"
)

func tool(name, schema string) *mcp.Tool {
	return &mcp.Tool{Name: name, InputSchema: mcp.RawValue(schema)}
}

// What several providers do not take of several tools is one loss; another reason is another one.
func TestOf(t *testing.T) {
	const uri = `{"type":"object","properties":{"at":{"type":"string","format":"uri"}}}`
	list, errs := losses.Of([]*mcp.Tool{
		tool("first", uri), tool("plain", `{"type":"object"}`), tool("a.b", `{"type":"object"}`), tool("second", uri), tool("broken", `[`),
	})
	if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "broken: ") {
		t.Errorf("got %v, want one error, of broken", errs)
	}
	var got []string
	for _, l := range list {
		got = append(got, fmt.Sprintf("%v %s: %s", l.RefusesName(), l.ProviderNames(), l.ToolNames()))
		if l.What == "" || l.Why == "" || l.Mend == "" {
			t.Errorf("incomplete: %+v", l)
		}
	}
	if text := strings.Join(got, "\n"); text != "false Gemini: first, second\ntrue Anthropic, OpenAI: a.b" {
		t.Errorf("got\n%s", text)
	}
}

func TestToolNames(t *testing.T) {
	var tools []*mcp.Tool
	for i := range 23 {
		tools = append(tools, tool(fmt.Sprint("t", i), `{"type":"object","properties":{"at":{"type":"string","format":"uri"}}}`))
	}
	list, _ := losses.Of(tools)
	if len(list) != 1 || !strings.HasSuffix(list[0].ToolNames(), "t19 and 3 more") {
		t.Errorf("got %d losses: %s", len(list), list[0].ToolNames())
	}
}
