package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// An address that has a hundred streams of events kept, more than there is
// memory for, loses its own. A caller who comes back for a few gets them.
//
// Proves: SEC-DOS-1.
func TestAttackFullOfEvents(t *testing.T) {
	mcptest.NoLeaks(t)
	const notes, size = 20, 10 << 10
	text := strings.Repeat("x", size)
	p := newPeer(map[string]method{"note": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		for n := range notes {
			if err := x.Out.Send(ctx, &jsonrpc.Outgoing{Method: "note", Params: jsonrpc.JSON(map[string]any{"n": n, "text": text})}); err != nil {
				return nil, err
			}
		}
		return jsonrpc.Empty(), nil
	}})
	s := newSite(t, p, &streamable.Options{ReplayMemory: 40 * notes * size})
	whole := func(f *feed) {
		t.Helper()
		for n := range notes {
			f.wants(fmt.Sprintf(`"n":%d,`, n))
		}
		f.wants(`"id":1`)
		f.ends()
	}
	// read makes a call, reads all of its stream, and returns how to ask for it again.
	read := func(user, address string) (again []string) {
		t.Helper()
		s.user = user
		r := s.send(http.MethodPost, rpc(0, "initialize", initialize), "X-Address", address)
		in := []string{"Mcp-Session-Id", r.header.Get("Mcp-Session-Id")}
		f := s.follow(http.MethodPost, rpc(1, "note", ""), in...)
		first := f.primed()
		whole(f)
		return append(in, "X-User", user, "Last-Event-ID", first.ID)
	}
	ada, small := read("ada", "192.0.2.9"), read("", "192.0.2.3")
	var many [][]string
	for range 100 {
		many = append(many, read("", "192.0.2.2"))
	}
	for _, again := range [][]string{ada, small, many[99]} {
		s.user = ""
		f := s.follow(http.MethodGet, "", again...)
		f.primed()
		whole(f)
	}
	for i, again := range many[:50] {
		s.user = ""
		s.check(fmt.Sprintf("stream %d of many", i), s.send(http.MethodGet, "", again...), 400, "cannot be resumed", streamable.ErrEventsGone.Error())
	}
}
