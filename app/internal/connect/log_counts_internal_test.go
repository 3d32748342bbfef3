package connect

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/mcp"
)

// All of a log message is bounded. Attack: a server whose logger has a name of megabytes.
func TestLogNamesAreBounded(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	p := New(&kit.Console{Streams: &kit.Streams{Err: &said}})
	long := strings.Repeat("x", 1<<20)
	p.Output.show("a", &mcp.LogParams{Level: mcp.LogLevel(long), Logger: long, Data: mcp.RawValue(`"` + long + `"`)})
	if n := said.Len(); n > 16<<10 {
		t.Errorf("a message has %d bytes", n)
	}
}
