package flows_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/websocket"
)

// What is nil where something is needed is refused by the call it is given to:
// with an error where the call has one, else with a panic that says what it was.
func TestNil(t *testing.T) {
	t.Parallel()
	var none *server.Server
	var tool *server.ToolFeature
	fails := func(err error) { panic(err) }
	for name, c := range map[string]struct {
		f    func()
		want string
	}{
		"Use":            {func() { server.New("x", "1", nil).Use(nil) }, "middleware 1 of 1 is nil"},
		"Add":            {func() { server.New("x", "1", nil).Add(nil) }, "feature 1 of 1 is nil"},
		"Add a nil tool": {func() { server.New("x", "1", nil).Add(tool) }, "feature 1 of 1 is nil"},
		"TryAdd":         {func() { fails(server.New("x", "1", nil).TryAdd(nil)) }, "feature 1 of 1 is nil"},
		"zero Server":    {func() { new(server.Server).Add() }, "server.New"},
		"zero Use":       {func() { new(server.Server).Use() }, "server.New"},
		"nil Server":     {func() { none.Add() }, "server.New"},
		"zero Open": {func() {
			_, err := new(server.Server).Open(nil)
			fails(err)
		}, "server.New"},
		"Directory": {func() { server.Directory("a:///", nil) }, "nil root"},
		"NewDirectory": {func() {
			_, err := server.NewDirectory("a:///", nil)
			fails(err)
		}, "nil root"},
		"mem":               {func() { mem.New(nil, nil) }, "mem.New: nil handler"},
		"mem of nil Server": {func() { mem.New(none, nil) }, "mem.New: nil handler"},
		"streamable":        {func() { streamable.NewHandler(nil, nil) }, "streamable.NewHandler: nil handler"},
		"sse":               {func() { sse.NewHandler(transport.Handler(none), nil) }, "sse.NewHandler: nil handler"},
		"websocket":         {func() { websocket.NewHandler(nil, nil) }, "websocket.NewHandler: nil handler"},
		"stdio.Serve":       {func() { fails(stdio.Serve(t.Context(), nil)) }, "stdio.Serve: nil handler"},
		"stdio.ServeConn": {func() {
			near, far := net.Pipe()
			defer near.Close()
			fails(stdio.ServeConn(t.Context(), far, none, nil))
		}, "nil handler"},
		"Connect": {func() {
			_, err := client.Connect(t.Context(), nil, nil)
			fails(err)
		}, "nil dialer"},
		"Complete": {func() {
			c, err := client.Connect(t.Context(), mem.New(server.New("x", "1", nil), nil), nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, err = c.Complete(t.Context(), nil)
			fails(err)
		}, "nil params"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("got %s, want %q", got, c.want)
				}
			}()
			c.f()
		})
	}
}
