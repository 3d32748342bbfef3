package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type labelled struct {
	Label string `json:"label,omitzero"`
}

type confirmation struct {
	Confirm bool `json:"confirm"`
}

type naming struct {
	Name string `json:"name"`
}

// sleeper is a tool that takes a while.
func sleeper(name string, d time.Duration) *server.ToolFeature {
	return server.Tool(name, "Sleeps.", func(ctx context.Context, in labelled) (string, error) {
		select {
		case <-time.After(d):
			return "slept " + in.Label, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
}

var atOnce = tasks.Tool{Mode: tasks.May}

// code is the JSON-RPC code of an error of a server.
func code(err error) int64 {
	e := new(jsonrpc.Error)
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// The life of a task: the answer is flat and says nothing of the result (CreateTaskResult); what
// tasks/get says is what the request would have returned, isError as well; a protocol error is
// failed and has no result (ext-tasks, Task Status, Task Execution Errors).
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("sleep", 2*time.Second),
			server.Tool("refuse", "Fails.", func(context.Context, mcp.None) (string, error) { return "", mcp.Errorf("no paper") }),
			server.Tool("break", "Breaks.", func(context.Context, mcp.None) (string, error) {
				return "", mcp.NewError(-32050, "out of order").With(map[string]int{"since": 3})
			}),
			server.Tool("panic", "Panics.", func(context.Context, mcp.None) (string, error) { panic("oh") }))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{
			Tools:        map[string]tasks.Tool{"sleep": atOnce, "refuse": atOnce, "break": {Mode: tasks.Must, TTL: -1}, "panic": atOnce},
			PollInterval: 250 * time.Millisecond, TTL: time.Hour,
		})
		p := connect(t, s)
		began := time.Now().Truncate(time.Millisecond)
		made := p.start("sleep", labelled{"well"})
		if made.Status != "working" || made.CreatedAt.Before(began) || string(made.TTLMs) != "3600000" || made.PollIntervalMs == nil || *made.PollIntervalMs != 250 || len(made.TaskID) < 22 {
			t.Errorf("created: %s", made.text)
		}
		if got := p.mustGet(made.TaskID); got.Status != "working" || got.TaskID != made.TaskID {
			t.Errorf("at once: %s", got.text)
		}
		end := p.until(made.TaskID, "completed")
		if end.output() != "slept well" || end.Result.IsError || !strings.Contains(string(end.text), `"resultType":"complete"`) || strings.Contains(string(end.text), "related-task") {
			t.Errorf("at the end: %s", end.text)
		}
		if end.LastUpdatedAt.Sub(made.CreatedAt) < 2*time.Second {
			t.Errorf("updated at %v, created at %v", end.LastUpdatedAt, made.CreatedAt)
		}
		if got := p.until(p.start("refuse", nil).TaskID, "completed"); !got.Result.IsError || got.output() != "no paper" {
			t.Errorf("a tool that says isError: %s", got.text)
		}
		broken := p.start("break", nil)
		if string(broken.TTLMs) != "null" {
			t.Errorf("a task without end: %s", broken.text)
		}
		if got := p.until(broken.TaskID, "failed"); got.Error == nil || got.Error.Code != -32050 || got.Result != nil || got.StatusMessage != "out of order" || !strings.Contains(string(got.text), `"data":{"since":3}`) {
			t.Errorf("a protocol error: %s", got.text)
		}
		if got := p.until(p.start("panic", nil).TaskID, "failed"); got.Error == nil || got.Error.Code != mcp.CodeInternalError || strings.Contains(string(got.text), "oh") {
			t.Errorf("a panic: %s", got.text)
		}
	})
}

// A server "MUST NOT return CreateTaskResult to a client that did not include the extension
// capability on its request"; if it cannot do without, and for the three methods and taskIds,
// the error is -32021 with the extension (ext-tasks, Capability Negotiation).
func TestWithoutExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("may", time.Second), sleeper("must", time.Second), sleeper("never", time.Second))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Tools: map[string]tasks.Tool{"may": atOnce, "must": {Mode: tasks.Must}}})
		knowing := connect(t, s)
		id := knowing.start("must", nil).TaskID
		if got, err := knowing.call("never", nil); err != nil || got.ResultType != "complete" {
			t.Errorf("a tool that is never a task: %+v, %v", got, err)
		}
		plain := connect(t, s, client.Options{})
		if got, err := plain.call("may", nil); err != nil || got.ResultType != "complete" || len(got.Content) != 1 {
			t.Errorf("a tool that may be a task: %+v, %v", got, err)
		}
		refused := func(what string, err error) {
			t.Helper()
			e := new(jsonrpc.Error)
			if !errors.As(err, &e) || e.Code != mcp.CodeMissingClientCapability || !strings.Contains(string(e.Data), `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := plain.call("must", nil)
		refused("a tool that must be a task", err)
		for _, method := range []string{tasks.MethodGet, tasks.MethodUpdate, tasks.MethodCancel} {
			err := plain.Request(t.Context(), method, map[string]any{"taskId": id, "inputResponses": map[string]any{}}, new(mcp.RawValue), nil)
			refused(method, err)
		}
		for _, method := range []string{"tasks/result", "tasks/list"} {
			if err := knowing.Request(t.Context(), method, map[string]any{"taskId": id}, new(mcp.RawValue), nil); code(err) != mcp.CodeMethodNotFound {
				t.Errorf("%s: %v", method, err)
			}
		}
		if knowing.mustGet(id).TaskID != id {
			t.Error("the task is gone")
		}
	})
}

// The task of a slow call is made when it is late; a quick one is answered as it is, with its
// progress; one that asks becomes a task.
func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("quick", time.Second), sleeper("slow", time.Minute), asker("ask"),
			server.Tool("tell", "Tells.", func(ctx context.Context, _ mcp.None) (string, error) {
				return "told", server.Progress(ctx, 1, 2, "half")
			}),
			server.Tool("fail", "Fails.", func(context.Context, mcp.None) (string, error) { return "", mcp.NewError(-32050, "no") }))
		late := tasks.Tool{Mode: tasks.May, After: 2 * time.Second}
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: late})
		p := connect(t, s)
		if got, err := p.call("quick", nil); err != nil || got.ResultType != "complete" || got.Content[0].Text != "slept " {
			t.Errorf("a quick call: %+v, %v", got, err)
		}
		if _, err := p.call("fail", nil); code(err) != -32050 {
			t.Errorf("a quick call that fails: %v", err)
		}
		began := time.Now()
		id := p.start("slow", nil).TaskID
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("a slow call became a task after %v", d)
		}
		if got := p.until(id, "completed"); time.Since(began) < time.Minute || got.output() != "slept " {
			t.Errorf("the slow call: %s", got.text)
		}
		asked := p.start("ask", nil)
		synctest.Wait()
		waiting := p.until(asked.TaskID, "input_required")
		if err := p.update(asked.TaskID, answerAll(waiting, map[string]any{"name": "Alice", "confirm": true})); err != nil {
			t.Fatal(err)
		}
		if got := p.until(asked.TaskID, "completed"); got.output() != "Alice true" {
			t.Errorf("the call that asked: %s", got.text)
		}
		var heard []string
		o := &client.CallOptions{OnProgress: func(_, _ float64, message string) { heard = append(heard, message) }}
		if r, err := p.CallTool(t.Context(), "tell", nil, o); err != nil || len(r.Content) != 1 || len(heard) != 1 {
			t.Errorf("progress of a quick call: %v, %+v, %v", heard, r, err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLeft)
		defer cancel()
		if _, err := p.CallTool(ctx, "slow", nil, nil); !errors.Is(err, errLeft) {
			t.Errorf("a call that its client left: %v", err)
		}
	})
}

var errLeft = errors.New("left")

// asker is a tool that asks two questions at once.
func asker(name string) server.Feature {
	return server.Tool(name, "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
		var (
			wg     sync.WaitGroup
			who    server.Answer[naming]
			sure   server.Answer[confirmation]
			e1, e2 error
		)
		wg.Go(func() { who, e1 = server.Elicit[naming](ctx, "Who?", &server.AskOptions{Key: "who"}) })
		wg.Go(func() { sure, e2 = server.Elicit[confirmation](ctx, "Sure?") })
		wg.Wait()
		return fmt.Sprintf("%s %t", who.Value.Name, sure.Value.Confirm), errors.Join(e1, e2)
	})
}

// answerAll answers the open questions of a task with forms.
func answerAll(s *state, members map[string]any) map[string]any {
	answers := make(map[string]any)
	for key, q := range s.InputRequests {
		var p struct {
			RequestedSchema struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"requestedSchema"`
		}
		_ = json.Unmarshal(q.Params, &p)
		content := make(map[string]any)
		for name := range p.RequestedSchema.Properties {
			content[name] = members[name]
		}
		answers[key] = map[string]any{"action": "accept", "content": content}
	}
	return answers
}

// inputRequests hold all open questions and no others; a part of the answers may come first;
// answers to unknown, answered and superseded keys are ignored; what does not fit is refused and
// the question stays open (ext-tasks, Task Update Requests).
func TestQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, asker("ask"))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Tools: map[string]tasks.Tool{"ask": atOnce}, MaxAskBytes: 1 << 16})
		p := connect(t, s)
		id := p.start("ask", nil).TaskID
		p.until(id, "input_required")
		synctest.Wait()
		waiting := p.mustGet(id)
		if len(waiting.InputRequests) != 2 {
			t.Fatalf("two questions: %s", waiting.text)
		}
		answers := answerAll(waiting, map[string]any{"name": "Alice", "confirm": true})
		for what, bad := range map[string]any{
			"no object":     7,
			"no action":     map[string]any{"content": map[string]any{"name": "x"}},
			"wrong content": map[string]any{"action": "accept", "content": map[string]any{"name": 7}},
			"long":          map[string]any{"action": "accept", "content": map[string]any{"name": strings.Repeat("x", 1<<16)}},
		} {
			if err := p.update(id, map[string]any{"who": bad}); code(err) != mcp.CodeInvalidParams || !strings.Contains(err.Error(), "inputResponses") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := p.update(id, map[string]any{"never": map[string]any{"action": "accept"}}); err != nil {
			t.Errorf("an unknown key: %v", err)
		}
		if got := p.mustGet(id); len(got.InputRequests) != 2 {
			t.Errorf("after bad answers: %s", got.text)
		}
		if err := p.update(id, map[string]any{"who": answers["who"]}); err != nil {
			t.Fatal(err)
		}
		got := p.mustGet(id) // at once
		if len(got.InputRequests) != 1 || got.InputRequests["who"] != nil || got.Status != "input_required" {
			t.Errorf("after a part of the answers: %s", got.text)
		}
		other := map[string]any{"action": "accept", "content": map[string]any{"name": "Mallory"}}
		if err := p.update(id, map[string]any{"who": other}); err != nil {
			t.Errorf("an answer to an answered key: %v", err)
		}
		if err := p.update(id, answers); err != nil {
			t.Fatal(err)
		}
		if got := p.until(id, "completed"); got.output() != "Alice true" {
			t.Errorf("at the end: %s", got.text)
		}
		if err := p.update(id, answers); err != nil {
			t.Errorf("an answer after the end: %v", err)
		}
	})
}

// A question that the handler gives up is not open any more, and its answer is ignored.
func TestSupersededQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, server.Tool("hurry", "Asks shortly.", func(ctx context.Context, _ mcp.None) (string, error) {
			short, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			_, err := server.Elicit[naming](short, "First?", &server.AskOptions{Key: "first"})
			if !errors.Is(err, context.DeadlineExceeded) {
				return "", fmt.Errorf("the first question: %w", err)
			}
			a, err := server.Elicit[naming](ctx, "Second?", &server.AskOptions{Key: "second"})
			return a.Value.Name, err
		}))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Tools: map[string]tasks.Tool{"hurry": atOnce}})
		p := connect(t, s)
		id := p.start("hurry", nil).TaskID
		p.until(id, "input_required")
		time.Sleep(2 * time.Minute)
		got := p.until(id, "input_required")
		if len(got.InputRequests) != 1 || got.InputRequests["second"] == nil {
			t.Fatalf("the second question: %s", got.text)
		}
		answer := func(name string) map[string]any {
			return map[string]any{"action": "accept", "content": map[string]any{"name": name}}
		}
		if err := p.update(id, map[string]any{"first": answer("A"), "second": answer("B")}); err != nil {
			t.Fatal(err)
		}
		if got := p.until(id, "completed"); got.output() != "B" {
			t.Errorf("at the end: %s", got.text)
		}
	})
}

// What is asked before the task is asked by rounds, and comes along; server.Once runs once
// (ext-tasks, Task Creation: SHOULD).
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs, once atomic.Int32
		s := newServer(t, server.Tool("compose", "Asks, then works.", func(ctx context.Context, in labelled) (string, error) {
			runs.Add(1)
			ticket, err := server.Once(ctx, "ticket", func() (int32, error) { return once.Add(1), nil })
			if err != nil {
				return "", err
			}
			if in.Label != "stay" {
				who, err := server.Elicit[naming](ctx, "Who?", &server.AskOptions{Key: "user_name"})
				if err != nil {
					return "", err
				}
				in.Label = who.Value.Name
				if err := tasks.Begin(ctx); err != nil {
					return "", err
				}
			}
			sure, err := server.Elicit[confirmation](ctx, "Sure?")
			return fmt.Sprintf("%s %t %d", in.Label, sure.Value.Confirm, ticket), err
		}))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Tools: map[string]tasks.Tool{"compose": {Mode: tasks.May, Begins: true}}})
		asked := 0
		answer := func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked++
			if strings.HasPrefix(r.Params.Message, "Who") {
				return client.Accept(naming{"Alice"})
			}
			return client.Accept(confirmation{true})
		}
		p := connect(t, s)
		p.Client = reconnect(t, s, client.Options{Extensions: []client.Extension{knows(nil)}, OnElicit: answer})
		made := p.start("compose", nil)
		if asked != 1 {
			t.Errorf("%d questions before the task", asked)
		}
		waiting := p.until(made.TaskID, "input_required")
		if len(waiting.InputRequests) != 1 || waiting.InputRequests["user_name"] != nil {
			t.Errorf("the task asks %s", waiting.text)
		}
		if err := p.update(made.TaskID, answerAll(waiting, map[string]any{"confirm": true})); err != nil {
			t.Fatal(err)
		}
		if got := p.until(made.TaskID, "completed"); got.output() != "Alice true 1" || once.Load() != 1 || runs.Load() != 3 {
			t.Errorf("%s; Once ran %d times, the handler %d", got.text, once.Load(), runs.Load())
		}
		// Without the task it is an ordinary call.
		c := reconnect(t, s, client.Options{OnElicit: answer})
		if text, err := client.Call[string](t.Context(), c, "compose", nil); err != nil || text != "Alice true 2" {
			t.Errorf("without tasks: %q, %v", text, err)
		}
	})
}

// tasks/cancel is always acknowledged, of ended tasks as well; the handler hears of it, and
// nothing changes the task after that (ext-tasks, Task Cancellation).
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		s := newServer(t, sleeper("sleep", time.Second), server.Tool("work", "Works.", func(ctx context.Context, _ mcp.None) (string, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return "done nevertheless", nil
		}))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: atOnce})
		p := connect(t, s)
		id := p.start("work", nil).TaskID
		if err := p.cancel(id); err != nil {
			t.Fatal(err)
		}
		if err := <-causes; !errors.Is(err, tasks.ErrCancelled) {
			t.Errorf("the handler ended by %v", err)
		}
		synctest.Wait()
		if got := p.mustGet(id); got.Status != "cancelled" || got.Result != nil || got.StatusMessage == "" {
			t.Errorf("a cancelled task: %s", got.text)
		}
		if err := p.cancel(id); err != nil {
			t.Errorf("cancelled again: %v", err)
		}
		id = p.start("sleep", nil).TaskID
		before := p.until(id, "completed")
		if err := p.cancel(id); err != nil {
			t.Errorf("cancelled after its end: %v", err)
		}
		if got := p.mustGet(id); got.Status != "completed" || !got.LastUpdatedAt.Equal(before.LastUpdatedAt) {
			t.Errorf("a task that was cancelled after its end: %s", got.text)
		}
	})
}

// Unknown, foreign and expired tasks are the same -32602 for all methods, and are not in the
// acknowledgement of a subscription (ext-tasks, Protocol Errors, Security Considerations).
func TestUnknownTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("sleep", time.Second))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: tasks.Tool{Mode: tasks.May, TTL: time.Hour}})
		owner, other := connect(t, s), connectAs(t, s, bob)
		id, old := owner.start("sleep", nil).TaskID, owner.start("sleep", nil).TaskID
		var texts []string
		try := func(p *peer, id string) {
			t.Helper()
			_, err1 := p.get(id)
			for what, err := range map[string]error{"get": err1, "update": p.update(id, nil), "cancel": p.cancel(id)} {
				if code(err) != mcp.CodeInvalidParams {
					t.Errorf("%s of %.40q: %v", what, id, err)
					continue
				}
				texts = append(texts, err.Error())
			}
			if _, err := p.SubscribeExtension(t.Context(), tasks.ID, map[string]any{"taskIds": []string{id}}); err == nil {
				t.Errorf("a subscription to %.40q was agreed to", id)
			}
		}
		try(other, id)
		try(owner, "guessed")
		try(owner, "")
		try(owner, strings.Repeat("x", 10_000))
		time.Sleep(2 * time.Hour)
		try(owner, old)
		for _, text := range texts {
			if text[strings.Index(text, "no such"):] != texts[0][strings.Index(texts[0], "no such"):] {
				t.Errorf("two texts: %q, %q", text, texts[0])
			}
		}
	})
}

// Progress is the message of the task, and no notification of progress is sent for it.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, server.Tool("steps", "Steps.", func(ctx context.Context, _ mcp.None) (string, error) {
			for i := range 3 {
				if err := server.Progress(ctx, float64(i+1), 3, "step"); err != nil {
					return "", err
				}
				time.Sleep(time.Second)
			}
			return "done", nil
		}))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: atOnce})
		p := connect(t, s)
		var text mcp.RawValue
		err := p.Request(t.Context(), mcp.MethodToolsCall, &mcp.CallToolParams{Name: "steps"}, &text, &client.CallOptions{
			ResultTypes: []string{"task"}, OnProgress: func(n, _ float64, _ string) { t.Errorf("progress of a task: %v", n) },
		})
		if err != nil {
			t.Fatal(err)
		}
		id := decoded(t, text).TaskID
		seen := make(map[string]bool)
		for range 100 {
			got := p.mustGet(id)
			seen[got.StatusMessage] = true
			if got.Status == "completed" {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		for _, want := range []string{"step (1 of 3)", "step (2 of 3)", "step (3 of 3)", ""} {
			if !seen[want] {
				t.Errorf("no message %q in %v", want, seen)
			}
		}
	})
}
