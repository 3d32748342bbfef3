package host_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// A server of the stateless revision that is empty when the host connects has its tools once they
// are there.
//
// Proves: C26.
func TestServerThatIsEmptyAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serverOf(t)
		h := newHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]transport.Handler{"one": s})
		if c := h.Settle(t.Context(), time.Minute); len(c.Tools) > 0 {
			t.Fatalf("it has tools: %+v", c.Tools)
		}
		s.Add(server.Tool("hi", "Greets.", func(context.Context, mcp.None) (string, error) { return "hello", nil }))
		time.Sleep(time.Minute) // of fake time: the host hears of it
		m := &scripted{turns: []turn{use("one__hi", "{}")}}
		if _, end, err := begin(t, h, m).Ask(t.Context(), "go"); err != nil || end.Calls != 1 || end.Failed != 0 {
			t.Errorf("%+v, %v: %q", end, err, m.results())
		}
	})
}
