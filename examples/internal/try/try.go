// Package try connects clients to the servers of the examples, for their tests.
package try

import (
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// Client connects a client to s in memory until the test ends.
func Client(t testing.TB, s *server.Server, o *client.Options) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), mem.New(s, nil), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
