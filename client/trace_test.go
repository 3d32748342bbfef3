package client_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// Ruling 27: trace context is validated; bad values are dropped.
func TestTrace(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	for name, test := range map[string]struct{ parent, state, baggage, want string }{
		"all":             {good, "a=b,c=d", "k=v;p=1, l=w", `"` + good + `"` + `"a=b,c=d"` + `"k=v;p=1, l=w"`},
		"future version":  {"01" + good[2:] + "-more", "", "", `"01` + good[2:] + `-more"`},
		"no parent":       {"", "a=b", "", ""},
		"upper case":      {strings.ToUpper(good), "a=b", "", ""},
		"short":           {good[:54], "", "", ""},
		"tail":            {good + "-x", "", "", ""},
		"version ff":      {"ff" + good[2:], "", "", ""},
		"zero trace":      {"00-" + strings.Repeat("0", 32) + good[35:], "", "", ""},
		"zero parent":     {good[:36] + strings.Repeat("0", 16) + "-01", "", "", ""},
		"long state":      {good, "a=" + strings.Repeat("b", 600), "", `"` + good + `"`},
		"state no member": {good, "abc", "", `"` + good + `"`},
		"baggage only":    {"", "", "k=v", `"k=v"`},
		"baggage newline": {"", "", "k=v\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{on: tool(func(*req) (any, error) { return raw(done), nil })}
				c := connect(t, s, nil)
				ctx := client.WithTrace(t.Context(), test.parent, test.state, test.baggage)
				if _, err := c.CallTool(ctx, "t", nil, nil); err != nil {
					t.Fatal(err)
				}
				m := s.await(mcp.MethodToolsCall, 1)
				if got := meta(m, mcp.MetaTraceParent) + meta(m, mcp.MetaTraceState) + meta(m, mcp.MetaBaggage); got != test.want {
					t.Errorf("_meta has %s, want %s", got, test.want)
				}
			})
		})
	}
}
