package tasks_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

const declaresTasks = `"extensions":{"io.modelcontextprotocol/tasks":{}}`

// A rawSite is a server over Streamable HTTP whose requests a test writes itself.
type rawSite struct {
	t   *testing.T
	url string
}

func serveRaw(t *testing.T, s *server.Server) *rawSite {
	t.Helper()
	endpoint := streamable.NewHandler(s, nil)
	site := webtest.Serve(t, endpoint)
	webtest.Abort(t, endpoint.Shutdown)
	return &rawSite{t, site.URL}
}

// request is a request that declares the members of capabilities, with members of params.
func (r *rawSite) request(ctx context.Context, method, name, capabilities, params string) *http.Request {
	r.t.Helper()
	const version = "2026-07-28"
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/logLevel":"debug","progressToken":"p",`+
		`"io.modelcontextprotocol/clientCapabilities":{%s}}}}`, method, params, version, capabilities)
	return webtest.NewRequest(r.t, ctx, http.MethodPost, r.url, body, "MCP-Protocol-Version", version, "Mcp-Method", method, "Mcp-Name", name,
		"Content-Type", "application/json", "Accept", "application/json, text/event-stream")
}

// send is what is answered to such a request. A subscription that is agreed to has no end, and
// fails the test.
func (r *rawSite) send(method, name, capabilities, params string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	resp, err := webtest.Read(http.DefaultClient, r.request(ctx, method, name, capabilities, params))
	if err != nil {
		r.t.Fatalf("%s: %v after %s", method, err, resp.Body)
	}
	return resp.Body
}

// start calls a tool whose call becomes a task.
func (r *rawSite) start(tool string) string {
	r.t.Helper()
	text := r.send(mcp.MethodToolsCall, tool, declaresTasks, `"name":"`+tool+`","arguments":{}`)
	_, rest, found := strings.Cut(text, `"taskId":"`)
	id, _, _ := strings.Cut(rest, `"`)
	if !found || id == "" || !strings.Contains(text, `"resultType":"task"`) {
		r.t.Fatalf("%s did not become a task: %s", tool, text)
	}
	return id
}

// What a request declares counts, "regardless of prior declarations"; the capability tasks of
// 2025-11-25 is not the extension. subscriptions/listen with taskIds is refused as the methods of
// tasks are (ext-tasks, Capability Negotiation, Task Status Notifications, Protocol Errors).
func TestDeclaredByEachRequest(t *testing.T) {
	s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Tools: map[string]tasks.Tool{"may": atOnce, "must": {Mode: tasks.Must}}},
		sleeper("may", 0), sleeper("must", 0))
	r := serveRaw(t, s)
	id := r.start("may")
	for what, capabilities := range map[string]string{
		"nothing":           "",
		"2025-11-25":        `"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`,
		"another extension": `"extensions":{"com.example/tasks":{}}`,
	} {
		if got := r.send(mcp.MethodToolsCall, "may", capabilities, `"name":"may","arguments":{}`); !strings.Contains(got, `"resultType":"complete"`) || strings.Contains(got, "taskId") {
			t.Errorf("%s: a tool that may be a task: %s", what, got)
		}
		refused := func(method, name, params string) {
			t.Helper()
			got := r.send(method, name, capabilities, params)
			if !strings.Contains(got, "-32021") || !strings.Contains(got, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`) {
				t.Errorf("%s: %s: %s", what, method, got)
			}
		}
		refused(mcp.MethodToolsCall, "must", `"name":"must","arguments":{}`)
		refused(tasks.MethodGet, id, `"taskId":"`+id+`"`)
		refused(tasks.MethodUpdate, id, `"inputResponses":{},"taskId":"`+id+`"`)
		refused(tasks.MethodCancel, id, `"taskId":"`+id+`"`)
		refused(mcp.MethodListen, "", `"notifications":{"taskIds":["`+id+`"]}`)
	}
	if got := r.send(tasks.MethodGet, id, declaresTasks, `"taskId":"`+id+`"`); !strings.Contains(got, `"resultType":"complete"`) || !strings.Contains(got, id) {
		t.Errorf("declared again: %s", got)
	}
}

// "notifications/progress and notifications/message notifications MUST NOT be sent on the
// subscriptions/listen stream for a task" (ext-tasks, Task Status Notifications).
func TestOnlyStatesOnSubscription(t *testing.T) {
	begin := make(chan struct{})
	s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce},
		server.Tool("tell", "Tells.", func(ctx context.Context, _ mcp.None) (string, error) {
			<-begin
			if err := server.Log(ctx, mcp.LogError, "tests", "logged"); err != nil {
				return "", err
			}
			return "told", server.Progress(ctx, 1, 2, "half")
		}))
	r := serveRaw(t, s)
	id := r.start("tell")
	resp, err := http.DefaultClient.Do(r.request(t.Context(), mcp.MethodListen, "", declaresTasks, `"notifications":{"taskIds":["`+id+`"]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var methods []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		text, found := strings.CutPrefix(lines.Text(), "data:")
		var m struct {
			Method string `json:"method"`
			Params struct {
				Status string `json:"status"`
			} `json:"params"`
		}
		if !found || json.Unmarshal([]byte(text), &m) != nil {
			continue
		}
		if len(methods) == 0 {
			close(begin) // the acknowledgement
		}
		methods = append(methods, m.Method)
		if m.Params.Status == "completed" {
			break
		}
	}
	if len(methods) < 2 || methods[0] != mcp.NotifySubscriptionsAcknowledged {
		t.Fatalf("the stream had %q", methods)
	}
	if rest := slices.Compact(methods[1:]); len(rest) != 1 || rest[0] != tasks.Notify {
		t.Errorf("the stream had %q", methods)
	}
}
