package storetest

import (
	"slices"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/server"
)

var leases = []check{
	{"a lease that was renewed holds", true, testRenew},
	{"a lease that ran out can be used until another takes the task", true, testRanOut},
	{"all that a worker without its lease writes is refused", true, testFencing},
	{"Renew returns those that are lost", true, testRenewLost},
	{"a released task can be claimed at once", false, testRelease},
	{"a claim leaves out tasks, and says how many leases were lost", true, testSkip},
	{"leases hold across those who opened the store", true, testLeaseShared},
}

var claims = []check{
	{"a claimed task comes with its call and its records, in their order", false, testRecords},
	{"tasks are claimed oldest first, at most so many", true, testClaimOrder},
	{"each task is claimed by one of many workers", true, testClaimRace},
	{"tasks that have ended are not claimed", true, testClaimEnded},
	{"fencing tokens grow", true, testTokens},
}

// records are two records with a key.
func records(key string) []server.Record {
	return []server.Record{
		{Kind: server.RecordQuestion, Key: key, Question: "digest of " + key},
		{Kind: server.RecordAnswer, Key: key, Question: "digest of " + key, Value: []byte(`{"action":"accept"}`)},
	}
}

func testRenew(k *kit) {
	l := k.create("t")
	for range 5 {
		k.Advance(lease * 3 / 4)
		lost, err := k.store.Renew(k.Context(), []tasks.Lease{l}, lease)
		k.equal("error of Renew", err, nil)
		k.equal("lost leases", len(lost), 0)
		k.equal("tasks that others can claim", len(k.claim()), 0)
	}
	lost, err := k.store.Renew(k.Context(), nil, lease)
	k.equal("error of Renew of nothing", err, nil)
	k.equal("lost leases", len(lost), 0)
	k.Advance(lease + time.Second)
	k.equal("the task that is claimed", k.claimOne().ID, "t")
}

func testRanOut(k *kit) {
	l := k.create("t")
	k.Advance(2 * lease)
	k.equal("status", k.change(l, tasks.Change{Ask: question("open")}).Status, tasks.InputRequired)
	_, err := k.store.Answers(k.Context(), l)
	k.equal("error of Answers", err, nil)
	lost, err := k.store.Renew(k.Context(), []tasks.Lease{l}, lease)
	k.equal("error of Renew", err, nil)
	k.equal("lost leases", len(lost), 0)
	k.equal("tasks that others can claim", len(k.claim()), 0)
	k.Advance(2 * lease)
	k.equal("status", k.change(l, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(`1`)}}).Status, tasks.Completed)
}

func testFencing(k *kit) {
	old := k.create("t")
	k.change(old, tasks.Change{Ask: question("open")})
	k.Advance(2 * lease)
	second := k.claimOne()
	k.refused("after another claimed the task", old)
	k.Advance(2 * lease)
	k.refused("after the lease of the other ran out", old)
	third := k.claimOne()
	k.refused("after a third claimed the task", old)
	k.refused("after a third claimed the task", second.Lease)
	k.change(third.Lease, tasks.Change{Release: true})
	for _, l := range []tasks.Lease{old, second.Lease, third.Lease} {
		k.refused("after the task was released", l)
	}
	k.change(k.claimOne().Lease, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(`1`)}})
	for _, l := range []tasks.Lease{old, second.Lease, third.Lease} {
		k.refused("after the end", l)
	}
}

func testRenewLost(k *kit) {
	held := make(map[string]tasks.Lease)
	for _, id := range []string{"held", "ended", "released", "claimed"} {
		held[id] = k.create(id)
	}
	k.change(held["released"], tasks.Change{Release: true})
	k.equal("the released task", k.claimOne().ID, "released")
	k.Advance(2 * lease)
	_, err := k.store.Renew(k.Context(), []tasks.Lease{held["held"], held["ended"]}, lease)
	k.equal("error of Renew", err, nil)
	k.equal("tasks whose leases ran out", len(k.claim()), 2)
	_, err = k.store.Cancel(k.Context(), "ended", "ada", "")
	k.equal("error of Cancel", err, nil)
	none := tasks.Lease{ID: "none", Token: 1}
	lost, err := k.store.Renew(k.Context(), []tasks.Lease{held["ended"], held["held"], none, held["released"], held["claimed"]}, lease)
	k.equal("error of Renew", err, nil)
	k.equal("number of lost leases", len(lost), 4)
	for _, l := range []tasks.Lease{none, held["ended"], held["released"], held["claimed"]} {
		if !slices.Contains(lost, l) {
			k.Errorf("lost leases %v, want %v among them", lost, l)
		}
	}
}

func testRelease(k *kit) {
	l := k.create("t")
	before := k.change(l, tasks.Change{Ask: question("open")})
	after := k.change(l, tasks.Change{Records: records("r"), Release: true})
	k.equal("questions of the released task", after.Questions, before.Questions)
	k.refused("of a released task", l)
	c := k.claimOne()
	k.equal("the claimed task", c.Task, after)
	k.equal("its records", c.Records, records("r"))
	k.equal("its losses", c.Losses, 0)
	k.equal("more tasks to claim", len(k.claim()), 0)
}

// testSkip has Claim leave out tasks, and count the leases that were lost.
func testSkip(k *kit) {
	k.change(k.create("a"), tasks.Change{Release: true})
	k.change(k.create("b"), tasks.Change{Release: true})
	claimed, err := k.store.Claim(k.Context(), time.Minute, 10, []string{"a", "unknown", "x\x00y"})
	if err != nil || len(claimed) != 1 || claimed[0].ID != "b" {
		k.Fatalf("claimed %v, %v", claimed, err)
	}
	for losses := range 3 {
		claimed, err := k.store.Claim(k.Context(), time.Minute, 10, []string{"b"})
		if err != nil || len(claimed) != 1 || claimed[0].ID != "a" || claimed[0].Losses != losses {
			k.Fatalf("claimed %v, %v after %d losses", claimed, err, losses)
		}
		k.Advance(2 * time.Minute)
	}
}

func testLeaseShared(k *kit) {
	other := k.Open(k)
	l := k.create("t")
	claimed, err := other.Claim(k.Context(), lease, 10, nil)
	k.equal("error of Claim", err, nil)
	k.equal("tasks claimed while the lease holds", len(claimed), 0)
	k.Advance(2 * lease)
	claimed, err = other.Claim(k.Context(), lease, 10, nil)
	k.equal("error of Claim", err, nil)
	if len(claimed) != 1 {
		k.Fatalf("%d tasks were claimed", len(claimed))
	}
	k.refused("after another process claimed the task", l)
	_, err = other.Change(k.Context(), claimed[0].Lease, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(`"other"`)}})
	k.equal("error of Change by the other process", err, nil)
	k.equal("result", string(k.get("t").Result), `"other"`)
}

func testRecords(k *kit) {
	n := newTask("t", "ada")
	n.Repeatable, n.Call, n.Records = true, []byte("\x00\xff the call"), records("first")
	_, l := k.add(n)
	want := records("first")
	for i := range 30 {
		some := records(name("r", i))[:1+i%2]
		want = append(want, some...)
		k.change(l, tasks.Change{Records: some})
	}
	once := server.Record{Kind: server.RecordOnce, Key: "o<&>\x00\u2028\"", Value: []byte(`{"a":"<&>\u0000\ud800","b":1e400}`)}
	want = append(want, once)
	k.change(l, tasks.Change{Records: []server.Record{once}, Ask: question("open"), Release: true})
	k.create("another")
	for range 2 {
		c := k.claimOne()
		k.equal("repeatable", c.Repeatable, true)
		k.equal("call", c.Call, n.Call)
		k.equal("records", c.Records, want)
		k.equal("task", c.Task, k.get("t"))
		k.change(c.Lease, tasks.Change{Release: true})
	}
	bare := k.create("bare")
	k.change(bare, tasks.Change{Release: true})
	for _, c := range k.claim() {
		if c.ID == "bare" {
			k.equal("call and records of another", []int{len(c.Call), len(c.Records)}, []int{0, 0})
			k.equal("repeatable", c.Repeatable, false)
		}
	}
}

func testClaimOrder(k *kit) {
	for i := range 7 {
		k.create(name("t", i))
	}
	k.Advance(2 * lease)
	var got []string
	for _, n := range []int{0, 2, 1, 10} {
		claimed, err := k.store.Claim(k.Context(), lease, n, nil)
		k.equal("error of Claim", err, nil)
		if len(claimed) > n {
			k.Errorf("%d tasks were claimed, want at most %d", len(claimed), n)
		}
		for _, c := range claimed {
			got = append(got, c.ID)
		}
	}
	k.equal("tasks", got, []string{"t000", "t001", "t002", "t003", "t004", "t005", "t006"})
	k.equal("more tasks to claim", len(k.claim()), 0)
}

func testClaimRace(k *kit) {
	const n = 60
	for i := range n {
		k.create(name("t", i))
	}
	k.Advance(2 * lease)
	stores := []tasks.Store{k.store, k.Open(k), k.Open(k)}
	seen := make(map[string]int)
	for _, got := range race(func(i int) []string {
		var ids []string
		for range 20 {
			claimed, err := stores[i%len(stores)].Claim(k.Context(), lease, 3, nil)
			if err != nil {
				k.Errorf("Claim: %v", err)
			}
			if len(claimed) > 3 {
				k.Errorf("%d tasks were claimed, want at most 3", len(claimed))
			}
			for _, c := range claimed {
				ids = append(ids, c.ID)
				if _, err := stores[i%len(stores)].Change(k.Context(), c.Lease, tasks.Change{Message: &c.ID}); err != nil {
					k.Errorf("Change by the worker that claimed: %v", err)
				}
			}
		}
		return ids
	}) {
		for _, id := range got {
			seen[id]++
		}
	}
	for id, times := range seen {
		if times != 1 {
			k.Errorf("%s was claimed %d times", id, times)
		}
	}
	k.equal("tasks that were claimed", len(seen), n)
}

func testClaimEnded(k *kit) {
	k.change(k.create("completed"), tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(`1`)}})
	k.create("cancelled")
	_, err := k.store.Cancel(k.Context(), "cancelled", "ada", "")
	k.equal("error of Cancel", err, nil)
	k.create("working")
	k.Advance(2 * lease)
	k.equal("the task that is claimed", k.claimOne().ID, "working")
}

func testTokens(k *kit) {
	last := k.create("t").Token
	for range 5 {
		k.Advance(2 * lease)
		c := k.claimOne()
		if c.Token <= last {
			k.Errorf("token %d after %d", c.Token, last)
		}
		last = c.Token
	}
	k.change(tasks.Lease{ID: "t", Token: last}, tasks.Change{Release: true})
	if c := k.claimOne(); c.Token <= last {
		k.Errorf("token %d after %d was released", c.Token, last)
	}
}
