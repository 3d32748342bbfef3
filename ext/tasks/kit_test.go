package tasks_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/schema"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// A state is a task as it stands in a message.
type state struct {
	ResultType     string                       `json:"resultType"`
	TaskID         string                       `json:"taskId"`
	Status         string                       `json:"status"`
	StatusMessage  string                       `json:"statusMessage"`
	CreatedAt      time.Time                    `json:"createdAt"`
	LastUpdatedAt  time.Time                    `json:"lastUpdatedAt"`
	TTLMs          json.RawMessage              `json:"ttlMs"`
	PollIntervalMs *int                         `json:"pollIntervalMs"`
	InputRequests  map[string]*mcp.InputRequest `json:"inputRequests"`
	Result         *struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`

	text mcp.RawValue
}

// output is the text of the result of a completed task.
func (s *state) output() string {
	if s.Result == nil || len(s.Result.Content) == 0 {
		return "no result"
	}
	return s.Result.Content[0].Text
}

// A peer is a client that sees the messages of tasks as they are.
type peer struct {
	*client.Client
	t *testing.T
}

// knows is the extension of a client that settles nothing.
func knows(heard func(*client.Notification)) client.Extension {
	x := client.Extension{
		ID: tasks.ID,
		Methods: []client.ExtensionMethod{
			{Name: tasks.MethodGet, Target: "taskId", NameHeader: true},
			{Name: tasks.MethodUpdate, Target: "taskId", NameHeader: true},
			{Name: tasks.MethodCancel, Target: "taskId", NameHeader: true},
		},
		Notifications: []client.ExtensionNotification{{Name: tasks.Notify, Filter: "taskIds"}},
	}
	if heard != nil {
		x.OnNotification = func(_ context.Context, n *client.Notification) { heard(n) }
	}
	return x
}

var (
	ada = &principal.Principal{Issuer: "https://as.example", Subject: "ada", Client: "c1"}
	bob = &principal.Principal{Issuer: "https://as.example", Subject: "bob", Client: "c1"}
)

// connect is a client of s that can be asked, and knows tasks.
func connect(t *testing.T, s *server.Server, o ...client.Options) *peer {
	return connectAs(t, s, ada, o...)
}

func connectAs(t *testing.T, s *server.Server, who *principal.Principal, o ...client.Options) *peer {
	t.Helper()
	own := client.Options{Extensions: []client.Extension{knows(nil)}}
	if len(o) > 0 {
		own = o[0]
	}
	own.OnElicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		t.Error("a question came to the client's handler")
		return &mcp.ElicitResult{Action: mcp.ElicitCancel}, nil
	}
	c, err := client.Connect(t.Context(), mem.New(s, &mem.Options{Principal: who}), &own)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &peer{c, t}
}

// call calls a tool and returns what the server answered.
func (p *peer) call(tool string, args any) (*state, error) {
	p.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		p.t.Fatal(err)
	}
	var text mcp.RawValue
	params := &mcp.CallToolParams{Name: tool, Arguments: raw}
	if err := p.Request(p.t.Context(), mcp.MethodToolsCall, params, &text, &client.CallOptions{ResultTypes: []string{"task"}}); err != nil {
		return nil, err
	}
	s := decoded(p.t, text)
	if s.ResultType == "task" {
		validate(p.t, "CreateTaskResult", text)
		if s.Result != nil || s.Error != nil || s.InputRequests != nil || strings.Contains(string(text), "requestState") {
			p.t.Errorf("a created task has what it must not have: %s", text)
		}
	}
	return s, nil
}

// start calls a tool whose call becomes a task.
func (p *peer) start(tool string, args any) *state {
	p.t.Helper()
	s, err := p.call(tool, args)
	if err != nil {
		p.t.Fatal(err)
	}
	if s.ResultType != "task" || s.TaskID == "" {
		p.t.Fatalf("%s did not become a task: %s", tool, s.text)
	}
	return s
}

func (p *peer) get(id string) (*state, error) {
	p.t.Helper()
	text, err := client.CallMethod[mcp.RawValue](p.t.Context(), p.Client, tasks.MethodGet, map[string]string{"taskId": id})
	if err != nil {
		return nil, err
	}
	validate(p.t, "GetTaskResult", text)
	s := decoded(p.t, text)
	if s.ResultType != "complete" || strings.Contains(string(text), "requestState") {
		p.t.Errorf("tasks/get gave %s", text)
	}
	return s, nil
}

func (p *peer) mustGet(id string) *state {
	p.t.Helper()
	s, err := p.get(id)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *peer) update(id string, answers map[string]any) error {
	p.t.Helper()
	text, err := client.CallMethod[mcp.RawValue](p.t.Context(), p.Client, tasks.MethodUpdate, map[string]any{"taskId": id, "inputResponses": answers})
	if err == nil {
		validate(p.t, "UpdateTaskResult", text)
		acknowledged(p.t, text)
	}
	return err
}

func (p *peer) cancel(id string) error {
	p.t.Helper()
	text, err := client.CallMethod[mcp.RawValue](p.t.Context(), p.Client, tasks.MethodCancel, map[string]string{"taskId": id})
	if err == nil {
		validate(p.t, "CancelTaskResult", text)
		acknowledged(p.t, text)
	}
	return err
}

// acknowledged checks that an acknowledgement says nothing of the task.
func acknowledged(t *testing.T, text mcp.RawValue) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "_meta")
	if len(members) != 1 || string(members["resultType"]) != `"complete"` {
		t.Errorf("an acknowledgement is %s", text)
	}
}

// until looks at a task until it has a status. The clock is that of a bubble.
func (p *peer) until(id, status string) *state {
	p.t.Helper()
	for range 10_000 {
		s := p.mustGet(id)
		if s.Status == status {
			return s
		}
		if s.Status == "completed" || s.Status == "failed" || s.Status == "cancelled" {
			p.t.Fatalf("the task is %s", s.text)
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatalf("the task never was %s", status)
	return nil
}

func decoded(t *testing.T, text mcp.RawValue) *state {
	t.Helper()
	s := &state{text: text}
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

// published are the compiled definitions of the extension's schema.
var published = sync.OnceValues(func() (map[string]*schema.Compiled, error) {
	dir := os.Getenv(mcptest.SpecVar)
	if dir == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "ext-tasks", "schema.json"))
	if err != nil {
		return nil, err
	}
	all := make(map[string]*schema.Compiled)
	for _, name := range []string{"CreateTaskResult", "GetTaskResult", "UpdateTaskResult", "CancelTaskResult", "GetTaskRequest", "UpdateTaskRequest", "CancelTaskRequest", "TaskStatusNotificationParams", "TaskSubscriptionAcknowledgedNotifications"} {
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			return nil, err
		}
		doc["$ref"] = "#/$defs/" + name
		whole, err := json.Marshal(doc)
		if err != nil {
			return nil, err
		}
		if all[name], err = schema.Compile(whole, nil); err != nil {
			return nil, err
		}
	}
	return all, nil
})

// validate checks a message against the extension's schema, if there is one.
func validate(t *testing.T, name string, text mcp.RawValue) {
	t.Helper()
	all, err := published()
	if err != nil {
		t.Fatal(err)
	}
	if all == nil {
		return
	}
	if err := all[name].Check(text); err != nil {
		t.Errorf("%s is not a %s: %v", text, name, err)
	}
}

// newServer is a server with the tools of the tests.
func newServer(t *testing.T, features ...server.Feature) *server.Server {
	t.Helper()
	s := server.New("tests", "1", nil)
	s.Add(features...)
	t.Cleanup(func() { _ = s.Shutdown(context.WithoutCancel(t.Context())) })
	return s
}

// reconnect is a client with handlers of its own.
func reconnect(t *testing.T, s *server.Server, o client.Options) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), mem.New(s, &mem.Options{Principal: ada}), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
