package streamable_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Proves: SEC-DOS-1. Whatever a server answers, a request ends, with an answer
// to it or an error, and the link closes.
func FuzzAnswer(f *testing.F) {
	f.Add(200, "application/json", answerTo("1"), "s-1", true)
	f.Add(200, "application/json; charset=utf-8", "["+answerTo("1")+","+note(1)+"]", "", false)
	f.Add(200, "text/event-stream", event("1", note(1))+event("2", answerTo("1")), "s-1", true)
	f.Add(200, "text/event-stream", "id: 1\nretry: 10\ndata:\n\n", "s-1", true)
	f.Add(404, "application/json", rpcError("null", -32001), "s-1", true)
	f.Add(400, "", rpcError("", -32020), "", false)
	f.Add(202, "", "", "\x00", true)
	f.Add(307, "text/html", "<a>", "", false)
	f.Add(-1, "a/b;;", "data", "", true)
	f.Fuzz(func(t *testing.T, status int, kind, body, session string, legacy bool) {
		resumes := 0
		rt := roundTripper(func(req *http.Request) *http.Response {
			if req.Method == http.MethodGet {
				if resumes++; resumes > 3 { // it could go on for as long as it makes progress
					return reply(400, "", "")
				}
			}
			resp := reply(status, kind, body)
			resp.Header["Mcp-Session-Id"] = []string{session}
			return resp
		})
		in := linktest.NewInboxOf(10_000)
		d := &streamable.Dialer{
			URL: farURL, Client: &http.Client{Transport: rt},
			MaxResponse: 1 << 10, MaxRetry: time.Nanosecond, MaxResumes: 2, NoStream: true,
		}
		link, err := d.Dial(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, link, in)
		if legacy {
			_, _ = link.Do(t.Context(), ask(1, "initialize"), transport.Route{})
			if link.Establish(t.Context(), transport.Established{Version: primed, Handshake: true}) != nil {
				return
			}
		}
		route := transport.Route{}
		if !legacy {
			route = modernRoute("tools/call")
		}
		m, err := link.Do(t.Context(), ask(1, "tools/call"), route)
		if err == nil && (m.Kind != jsonrpc.Response || m.ID != jsonrpc.IntID(1)) {
			t.Errorf("the answer is %+v", m)
		}
		_ = link.Post(t.Context(), &jsonrpc.Outgoing{Method: "test/note"}, transport.Route{})
	})
}
