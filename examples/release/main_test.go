package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

func person(notes string) *client.Options {
	return &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		if notes == "" {
			return client.Decline()
		}
		return client.Accept(confirm{Notes: notes})
	}}
}

// The build is made once, though the newest revision runs the handler again
// after the question.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var builds atomic.Int32
		r := &releaser{machines: []string{"a", "b"}, step: time.Second, built: func(string) { builds.Add(1) }}
		c := mcptest.Client(t, newServer(r), person("faster"))
		var told []string
		res, err := c.CallTool(t.Context(), "release", releaseIn{Tag: "v7"}, &client.CallOptions{
			OnProgress: func(_, _ float64, message string) { told = append(told, message) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if text := res.Content[0].(*mcp.TextContent).Text; text != "build-of-v7 is on 2 machines: faster" {
			t.Error(text)
		}
		if builds.Load() != 1 {
			t.Errorf("built %d times", builds.Load())
		}
		if len(told) != 2 || told[1] != "copied to b" {
			t.Errorf("told %q", told)
		}
	})
}

func TestDecline(t *testing.T) {
	r := &releaser{built: func(string) {}}
	c := mcptest.Client(t, newServer(r), person(""))
	text, err := client.Call[string](t.Context(), c, "release", releaseIn{Tag: "v7"})
	if err != nil || text != "Nothing was copied." {
		t.Errorf("%q, %v", text, err)
	}
}

// A client that goes ends the work, and the handler sees why.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &releaser{machines: []string{"a"}, step: time.Hour, built: func(string) {}}
		ended := make(chan error, 1)
		s := newServer(r)
		s.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				res, err := next(c)
				if c.Method() == mcp.MethodToolsCall {
					ended <- context.Cause(c)
				}
				return res, err
			}
		})
		c := mcptest.Client(t, s, person("x"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := client.Call[string](ctx, c, "release", releaseIn{Tag: "v7"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("call: %v", err)
		}
		if err := <-ended; !errors.Is(err, server.ErrCancelled) {
			t.Errorf("handler: %v", err)
		}
	})
}

// The tool's own limit ends it too.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &releaser{machines: []string{"a"}, step: time.Hour, built: func(string) {}}
		c := mcptest.Client(t, newServer(r), person("x"))
		_, err := c.CallTool(t.Context(), "release", releaseIn{Tag: "v7"}, &client.CallOptions{NoTimeout: true})
		if late, ok := errors.AsType[*jsonrpc.Error](err); !ok || late.Code != mcp.CodeTimeout ||
			late.Message != "the call took too long: over 5m0s altogether (ToolOptions.Timeout)" {
			t.Errorf("%v", err)
		}
	})
}
