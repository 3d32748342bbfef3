package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
)

// A server that says what no task is gets a clear error, at once, and the task that
// there may be is cancelled.
func TestMalformedTasks(t *testing.T) {
	for _, c := range []struct {
		created map[string]string
		get     string
		want    string
	}{
		{map[string]string{"taskId": ""}, "", "taskId is missing"},
		{map[string]string{"status": `"done"`}, "", `"done" is no state`},
		{map[string]string{"ttlMs": "-1"}, "", "ttlMs"},
		{map[string]string{"createdAt": `"now"`}, "", "createdAt"},
		{nil, says("done"), `"done" is no state`},
		{nil, says("completed", "result", ""), "result of a completed task: it is missing"},
		{nil, says("failed"), "error of a failed task: it is missing"},
		{nil, says("input_required"), "inputRequests"},
		{nil, says("working", "taskId", `"b"`), `it is of the task "b"`},
		{nil, says("working", "pollIntervalMs", `"soon"`), "pollIntervalMs"},
		{nil, says("completed", "result", `{"resultType":"task","content":[]}`), "came to another one"},
		{nil, says("completed", "result", `{"Content":[]}`), "malformed result"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			f.created = c.created
			f.get = steps(c.get)
			got, err := f.call(waiting(nil))
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, client.ErrMalformed) && !errors.Is(err, client.ErrResultType) {
				t.Errorf("%v %s: %q, %v; want an error with %q", c.created, c.get, got, err, c.want)
			}
			if f.gets > 1 {
				t.Errorf("%s: asked %d times", c.get, f.gets)
			}
			if ended := strings.Contains(c.get, `"completed"`) && strings.Contains(c.get, `"result"`); c.get != "" && !ended && f.cancels != 1 {
				t.Errorf("%s: cancelled %d times", c.get, f.cancels)
			}
		})
	}
}

// "A client that receives CreateTaskResult in response to an unsupported request type
// MUST interpret this as an invalid response to the request."
func TestTaskElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		if _, err := reconnect(t, f.srv, waiting(nil)).GetPrompt(t.Context(), "p", nil, nil); !errors.Is(err, client.ErrResultType) {
			t.Error(err)
		}
		if f.gets != 0 {
			t.Errorf("asked %d times", f.gets)
		}
	})
}

// The state says when to ask next, which "MAY change over the lifetime of a task", as may
// the ttl; an absurd interval is bounded.
func TestPollInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.get = steps(
			says("working", "pollIntervalMs", "5000", "ttlMs", "null"), says("working", "pollIntervalMs", "0", "ttlMs", "1"),
			says("working", "pollIntervalMs", "", "ttlMs", "9007199254740991"), says("working", "pollIntervalMs", "1"),
			says("working", "pollIntervalMs", "86400000"), says("completed"),
		)
		if got, err := f.call(waiting(nil)); err != nil || got != "done" {
			t.Errorf("%q, %v", got, err)
		}
		want := []time.Duration{2 * time.Second, 7 * time.Second, 8 * time.Second, 9 * time.Second, 9100 * time.Millisecond, 39100 * time.Millisecond}
		if !slices.Equal(f.times, want) {
			t.Errorf("asked at %v, want %v", f.times, want)
		}
	})
}

// Where the server agrees to tell of the task it is asked once after that, and then
// rarely. What it tells that is none, or older, is passed over.
func TestToldOfTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.agree = true
		done := make(chan struct{})
		go func() {
			defer close(done)
			var told []string
			c := reconnect(t, f.srv, waiting(nil))
			got, err := client.Call[string](t.Context(), c, "t", nil, &client.CallOptions{OnProgress: func(_, _ float64, message string) { told = append(told, message) }})
			if err != nil || got != "told" || !slices.Equal(told, []string{"new"}) {
				t.Errorf("%q, %v, progress %q", got, err, told)
			}
		}()
		time.Sleep(time.Minute)
		f.change(func() {
			if want := []time.Duration{0, 30 * time.Second, time.Minute}; len(f.times) < 2 || !slices.Equal(f.times, want[:len(f.times)]) || f.listens != 1 {
				t.Errorf("asked at %v, want %v; %d subscriptions", f.times, want, f.listens)
			}
		})
		for _, text := range []string{
			says("working", "lastUpdatedAt", `"2020-07-28T10:30:00Z"`, "statusMessage", `"old"`),
			says("completed", "taskId", `"b"`), says("completed", "result", ""), `{"taskId":7}`,
			says("working", "statusMessage", `"new"`), says("completed", "statusMessage", `"over"`, "result", `{"content":[{"type":"text","text":"told"}]}`),
		} {
			f.notify(text)
			synctest.Wait()
		}
		<-done
		if f.cancels != 0 || f.gets > 3 {
			t.Errorf("cancelled %d times, asked %d times", f.cancels, f.gets)
		}
	})
}

// A question comes again with every state until it is answered, in other words of JSON,
// and is asked once. Its key is never that of another one: "a server MUST NOT use the
// same key to refer to two distinct requests".
func TestQuestionKeys(t *testing.T) {
	again := strings.Replace(form("first"), `{"message":"first",`, `{"_meta":{"n":1},"mode":"form","message":"first",`, 1)
	same := strings.Replace(form("first"), `"message":"first"`, `"message" : "\u0066irst"`, 1)
	for _, c := range []struct {
		name  string
		get   []string
		asked []string
		want  error
	}{
		{"once", []string{says("input_required", "inputRequests", `{"k":`+form("first")+`}`), says("input_required", "inputRequests", `{"k":`+same+`}`), says("completed")}, []string{"first"}, nil},
		{"another", []string{says("input_required", "inputRequests", `{"k":`+form("first")+`}`), says("input_required", "inputRequests", `{"k":`+form("second")+`}`)}, []string{"first"}, client.ErrMalformed},
		{"another later", []string{says("input_required", "inputRequests", `{"k":`+form("first")+`}`), says("working"), says("input_required", "inputRequests", `{"k":`+again+`}`)}, []string{"first"}, client.ErrMalformed},
		{"another method", []string{says("input_required", "inputRequests", `{"k":`+form("first")+`}`), says("input_required", "inputRequests", `{"k":{"method":"roots/list"}}`)}, []string{"first"}, client.ErrMalformed},
		{"undeclared", []string{says("input_required", "inputRequests", `{"k":{"method":"roots/list"}}`)}, nil, client.ErrNotCapable},
		{"no method of a question", []string{says("input_required", "inputRequests", `{"k":{"method":"tools/call"}}`)}, nil, client.ErrNotCapable},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.get = steps(c.get...)
				var mu sync.Mutex
				var asked []string
				o := waiting(nil)
				o.OnElicit = func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, r.Params.Message)
					return client.Decline()
				}
				_, err := f.call(o)
				if !errors.Is(err, c.want) || (c.want != nil) != (f.cancels == 1) {
					t.Errorf("%v, cancelled %d times; want %v", err, f.cancels, c.want)
				}
				if !slices.Equal(asked, c.asked) || f.updates != len(c.asked) {
					t.Errorf("asked %q, and answered %d times; want %q", asked, f.updates, c.asked)
				}
			})
		})
	}
}

// A server that asks without end is left.
func TestEndlessQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.get = func(n int) (string, error) {
			return says("input_required", "inputRequests", fmt.Sprintf(`{"k%d":%s}`, n, form("more"))), nil
		}
		o := waiting(&tasks.WaitOptions{MaxQuestions: 5})
		o.OnElicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return client.Decline() }
		if _, err := f.call(o); !errors.Is(err, client.ErrTooManyRounds) || f.updates != 5 || f.cancels != 1 {
			t.Errorf("%v; answered %d times, cancelled %d times", err, f.updates, f.cancels)
		}
	})
}

// A question that is open no more ends; it may come again. Other answers go out.
func TestWithdrawnQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		asks := func(keys ...string) string {
			var list []string
			for _, key := range keys {
				list = append(list, `"`+key+`":`+form(key))
			}
			return says("input_required", "inputRequests", "{"+strings.Join(list, ",")+"}")
		}
		f.get = steps(asks("slow", "quick"), asks("slow"), says("working"), asks("slow"), says("input_required", "inputRequests", "{}"), says("completed"))
		var keys []string
		f.update = func(_ int, answers map[string]mcp.RawValue) error {
			keys = append(keys, keysOf(answers))
			return nil
		}
		var mu sync.Mutex
		asked := make(map[string]int)
		o := waiting(nil)
		o.OnElicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			mu.Lock()
			asked[r.Params.Message]++
			first := r.Params.Message == "slow" && asked["slow"] == 1
			mu.Unlock()
			if first {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return client.Decline()
		}
		if got, err := f.call(o); err != nil || got != "done" {
			t.Errorf("%q, %v", got, err)
		}
		if asked["slow"] != 2 || asked["quick"] != 1 || !slices.Equal(keys, []string{"quick", "slow"}) {
			t.Errorf("asked %v, answered %q", asked, keys)
		}
	})
}

// A busy server is asked again, with growing pauses; what does not pass is the error.
func TestBusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.get = func(n int) (string, error) {
			switch {
			case n <= 10:
				return "", fails(mcp.CodeTooManyInFlight)
			case n <= 12:
				return "", fails(mcp.CodeInternalError)
			case n == 13:
				return says("input_required", "inputRequests", `{"k":`+form("first")+`}`), nil
			}
			return says("completed"), nil
		}
		f.update = func(n int, _ map[string]mcp.RawValue) error {
			if n <= 3 {
				return fails(mcp.CodeInternalError)
			}
			return nil
		}
		o := waiting(nil)
		asked := 0
		o.OnElicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked++
			return client.Decline()
		}
		if got, err := f.call(o); err != nil || got != "done" || asked != 1 || f.updates < 4 {
			t.Errorf("%q, %v; asked %d times, answered %d times", got, err, asked, f.updates)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.get = func(int) (string, error) { return "", fails(mcp.CodeShuttingDown) }
		began := time.Now()
		h, err := tasks.Start[string](t.Context(), reconnect(t, f.srv, waiting(nil)), "t", nil, &tasks.StartOptions{Wait: &tasks.WaitOptions{MaxOutage: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Wait(t.Context()); code(err) != mcp.CodeShuttingDown || time.Since(began) < time.Minute || f.gets > 12 {
			t.Errorf("%v, after %v and %d requests", err, time.Since(began), f.gets)
		}
	})
	for number, want := range map[int64]error{mcp.CodeInvalidParams: tasks.ErrUnknown, mcp.CodeInternalError: nil, mcp.CodeMethodNotFound: nil} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			f.get = func(int) (string, error) { return "", fails(number) }
			_, err := f.call(waiting(nil))
			if own, got := f.cancels, code(err); got != number || want != nil && !errors.Is(err, want) || (want == nil) != (own == 1) {
				t.Errorf("%d: %v, cancelled %d times", number, err, own)
			}
			h, err := tasks.Start[string](t.Context(), reconnect(t, f.srv, waiting(nil)), "t", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Wait(t.Context()); code(err) != number || want != nil && !errors.Is(err, want) {
				t.Errorf("Wait: %v", err)
			}
			if _, err := h.Status(t.Context()); code(err) != number || want != nil && !errors.Is(err, want) {
				t.Errorf("Status: %v", err)
			}
		})
	}
}

// A task may have ended, or ask, when the call is answered: the rest is asked for at once.
func TestSeed(t *testing.T) {
	for _, status := range []string{"completed", "failed", "input_required"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			f.created = map[string]string{"status": `"` + status + `"`}
			f.get = steps(says("completed"))
			if got, err := f.call(waiting(nil)); err != nil || got != "done" || !slices.Equal(f.times, []time.Duration{0}) {
				t.Errorf("%s: %q, %v, asked at %v", status, got, err, f.times)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.created = map[string]string{"status": `"cancelled"`, "statusMessage": `"no room"`}
		if _, err := f.call(waiting(nil)); !errors.Is(err, tasks.ErrCancelled) || !strings.Contains(err.Error(), "no room") || f.gets != 0 {
			t.Errorf("%v, asked %d times", err, f.gets)
		}
	})
}
