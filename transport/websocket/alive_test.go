package websocket_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	coder "github.com/coder/websocket"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// A pulse is the time limit of a call, which notes that it was restarted.
type pulse struct{ beats chan struct{} }

func (pulse) Pause()  {}
func (pulse) Resume() {}

func (p pulse) Progress() {
	select {
	case p.beats <- struct{}{}:
	default:
	}
}

// A part of a long answer restarts the time of the call that waits for it.
//
// Proves: ruling 41.
func TestPartIsASignOfLife(t *testing.T) {
	p := pulse{make(chan struct{}, 1)}
	d := to(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := coder.Accept(w, r, &coder.AcceptOptions{Subprotocols: []string{"mcp"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.CloseNow() }() // the client is gone by then
		if _, _, err := conn.Read(r.Context()); err != nil {
			t.Error(err)
			return
		}
		out, err := conn.Writer(r.Context(), coder.MessageText)
		if err != nil {
			t.Error(err)
			return
		}
		blanks := strings.Repeat(" ", 64<<10) // more than a buffer: it leaves at once
		for _, part := range []string{`{"jsonrpc":"2.0",`, `"id":1,`} {
			if _, err := out.Write([]byte(part + blanks)); err != nil {
				t.Error(err)
			}
			select {
			case <-p.beats:
			case <-r.Context().Done():
			}
		}
		if _, err := out.Write([]byte(`"result":{}}`)); err != nil {
			t.Error(err)
		}
		if err := out.Close(); err != nil {
			t.Error(err)
		}
		_, _, _ = conn.Read(r.Context()) // the end
	})
	link, err := d.Dial(within(t), linktest.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close(t.Context())
	ctx := context.WithValue(within(t), transport.PauserKey{}, p)
	m := &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "tools/call", Params: jsonrpc.Empty()}
	if _, err := link.Do(ctx, m, transport.Route{}); err != nil {
		t.Error(err)
	}
}
