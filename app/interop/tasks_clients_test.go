package interop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A taskEndpoint is a server of ours whose calls become tasks, over Streamable HTTP. Its
// callers have a name, so that it lists their tasks.
type taskEndpoint struct {
	endpoint
	// cancelled has why the handler of the tool wait was ended.
	cancelled chan error
}

// serveTasks starts a task endpoint, which ends with the test. poll is how long clients are
// told to wait between two looks at a task.
func serveTasks(t *testing.T, poll time.Duration) *taskEndpoint {
	t.Helper()
	e := &taskEndpoint{cancelled: make(chan error, 10)}
	s := server.New("tasks", "1.0.0", nil)
	s.Use(e.seen.note)
	s.Add(
		server.Tool("plain", "Is never a task.", says("plain")),
		server.Tool("must", "Is always a task.", says("a task")),
		server.Tool("deploy", "Asks two questions, one after the other.", deploy),
		server.Tool("pair", "Asks two questions at once.", pair),
		server.Tool("refuse", "Says that it failed.", func(context.Context, mcp.None) (string, error) {
			return "", mcp.Errorf("no paper")
		}),
		server.Tool("break", "Fails with an error of the protocol.", func(context.Context, mcp.None) (string, error) {
			return "", mcp.NewError(-32050, "out of order").With(map[string]int{"since": 3})
		}),
		server.Tool("wait", "Waits until it is cancelled.", func(ctx context.Context, _ mcp.None) (string, error) {
			if err := server.Progress(ctx, 1, 2, "waiting"); err != nil {
				return "", err
			}
			<-ctx.Done()
			e.cancelled <- context.Cause(ctx)
			return "", ctx.Err()
		}),
	)
	may := tasks.Tool{Mode: tasks.May}
	tasks.Enable(s, tasks.Memory(), &tasks.Options{PollInterval: poll, Tools: map[string]tasks.Tool{
		"must": {Mode: tasks.Must}, "deploy": may, "pair": may, "refuse": may, "break": may, "wait": may,
	}})
	h := streamable.NewHandler(s, nil)
	ada := &principal.Principal{Issuer: "https://as.example", Subject: "ada", Client: "interop"}
	e.url = listen(t, e.traffic.server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(principal.NewContext(r.Context(), ada)))
	})))
	t.Cleanup(func() {
		if err := h.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return e
}

// checkCancelled checks that handlers were ended since their tasks were cancelled.
func (e *taskEndpoint) checkCancelled(t *testing.T, n int) {
	t.Helper()
	ctx := bounded(t)
	for range n {
		select {
		case err := <-e.cancelled:
			if !errors.Is(err, tasks.ErrCancelled) {
				t.Errorf("the handler was ended: %v", err)
			}
		case <-ctx.Done():
			t.Fatal("the handler of a task that was cancelled goes on")
		}
	}
}

func says(text string) func(context.Context, mcp.None) (string, error) {
	return func(context.Context, mcp.None) (string, error) { return text, nil }
}

type region struct {
	Region string `json:"region" enum:"north,south"`
}

type confirm struct {
	Confirm bool `json:"confirm"`
}

func deploy(ctx context.Context, _ mcp.None) (string, error) {
	where, err := server.Elicit[region](ctx, "Where?")
	if err != nil {
		return "", err
	}
	sure, err := server.Elicit[confirm](ctx, "Sure?")
	if err != nil {
		return "", err
	}
	if !where.Accepted() || !sure.Accepted() || !sure.Value.Confirm {
		return "not deployed", nil
	}
	return "deployed to the " + where.Value.Region, nil
}

type left struct {
	Left string `json:"left"`
}

type right struct {
	Right string `json:"right"`
}

func pair(ctx context.Context, _ mcp.None) (string, error) {
	var l, r string
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() {
		answer, err := server.Elicit[left](ctx, "Left?", &server.AskOptions{Key: "left"})
		if errs[0] = err; err == nil {
			l = answer.Value.Left
		}
	})
	both.Go(func() {
		answer, err := server.Elicit[right](ctx, "Right?", &server.AskOptions{Key: "right"})
		if errs[1] = err; err == nil {
			r = answer.Value.Right
		}
	})
	both.Wait()
	return l + r, errors.Join(errs[:]...)
}

// A taskReport is what a client of tasks saw, as JSON.
type taskReport struct {
	Version      string              `json:"version"`
	Capabilities map[string]any      `json:"capabilities"`
	Notified     int                 `json:"notified"`
	Errors       []string            `json:"errors"`
	Listed       []string            `json:"listed"`
	Calls        map[string]taskCall `json:"calls"`
}

// A taskCall is what came of one call.
type taskCall struct {
	Kind    string         `json:"kind"`
	Status  string         `json:"status"`
	Asks    bool           `json:"asks"` // it was seen as input_required
	Text    string         `json:"text"` // of the result, or of the error
	IsError bool           `json:"isError"`
	Code    int            `json:"code"`
	Data    map[string]any `json:"data"`
	Asked   []string       `json:"asked"`
}

// runTasksClient runs the script of a client of tasks, and returns its report.
func runTasksClient(t *testing.T, args ...string) *taskReport {
	t.Helper()
	cmd := node(t, args...)

	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	got := new(taskReport)
	if err == nil {
		err = json.Unmarshal(out, got)
	}
	if err != nil || len(got.Errors) > 0 {
		t.Fatalf("%v\n%s%s", err, out, stderr.Bytes())
	}
	return got
}

func checkCalls(t *testing.T, got, want map[string]taskCall) {
	t.Helper()
	slices.Sort(got["pair"].Asked) // at once
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the calls differ (-want +got):\n%s", diff)
	}
}

const unknownTask = "no such task: it was never created here, was deleted after its time, or is of another caller"

// ext-tasks drives our server in 2026-07-28, where tasks are an extension: questions one after
// the other and at once, each asked once, both kinds of failure, a cancel, a task that
// another session takes up, and one that does not exist. It polls, or it waits for what is
// notified: then it is told to poll so rarely that this does not count.
func TestTasksExtClientModern(t *testing.T) {
	peersDir(t)
	for mode, every := range map[string]time.Duration{"poll": 50 * time.Millisecond, "notify": time.Hour} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			e := serveTasks(t, every)
			got := runTasksClient(t, "ext-tasks-client.mjs", e.url, "modern", mode)
			deployed := taskCall{
				Kind: "task", Status: "completed", Asks: true, Text: "deployed to the north",
				Asked: []string{"Where? elicitation task task-update", "Sure? elicitation task task-update"},
			}
			checkCalls(t, got.Calls, map[string]taskCall{
				"plain":  {Kind: "immediate", Status: "completed", Text: "plain"},
				"must":   {Kind: "task", Status: "completed", Text: "a task"},
				"deploy": deployed,
				"pair": {
					Kind: "task", Status: "completed", Asks: true, Text: "LR",
					Asked: []string{"Left? elicitation task task-update", "Right? elicitation task task-update"},
				},
				"refuse":       {Kind: "task", Status: "completed", Text: "no paper", IsError: true},
				"break":        {Kind: "task", Status: "failed", Text: "out of order", Code: -32050, Data: map[string]any{"since": 3.0}},
				"wait":         {Kind: "task", Status: "cancelled"},
				"cancel again": {Status: "cancelled"}, // "always acknowledged, on terminal tasks too"
				"unknown":      {Status: "thrown", Text: unknownTask, Code: mcp.CodeInvalidParams},
				"resumed":      deployed,
			})
			if heard := got.Notified > 0; heard != (mode == "notify") {
				t.Errorf("%d notifications", got.Notified)
			}
			e.checkCancelled(t, 1)
			e.seen.checkVersion(t, modern)
			e.traffic.check(t, modern)
		})
	}
}

// ext-tasks drives our server in 2025-11-25, where tasks are part of the core.
func TestTasksExtClientLegacy(t *testing.T) {
	peersDir(t)
	e := serveTasks(t, 50*time.Millisecond)
	got := runTasksClient(t, "ext-tasks-client.mjs", e.url, "legacy", "notify")
	deployed := taskCall{
		Kind: "task", Status: "completed", Asks: true, Text: "deployed to the north",
		Asked: []string{"Where? elicitation task peer-request", "Sure? elicitation task peer-request"},
	}
	checkCalls(t, got.Calls, map[string]taskCall{
		"plain":  {Kind: "immediate", Status: "completed", Text: "plain"},
		"must":   {Kind: "task", Status: "completed", Text: "a task"},
		"deploy": deployed,
		"pair": {
			Kind: "task", Status: "completed", Asks: true, Text: "LR",
			Asked: []string{"Left? elicitation task peer-request", "Right? elicitation task peer-request"},
		},
		"refuse":       {Kind: "task", Status: "failed", Text: "no paper"}, // its statusMessage
		"break":        {Kind: "task", Status: "failed", Text: "out of order"},
		"wait":         {Kind: "task", Status: "cancelled"},
		"cancel again": {Status: "thrown", Text: "the task has ended already: it is cancelled", Code: mcp.CodeInvalidParams},
		"unknown":      {Status: "thrown", Text: unknownTask, Code: mcp.CodeInvalidParams},
		"resumed":      deployed,
	})
	checkListed(t, got, 4, 2, 1)
	if got.Notified == 0 {
		t.Error("nothing was notified")
	}
	e.checkCancelled(t, 1)
	e.seen.checkVersion(t, legacy)
	e.traffic.check(t, legacy)
}

// checkListed checks the states of the tasks that tasks/list gave.
func checkListed(t *testing.T, got *taskReport, completed, failed, cancelled int) {
	t.Helper()
	want := slices.Concat(slices.Repeat([]string{"cancelled"}, cancelled), slices.Repeat([]string{"completed"}, completed),
		slices.Repeat([]string{"failed"}, failed))
	slices.Sort(got.Listed)
	if !slices.Equal(got.Listed, want) {
		t.Errorf("tasks/list: %v, want %v", got.Listed, want)
	}
}

// The client of the TypeScript SDK drives our server in 2025-11-25, with callToolStream. That
// tells of a failure only that there was one; tasks/get and tasks/result tell which.
func TestTasksTypeScriptV1Client(t *testing.T) {
	peersDir(t)
	e := serveTasks(t, 50*time.Millisecond)
	got := runTasksClient(t, "v1-tasks-client.mjs", e.url)
	const said = "MCP error "
	checkCalls(t, got.Calls, map[string]taskCall{
		"plain": {Kind: "immediate", Status: "completed", Text: "plain"},
		"must":  {Kind: "task", Status: "completed", Text: "a task"},
		"deploy": {
			Kind: "task", Status: "completed", Asks: true, Text: "deployed to the north",
			Asked: []string{"Where? of a task", "Sure? of a task"},
		},
		"pair": {
			Kind: "task", Status: "completed", Asks: true, Text: "LR",
			Asked: []string{"Left? of a task", "Right? of a task"},
		},
		"refuse":          {Kind: "task", Status: "failed", Text: said + "-32603: Task ID failed", Code: mcp.CodeInternalError},
		"refuse result":   {Status: "no paper", Text: "no paper", IsError: true},
		"break":           {Kind: "task", Status: "failed", Text: said + "-32603: Task ID failed", Code: mcp.CodeInternalError},
		"break result":    {Status: "out of order", Text: said + "-32050: out of order", Code: -32050, Data: map[string]any{"since": 3.0}},
		"wait":            {Kind: "task", Status: "cancelled", Text: said + "-32603: Task ID was cancelled", Code: mcp.CodeInternalError},
		"cancel again":    {Status: "thrown", Text: said + "-32602: the task has ended already: it is cancelled", Code: mcp.CodeInvalidParams},
		"unknown":         {Status: "thrown", Text: said + "-32602: " + unknownTask, Code: mcp.CodeInvalidParams},
		"must at once":    {Status: "thrown", Text: said + `-32601: the tool "must" runs as a task only; call it with the member task`, Code: mcp.CodeMethodNotFound},
		"plain as a task": {Status: "thrown", Text: said + `-32601: the tool "plain" cannot run as a task; call it without the member task`, Code: mcp.CodeMethodNotFound},
	})
	checkListed(t, got, 3, 2, 1)
	if got.Notified == 0 {
		t.Error("nothing was notified")
	}
	e.checkCancelled(t, 1)
	e.seen.checkVersion(t, legacy)
	e.traffic.check(t, legacy)
}
