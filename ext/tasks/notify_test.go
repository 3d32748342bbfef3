package tasks_test

import (
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
)

// Each notification is what tasks/get would have said then, and comes to those only whose
// acknowledged subscription named the task (ext-tasks, Task Status Notifications).
func TestStatusNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, asker("ask"), sleeper("sleep", time.Minute))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: atOnce})
		var (
			mu    sync.Mutex
			heard []*state
			p     *peer
		)
		hear := func(n *client.Notification) {
			if n.Method != tasks.Notify {
				return
			}
			validate(t, "TaskStatusNotificationParams", n.Params)
			got := decoded(t, n.Params)
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, got)
			if got.ResultType != "" {
				t.Errorf("a notification has a type of result: %s", n.Params)
			}
		}
		p = connect(t, s, client.Options{Extensions: []client.Extension{knows(hear)}})
		id, other := p.start("ask", nil).TaskID, p.start("sleep", nil).TaskID
		synctest.Wait()
		sub, err := p.SubscribeExtension(t.Context(), tasks.ID, map[string]any{"taskIds": []string{id, "guessed"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(sub.Acknowledged("taskIds")); got != `["`+id+`"]` {
			t.Errorf("acknowledged: %s", got)
		}
		same := func(what string) {
			t.Helper()
			synctest.Wait()
			time.Sleep(time.Second)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(heard) == 0 {
				t.Fatalf("%s: heard nothing", what)
			}
			last, now := plain(t, heard[len(heard)-1]), plain(t, p.mustGet(id))
			if last != now {
				t.Errorf("%s: heard\n%s, tasks/get says\n%s", what, last, now)
			}
		}
		answers := answerAll(p.mustGet(id), map[string]any{"name": "Alice", "confirm": true})
		if err := p.update(id, map[string]any{"who": answers["who"]}); err != nil {
			t.Fatal(err)
		}
		same("one of two answered")
		if err := p.update(id, answers); err != nil {
			t.Fatal(err)
		}
		same("completed")
		if err := p.cancel(other); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for _, got := range heard {
			if got.TaskID != id {
				t.Errorf("heard of another task: %s", got.text)
			}
		}
	})
}

// plain is a task without what differs between a result and a notification.
func plain(t *testing.T, s *state) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(s.text, &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "_meta")
	delete(members, "resultType")
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// taskIds that are no array of strings, and too many, are refused.
func TestBadSubscriptions(t *testing.T) {
	s := newServer(t)
	tasks.Enable(s, tasks.Memory(), nil)
	p := connect(t, s)
	for what, ids := range map[string]any{"number": 7, "numbers": []int{7}, "null": nil, "many": make([]string, 1001)} {
		if _, err := p.SubscribeExtension(t.Context(), tasks.ID, map[string]any{"taskIds": ids}); err == nil {
			t.Errorf("%s: agreed to", what)
		}
	}
}
