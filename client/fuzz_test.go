package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/mem"
)

// FuzzResult answers a tool call with any object: the call ends, within its
// bounds, with a result or an error, and nobody is asked what was not declared.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		done, required(`"a":`+form, `"s"`), required(`"a":`+page+`,"b":`+sample+`,"c":`+roots, ""),
		required("", `"s"`), `{"resultType":"input_required"}`, `{"resultType":[]}`, `{"content":[{"type":"x"}]}`,
		`{"resultType":"com.example/ticket","content":[]}`, `{"resultType":"com.example/ticket","resultType":"complete"}`,
		required(`"a":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","default":7}}}}}`, ""),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		if o, err := wire.ParseObject(result, wire.Limits{Bytes: 1 << 16}); err != nil || o.IsZero() || strings.ContainsRune(string(result), '\n') {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			s := &script{caps: laterCaps, on: tool(func(*req) (any, error) { return raw(result), nil })}
			o := answering()
			o.OnSample, o.MaxRounds = nil, 2
			o.Extensions = []client.Extension{knowsLater(func(_ context.Context, _ *client.Request, result mcp.RawValue) (mcp.RawValue, error) {
				return result, nil // of a wrong type still
			})}
			c := dial(t, mem.New(s, nil), o)
			r, err := c.CallTool(t.Context(), "t", nil, nil)
			if (r == nil) == (err == nil) {
				t.Errorf("result %v with error %v", r, err)
			}
			for _, m := range s.got(mcp.MethodToolsCall)[1:] {
				if !strings.Contains(string(m.Params.Raw()), "inputResponses") && !strings.Contains(string(m.Params.Raw()), "requestState") {
					t.Errorf("a retry without answers or state: %s", m.Params.Raw())
				}
			}
		})
	})
}

// FuzzServer sends any notification or request: the client goes on.
func FuzzServer(f *testing.F) {
	for _, seed := range [][2]string{
		{mcp.NotifyProgress, `{"progressToken":1,"progress":1}`},
		{mcp.NotifyMessage, `{"level":"error","data":1}`},
		{mcp.NotifyCancelled, `{"requestId":1}`},
		{mcp.NotifySubscriptionsAcknowledged, `{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}`},
		{mcp.NotifyResourcesUpdated, `{"uri":"a:b"}`},
		{mcp.NotifySubscriptionsAcknowledged, `{"notifications":{"shelves":[]},"_meta":{"io.modelcontextprotocol/subscriptionId":3}}`},
		{shelfMoved, `{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}`},
		{mcp.NotifyElicitationComplete, `{"elicitationId":"e"}`},
		{mcp.MethodElicit, `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`},
		{mcp.MethodCreateMessage, `{"messages":[],"maxTokens":1}`},
		{mcp.MethodRootsList, `{}`},
	} {
		f.Add(seed[0], []byte(seed[1]), true)
		f.Add(seed[0], []byte(seed[1]), false)
	}
	f.Fuzz(func(t *testing.T, method string, params []byte, legacy bool) {
		if _, err := wire.ParseObject(params, wire.Limits{Bytes: 1 << 16, Depth: 32}); err != nil || method == "" {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			s := &script{
				caps: `{"tools":{"listChanged":true},"logging":{},"extensions":{"com.example/shelf":{}}}`,
				on:   tool(func(*req) (any, error) { return raw(done), nil }),
			}
			if legacy {
				s.versions = []string{newest}
			}
			s.on[mcp.MethodListen] = listen
			o := answering()
			o.OnLog = func(context.Context, *mcp.LogParams) {}
			o.OnToolsChanged = func(context.Context) {}
			o.Extensions = []client.Extension{hearsShelf(func(*client.Notification) {})}
			c := dial(t, mem.New(s, nil), o)
			if !legacy {
				if _, err := c.SubscribeExtension(t.Context(), shelfID, map[string]any{"shelves": []int{}}); err != nil {
					t.Fatal(err)
				}
			}
			_ = s.last().conn.Send(t.Context(), &jsonrpc.Outgoing{Method: method, Params: jsonrpc.Raw(params)})
			_ = s.last().conn.Send(t.Context(), &jsonrpc.Outgoing{ID: mcp.IntID(1), Method: method, Params: jsonrpc.Raw(params)})
			synctest.Wait()
			if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil && !errors.Is(err, client.ErrClosed) {
				t.Errorf("the next call: %v", err)
			}
		})
	})
}
