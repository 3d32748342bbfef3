package tasks_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
)

// A store may apply a change to a copy of what it has, and keep that if it cannot write:
// the questions of the original stay as they are.
func TestApplyToCopy(t *testing.T) {
	t.Parallel()
	var task tasks.Task
	for _, key := range []string{"a", "b", "c"} {
		if changed, err := task.Apply(&tasks.Change{Ask: &tasks.Question{Key: key}}, nil, time.Unix(1, 0)); !changed || err != nil {
			t.Fatalf("asking %q: %v, error %v", key, changed, err)
		}
	}
	for name, change := range map[string]func(*tasks.Task) (bool, error){
		"Ask": func(c *tasks.Task) (bool, error) {
			return c.Apply(&tasks.Change{Ask: &tasks.Question{Key: "d"}}, nil, time.Unix(2, 0))
		},
		"Withdraw": func(c *tasks.Task) (bool, error) { return c.Apply(&tasks.Change{Withdraw: "a"}, nil, time.Unix(2, 0)) },
		"Take": func(c *tasks.Task) (bool, error) {
			return c.Take(mcp.InputResponses{"a": nil, "b": nil}, mcp.InputResponses{}, time.Unix(2, 0)), nil
		},
	} {
		for range 2 {
			c := task
			if changed, err := change(&c); !changed || err != nil || !c.Updated.Equal(time.Unix(2, 0)) {
				t.Errorf("%s: %v, error %v, updated %v", name, changed, err, c.Updated)
			}
		}
		want := []tasks.Question{{Key: "a"}, {Key: "b"}, {Key: "c"}}
		if diff := cmp.Diff(want, task.Questions); diff != "" {
			t.Errorf("%s changed the original (-want +got):\n%s", name, diff)
		}
	}
}

// A clock that goes back does not take the date of a task with it.
func TestApplyClockBack(t *testing.T) {
	t.Parallel()
	task := tasks.Task{Updated: time.Unix(10, 0)}
	message := "new"
	if changed, err := task.Apply(&tasks.Change{Message: &message}, nil, time.Unix(5, 0)); !changed || err != nil || task.Updated != time.Unix(10, 0) {
		t.Errorf("%v, error %v, updated %v", changed, err, task.Updated)
	}
	if changed, err := task.Apply(&tasks.Change{Message: &message}, nil, time.Unix(20, 0)); changed || err != nil || task.Updated != time.Unix(10, 0) {
		t.Errorf("the same message: %v, error %v, updated %v", changed, err, task.Updated)
	}
}

// An error of a bound names the bound and the option.
func TestLimitError(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]*tasks.LimitError{
		"more than 5 tasks are kept (tasks.Options.MaxAllKept); they are deleted some time after they were created": {All: true, Most: 5},
		"more than 5 tasks of one caller, or of the anonymous callers of one address, are kept (tasks.Options.MaxKept); " +
			"they are deleted some time after they were created": {Most: 5},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
