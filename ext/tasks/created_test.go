package tasks_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
)

// A server "MUST NOT return CreateTaskResult until the task is durably created": the answer waits
// for the store, and tasks/get knows the task then, in another process as well; what could not be
// created is no task (ext-tasks, Task Creation).
func TestAnsweredWhenCreated(t *testing.T) {
	for what, tool := range map[string]tasks.Tool{"at once": {Mode: tasks.Must}, "After": {Mode: tasks.May, After: time.Second}} {
		each(t, what, func(t *testing.T) {
			memory := tasks.Memory()
			var failing error
			store := &faulty{Store: memory, durable: true}
			store.create = func(_ context.Context, next func() (*tasks.Task, tasks.Lease, error)) (*tasks.Task, tasks.Lease, error) {
				time.Sleep(5 * time.Second)
				if failing != nil {
					return nil, tasks.Lease{}, failing
				}
				return next()
			}
			o := &tasks.Options{Others: tool}
			p := connect(t, serverOf(t, "tests", nil, store, o, sleeper("sleep", time.Minute)))
			other := connect(t, serverOf(t, "tests", nil, memory, &tasks.Options{Others: tool}, sleeper("sleep", time.Minute)))
			began := time.Now()
			id := p.start("sleep", nil).TaskID
			if took := time.Since(began); took != 5*time.Second+tool.After {
				t.Errorf("answered after %v", took)
			}
			for _, p := range []*peer{other, p} {
				if got, err := p.get(id); err != nil || got.Status != "working" {
					t.Errorf("at once: %+v, %v", got, err)
				}
			}
			failing = errCut
			if got, err := p.call("sleep", nil); err == nil && got.ResultType == "task" {
				t.Errorf("without a store: %s", got.text)
			}
		})
	}
}

// "Servers MUST generate them with sufficient entropy that a third party cannot enumerate or guess
// them" (ext-tasks, Security Considerations): identifiers have no order, and no part in common.
func TestIdentifiers(t *testing.T) {
	in(t, func(t *testing.T) {
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce}, sleeper("quick", 0))
		p, other := connect(t, s), connectAs(t, s, bob)
		const n = 200
		seen := make(map[string]bool)
		var letters []map[byte]bool // of each place
		rising, last := 0, ""
		for i := range n {
			id := []*peer{p, other}[i%2].start("quick", nil).TaskID
			if len(id) < 22 || seen[id] {
				t.Fatalf("%q is short, or not the first", id)
			}
			seen[id] = true
			if id > last {
				rising++
			}
			last = id
			for len(letters) < len(id) {
				letters = append(letters, make(map[byte]bool))
			}
			for place := range len(id) {
				letters[place][id[place]] = true
			}
		}
		random := 0
		for _, of := range letters {
			if len(of) >= 10 {
				random++
			}
		}
		if random < 22 {
			t.Errorf("%d of %d places differ", random, len(letters))
		}
		if rising < n/4 || rising > n*3/4 {
			t.Errorf("%d of %d follow in order", rising, n)
		}
	})
}

// "Internal errors: -32603" (ext-tasks, Protocol Errors): a store that fails is no unknown task,
// and what it said is not told.
func TestStoreFails(t *testing.T) {
	in(t, func(t *testing.T) {
		failing := errors.New("connect as root with password hunter2")
		var fail atomic.Bool
		store := &faulty{Store: tasks.Memory()}
		store.get = func(context.Context, string) error {
			if fail.Load() {
				return failing
			}
			return nil
		}
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: atOnce}, sleeper("sleep", time.Minute))
		p := connect(t, s)
		id := p.start("sleep", nil).TaskID
		fail.Store(true)
		_, err := p.get(id)
		for what, err := range map[string]error{"get": err, "update": p.update(id, nil), "cancel": p.cancel(id)} {
			if code(err) != mcp.CodeInternalError || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", what, err)
			}
		}
		fail.Store(false)
		p.mustGet(id)
	})
}
