package tasks

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// wireTasks are tasks in each state.
func wireTasks() []*Task {
	at := time.Date(2026, 7, 28, 10, 30, 0, 120e6, time.UTC)
	return []*Task{
		{ID: "a", Status: Working, Created: at, Updated: at},
		{ID: "a\n\"é", Status: Working, Message: "reading", Created: at, Updated: at.Add(time.Second), TTL: time.Hour, PollInterval: 50 * time.Millisecond},
		{ID: "a", Status: InputRequired, Created: at, Updated: at, Questions: []Question{
			{Key: "1", Method: mcp.MethodElicit, Params: mcp.RawValue(`{"message":"m"}`)}, {Key: "2", Method: mcp.MethodRootsList},
		}},
		{ID: "a", Status: InputRequired, Created: at, Updated: at, Questions: []Question{}},
		{ID: "a", Status: Completed, Created: at, Updated: at, Result: mcp.RawValue(`{"content":[],"isError":true}`)},
		{ID: "a", Status: Failed, Created: at, Updated: at, Error: jsonrpc.NewError(-32603, "broken").With(map[string]int{"n": 1})},
		{ID: "a", Status: Cancelled, Created: at, Updated: at},
	}
}

// A task survives its wire form.
func TestWireTask(t *testing.T) {
	for _, want := range wireTasks() {
		raw, err := strictjson.Marshal(wireTask(want))
		if err != nil {
			t.Fatal(err)
		}
		var m taskMessage
		if err := strictjson.Unmarshal(raw, &m); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		got, err := m.task()
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %+v, want %+v", raw, got, want)
		}
	}
}

// "Never result, error, inputRequests" (ext-tasks, CreateTaskResult), and ttlMs is
// always there.
func TestWireCreated(t *testing.T) {
	for _, task := range wireTasks() {
		raw, err := strictjson.Marshal(wireCreated(task))
		if err != nil {
			t.Fatal(err)
		}
		o, err := strictjson.ParseObject(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"result", "error", "inputRequests", "requestState"} {
			if _, ok := o.Member(name); ok {
				t.Errorf("%s has %s", raw, name)
			}
		}
		if _, ok := o.Member("ttlMs"); !ok {
			t.Errorf("%s has no ttlMs", raw)
		}
	}
}

// taskText is a valid task with members put in the place of its own.
func taskText(changes map[string]string) string {
	members := map[string]string{
		"taskId": `"a"`, "status": `"working"`, "createdAt": `"2026-07-28T10:30:00Z"`,
		"lastUpdatedAt": `"2026-07-28T10:30:00.5+02:00"`, "ttlMs": "null",
	}
	for name, value := range changes {
		members[name] = value
	}
	var parts []string
	for name, value := range members {
		if value != "" {
			parts = append(parts, `"`+name+`":`+value)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// decodeTask is what a client makes of a text.
func decodeTask(text string) (*Task, error) {
	var m taskMessage
	if err := strictjson.Unmarshal([]byte(text), &m); err != nil {
		return nil, err
	}
	return m.task()
}

// What a hostile or broken server says is refused, and the error names the member.
func TestWireRefused(t *testing.T) {
	questions := make([]string, 0, maxOpen+1)
	for i := range maxOpen + 1 {
		questions = append(questions, `"`+strings.Repeat("k", i+1)+`":{"method":"roots/list"}`)
	}
	asks := func(requests string) map[string]string {
		return map[string]string{"status": `"input_required"`, "inputRequests": requests}
	}
	for _, c := range []struct {
		changes map[string]string
		want    string
	}{
		{map[string]string{"taskId": ""}, "taskId is missing"},
		{map[string]string{"taskId": `""`}, "taskId is missing or empty"},
		{map[string]string{"taskId": `"` + strings.Repeat("a", maxID+1) + `"`}, "taskId has 1025 bytes"},
		{map[string]string{"taskId": "7"}, "/taskId"},
		{map[string]string{"taskID": `"b"`}, "taskID"},
		{map[string]string{"status": ""}, "status"},
		{map[string]string{"status": `"done"`}, `status: "done"`},
		{map[string]string{"createdAt": ""}, "createdAt: it is missing"},
		{map[string]string{"createdAt": `"yesterday"`}, `createdAt: "yesterday"`},
		{map[string]string{"lastUpdatedAt": `"2026-13-28T10:30:00Z"`}, "lastUpdatedAt"},
		{map[string]string{"ttlMs": ""}, "ttlMs is missing"},
		{map[string]string{"ttlMs": "-1"}, "ttlMs: it is negative"},
		{map[string]string{"ttlMs": "0.5"}, "ttlMs: it is no integer"},
		{map[string]string{"ttlMs": `"1"`}, "ttlMs: it is no integer"},
		{map[string]string{"ttlMs": "{}"}, "ttlMs: it is no integer"},
		{map[string]string{"pollIntervalMs": "-5"}, "pollIntervalMs: it is negative"},
		{map[string]string{"pollIntervalMs": "null"}, "pollIntervalMs"},
		{asks(""), "inputRequests of a task with the status input_required is missing"},
		{asks("null"), "inputRequests"},
		{asks("[]"), "/inputRequests"},
		{asks(`{"":{"method":"roots/list"}}`), "a key of inputRequests is missing or empty"},
		{asks(`{"a":null}`), `"a" has no method`},
		{asks(`{"a":{}}`), `"a" has no method`},
		{asks("{" + strings.Join(questions, ",") + "}"), "65 open questions"},
		{map[string]string{"status": `"completed"`}, "result of a completed task: it is missing"},
		{map[string]string{"status": `"completed"`, "result": "null"}, "result of a completed task"},
		{map[string]string{"status": `"completed"`, "result": "[]"}, "result of a completed task"},
		{map[string]string{"status": `"failed"`}, "error of a failed task: it is missing"},
		{map[string]string{"status": `"failed"`, "error": "{}"}, "integer code and a message"},
		{map[string]string{"status": `"failed"`, "error": `{"code":"x","message":"m"}`}, "error of a failed task: /code"},
		{map[string]string{"status": `"failed"`, "error": "null"}, "error of a failed task"},
	} {
		text := taskText(c.changes)
		if got, err := decodeTask(text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.200s: %+v, %v; want an error with %q", text, got, err, c.want)
		}
	}
}

// What is unusual, but no error.
func TestWireAccepted(t *testing.T) {
	for _, c := range []struct {
		changes map[string]string
		ok      func(t *Task) bool
	}{
		{nil, func(t *Task) bool { return t.TTL == 0 && t.PollInterval == 0 && t.Updated.Hour() == 8 }},
		{map[string]string{"ttlMs": "0"}, func(t *Task) bool { return t.TTL == time.Millisecond }},
		{map[string]string{"ttlMs": "6e4", "pollIntervalMs": "250.0"}, func(t *Task) bool { return t.TTL == time.Minute && t.PollInterval == 250*time.Millisecond }},
		{map[string]string{"ttlMs": "9007199254740991"}, func(t *Task) bool { return t.TTL > 200*365*24*time.Hour }},
		{map[string]string{"ttlMs": "1e400"}, func(t *Task) bool { return t.TTL > 0 }},
		{map[string]string{"status": `"input_required"`, "inputRequests": "{}"}, func(t *Task) bool { return len(t.Questions) == 0 }},
		{map[string]string{"result": `{"content":[]}`, "error": "7"}, func(t *Task) bool { return t.Result == nil && t.Error == nil }},
		{map[string]string{"other": "1", "_meta": `{"x":1}`, "resultType": `"complete"`}, func(t *Task) bool { return t.ID == "a" }},
	} {
		got, err := decodeTask(taskText(c.changes))
		if err != nil || !c.ok(got) {
			t.Errorf("%v: %+v, %v", c.changes, got, err)
		}
	}
}

// Any text is refused or becomes a task that survives its wire form.
func FuzzTask(f *testing.F) {
	for _, task := range wireTasks() {
		raw, err := strictjson.Marshal(wireTask(task))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Add(taskText(map[string]string{"ttlMs": "1e400"}))
	f.Fuzz(func(t *testing.T, text string) {
		task, err := decodeTask(text)
		if err != nil {
			return
		}
		raw, err := strictjson.Marshal(wireTask(task))
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeTask(string(raw))
		if err != nil {
			t.Fatalf("%s became %s: %v", text, raw, err)
		}
		again.Created, again.Updated, task.Created, task.Updated = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		if task.Error != nil && task.Error.Data == nil {
			again.Error.Data = nil
		}
		if !reflect.DeepEqual(task, again) {
			t.Errorf("%s became %+v, then %+v", text, task, again)
		}
	})
}
