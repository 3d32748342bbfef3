package streamable_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// newTalker is a server whose tools say something before they answer, take long, and ask.
func newTalker() *server.Server {
	type sure struct {
		Sure bool `json:"sure"`
	}
	s := server.New("talker", "1", nil)
	s.Add(
		server.Tool("talk", "Tells of its progress.", func(ctx context.Context, _ mcp.None) (string, error) {
			if err := server.Progress(ctx, 1, 2, "half"); err != nil {
				return "", err
			}
			return "talked", server.Log(ctx, mcp.LogError, "l", "said")
		}),
		server.Tool("wait", "Takes longer than a silence may be.", func(context.Context, mcp.None) (string, error) {
			time.Sleep(40 * time.Second) // of fake time
			return "waited", nil
		}),
		server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
			if server.CanElicit(ctx) {
				return "it can be asked", nil
			}
			_, err := server.Elicit[sure](ctx, "Sure?")
			return "", err
		}),
	)
	return s
}

// A client whose Accept header names JSON alone gets one JSON answer: without what comes before
// it, however long that takes, and without a question.
//
// Proves: ruling 46 (modelcontextprotocol/typescript-sdk#1944, f/mcptools#69).
func TestAnswerOnly(t *testing.T) {
	const can = `"capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}`
	call := map[string]func(s *site) func(tool string) (body string, header []string){
		"stateless": func(*site) func(string) (string, []string) {
			return func(tool string) (string, []string) {
				meta := `"_meta":{"progressToken":7,"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/protocolVersion":"` + v2607 +
					`","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
				return rpc(1, "tools/call", `"name":"`+tool+`",`+meta), []string{"MCP-Protocol-Version", v2607, "Mcp-Method", "tools/call", "Mcp-Name", tool}
			}
		},
	}
	for _, version := range []string{v2503, v2506, v2511} {
		call[version] = func(s *site) func(string) (string, []string) {
			r := s.send(http.MethodPost, rpc(0, "initialize", `"protocolVersion":"`+version+`",`+can), "Accept", "application/json")
			s.check("initialize", r, 200, version)
			return func(tool string) (string, []string) {
				return rpc(1, "tools/call", `"name":"`+tool+`","_meta":{"progressToken":7}`), []string{"Mcp-Session-Id", r.header.Get("Mcp-Session-Id")}
			}
		}
	}
	for era, begin := range call {
		for _, accept := range []string{"application/json", "application/json;q=0.1", "application/*", "application/json, text/event-stream;q=0", "text/html, APPLICATION/JSON"} {
			t.Run(era+", "+accept, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newPipes(t, newTalker(), &streamable.Options{PollAfter: time.Second})
					request := begin(s)
					refusal := "text/event-stream in the Accept header"
					if era == v2503 {
						refusal = "has no forms"
					}
					for tool, want := range map[string]string{"talk": "talked", "wait": "waited", "ask": refusal} {
						body, header := request(tool)
						r := s.send(http.MethodPost, body, append(header, "Accept", accept)...)
						s.check(tool, r, r.status, `"id":1`, want)
						if kind := r.header.Get("Content-Type"); kind != "application/json" || strings.Contains(r.body, "notifications/") || strings.Contains(r.body, "input_required") {
							t.Errorf("%s: %s %s", tool, kind, r.body)
						}
					}
				})
			})
		}
		for _, accept := range []string{"", "*/*", "application/json, text/event-stream", "text/event-stream;q=0.1, application/json;q=0.9"} {
			t.Run(era+", both: "+accept, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newPipes(t, newTalker(), nil)
					body, header := begin(s)("talk")
					s.check("talk", s.send(http.MethodPost, body, append(header, "Accept", accept)...), 200, "notifications/progress", "talked")
				})
			})
		}
	}
}

// What a stream answers cannot be asked for with JSON alone, and an array is answered by an array.
//
// Proves: ruling 46.
func TestAnswerOnlyOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPipes(t, newTalker(), nil)
		r := s.modern("subscriptions/listen", `"notifications":{"toolsListChanged":true}`, "Accept", "application/json")
		s.check("listen", r, r.status, `"error"`, "text/event-stream")
		r = s.send(http.MethodPost, rpc(0, "initialize", `"protocolVersion":"`+v2503+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}`), "Accept", "application/json")
		one := rpc(1, "tools/call", `"name":"talk","_meta":{"progressToken":7}`)
		two := rpc(2, "tools/call", `"name":"wait"`)
		r = s.send(http.MethodPost, "["+one+","+two+"]", "Mcp-Session-Id", r.header.Get("Mcp-Session-Id"), "Accept", "application/json")
		s.check("batch", r, 200, `"id":1`, `"id":2`, "talked", "waited")
		if kind := r.header.Get("Content-Type"); kind != "application/json" || strings.Contains(r.body, "notifications/") {
			t.Errorf("batch: %s %s", kind, r.body)
		}
	})
}

// A client is told to accept event streams only where it could be asked then.
func TestAnswerOnlyOfThoseThatCannotBeAsked(t *testing.T) {
	for version, why := range map[string]string{v2503: "has no forms", v2506: "keeps no sessions", v2511: "keeps no sessions"} {
		synctest.Test(t, func(t *testing.T) {
			s := newPipes(t, newTalker(), &streamable.Options{Sessionless: true})
			r := s.send(http.MethodPost, rpc(1, "tools/call", `"name":"ask"`), "MCP-Protocol-Version", version, "Accept", "application/json")
			s.check(version, r, 200, why)
			if strings.Contains(r.body, "Accept") {
				t.Errorf("%s: %s", version, r.body)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := newPipes(t, newTalker(), nil)
		r := s.modern("tools/call", `"name":"ask"`, "Mcp-Name", "ask", "Accept", "application/json")
		s.check("a client without forms", r, r.status, "elicitation")
		if strings.Contains(r.body, "Accept") {
			t.Error(r.body)
		}
	})
}
