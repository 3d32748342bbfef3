package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
)

// Where no more tasks are kept a tool that may become a task is answered as it is, and one that
// must is refused with the limit and a time; others' tasks do not count, and anonymous callers of
// one address have ten times as many.
func TestMaxKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("may", time.Second), sleeper("must", time.Second))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{
			Tools:   map[string]tasks.Tool{"may": atOnce, "must": {Mode: tasks.Must}},
			MaxKept: 2, MaxAllKept: 44, TTL: time.Hour,
		})
		p := connect(t, s)
		p.start("must", nil)
		p.start("must", nil)
		full := func(p *peer, option string) {
			t.Helper()
			_, err := p.call("must", nil)
			if code(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), option) || !strings.Contains(err.Error(), "more than") {
				t.Errorf("a task too many: %v", err)
			}
			if got, err := p.call("may", nil); err != nil || got.ResultType != "complete" {
				t.Errorf("a call that need not be a task: %+v, %v", got, err)
			}
		}
		full(p, "tasks.Options.MaxKept")
		anonymous := connectAs(t, s, &principal.Principal{Remote: "192.0.2.1"})
		for range 20 { // 22 in all, which are half of 44
			anonymous.start("must", nil)
			time.Sleep(time.Second)
		}
		full(anonymous, "tasks.Options.MaxKept")
		full(connectAs(t, s, &principal.Principal{Remote: "192.0.2.2"}), "tasks.Options.MaxAllKept") // half of it is for others
		for i := range 11 {
			p := connectAs(t, s, &principal.Principal{Issuer: "i", Subject: fmt.Sprint(i)})
			p.start("must", nil)
			p.start("must", nil)
		}
		full(connectAs(t, s, &principal.Principal{Issuer: "i", Subject: "eve"}), "tasks.Options.MaxAllKept")
		time.Sleep(time.Hour)
		p.start("must", nil)
	})
}

// A result that is too long fails the task, not the server; too many questions, and too long
// ones, fail the question.
func TestSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(logtest.Log)
		s := newServer(t,
			server.Tool("long", "Says much.", func(context.Context, mcp.None) (string, error) { return strings.Repeat("x", 2000), nil }),
			server.Tool("curious", "Asks.", func(ctx context.Context, in labelled) (string, error) {
				for i := range 4 {
					ctx, cancel := context.WithTimeout(ctx, time.Second)
					_, err := server.Elicit[naming](ctx, fmt.Sprintf("%s %d?", in.Label, i))
					cancel()
					if size := new(tasks.SizeError); errors.As(err, &size) {
						return fmt.Sprintf("%d: %v", i, err), nil
					}
				}
				return "no end", nil
			}))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: atOnce, MaxResult: 1000, MaxQuestions: 3, MaxAskBytes: 2000, Log: log.Logger()})
		p := connect(t, s)
		if got := p.until(p.start("long", nil).TaskID, "failed"); !strings.Contains(got.StatusMessage, "tasks.Options.MaxResult") || len(got.text) > 1500 {
			t.Errorf("a long result: %s", got.text)
		}
		if !strings.Contains(log.String(), "MaxResult") {
			t.Errorf("the log has %s", log)
		}
		if got := p.until(p.start("curious", labelled{"short"}).TaskID, "completed"); !strings.HasPrefix(got.output(), "3: ") || !strings.Contains(got.output(), "tasks.Options.MaxQuestions") {
			t.Errorf("many questions: %s", got.text)
		}
		if got := p.until(p.start("curious", labelled{strings.Repeat("x", 800)}).TaskID, "completed"); !strings.HasPrefix(got.output(), "2: ") || !strings.Contains(got.output(), "tasks.Options.MaxAskBytes") {
			t.Errorf("long questions: %s", got.text)
		}
	})
}

// How many tasks run at once is what the server's limit of detached calls says.
func TestMaxRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New("tests", "1", &server.Options{Limits: server.Limits{MaxDetached: 1}})
		s.Add(sleeper("sleep", time.Second))
		t.Cleanup(func() { _ = s.Shutdown(context.WithoutCancel(t.Context())) })
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: tasks.Tool{Mode: tasks.Must}})
		p := connect(t, s)
		id := p.start("sleep", nil).TaskID
		p.start("sleep", nil) // the client repeats what was refused
		if got := p.mustGet(id); got.Status != "completed" {
			t.Errorf("the first task, when there is a second: %s", got.text)
		}
	})
}

// What an operator writes wrongly ends the start with a text that says what.
func TestBadOptions(t *testing.T) {
	for want, o := range map[string]*tasks.Options{
		"Lease is 1ms":                   {Lease: time.Millisecond},
		"PollInterval is -1":             {PollInterval: -1},
		"Tools[\"a\"]: there is no":      {Tools: map[string]tasks.Tool{"a": {Mode: 9}}},
		"Others: its After is negative":  {Others: tasks.Tool{Mode: tasks.May, After: -1}},
		"its After is for the mode May":  {Others: tasks.Tool{Mode: tasks.Must, After: 1}},
		"Others: its PollInterval is -1": {Others: tasks.Tool{PollInterval: -1}},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "tasks.Enable: ") || !strings.Contains(got, want) {
					t.Errorf("%+v: %s", o, got)
				}
			}()
			tasks.Enable(server.New("tests", "1", nil), tasks.Memory(), o)
		}()
	}
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "the store is nil") {
			t.Error(got)
		}
	}()
	tasks.Enable(server.New("tests", "1", nil), nil, nil)
}
