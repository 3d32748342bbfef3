package main

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// pause is what the suite asks to be left between two notifications.
const pause = 50 * time.Millisecond

// noticeTools are tools that send notifications while they run, and the one
// whose answer outlives its connection.
func noticeTools() []server.Feature {
	return []server.Feature{
		server.Tool("test_tool_with_logging", "Logs while it runs.", logThrice),
		server.Tool("test_tool_with_progress", "Reports progress while it runs.", progress),
		server.Tool("test_logging_tool", "Logs, for clients that did not ask for logs.", func(ctx context.Context, _ mcp.None) (string, error) {
			if err := server.Log(ctx, mcp.LogError, "conformance", "nobody who did not ask gets this"); err != nil {
				return "", err
			}
			return "logged", nil
		}),
		server.Tool("test_reconnection", "Takes so long that the client has to come back for the answer.", func(ctx context.Context, _ mcp.None) (string, error) {
			if err := wait(ctx, pollAfter+pollAfter/2); err != nil {
				return "", err
			}
			return "Reconnection test completed.", nil
		}),
	}
}

func logThrice(ctx context.Context, _ mcp.None) (string, error) {
	for i, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if i > 0 {
			if err := wait(ctx, pause); err != nil {
				return "", err
			}
		}
		if err := server.Log(ctx, mcp.LogInfo, "conformance", text); err != nil {
			return "", err
		}
	}
	return "Tool with logging executed.", nil
}

func progress(ctx context.Context, _ mcp.None) (string, error) {
	const total = 100
	for done := 0; done <= total; done += total / 2 {
		if done > 0 {
			if err := wait(ctx, pause); err != nil {
				return "", err
			}
		}
		if err := server.Progress(ctx, float64(done), total, fmt.Sprintf("%d of %d", done, total)); err != nil {
			return "", err
		}
	}
	return "Tool with progress executed.", nil
}

// wait lets time pass, unless the call is cancelled.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
