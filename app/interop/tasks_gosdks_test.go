package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	mcpgoclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgomcp "github.com/mark3labs/mcp-go/mcp"
	gosdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	gosdkmcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-mcp/parley/mcp"
)

// taskAnswers are what the questions of the tools of a task endpoint are answered.
func taskAnswers(message string) map[string]any {
	return map[string]map[string]any{
		"Where?": {"region": "north"}, "Sure?": {"confirm": true}, "Left?": {"left": "L"}, "Right?": {"right": "R"},
	}[message]
}

// go-sdk does not know tasks. A call that may be a task is an ordinary one for it, also one
// that asks, and one that must be a task is refused with what it lacks.
func TestTasksGoSDKClient(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ctx := bounded(t)
			e := serveTasks(t, time.Second)
			c := gosdkmcp.NewClient(&gosdkmcp.Implementation{Name: "go-sdk", Version: "1.8.0"}, &gosdkmcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, req *gosdkmcp.ElicitRequest) (*gosdkmcp.ElicitResult, error) {
					return &gosdkmcp.ElicitResult{Action: "accept", Content: taskAnswers(req.Params.Message)}, nil
				},
			})
			session, err := c.Connect(ctx, &gosdkmcp.StreamableClientTransport{Endpoint: e.url}, &gosdkmcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			for tool, want := range map[string]string{"plain": "plain", "deploy": "deployed to the north", "pair": "LR", "refuse": "no paper"} {
				r, err := session.CallTool(ctx, &gosdkmcp.CallToolParams{Name: tool})
				if err != nil || len(r.Content) != 1 || r.IsError != (tool == "refuse") {
					t.Errorf("%s: %+v, %v", tool, r, err)
					continue
				}
				if text, ok := r.Content[0].(*gosdkmcp.TextContent); !ok || text.Text != want {
					t.Errorf("%s: %+v", tool, r.Content[0])
				}
			}
			_, err = session.CallTool(ctx, &gosdkmcp.CallToolParams{Name: "break"})
			if refused, ok := errors.AsType[*gosdkrpc.Error](err); !ok || refused.Code != -32050 || string(refused.Data) != `{"since":3}` {
				t.Errorf("break: %v", err)
			}
			code, data, says := int64(mcp.CodeMissingClientCapability), `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, "io.modelcontextprotocol/tasks"
			if version == legacy {
				code, data, says = mcp.CodeMethodNotFound, "", "runs as a task only"
			}
			_, err = session.CallTool(ctx, &gosdkmcp.CallToolParams{Name: "must"})
			if refused, ok := errors.AsType[*gosdkrpc.Error](err); !ok || refused.Code != code || string(refused.Data) != data || !strings.Contains(refused.Message, says) {
				t.Errorf("must: %v", err)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			e.seen.checkVersion(t, version)
			e.traffic.check(t, version)
		})
	}
}

// mcpGoTasks is mcp-go's client of a task endpoint.
type mcpGoTasks struct {
	*mcpgoclient.Client

	t *testing.T
}

// Elicit implements its ElicitationHandler.
func (mcpGoTasks) Elicit(_ context.Context, req mcpgomcp.ElicitationRequest) (*mcpgomcp.ElicitationResult, error) {
	return &mcpgomcp.ElicitationResult{ElicitationResponse: mcpgomcp.ElicitationResponse{
		Action: mcpgomcp.ElicitationResponseActionAccept, Content: taskAnswers(req.Params.Message),
	}}, nil
}

// start calls a tool as a task, through the transport: CallTool takes no task for an answer.
func (p *mcpGoTasks) start(tool string) string {
	p.t.Helper()
	r, err := p.GetTransport().SendRequest(bounded(p.t), transport.JSONRPCRequest{
		JSONRPC: "2.0", ID: mcpgomcp.NewRequestId("start " + tool), Method: "tools/call",
		Params: map[string]any{"name": tool, "arguments": map[string]any{}, "task": map[string]any{}},
	})
	if err != nil || r.Error != nil {
		p.t.Fatalf("%s: %v, %+v", tool, err, r)
	}
	var created mcpgomcp.CreateTaskResult
	if err := json.Unmarshal(r.Result, &created); err != nil || created.Task.TaskId == "" {
		p.t.Fatalf("%s: %s, %v", tool, r.Result, err)
	}
	return created.Task.TaskId
}

// wait waits for the end of a task.
func (p *mcpGoTasks) wait(id string) *mcpgomcp.GetTaskResult {
	p.t.Helper()
	r, err := p.WaitForTask(bounded(p.t), mcpgomcp.GetTaskRequest{Params: mcpgomcp.GetTaskParams{TaskId: id}}, time.Second)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// result is the text of the result of a task.
func (p *mcpGoTasks) result(id string) (text string, isError bool, err error) {
	p.t.Helper()
	r, err := p.TaskResult(bounded(p.t), mcpgomcp.TaskResultRequest{Params: mcpgomcp.TaskResultParams{TaskId: id}})
	if err != nil || len(r.Content) == 0 {
		return "", false, err
	}
	return mcpgomcp.GetTextFromContent(r.Content[0]), r.IsError, nil
}

// mcp-go looks after tasks of our server in 2025-11-25.
func TestTasksMCPGoClient(t *testing.T) {
	t.Parallel()
	e := serveTasks(t, 50*time.Millisecond)
	e.traffic.looseGET = true
	ctx := bounded(t)
	p := &mcpGoTasks{t: t}
	p.Client = mcpgoclient.NewClient(dialMCPGo(t, e.url), mcpgoclient.WithElicitationHandler(p), mcpgoclient.WithProtocolVersion(legacy))
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Initialize(ctx, mcpgomcp.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{"must": "a task", "deploy": "deployed to the north", "pair": "LR"} {
		id := p.start(tool)
		if got, _, err := p.result(id); err != nil || got != want {
			t.Errorf("%s: %q, %v", tool, got, err)
		}
		if got := p.wait(id); got.Status != mcpgomcp.TaskStatusCompleted {
			t.Errorf("%s: %+v", tool, got)
		}
	}
	refused, broken := p.start("refuse"), p.start("break")
	if got := p.wait(refused); got.Status != mcpgomcp.TaskStatusFailed || got.StatusMessage != "no paper" {
		t.Errorf("refuse: %+v", got)
	}
	if got, isError, err := p.result(refused); err != nil || !isError || got != "no paper" {
		t.Errorf("refuse: %q, %t, %v", got, isError, err)
	}
	if got := p.wait(broken); got.Status != mcpgomcp.TaskStatusFailed || got.StatusMessage != "out of order" {
		t.Errorf("break: %+v", got)
	}
	if _, _, err := p.result(broken); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("break: %v", err)
	}
	waits := p.start("wait")
	for begun := false; !begun; {
		got, err := p.GetTask(ctx, mcpgomcp.GetTaskRequest{Params: mcpgomcp.GetTaskParams{TaskId: waits}})
		if err != nil {
			t.Fatal(err)
		}
		begun = strings.HasPrefix(got.StatusMessage, "waiting")
	}
	cancel := mcpgomcp.CancelTaskRequest{Params: mcpgomcp.CancelTaskParams{TaskId: waits}}
	if got, err := p.CancelTask(ctx, cancel); err != nil || got.Status != mcpgomcp.TaskStatusCancelled {
		t.Errorf("cancel: %+v, %v", got, err)
	}
	if _, err := p.CancelTask(ctx, cancel); !errors.Is(err, mcpgomcp.ErrInvalidParams) {
		t.Errorf("cancel again: %v", err)
	}
	list, err := p.ListTasks(ctx, mcpgomcp.ListTasksRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got := new(taskReport)
	for _, task := range list.Tasks {
		got.Listed = append(got.Listed, string(task.Status))
	}
	checkListed(t, got, 3, 2, 1)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	e.checkCancelled(t, 1)
	e.seen.checkVersion(t, legacy)
	e.traffic.check(t, legacy)
}
