package flows_test

import (
	"context"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// whoAsks says what the server knows of its client.
func whoAsks(ctx context.Context, _ mcp.None) (string, error) {
	info := server.CallFrom(ctx).ClientInfo()
	if info == nil {
		return "nobody", nil
	}
	return info.Name + " " + info.Version, nil
}
