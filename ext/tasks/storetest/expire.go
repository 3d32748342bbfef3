package storetest

import (
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
)

var expiry = []check{
	{"a task is unknown to every method once its TTL has passed", true, testExpired},
	{"a TTL of 0 is without end", true, testUnlimited},
	{"a result is kept as long as the TTL says", true, testKept},
	{"Expire deletes what has expired", true, testExpire},
	{"what has expired is neither listed nor claimed nor counted", true, testExpiredCount},
	{"bounds are exact after tasks were created and deleted at once", true, testCountRace},
	{"dates do not go back with the clock", true, testClockBack},
}

func testExpired(k *kit) {
	for _, deleted := range []bool{false, true} {
		id := map[bool]string{false: "kept", true: "deleted"}[deleted]
		l := k.create(id)
		k.change(l, tasks.Change{Ask: question("open"), Records: records("r")})
		k.Advance(time.Hour)
		if deleted {
			_, err := k.store.Expire(k.Context())
			k.equal("error of Expire", err, nil)
		}
		k.unknown("an expired task", id, "ada")
		k.refused("of an expired task", l)
		k.equal("tasks", k.listed(tasks.Query{Owner: "ada", Most: 10}), "")
		k.equal("all tasks", k.listed(tasks.Query{All: true, Most: 10}), "")
		k.equal("tasks to claim", len(k.claim()), 0)
	}
}

func testUnlimited(k *kit) {
	n := newTask("t", "ada")
	n.TTL = 0
	want, _ := k.add(n)
	for range 100 {
		k.Advance(1000 * time.Hour)
	}
	deleted, err := k.store.Expire(k.Context())
	k.equal("error of Expire", err, nil)
	k.equal("deleted tasks", deleted, 0)
	k.equal("the task after eleven years", k.get("t"), want)
}

func testKept(k *kit) {
	l := k.create("t")
	k.change(l, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(`"kept"`)}})
	k.Advance(time.Hour - time.Minute)
	_, err := k.store.Expire(k.Context())
	k.equal("error of Expire", err, nil)
	k.equal("result before the TTL has passed", string(k.get("t").Result), `"kept"`)
	k.Advance(time.Minute)
	k.unknown("a task whose TTL has passed", "t", "ada")
}

func testExpire(k *kit) {
	for i := range 5 {
		n := newTask(name("t", i), "ada")
		n.TTL, n.Records = time.Duration(i)*time.Minute, records("r") // the first is without end
		k.add(n)
	}
	k.Advance(3 * time.Minute)
	deleted, err := k.store.Expire(k.Context())
	k.equal("error of Expire", err, nil)
	if deleted != 3 && deleted != 0 { // 0 is that of a store that does so by itself
		k.Errorf("%d tasks were deleted", deleted)
	}
	deleted, err = k.store.Expire(k.Context())
	k.equal("error of Expire again", err, nil)
	k.equal("tasks deleted again", deleted, 0)
	k.equal("tasks that are left", k.listed(tasks.Query{Owner: "ada", Most: 10}), "t004 t000")
}

func testExpiredCount(k *kit) {
	stores := []tasks.Store{k.store, k.Open(k)}
	n := newTask("short", "ada")
	n.TTL, n.MaxByKey, n.MaxAll = time.Minute, 1, 1
	k.add(n)
	k.Advance(time.Minute)
	n.ID = "next"
	if _, _, err := stores[1].Create(k.Context(), n, lease); err != nil {
		k.Errorf("Create after the other task expired: %v", err)
	}
	k.equal("tasks", k.listed(tasks.Query{Owner: "ada", Most: 10}), "next")
	k.Advance(2 * time.Minute)
	k.equal("tasks to claim", len(k.claim()), 0)
	k.equal("tasks", k.listed(tasks.Query{Owner: "ada", Most: 10}), "")
}

func testCountRace(k *kit) {
	stores := []tasks.Store{k.store, k.Open(k)}
	for round := range 3 {
		for _, err := range race(func(i int) error {
			if i%4 == 0 {
				_, err := stores[i/4%2].Expire(k.Context())
				return err
			}
			n := newTask(name("t", racers*round+i), name("owner", i%5))
			n.TTL, n.MaxByKey, n.MaxAll = time.Minute, racers, racers
			_, _, err := stores[i/4%2].Create(k.Context(), n, lease)
			return err
		}) {
			k.equal("error", err, nil)
		}
		k.Advance(time.Minute)
	}
	for i := range 6 {
		n := newTask(name("kept", i), name("owner", i%2))
		n.MaxByKey, n.MaxAll = 2, 4
		_, _, err := k.store.Create(k.Context(), n, lease)
		made, byKey, all := limits(k, []error{err})
		k.equal("created, and refused by either bound", []int{made, byKey + all}, map[bool][]int{true: {1, 0}, false: {0, 1}}[i < 4])
	}
}

func testClockBack(k *kit) {
	l := k.create("t")
	k.Advance(10 * time.Minute)
	before := k.change(l, tasks.Change{Ask: question("a")})
	if took := before.Updated.Sub(before.Created); took < 10*time.Minute {
		k.Errorf("updated %v after the creation, want at least 10m", took)
	}
	k.Advance(-30 * time.Minute)
	k.equal("the task after the clock went back", k.get("t"), before)
	after := k.change(l, tasks.Change{Ask: question("b")})
	if after.Updated.Before(before.Updated) || !after.Created.Equal(before.Created) {
		k.Errorf("created %v, updated %v; later created %v, updated %v", before.Created, before.Updated, after.Created, after.Updated)
	}
	k.change(l, tasks.Change{Release: true})
	c := k.claimOne()
	if c.Token <= l.Token {
		k.Errorf("token %d after %d", c.Token, l.Token)
	}
	k.refused("after another claimed the task", l)
	ended := k.change(c.Lease, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(`1`)}})
	if ended.Updated.Before(after.Updated) {
		k.Errorf("updated %v, and at the end %v", after.Updated, ended.Updated)
	}
	later := k.create("later")
	k.change(later, tasks.Change{})
	k.equal("tasks", k.listed(tasks.Query{Owner: "ada", Most: 10}), "later t")
}
