package tasks

import (
	"fmt"
	"slices"
	"time"

	"github.com/parley-mcp/parley/mcp"
)

// Apply makes a change to t, as a [Store] does: all of it but Records and Release.
// answered are the answers that were given so far, and now is the time of the store. It
// reports whether t is another state after it; Updated is then now, unless the clock went
// back. The error says that End is no end; nothing has changed then.
func (t *Task) Apply(c *Change, answered mcp.InputResponses, now time.Time) (changed bool, err error) {
	if c.End != nil && !c.End.Status.Ended() {
		return false, fmt.Errorf("a task cannot end as %q", c.End.Status)
	}
	if c.Ask != nil {
		if _, ok := answered[c.Ask.Key]; !ok && t.question(c.Ask.Key) < 0 {
			t.Questions = append(slices.Clip(t.Questions), *c.Ask)
			t.Status, changed = InputRequired, true
		}
	}
	if c.Withdraw != "" && t.close(c.Withdraw) {
		changed = true
	}
	if c.Message != nil && *c.Message != t.Message {
		t.Message, changed = *c.Message, true
	}
	if end := c.End; end != nil {
		t.Status, t.Message, t.Result, t.Error, t.Questions = end.Status, end.Message, end.Result, end.Error, nil
		changed = true
	}
	t.update(changed, now)
	return changed, nil
}

// Take closes the questions of t that are answered by given, as a [Store] does, and adds
// those answers to answered. It reports whether there was one; Updated is then now,
// unless the clock went back.
func (t *Task) Take(given, answered mcp.InputResponses, now time.Time) (changed bool) {
	for key, answer := range given {
		if t.close(key) {
			answered[key], changed = answer, true
		}
	}
	t.update(changed, now)
	return changed
}

// question is the index of the open question with a key, or -1.
func (t *Task) question(key string) int {
	return slices.IndexFunc(t.Questions, func(q Question) bool { return q.Key == key })
}

// close removes an open question, and reports whether there was one.
func (t *Task) close(key string) bool {
	i := t.question(key)
	if i < 0 {
		return false
	}
	t.Questions = slices.Delete(slices.Clone(t.Questions), i, i+1)
	if len(t.Questions) == 0 {
		t.Status, t.Questions = Working, nil
	}
	return true
}

func (t *Task) update(changed bool, now time.Time) {
	if changed && now.After(t.Updated) {
		t.Updated = now
	}
}
