package main

import (
	"context"
	"net"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// Clients of every revision find the server at one address.
func TestHTTP(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	listening := make(chan net.Addr, 1)
	ended := make(chan error, 1)
	o := &streamable.Options{HTTP: web.ServeOptions{Listening: func(addr net.Addr) { listening <- addr }}}
	go func() { ended <- streamable.Serve(ctx, "127.0.0.1:0", newServer(), o) }()
	url := "http://" + (<-listening).String() + streamable.Path
	for _, version := range newServer().Versions() {
		c, err := client.Connect(ctx, streamable.URL(url), &client.Options{Versions: []string{version}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := client.Call[string](ctx, c, "greet", person{Name: "Ada"})
		if err != nil || text != "Hello, Ada!" {
			t.Errorf("%s: %q, %v", version, text, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
