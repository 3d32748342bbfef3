package client_test

import (
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/mem"
)

// BenchmarkCallTool is one call over memory, the script's half included.
func BenchmarkCallTool(b *testing.B) {
	for _, version := range []string{modern, newest} {
		b.Run(version, func(b *testing.B) {
			s := &script{versions: []string{version}, on: tool(func(*req) (any, error) { return raw(done), nil })}
			c, err := client.Connect(b.Context(), mem.New(s, nil), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			args := mcp.RawValue(`{"a":1}`)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.CallTool(b.Context(), "t", args, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
