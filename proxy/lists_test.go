package proxy_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/uritemplate"
)

// What cannot be offered is in the log once, however often the list is read, and up to a bound.
func TestNotOfferedIsLoggedOnce(t *testing.T) {
	for _, version := range upstreams {
		synctest.Test(t, func(t *testing.T) {
			var log logtest.Log
			up := server.New("upstream", "1", &server.Options{Logger: quiet, DeclareTools: true})
			var reads atomic.Int32
			up.Use(func(next server.Func) server.Func {
				return func(c *server.Call) (server.Result, error) {
					if c.Method() != mcp.MethodToolsList {
						return next(c)
					}
					reads.Add(1)
					list := new(mcp.ListToolsResult)
					for i := range 150 {
						list.Tools = append(list.Tools, mcp.Tool{Name: fmt.Sprintf(`"%d"`, i), InputSchema: mcp.RawValue(`{"type":"object"}`)})
					}
					return list, nil
				}
			})
			connect(t, up, version, &proxy.Options{Logger: log.Logger()})
			for range 3 {
				up.Add(server.Tool("new", "", func(context.Context, mcp.None) (string, error) { return "", nil }))
				time.Sleep(time.Minute) // of fake time: the list is read again
			}
			if n := strings.Count(log.String(), "cannot be offered"); n != 101 || !strings.Contains(log.String(), "more=50") || reads.Load() < 4 {
				t.Errorf("%s: %d lines after %d readings:\n%s", version, n, reads.Load(), log.String())
			}
		})
	}
}

// A template and a resource may have the same URI: each is offered as long as the upstream server has it.
func TestTemplateAndResourceOfOneURI(t *testing.T) {
	const uri = "memo://a"
	asTemplate, err := server.NewRawTemplate(mcp.ResourceTemplate{URITemplate: uri, Name: "a"}, func(context.Context, string, uritemplate.Values) (*mcp.ReadResourceResult, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	asResource := server.Text(uri, "a", "text")
	for name, order := range map[string][2]server.Feature{"template, then resource": {asTemplate, asResource}, "resource, then template": {asResource, asTemplate}} {
		for _, version := range upstreams {
			synctest.Test(t, func(t *testing.T) {
				up := server.New("upstream", "1", &server.Options{Logger: quiet, DeclareResources: true})
				up.Add(order[0])
				c := join(t, connect(t, up, version, nil).Server(), v2511, nil)
				up.RemoveResources(uri)
				up.Add(order[1])
				time.Sleep(time.Minute) // of fake time: the lists are read again
				resources, templates := len(maps.Collect(c.Resources(t.Context()))), len(maps.Collect(c.ResourceTemplates(t.Context())))
				if want := order[1] == server.Feature(asResource); (resources == 1) != want || (templates == 1) == want {
					t.Errorf("%s, %s: %d resources, %d templates", name, version, resources, templates)
				}
			})
		}
	}
}
