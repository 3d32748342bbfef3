package storetest

import (
	"strings"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
)

var access = []check{
	{"a task of another owner is unknown to every method", false, testForeign},
	{"odd identifiers are unknown", false, testOddIDs},
	{"List is newest first, and by owner or all", false, testList},
	{"List goes on after a task while others are created", false, testPages},
	{"List is without Result and Questions", false, testListParts},
	{"an answer closes its question, once", false, testAnswer},
	{"answers to what is not open are ignored", false, testIgnored},
	{"one of many answers to a question is kept", false, testAnswerRace},
	{"questions are open in their order until answered or withdrawn", false, testQuestions},
}

// unknown tests that a task is unknown to an owner, in all that an owner can do.
func (k *kit) unknown(what, id, owner string) {
	k.Helper()
	_, err := k.store.Get(k.Context(), id, owner)
	k.fails("Get of "+what, err, tasks.ErrUnknown)
	_, err = k.store.Answer(k.Context(), id, owner, mcp.InputResponses{"open": []byte(`{}`)})
	k.fails("Answer to "+what, err, tasks.ErrUnknown)
	_, err = k.store.Cancel(k.Context(), id, owner, "cancelled")
	k.fails("Cancel of "+what, err, tasks.ErrUnknown)
	if id == "" {
		return // which is the beginning of the list
	}
	_, err = k.store.List(k.Context(), tasks.Query{Owner: owner, After: id, Most: 10})
	k.fails("List after "+what, err, tasks.ErrUnknown)
}

func testForeign(k *kit) {
	l := k.create("t")
	k.change(l, tasks.Change{Ask: question("open")})
	before := k.get("t")
	for _, owner := range []string{"eve", "", "ADA", "ada ", "ad", "ada\x00"} {
		k.unknown("a task of another", "t", owner)
		list, err := k.store.List(k.Context(), tasks.Query{Owner: owner, Most: 10})
		k.equal("error of List", err, nil)
		k.equal("tasks of another", len(list), 0)
	}
	k.equal("the task after that", k.get("t"), before)
	answers, err := k.store.Answers(k.Context(), l)
	k.equal("error of Answers", err, nil)
	k.equal("answers", len(answers), 0)
}

func testOddIDs(k *kit) {
	k.create("t")
	for _, id := range []string{"", "T", "t ", "%", "_", "t\x00", "\xff", "'; DROP TABLE tasks; --", `"`, "\u202e", strings.Repeat("x", 100_000)} {
		k.unknown("an odd identifier", id, "ada")
		_, err := k.store.Change(k.Context(), tasks.Lease{ID: id, Token: 1}, tasks.Change{})
		k.fails("Change", err, tasks.ErrLost)
		_, err = k.store.Answers(k.Context(), tasks.Lease{ID: id, Token: 1})
		k.fails("Answers", err, tasks.ErrLost)
		lost, err := k.store.Renew(k.Context(), []tasks.Lease{{ID: id, Token: 1}}, lease)
		k.equal("error of Renew", err, nil)
		k.equal("lost leases", lost, []tasks.Lease{{ID: id, Token: 1}})
	}
	k.get("t")
}

// listed are the identifiers that List returns.
func (k *kit) listed(q tasks.Query) string {
	k.Helper()
	list, err := k.store.List(k.Context(), q)
	if err != nil {
		k.Fatalf("List: %v", err)
	}
	var ids []string
	for _, t := range list {
		ids = append(ids, t.ID)
	}
	return strings.Join(ids, " ")
}

func testList(k *kit) {
	k.equal("tasks of an empty store", k.listed(tasks.Query{All: true, Most: 10}), "")
	for _, id := range []string{"a1", "b1", "a2", "a3", "b2"} {
		k.add(newTask(id, id[:1]))
	}
	k.equal("those of a", k.listed(tasks.Query{Owner: "a", Most: 10}), "a3 a2 a1")
	k.equal("those of b", k.listed(tasks.Query{Owner: "b", Most: 10}), "b2 b1")
	k.equal("those of nobody", k.listed(tasks.Query{Owner: "c", Most: 10}), "")
	k.equal("all", k.listed(tasks.Query{Owner: "c", All: true, Most: 10}), "b2 a3 a2 b1 a1")
	k.equal("two", k.listed(tasks.Query{Owner: "a", Most: 2}), "a3 a2")
	k.equal("none", k.listed(tasks.Query{Owner: "a"}), "")
	k.equal("after one", k.listed(tasks.Query{Owner: "a", After: "a3", Most: 1}), "a2")
	k.equal("after the last", k.listed(tasks.Query{Owner: "a", After: "a1", Most: 1}), "")
	k.equal("all after another's", k.listed(tasks.Query{All: true, After: "b1", Most: 10}), "a1")
}

func testPages(k *kit) {
	for i := range 10 {
		k.create(name("t", i))
	}
	var got []string
	for after := ""; len(got) < 20; {
		page := strings.Fields(k.listed(tasks.Query{Owner: "ada", After: after, Most: 3}))
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		after = page[len(page)-1]
		k.create("later than " + after)
	}
	k.equal("tasks of all pages", strings.Join(got, " "), "t009 t008 t007 t006 t005 t004 t003 t002 t001 t000")
}

func testListParts(k *kit) {
	l := k.create("t")
	k.change(l, tasks.Change{Ask: question("open")})
	done := k.create("done")
	k.change(done, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(`{"r":1}`), Message: "done"}})
	list, err := k.store.List(k.Context(), tasks.Query{Owner: "ada", Most: 10})
	k.equal("error of List", err, nil)
	for _, got := range list {
		want := k.get(got.ID)
		want.Result, want.Questions = nil, nil
		k.equal("task", got, want)
	}
	k.equal("tasks", len(list), 2)
}

func testAnswer(k *kit) {
	l := k.create("t")
	k.change(l, tasks.Change{Ask: question("a")})
	k.change(l, tasks.Change{Ask: question("b")})
	got, err := k.store.Answer(k.Context(), "t", "ada", mcp.InputResponses{"a": []byte(`{"action":"accept"}`)})
	k.equal("error of Answer", err, nil)
	k.equal("status with an open question", got.Status, tasks.InputRequired)
	k.equal("questions", got.Questions, []tasks.Question{*question("b")})
	k.equal("the task that Get returns", k.get("t"), got)
	_, err = k.store.Answer(k.Context(), "t", "ada", mcp.InputResponses{"a": []byte(`{"action":"decline"}`)})
	k.equal("error of a second answer", err, nil)
	got, err = k.store.Answer(k.Context(), "t", "ada", mcp.InputResponses{"b": []byte(`{"action":"cancel"}`)})
	k.equal("error of Answer", err, nil)
	k.equal("status without questions", got.Status, tasks.Working)
	k.equal("questions", len(got.Questions), 0)
	want := mcp.InputResponses{"a": []byte(`{"action":"accept"}`), "b": []byte(`{"action":"cancel"}`)}
	answers, err := k.store.Answers(k.Context(), l)
	k.equal("error of Answers", err, nil)
	k.equal("answers", answers, want)
	got = k.change(l, tasks.Change{Ask: question("a")})
	k.equal("status after a question that was answered is asked", got.Status, tasks.Working)
	k.equal("questions", len(got.Questions), 0)
	k.change(l, tasks.Change{Release: true})
	answers, err = k.store.Answers(k.Context(), k.claimOne().Lease)
	k.equal("error of Answers for another worker", err, nil)
	k.equal("answers for another worker", answers, want)
}

func testIgnored(k *kit) {
	l := k.create("t")
	before := k.change(l, tasks.Change{Ask: question("open")})
	for _, answers := range []mcp.InputResponses{nil, {}, {"other": []byte(`1`)}, {"OPEN": []byte(`1`), "": []byte(`1`)}} {
		got, err := k.store.Answer(k.Context(), "t", "ada", answers)
		k.equal("error of Answer", err, nil)
		k.equal("the task after answers to nothing", got, before)
	}
	got, err := k.store.Answer(k.Context(), "t", "ada", mcp.InputResponses{"other": []byte(`1`), "open": []byte(`2`)})
	k.equal("error of Answer", err, nil)
	k.equal("status", got.Status, tasks.Working)
	answers, err := k.store.Answers(k.Context(), l)
	k.equal("error of Answers", err, nil)
	k.equal("answers", answers, mcp.InputResponses{"open": []byte(`2`)})

	k.change(l, tasks.Change{Ask: question("late")})
	ended := k.change(l, tasks.Change{End: &tasks.End{Status: tasks.Cancelled}})
	got, err = k.store.Answer(k.Context(), "t", "ada", mcp.InputResponses{"late": []byte(`3`)})
	k.equal("error of Answer after the end", err, nil)
	k.equal("the task after an answer after its end", got, ended)
}

func testAnswerRace(k *kit) {
	l := k.create("t")
	k.change(l, tasks.Change{Ask: question("a")})
	stores := []tasks.Store{k.store, k.Open(k)}
	for _, err := range race(func(i int) error {
		_, err := stores[i%2].Answer(k.Context(), "t", "ada", mcp.InputResponses{"a": []byte(name(`"answer `, i) + `"`)})
		return err
	}) {
		k.equal("error of Answer", err, nil)
	}
	first, err := k.store.Answers(k.Context(), l)
	k.equal("error of Answers", err, nil)
	if len(first) != 1 || !strings.HasPrefix(string(first["a"]), `"answer `) {
		k.Errorf("answers %q", first)
	}
	_, err = stores[1].Answer(k.Context(), "t", "ada", mcp.InputResponses{"a": []byte(`"later"`)})
	k.equal("error of a later answer", err, nil)
	again, err := stores[1].Answers(k.Context(), l)
	k.equal("error of Answers", err, nil)
	k.equal("the answer after a later one", again, first)
}

func testQuestions(k *kit) {
	l := k.create("t")
	bare := &tasks.Question{Key: "bare", Method: "roots/list"}
	for _, q := range []*tasks.Question{question("z"), bare, question("a"), question("z")} {
		k.change(l, tasks.Change{Ask: q})
	}
	k.equal("questions", k.get("t").Questions, []tasks.Question{*question("z"), *bare, *question("a")})
	got := k.change(l, tasks.Change{Withdraw: "bare"})
	k.equal("questions after one was withdrawn", got.Questions, []tasks.Question{*question("z"), *question("a")})
	k.equal("questions after what is not open was withdrawn", k.change(l, tasks.Change{Withdraw: "none"}), got)
	got, err := k.store.Answer(k.Context(), "t", "ada", mcp.InputResponses{"bare": []byte(`{}`)})
	k.equal("error of an answer to what was withdrawn", err, nil)
	k.equal("questions", len(got.Questions), 2)
	got = k.change(l, tasks.Change{Ask: question("last"), Withdraw: "z"})
	k.equal("questions after one was asked and one withdrawn", got.Questions, []tasks.Question{*question("a"), *question("last")})
	k.change(l, tasks.Change{Withdraw: "a"})
	got = k.change(l, tasks.Change{Withdraw: "last"})
	k.equal("status without questions", got.Status, tasks.Working)
	answers, err := k.store.Answers(k.Context(), l)
	k.equal("error of Answers", err, nil)
	k.equal("answers", len(answers), 0)
	if got.Updated.Before(got.Created) || got.Updated.Sub(got.Created) > time.Hour {
		k.Errorf("created %v, updated %v", got.Created, got.Updated)
	}
}
