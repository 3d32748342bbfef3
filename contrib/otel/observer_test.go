package otelmcp_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	otelmcp "github.com/parley-mcp/parley/contrib/otel"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// Sessions have durations by the conventions' names, at server and client, over
// pipes too; how many are open is a number.
func TestSessionDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := newRecord(t), newRecord(t)
		s := far.server(whereAmI(far))
		s.Observe(otelmcp.ServerObserver(far.options()))
		o := &client.Options{Versions: []string{legacy}, Observers: []client.Observer{otelmcp.ClientObserver(near.options())}}
		c := mcptest.Client(t, s, o)
		mcptest.Client(t, s, o)
		const session = "mcp.protocol.version=" + legacy
		sameCounts(t, far.sums("parley.server.sessions"), map[string]uint64{session: 2})
		sameCounts(t, near.sums("parley.client.sessions"), map[string]uint64{session: 2})
		time.Sleep(time.Minute) // of the test's own clock
		_ = c.Close()
		synctest.Wait()
		sameCounts(t, far.sums("parley.server.sessions"), map[string]uint64{session: 1})
		sameCounts(t, near.sums("parley.client.sessions"), map[string]uint64{session: 1})
		sameCounts(t, far.durations("mcp.server.session.duration"), map[string]uint64{session: 1})
		sameCounts(t, near.durations("mcp.client.session.duration"), map[string]uint64{session: 1})
	})
}

// A session that did not end in good order has error.type; the transport is told
// as for requests.
func TestSessionErrors(t *testing.T) {
	r := newRecord(t)
	at, of := otelmcp.ServerObserver(r.options()), otelmcp.ClientObserver(r.options())
	for kind, cause := range map[string]error{
		"": fmt.Errorf("%w: end of input", transport.ErrClosed), "timeout": transport.ErrStalled, "_OTHER": errors.New("broken"),
	} {
		s := server.SessionInfo{Transport: "stdio", Version: kind + "v", Opened: time.Now()}
		at.SessionOpened(s)
		at.SessionEnded(s, cause)
	}
	sameCounts(t, r.durations("mcp.server.session.duration"), map[string]uint64{
		"mcp.protocol.version=v network.transport=pipe":                           1,
		"error.type=timeout mcp.protocol.version=timeoutv network.transport=pipe": 1,
		"error.type=_OTHER mcp.protocol.version=_OTHERv network.transport=pipe":   1,
	})
	for kind, cause := range map[string]error{"": client.ErrClosed, "interrupted": transport.ErrInterrupted} {
		s := client.SessionInfo{Version: kind + "v", Opened: time.Now()}
		of.SessionOpened(s)
		of.SessionEnded(s, cause)
	}
	sameCounts(t, r.durations("mcp.client.session.duration"), map[string]uint64{
		"mcp.protocol.version=v":                                   1,
		"error.type=interrupted mcp.protocol.version=interruptedv": 1,
	})
}

// Attack: refused requests are counted, and methods and codes that strangers make
// up add no series.
func TestRefused(t *testing.T) {
	r := newRecord(t)
	s := r.server(whereAmI(r))
	s.Observe(otelmcp.ServerObserver(r.options()))
	c := mcptest.Client(t, s, nil)
	for i := range 1000 {
		if err := c.Request(t.Context(), fmt.Sprintf("made/up-%d", i), nil, nil, nil); err == nil {
			t.Fatal("an unknown method is answered")
		}
	}
	s.Refused(t.Context(), transport.Refusal{Err: &jsonrpc.Error{Code: mcp.CodeMethodNotFound}, Method: mcp.MethodPromptsList})
	s.Refused(t.Context(), transport.Refusal{
		Err: &jsonrpc.Error{Code: mcp.CodeTooManyInFlight, Limit: "MaxSessions"}, Transport: &transport.Info{Name: "http"},
	})
	sameCounts(t, r.sums("parley.server.refused"), map[string]uint64{
		"error.type=-32601 mcp.method.name=_OTHER":                                                    1000,
		"error.type=-32601 mcp.method.name=prompts/list":                                              1,
		"error.type=-31002 network.protocol.name=http network.transport=tcp parley.limit=MaxSessions": 1,
	})
	if n := len(r.spans.Ended()); n > 3 {
		t.Errorf("%d spans; refusals have none", n)
	}
}
