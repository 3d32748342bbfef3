package tasks_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Every message that tells of a task has the dates and the ttl, null for no end; a task begins as
// working, however quick its tool is (spec 2025-11-25, tasks, TTL and Resource Management, Task
// Status Lifecycle).
func TestCoreMessages(t *testing.T) {
	in(t, func(t *testing.T) {
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Tools: map[string]tasks.Tool{"sleep": {Mode: tasks.May, TTL: -1}, "quick": atOnce}},
			sleeper("sleep", time.Hour), sleeper("quick", 0))
		check := func(what string, text mcp.RawValue, ttl string) {
			t.Helper()
			var m map[string]json.RawMessage
			var id string
			var created, updated time.Time
			if json.Unmarshal(text, &m) != nil || json.Unmarshal(m["taskId"], &id) != nil || json.Unmarshal(m["createdAt"], &created) != nil ||
				json.Unmarshal(m["lastUpdatedAt"], &updated) != nil || id == "" || created.IsZero() || updated.Before(created) || string(m["ttl"]) != ttl {
				t.Errorf("%s: %s", what, text)
			}
			if strings.Contains(string(text), "related-task") {
				t.Errorf("%s has the task that it is of twice: %s", what, text)
			}
		}
		var mu sync.Mutex
		heard := 0
		p := connectCore(t, s, ada, client.Options{OnNotification: func(_ context.Context, method string, params mcp.RawValue) {
			mu.Lock()
			defer mu.Unlock()
			heard++
			check(method, params, "null")
		}})
		var made struct {
			Task mcp.RawValue `json:"task"`
		}
		if err := p.request(mcp.MethodToolsCall, map[string]any{"name": "sleep", "arguments": labelled{}, "task": map[string]any{}}, &made); err != nil {
			t.Fatal(err)
		}
		check("created", made.Task, "null")
		var seed coreState
		if err := json.Unmarshal(made.Task, &seed); err != nil || seed.Status != "working" {
			t.Errorf("created: %s, %v", made.Task, err)
		}
		params := map[string]any{"taskId": seed.TaskID}
		var listed struct {
			Tasks []mcp.RawValue `json:"tasks"`
		}
		if err := p.request("tasks/list", nil, &listed); err != nil || len(listed.Tasks) != 1 {
			t.Fatalf("%+v, %v", listed, err)
		}
		check("tasks/list", listed.Tasks[0], "null")
		for _, method := range []string{tasks.MethodGet, tasks.MethodCancel} {
			var text mcp.RawValue
			if err := p.request(method, params, &text); err != nil {
				t.Fatal(err)
			}
			check(method, text, "null")
		}
		synctest.Wait()
		mu.Lock()
		if heard == 0 {
			t.Error("no notification of the cancellation")
		}
		mu.Unlock()
		silent := connectCore(t, s, ada, client.Options{})
		if got := silent.start("quick", map[string]any{"ttl": 60_000}); got.Status != "working" || string(got.TTL) != "60000" {
			t.Errorf("a quick tool: %+v", got)
		}
	})
}

// The parameter taskId names the task, whatever _meta says: receivers "MUST ignore such metadata"
// (spec 2025-11-25, tasks, Associating Task-Related Messages).
func TestCoreRelatedTaskIgnored(t *testing.T) {
	in(t, func(t *testing.T) {
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce}, sleeper("quick", 0), sleeper("sleep", time.Hour))
		p := connectCore(t, s, ada, client.Options{})
		id, other := p.start("quick", nil).TaskID, p.start("sleep", nil).TaskID
		synctest.Wait()
		with := func(id, related string) map[string]any {
			return map[string]any{"taskId": id, "_meta": map[string]any{"io.modelcontextprotocol/related-task": map[string]any{"taskId": related}}}
		}
		var got coreState
		if err := p.request(tasks.MethodGet, with(id, other), &got); err != nil || got.TaskID != id || got.Status != "completed" {
			t.Errorf("tasks/get: %+v, %v", got, err)
		}
		var result mcp.RawValue
		if err := p.request("tasks/result", with(id, other), &result); err != nil || !strings.Contains(string(result), `{"taskId":"`+id+`"}`) {
			t.Errorf("tasks/result: %s, %v", result, err)
		}
		if err := p.request(tasks.MethodCancel, with(other, id), &got); err != nil || got.TaskID != other || got.Status != "cancelled" {
			t.Errorf("tasks/cancel: %+v, %v", got, err)
		}
		if err := p.request(tasks.MethodGet, with("guessed", id), &got); code(err) != mcp.CodeInvalidParams {
			t.Errorf("an unknown task: %v", err)
		}
	})
}

// Receivers that do not declare tasks "MUST process requests of that type normally, ignoring any
// task-augmentation metadata": a server without tasks, and one with them in other revisions
// (spec 2025-11-25, tasks, Task Support and Handling).
func TestCoreMemberIgnored(t *testing.T) {
	in(t, func(t *testing.T) {
		without := newServer(t, sleeper("quick", 0))
		with := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce}, sleeper("quick", 0))
		for what, c := range map[string]struct {
			s       *server.Server
			version string
		}{
			"not enabled": {without, coreVersion},
			"earlier":     {with, "2025-06-18"},
			"later":       {with, "2026-07-28"},
		} {
			p := reconnect(t, c.s, client.Options{Versions: []string{c.version}})
			if got := p.Capabilities().Extra["tasks"]; got != nil {
				t.Errorf("%s: declared %s", what, got)
			}
			var result mcp.RawValue
			params := map[string]any{"name": "quick", "arguments": labelled{"well"}, "task": map[string]any{"ttl": 1000}}
			if err := p.Request(t.Context(), mcp.MethodToolsCall, params, &result, nil); err != nil ||
				!strings.Contains(string(result), "slept well") || strings.Contains(string(result), "taskId") {
				t.Errorf("%s: %s, %v", what, result, err)
			}
		}
	})
}

// "Once a task is cancelled, it MUST remain in cancelled status even if execution continues to
// completion or fails" (spec 2025-11-25, tasks, Task Cancellation).
func TestCoreStaysCancelled(t *testing.T) {
	in(t, func(t *testing.T) {
		ends := func(err error) server.Feature {
			name := "finish"
			if err != nil {
				name = "fail"
			}
			return server.Tool(name, "", func(context.Context, mcp.None) (string, error) {
				time.Sleep(time.Minute) // it does not look whether it was cancelled
				return "done nevertheless", err
			})
		}
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce}, ends(nil), ends(mcp.NewError(-32050, "no")))
		p := connectCore(t, s, ada, client.Options{})
		for _, tool := range []string{"finish", "fail"} {
			id := p.start(tool, nil).TaskID
			var got coreState
			if err := p.request(tasks.MethodCancel, map[string]any{"taskId": id}, &got); err != nil || got.Status != "cancelled" {
				t.Errorf("%s: %+v, %v", tool, got, err)
			}
			time.Sleep(time.Hour)
			if now := p.get(id); now.Status != "cancelled" || !now.LastUpdatedAt.Equal(got.LastUpdatedAt) {
				t.Errorf("%s: after its end: %+v", tool, now)
			}
		}
	})
}
