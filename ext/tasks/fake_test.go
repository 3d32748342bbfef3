package tasks_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

// A fake is a server of tasks that says what a test wants, true or not.
type fake struct {
	t   *testing.T
	srv *server.Server

	// Called with f.mu held:
	created map[string]string           // changes of the answer to tools/call
	get     func(n int) (string, error) // the text of the n-th state, from 1
	update  func(n int, keys map[string]mcp.RawValue) error
	agree   bool // to tell of tasks

	mu                     sync.Mutex
	gets, updates, cancels int
	listens                int
	times                  []time.Duration // of the requests for the state, from the start
	began                  time.Time
}

// A free result has any members.
type free struct {
	mcp.ResultBase

	Members map[string]mcp.RawValue `json:",embed"`
}

// says is a state of the task "a" with changed members.
func says(status string, changes ...string) string {
	members := map[string]string{
		"taskId": `"a"`, "status": `"` + status + `"`, "createdAt": `"2026-07-28T10:30:00Z"`,
		"lastUpdatedAt": `"2026-07-28T10:30:00Z"`, "ttlMs": "60000", "pollIntervalMs": "2000",
	}
	if status == "completed" {
		members["result"] = `{"content":[{"type":"text","text":"done"}]}`
	}
	for i := 0; i < len(changes); i += 2 {
		members[changes[i]] = changes[i+1]
	}
	var parts []string
	for name, value := range members {
		if value != "" {
			parts = append(parts, `"`+name+`":`+value)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// form is a question with a message.
func form(message string) string {
	return `{"method":"elicitation/create","params":{"message":"` + message + `","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`
}

// result makes a result of a text.
func result(text string) (*free, error) {
	var r free
	if err := strictjson.Unmarshal([]byte(text), &r.Members); err != nil {
		return nil, err
	}
	delete(r.Members, "resultType")
	return &r, nil
}

// newFake is a fake whose tool is "t". It is working until it is changed.
func newFake(t *testing.T) *fake {
	f := &fake{t: t, began: time.Now(), get: func(int) (string, error) { return says("working"), nil }}
	f.srv = newServer(t,
		server.Tool("t", "A tool.", func(context.Context, mcp.None) (string, error) { return "at once", nil }),
		server.Prompt("p", "A prompt.", func(context.Context, mcp.None) (string, error) { return "at once", nil }),
	)
	with := server.MethodOptions{Target: "taskId", NameHeader: true}
	f.srv.Extend(server.Extension{
		ID: tasks.ID,
		Wrap: func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if c.Method() != mcp.MethodToolsCall && c.Method() != mcp.MethodPromptsGet {
					return next(c)
				}
				var list []string
				for name, value := range f.created {
					list = append(list, name, value)
				}
				r, err := result(says("working", list...))
				if err == nil {
					r.ResultType = tasks.ResultTask
				}
				return r, err
			}
		},
		Methods: []*server.ExtensionMethod{
			server.Method(tasks.MethodGet, func(_ *server.Call, _ mcp.RawValue) (*free, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.gets++
				f.times = append(f.times, time.Since(f.began))
				text, err := f.get(f.gets)
				if err != nil {
					return nil, err
				}
				return result(text)
			}).With(with),
			server.Method(tasks.MethodUpdate, func(_ *server.Call, p struct {
				TaskID         string                  `json:"taskId"`
				InputResponses map[string]mcp.RawValue `json:"inputResponses"`
			},
			) (*free, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.updates++
				if f.update == nil {
					return &free{}, nil
				}
				return &free{}, f.update(f.updates, p.InputResponses)
			}).With(with),
			server.Method(tasks.MethodCancel, func(_ *server.Call, _ mcp.RawValue) (*free, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.cancels++
				return &free{}, nil
			}).With(with),
		},
		Filters: map[string]server.Filter{"taskIds": func(_ *server.Call, value mcp.RawValue) (mcp.RawValue, []string, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.listens++
			if !f.agree {
				return nil, nil, nil
			}
			return value, []string{"a"}, nil
		}},
	})
	return f
}

// notify sends a notification.
func (f *fake) notify(text string) {
	f.t.Helper()
	var params map[string]mcp.RawValue
	if err := strictjson.Unmarshal([]byte(text), &params); err != nil {
		f.t.Fatal(err)
	}
	if err := f.srv.Notify(tasks.ID, "a", tasks.Notify, params); err != nil {
		f.t.Error(err)
	}
}

// change changes what the fake says.
func (f *fake) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// call calls the tool of the fake.
func (f *fake) call(o client.Options) (string, error) {
	f.t.Helper()
	return client.Call[string](f.t.Context(), reconnect(f.t, f.srv, o), "t", nil)
}

// steps says what is told one after another; the last one stays.
func steps(texts ...string) func(n int) (string, error) {
	return func(n int) (string, error) { return texts[min(n, len(texts))-1], nil }
}

// fails is a state that cannot be had.
func fails(code int64) error { return mcp.NewError(code, "not now") }

// keysOf are the keys of answers, as text.
func keysOf(answers map[string]mcp.RawValue) string {
	return strings.Join(slices.Sorted(maps.Keys(answers)), ",")
}
