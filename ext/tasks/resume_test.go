package tasks_test

import (
	"testing"

	"github.com/parley-mcp/parley/ext/tasks"
)

// The states of a task that had ended when its handle was taken up name the tool, as others do.
func TestResumedStateHasTool(t *testing.T) {
	in(t, func(t *testing.T) {
		f := newFake(t)
		f.get = steps(says("completed"))
		c := reconnect(t, f.srv, waiting(nil))
		h, err := tasks.Resume[string](t.Context(), c, []byte(`{"version":1,"taskId":"a","tool":"t"}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for state, err := range h.Updates(t.Context()) {
			if n++; err != nil || state.Tool != "t" || state.Status != tasks.Completed {
				t.Errorf("%+v, %v", state, err)
			}
		}
		if n != 1 {
			t.Errorf("%d states", n)
		}
	})
}
