package storetest

import (
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

var ends = []check{
	{"a task ends as Completed, Failed or Cancelled, and in no other state", false, testEnds},
	{"a task that has ended does not change", false, testFinal},
	{"Cancel ends a task that has not ended", false, testCancel},
	{"one of Cancel and the end of a worker happens", false, testEndRace},
	{"a change is made whole, in its order", false, testOrder},
	{"an end that is none changes nothing", false, testNoEnd},
}

func testEnds(k *kit) {
	failure := jsonrpc.NewError(-32000, "it <failed> & \x00 so \u2028").With(map[string]any{"why": "because"})
	for id, end := range map[string]*tasks.End{
		"completed": {Status: tasks.Completed, Result: []byte(`{"content":[]}`)},
		"message":   {Status: tasks.Completed, Result: []byte(`{"isError":true}`), Message: "done"},
		"failed":    {Status: tasks.Failed, Error: failure, Message: "failed"},
		"bare":      {Status: tasks.Failed, Error: jsonrpc.NewError(-1, "")},
		"cancelled": {Status: tasks.Cancelled},
	} {
		n := newTask(id, "ada")
		n.Message = "begun"
		before, l := k.add(n)
		k.change(l, tasks.Change{Ask: question("open")})
		got := k.change(l, tasks.Change{End: end})
		want := *before
		want.Status, want.Message, want.Result, want.Error, want.Updated = end.Status, end.Message, end.Result, end.Error, got.Updated
		k.equal("the task that Change returns", got, &want)
		k.equal("the task that Get returns", k.get(id), &want)
		if got.Updated.Before(got.Created) {
			k.Errorf("created %v, updated %v", got.Created, got.Updated)
		}
		k.refused("of a task that has ended", l)
	}
}

func testFinal(k *kit) {
	l := k.create("t")
	k.change(l, tasks.Change{End: &tasks.End{Status: tasks.Failed, Error: jsonrpc.NewError(-32603, "failed")}})
	want := k.get("t")
	got, err := k.store.Cancel(k.Context(), "t", "ada", "too late")
	k.equal("error of Cancel", err, nil)
	k.equal("the task that Cancel returns", got, want)
	_, err = k.store.Answer(k.Context(), "t", "ada", mcp.InputResponses{"open": []byte(`1`)})
	k.equal("error of Answer", err, nil)
	k.refused("of a task that has ended", l)
	k.refused("of a task that has ended, with a later token", tasks.Lease{ID: "t", Token: l.Token + 1})
	k.equal("the task after all that", k.get("t"), want)
}

func testCancel(k *kit) {
	l := k.create("t")
	k.change(l, tasks.Change{Ask: question("open")})
	got, err := k.store.Cancel(k.Context(), "t", "ada", "not wanted")
	k.equal("error of Cancel", err, nil)
	k.equal("status", got.Status, tasks.Cancelled)
	k.equal("message", got.Message, "not wanted")
	k.equal("questions", len(got.Questions), 0)
	k.equal("the task that Get returns", k.get("t"), got)
	k.refused("of a cancelled task", l)
	again, err := k.store.Cancel(k.Context(), "t", "ada", "once more")
	k.equal("error of Cancel again", err, nil)
	k.equal("the task that Cancel returns again", again, got)
}

func testEndRace(k *kit) {
	stores := []tasks.Store{k.store, k.Open(k)}
	for round := range 4 {
		l := k.create(name("t", round))
		ended := race(func(i int) error {
			if i%2 == 0 {
				_, err := stores[i/2%2].Cancel(k.Context(), l.ID, "ada", name("cancelled ", i))
				return err
			}
			_, err := stores[i/2%2].Change(k.Context(), l, tasks.Change{End: &tasks.End{
				Status: tasks.Completed, Result: []byte(name(`"result `, i) + `"`), Message: name("completed ", i),
			}})
			return err
		})
		got, completed := k.get(l.ID), 0
		for i, err := range ended {
			switch {
			case i%2 == 0:
				k.equal("error of Cancel", err, nil)
			case err == nil:
				completed++
				k.equal("message of the one end", got.Message, name("completed ", i))
				k.equal("result of the one end", string(got.Result), name(`"result `, i)+`"`)
			default:
				k.fails("Change", err, tasks.ErrLost)
			}
		}
		switch got.Status {
		case tasks.Completed:
			k.equal("ends that were acknowledged", completed, 1)
		case tasks.Cancelled:
			k.equal("ends that were acknowledged", completed, 0)
			k.equal("result", len(got.Result), 0)
		default:
			k.Errorf("status %q", got.Status)
		}
		k.refused("after the end", l)
	}
}

func testOrder(k *kit) {
	l := k.create("t")
	k.change(l, tasks.Change{Ask: question("a")})
	message := "of the change"
	got := k.change(l, tasks.Change{
		Records: records("r"), Ask: question("b"), Withdraw: "a", Message: &message,
	})
	k.equal("questions", got.Questions, []tasks.Question{*question("b")})
	k.equal("message", got.Message, message)
	got = k.change(l, tasks.Change{Ask: question("c"), Withdraw: "c"})
	k.equal("questions after one was asked and withdrawn", got.Questions, []tasks.Question{*question("b")})
	empty := ""
	k.equal("message", k.change(l, tasks.Change{Message: &empty}).Message, "")
	got = k.change(l, tasks.Change{
		Records: records("s"), Ask: question("d"), Message: &message,
		End: &tasks.End{Status: tasks.Completed, Result: []byte(`{}`), Message: "of the end"}, Release: true,
	})
	k.equal("status", got.Status, tasks.Completed)
	k.equal("message", got.Message, "of the end")
	k.equal("questions", len(got.Questions), 0)
	k.refused("of a task that has ended", l)
	k.equal("tasks to claim", len(k.claim()), 0)
}

func testNoEnd(k *kit) {
	l := k.create("t")
	before := k.change(l, tasks.Change{Ask: question("open")})
	for _, status := range []tasks.Status{tasks.Working, tasks.InputRequired, "", "done"} {
		if _, err := k.store.Change(k.Context(), l, tasks.Change{
			Records: records("r"), Withdraw: "open", End: &tasks.End{Status: status}, Release: true,
		}); err == nil {
			k.Errorf("the task ended as %q", status)
		}
		k.equal("the task after that", k.get("t"), before)
	}
	k.change(l, tasks.Change{Release: true})
	k.equal("records after that", len(k.claimOne().Records), 0)
}
