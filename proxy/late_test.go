package proxy_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// What an upstream server of the stateless revision gets after the proxy has connected reaches
// callers of that revision; for others the proxy's log says that it cannot.
//
// Proves: C26.
func TestLateFeaturesUpstream(t *testing.T) {
	for _, version := range []string{v2024, v2506, v2511, v2607} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logtest.Log
				up := server.New("late", "1", &server.Options{Logger: quiet})
				p := connect(t, up, v2607, &proxy.Options{Logger: log.Logger()})
				changed := make(chan struct{}, 16)
				c, err := client.Connect(t.Context(), mem.New(p.Server(), nil), &client.Options{
					Versions: []string{version}, Eras: client.NewEraMemory(),
					OnToolsChanged: func(context.Context) { changed <- struct{}{} },
				})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				up.Add(server.Tool("hi", "Greets.", func(context.Context, mcp.None) (string, error) { return "hello", nil }))
				if version != v2607 {
					time.Sleep(time.Minute) // of fake time: the proxy hears of it
					if n := strings.Count(log.String(), "DeclareTools"); n != 1 {
						t.Errorf("the log names the option %d times:\n%s", n, log.String())
					}
					return
				}
				<-changed
				if _, err := c.CallTool(t.Context(), "hi", nil, nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
