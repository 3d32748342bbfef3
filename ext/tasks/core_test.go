package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// A coreState is a task as it stands in a message of 2025-11-25.
type coreState struct {
	TaskID        string          `json:"taskId"`
	Status        string          `json:"status"`
	StatusMessage string          `json:"statusMessage"`
	TTL           json.RawMessage `json:"ttl"`
	PollInterval  *int            `json:"pollInterval"`
	CreatedAt     time.Time       `json:"createdAt"`
	LastUpdatedAt time.Time       `json:"lastUpdatedAt"`
}

// A corePeer is a client of 2025-11-25.
type corePeer struct {
	*client.Client
	t *testing.T
}

// connectCore is a client of a session in which tasks are part of the core. Its questions are
// answered, and heard gets what is notified.
func connectCore(t *testing.T, s *server.Server, who *principal.Principal, o client.Options) *corePeer {
	t.Helper()
	o.Versions = []string{"2025-11-25"}
	c, err := client.Connect(t.Context(), mem.New(s, &mem.Options{Principal: who}), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &corePeer{c, t}
}

func (p *corePeer) request(method string, params, result any) error {
	return p.Request(p.t.Context(), method, params, result, nil)
}

// start calls a tool as a task.
func (p *corePeer) start(tool string, task map[string]any) coreState {
	p.t.Helper()
	var created struct {
		Task coreState `json:"task"`
	}
	if err := p.request(mcp.MethodToolsCall, map[string]any{"name": tool, "arguments": map[string]any{}, "task": task}, &created); err != nil {
		p.t.Fatal(err)
	}
	return created.Task
}

func (p *corePeer) get(id string) coreState {
	p.t.Helper()
	var s coreState
	if err := p.request(tasks.MethodGet, map[string]any{"taskId": id}, &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// Tasks in the revision in which they are part of the core: what is declared, the created task,
// tasks/get, and tasks/result, which waits, and gives "exactly what the underlying request would
// have returned" with the task that it belongs to.
func TestCoreTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("sleep", 30*time.Second),
			server.Tool("refuse", "Fails.", func(context.Context, mcp.None) (string, error) { return "", mcp.Errorf("no paper") }),
			server.Tool("break", "Breaks.", func(context.Context, mcp.None) (string, error) {
				return "", mcp.NewError(-32050, "out of order").With(map[string]int{"since": 3})
			}), sleeper("must", time.Second), sleeper("never", time.Second))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: atOnce, Tools: map[string]tasks.Tool{"must": {Mode: tasks.Must}, "never": {}}, TTL: time.Hour})
		p := connectCore(t, s, principal.Local, client.Options{})
		if got := string(p.Capabilities().Extra["tasks"]); got != `{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}` {
			t.Errorf("declared: %s", got)
		}
		var list mcp.RawValue
		if err := p.request(mcp.MethodToolsList, nil, &list); err != nil || strings.Count(string(list), `"execution":{"taskSupport":"optional"}`) != 3 ||
			strings.Count(string(list), `"execution":{"taskSupport":"required"}`) != 1 || strings.Count(string(list), "execution") != 4 {
			t.Errorf("tools: %s, %v", list, err)
		}
		made := p.start("sleep", map[string]any{"ttl": 120_000})
		if made.Status != "working" || string(made.TTL) != "120000" || made.PollInterval == nil || made.CreatedAt.IsZero() {
			t.Errorf("created: %+v", made)
		}
		if got := p.get(made.TaskID); got.Status != "working" || got.TaskID != made.TaskID {
			t.Errorf("at once: %+v", got)
		}
		began := time.Now()
		var result mcp.RawValue
		if err := p.request("tasks/result", map[string]any{"taskId": made.TaskID}, &result); err != nil || time.Since(began) != 30*time.Second ||
			!strings.Contains(string(result), `"slept "`) || !strings.Contains(string(result), `"io.modelcontextprotocol/related-task":{"taskId":"`+made.TaskID+`"}`) {
			t.Errorf("the result: %s, %v, after %v", result, err, time.Since(began))
		}
		if got := p.get(made.TaskID); got.Status != "completed" {
			t.Errorf("at the end: %+v", got)
		}
		refused := p.start("refuse", nil)
		if err := p.request("tasks/result", map[string]any{"taskId": refused.TaskID}, &result); err != nil || !strings.Contains(string(result), `"isError":true`) {
			t.Errorf("a tool that says isError: %s, %v", result, err)
		}
		// "The tasks/get response SHOULD include a statusMessage field with diagnostic information
		// about the failure."
		if got := p.get(refused.TaskID); got.Status != "failed" || got.StatusMessage != "no paper" {
			t.Errorf("a tool that says isError: %+v", got)
		}
		var listed struct {
			Tasks []coreState `json:"tasks"`
		}
		if err := p.request("tasks/list", nil, &listed); err != nil || len(listed.Tasks) != 2 || !reflect.DeepEqual(listed.Tasks, []coreState{p.get(refused.TaskID), p.get(made.TaskID)}) {
			t.Errorf("tasks/list is unlike tasks/get: %+v, %v", listed, err)
		}
		broken := p.start("break", nil)
		if err := p.request("tasks/result", map[string]any{"taskId": broken.TaskID}, &result); code(err) != -32050 || !strings.Contains(err.Error(), "out of order") {
			t.Errorf("a protocol error: %v", err)
		}
		for tool, task := range map[string]any{"must": nil, "never": map[string]any{}} {
			if err := p.request(mcp.MethodToolsCall, map[string]any{"name": tool, "task": task}, &result); code(err) != mcp.CodeMethodNotFound {
				t.Errorf("%s: %v", tool, err)
			}
		}
		for what, task := range map[string]any{"number": 7, "negative": map[string]any{"ttl": -1}, "text": map[string]any{"ttl": "1"}} {
			if err := p.request(mcp.MethodToolsCall, map[string]any{"name": "sleep", "task": task}, &result); code(err) != mcp.CodeInvalidParams {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := p.request(mcp.MethodToolsCall, map[string]any{"name": "sleep", "arguments": map[string]any{}}, &result); err != nil || !strings.Contains(string(result), "content") {
			t.Errorf("without a task: %s, %v", result, err)
		}
		// tasks/update is of the extension, which this revision has not.
		if err := p.request(tasks.MethodUpdate, map[string]any{"taskId": made.TaskID, "inputResponses": map[string]any{}}, &result); code(err) != mcp.CodeMethodNotFound {
			t.Errorf("tasks/update: %v", err)
		}
	})
}

// The questions of a task come while its client waits in tasks/result, with the task that they
// belong to; a refused one ends the task.
func TestCoreQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, asker("ask"), server.Tool("sample", "Samples.", func(ctx context.Context, _ mcp.None) (string, error) {
			_, err := server.Sample(ctx, &mcp.CreateMessageParams{MaxTokens: 1, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("hello")}}}})
			return "", err
		}))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: atOnce})
		var mu sync.Mutex
		related := make(map[string]bool)
		o := client.Options{
			OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
				mu.Lock()
				related[string(r.Params.Meta.Extra["io.modelcontextprotocol/related-task"])] = true
				mu.Unlock()
				if strings.HasPrefix(r.Params.Message, "Who") {
					return client.Accept(naming{"Alice"})
				}
				return client.Accept(confirmation{true})
			},
			OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
				return nil, client.ErrRefused
			},
		}
		p := connectCore(t, s, principal.Local, o)
		id := p.start("ask", nil).TaskID
		synctest.Wait()
		if got := p.get(id); got.Status != "input_required" {
			t.Errorf("before tasks/result: %+v", got)
		}
		var result mcp.RawValue
		if err := p.request("tasks/result", map[string]any{"taskId": id}, &result); err != nil || !strings.Contains(string(result), "Alice true") {
			t.Errorf("the result: %s, %v", result, err)
		}
		if want := `{"taskId":"` + id + `"}`; len(related) != 1 || !related[want] {
			t.Errorf("the questions belong to %v", related)
		}
		id = p.start("sample", nil).TaskID
		if err := p.request("tasks/result", map[string]any{"taskId": id}, &result); err == nil || !strings.Contains(err.Error(), "cancelled") {
			t.Errorf("a refused question: %s, %v", result, err)
		}
	})
}

// A cancelled task is so "before sending the response", tasks/result then fails, and an ended one
// is -32602. Foreign tasks are unknown, and are not listed; anonymous callers have no list.
func TestCoreCancelAndList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("sleep", time.Hour), sleeper("quick", 0))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: atOnce})
		p, other := connectCore(t, s, ada, client.Options{}), connectCore(t, s, bob, client.Options{})
		id := p.start("sleep", nil).TaskID
		waited := make(chan error)
		go func() { waited <- p.request("tasks/result", map[string]any{"taskId": id}, new(mcp.RawValue)) }()
		synctest.Wait()
		var got coreState
		if err := p.request(tasks.MethodCancel, map[string]any{"taskId": id}, &got); err != nil || got.Status != "cancelled" || got.TaskID != id {
			t.Errorf("cancelled: %+v, %v", got, err)
		}
		if err := <-waited; err == nil || !strings.Contains(err.Error(), "cancelled") {
			t.Errorf("who waited got %v", err)
		}
		if err := p.request(tasks.MethodCancel, map[string]any{"taskId": id}, &got); code(err) != mcp.CodeInvalidParams {
			t.Errorf("cancelled again: %v", err)
		}
		for _, method := range []string{tasks.MethodGet, tasks.MethodCancel, "tasks/result"} {
			if err := other.request(method, map[string]any{"taskId": id}, new(mcp.RawValue)); code(err) != mcp.CodeInvalidParams {
				t.Errorf("%s of a foreign task: %v", method, err)
			}
		}
		ids := map[string]bool{id: true}
		for range 300 {
			ids[p.start("quick", nil).TaskID] = true
			synctest.Wait()
		}
		var pages, listed int
		params := map[string]any{}
		for {
			var page struct {
				Tasks      []coreState `json:"tasks"`
				NextCursor *string     `json:"nextCursor"`
			}
			if err := p.request("tasks/list", params, &page); err != nil {
				t.Fatal(err)
			}
			pages++
			for _, task := range page.Tasks {
				if !ids[task.TaskID] {
					t.Errorf("%s is listed twice, or of another", task.TaskID)
				}
				delete(ids, task.TaskID)
				listed++
			}
			if page.NextCursor == nil {
				break
			}
			params["cursor"] = *page.NextCursor
		}
		if pages != 4 || len(ids) != 0 {
			t.Errorf("%d pages with %d tasks, without %d", pages, listed, len(ids))
		}
		if err := p.request("tasks/list", map[string]any{"cursor": "x"}, new(mcp.RawValue)); code(err) != mcp.CodeInvalidParams {
			t.Errorf("a bad cursor: %v", err)
		}
		var none struct {
			Tasks []coreState `json:"tasks"`
		}
		if err := other.request("tasks/list", nil, &none); err != nil || none.Tasks == nil || len(none.Tasks) != 0 {
			t.Errorf("the tasks of another: %+v, %v", none, err)
		}
		anonymous := connectCore(t, s, &principal.Principal{Remote: "192.0.2.1"}, client.Options{})
		if strings.Contains(string(anonymous.Capabilities().Extra["tasks"]), "list") {
			t.Errorf("declared to anonymous callers: %s", anonymous.Capabilities().Extra["tasks"])
		}
		if err := anonymous.request("tasks/list", nil, &none); code(err) != mcp.CodeMethodNotFound {
			t.Errorf("listed to an anonymous caller: %v", err)
		}
	})
}

// The session that created a task hears of its states.
func TestCoreStatusNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, server.Tool("steps", "Steps.", func(ctx context.Context, _ mcp.None) (string, error) {
			time.Sleep(time.Second)
			err := server.Progress(ctx, 1, 2, "half")
			time.Sleep(time.Second)
			return "done", err
		}))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: atOnce})
		var mu sync.Mutex
		var heard []string
		p := connectCore(t, s, ada, client.Options{OnNotification: func(_ context.Context, method string, params mcp.RawValue) {
			var got coreState
			if err := json.Unmarshal(params, &got); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprintf("%s %s %s", method, got.Status, got.StatusMessage))
		}})
		p.start("steps", nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		all := strings.Join(heard, "\n")
		if !strings.Contains(all, "notifications/tasks/status working half (1 of 2)") || !strings.HasSuffix(all, "notifications/tasks/status completed ") {
			t.Errorf("heard\n%s", all)
		}
	})
}

// tasks/list says of a task what tasks/get says of it: one whose tool said isError has failed
// (spec 2025-11-25, Task Status).
func TestCoreListStatus(t *testing.T) {
	in(t, func(t *testing.T) {
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce},
			server.Tool("refuse", "", func(context.Context, mcp.None) (string, error) { return "", mcp.Errorf("no paper") }))
		p := connectCore(t, s, ada, client.Options{})
		id := p.start("refuse", map[string]any{}).TaskID
		synctest.Wait()
		var page struct {
			Tasks []coreState `json:"tasks"`
		}
		if err := p.request("tasks/list", nil, &page); err != nil || len(page.Tasks) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		if got, want := page.Tasks[0].Status, p.get(id).Status; got != want || want != "failed" {
			t.Errorf("listed as %s, tasks/get says %s", got, want)
		}
	})
}
