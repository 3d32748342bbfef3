package proxy_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A detached call waits for an upstream server that is not ready for as long as it
// may last.
func TestDetachedWaitsForUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		up := serverOf(server.Tool("late", "Is ready after an hour.", func(ctx context.Context, _ mcp.None) (string, error) {
			if time.Since(began) < time.Hour {
				return "", server.CallFrom(ctx).RetryLater()
			}
			return "ready", nil
		}))
		p := connect(t, up, v2607, nil)
		var result string
		p.Server().Extend(server.Extension{ID: "com.example/later", Wrap: func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if c.Method() != mcp.MethodToolsCall {
					return next(c)
				}
				_, _, err := c.Detach(next, &server.DetachOptions{Done: func(_ *server.Call, raw mcp.RawValue, e *jsonrpc.Error) {
					if result = string(raw); e != nil {
						result = e.Message
					}
				}})
				return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("later")}}, err
			}
		}})
		c := join(t, p.Server(), v2607, nil)
		if _, err := c.CallTool(t.Context(), "late", nil, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if !strings.Contains(result, `"text":"ready"`) {
			t.Errorf("got %s", result)
		}
	})
}
