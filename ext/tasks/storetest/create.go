package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
)

var creation = []check{
	{"a new task is Working, with what it was given", false, testCreate},
	{"a lease of a new task has a token", false, testFirstToken},
	{"an identifier is used once", false, testSameID},
	{"the bound of one caller holds, also when many create at once", false, testMaxByKey},
	{"the bound of all callers holds, also when many create at once", false, testMaxAll},
	{"ended tasks count until they expire", true, testEndedCount},
	{"bounds hold across those who opened the store", false, testBoundsShared},
	{"a task that was refused is unknown", false, testRefused},
}

func testCreate(k *kit) {
	before := time.Now()
	for _, n := range []*tasks.NewTask{
		{ID: "full", Owner: "ada", LimitKey: "address", Tool: "slow", Message: "begun", TTL: time.Hour, PollInterval: 3 * time.Second},
		{ID: "bare", Owner: "ada", LimitKey: "address", Tool: "slow"},
		{ID: "fine", Owner: "ada", LimitKey: "address", TTL: time.Hour + time.Millisecond, PollInterval: time.Millisecond},
	} {
		got, l := k.add(n)
		k.equal("the identifier of the lease", l.ID, n.ID)
		if got.Created.Before(before.Add(-time.Hour)) || got.Created.After(time.Now().Add(time.Hour)) {
			k.Errorf("the task was created at %v", got.Created)
		}
		k.equal("the task", got, &tasks.Task{
			ID: n.ID, Tool: n.Tool, Status: tasks.Working, Message: n.Message, TTL: n.TTL, PollInterval: n.PollInterval,
			Created: got.Created, Updated: got.Created,
		})
		k.equal("the task that Get returns", k.get(n.ID), got)
		if got.Created.Location() != time.UTC {
			k.Errorf("Created is in %v", got.Created.Location())
		}
	}
	k.equal("tasks that others can claim", len(k.claim()), 0)
}

func testFirstToken(k *kit) {
	l := k.create("t")
	k.equal("the status after a change", k.change(l, tasks.Change{}).Status, tasks.Working)
	for _, other := range []int64{l.Token - 1, l.Token + 1, 0, -1} {
		if other != l.Token {
			k.refused("with a token that was not given", tasks.Lease{ID: "t", Token: other})
		}
	}
	_, err := k.store.Change(k.Context(), tasks.Lease{ID: "none", Token: l.Token}, tasks.Change{})
	k.fails("Change of a task that is not there", err, tasks.ErrLost)
}

func testSameID(k *kit) {
	k.create("t")
	n := newTask("t", "eve")
	n.Message = "another"
	if _, _, err := k.store.Create(k.Context(), n, lease); err == nil {
		k.Error("a second task of the same identifier was created")
	}
	k.equal("the first task's message", k.get("t").Message, "")
	_, err := k.store.Get(k.Context(), "t", "eve")
	k.fails("Get of the second", err, tasks.ErrUnknown)
}

// limits are the numbers of tasks that were created, and of each LimitError.
func limits(t testing.TB, errs []error) (made, byKey, all int) {
	t.Helper()
	for _, err := range errs {
		limit, ok := errors.AsType[*tasks.LimitError](err)
		switch {
		case err == nil:
			made++
		case !ok:
			t.Errorf("Create: %v", err)
		case limit.All:
			all++
		default:
			byKey++
		}
	}
	return made, byKey, all
}

func testMaxByKey(k *kit) {
	errs := race(func(i int) error {
		n := newTask(name("t", i), name("owner", i))
		n.LimitKey, n.MaxByKey = "address", 5
		_, _, err := k.store.Create(k.Context(), n, lease)
		return err
	})
	made, byKey, all := limits(k, errs)
	k.equal("tasks created, refused, refused by the other bound", []int{made, byKey, all}, []int{5, racers - 5, 0})
	n := newTask("another", "ada")
	n.MaxByKey = 5
	k.add(n)
	n = newTask("without bound", "ada")
	n.LimitKey = "address"
	k.add(n)
	n.ID, n.MaxByKey = "with the bound", 6
	_, _, err := k.store.Create(k.Context(), n, lease)
	if limit, ok := errors.AsType[*tasks.LimitError](err); !ok || *limit != (tasks.LimitError{Most: 6}) {
		k.Errorf("error %#v", err)
	}
}

func testMaxAll(k *kit) {
	errs := race(func(i int) error {
		n := newTask(name("t", i), name("owner", i))
		n.MaxByKey, n.MaxAll = 3, 7
		_, _, err := k.store.Create(k.Context(), n, lease)
		return err
	})
	made, byKey, all := limits(k, errs)
	k.equal("tasks created, refused by the other bound, refused", []int{made, byKey, all}, []int{7, 0, racers - 7})
	n := newTask("late", "ada")
	n.MaxAll = 7
	_, _, err := k.store.Create(k.Context(), n, lease)
	if limit, ok := errors.AsType[*tasks.LimitError](err); !ok || *limit != (tasks.LimitError{All: true, Most: 7}) {
		k.Errorf("error %#v", err)
	}
}

func testEndedCount(k *kit) {
	n := newTask("a", "ada")
	n.MaxByKey, n.MaxAll = 1, 1
	_, l := k.add(n)
	k.change(l, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(`{}`)}})
	n.ID = "b"
	_, _, err := k.store.Create(k.Context(), n, lease)
	made, byKey, all := limits(k, []error{err})
	k.equal("created beside an ended task", made, 0)
	k.equal("refused", byKey+all, 1)
	k.Advance(time.Hour)
	k.add(n)
}

func testBoundsShared(k *kit) {
	stores := []tasks.Store{k.store, k.Open(k), k.Open(k)}
	errs := race(func(i int) error {
		n := newTask(name("t", i), "ada")
		n.MaxByKey = 4
		_, _, err := stores[i%len(stores)].Create(k.Context(), n, lease)
		return err
	})
	made, byKey, all := limits(k, errs)
	k.equal("tasks created, refused, refused by the other bound", []int{made, byKey, all}, []int{4, racers - 4, 0})
	list, err := stores[1].List(k.Context(), tasks.Query{Owner: "ada", Most: 100})
	k.equal("error of List", err, nil)
	k.equal("tasks", len(list), 4)
}

func testRefused(k *kit) {
	k.create("kept")
	n := newTask("refused", "ada")
	n.MaxByKey = 1
	_, _, err := k.store.Create(k.Context(), n, lease)
	made, byKey, _ := limits(k, []error{err})
	k.equal("created and refused", []int{made, byKey}, []int{0, 1})
	_, err = k.store.Get(k.Context(), "refused", "ada")
	k.fails("Get", err, tasks.ErrUnknown)
	n.MaxByKey = 2
	k.add(n)
}
