package dev_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/app/internal/serve/dev"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// An inbox keeps the methods of what arrives.
type inbox chan string

func (in inbox) Receive(m *jsonrpc.Incoming) { in <- m.Method }
func (in inbox) Closed(error)                {}

// A client that subscribes after the process whose lists it has read was replaced is told that they
// may have changed.
func TestLateSubscription(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		eras(t, nil, func(t *testing.T, b *workbench) {
			in := make(inbox, 10)
			l, err := dev.Dialer(b.runner).Dial(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if restarted {
				b.restart()
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = l.Do(ctx, &jsonrpc.Outgoing{
					ID: jsonrpc.StringID("1"), Method: mcp.MethodListen,
					Params: jsonrpc.JSON(mcp.RawValue(`{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"` + stateless +
						`","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"}}}`)),
				}, transport.Route{})
			}()
			synctest.Wait()
			cancel()
			<-ended
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
			close(in)
			var got []string
			for method := range in {
				got = append(got, method)
			}
			want := 1
			if restarted {
				want = 2
			}
			if len(got) != want || got[0] != mcp.NotifySubscriptionsAcknowledged || restarted && got[1] != mcp.NotifyToolsListChanged {
				t.Errorf("restarted %v: got %q", restarted, got)
			}
		})
	}
}
