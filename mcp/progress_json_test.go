package mcp_test

import (
	"math"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// The short way writes what the codec writes.
func TestProgressParamsAppendJSON(t *testing.T) {
	token := mcp.StringID("a")
	tagged := &mcp.ProgressParams{ProgressToken: token, Progress: 1}
	tagged.Meta.TraceParent = "00-x"
	for name, p := range map[string]*mcp.ProgressParams{
		"least":   {ProgressToken: token, Progress: 1},
		"all":     {ProgressToken: mcp.IntID(7), Progress: 0.25, Total: new(1e21), Message: "half \"way\"\n"},
		"zeros":   {ProgressToken: token, Total: new(0.0)},
		"absent":  {},
		"meta":    tagged,
		"broken":  {ProgressToken: token, Message: "\xff"},
		"endless": {ProgressToken: token, Progress: math.Inf(1)},
		"nothing": {ProgressToken: token, Total: new(math.NaN())},
	} {
		want, wantErr := wire.Marshal(p)
		got, err := p.AppendJSON([]byte(">"))
		if (err == nil) != (wantErr == nil) || string(got) != ">"+string(want) {
			t.Errorf("%s: AppendJSON gives %s, %v; the codec %s, %v", name, got, err, want, wantErr)
		}
	}
}
