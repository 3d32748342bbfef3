// Package storetest holds implementations of tasks.Store to their contract:
//
//	func TestStore(t *testing.T) {
//		storetest.Test(t, func(t testing.TB) storetest.Backend {
//			path, clock := filepath.Join(t.TempDir(), "tasks.db"), new(atomic.Int64)
//			return storetest.Backend{
//				Open:    func(t testing.TB) tasks.Store { return openStore(t, path, clock) },
//				Advance: func(d time.Duration) { clock.Add(int64(d)) },
//			}
//		})
//	}
package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
)

// A Backend is an empty store under test.
type Backend struct {
	// Open opens the store as another process would: what it returns at each call shares
	// nothing but the tasks. It closes it with t.Cleanup. A store that cannot be shared
	// returns itself.
	Open func(t testing.TB) tasks.Store
	// Advance adds d, which may be negative, to the clock that all of the opened stores
	// use. Without it, tests of leases that run out and of tasks that expire are skipped.
	Advance func(d time.Duration)
}

// Test holds stores to the contract of [tasks.Store], races included. Each subtest names
// what it holds them to, and has a backend of its own; they run side by side.
func Test(t *testing.T, backend func(t testing.TB) Backend) {
	t.Helper()
	for _, part := range [][]check{creation, access, ends, leases, claims, expiry, watching, values} {
		for _, c := range part {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				b := backend(t)
				if c.clock && b.Advance == nil {
					t.Skip("the clock of the store cannot be set")
				}
				c.test(&kit{T: t, Backend: b, store: b.Open(t)})
			})
		}
	}
}

// A check is a subtest.
type check struct {
	// name is the sentence of the contract that is tested.
	name string
	// clock says that the test sets the clock.
	clock bool
	test  func(k *kit)
}

// A kit is what a subtest works with.
type kit struct {
	*testing.T
	Backend

	store tasks.Store
}

// racers is how many goroutines try the same thing at once.
const racers = 32

// lease is how long a lease holds where that is not the subject.
const lease = time.Minute

// newTask is a task of an owner.
func newTask(id, owner string) *tasks.NewTask {
	return &tasks.NewTask{ID: id, Owner: owner, LimitKey: owner, Tool: "tool", TTL: time.Hour}
}

// create creates a task of the owner "ada".
func (k *kit) create(id string) tasks.Lease {
	k.Helper()
	_, l := k.add(newTask(id, "ada"))
	return l
}

func (k *kit) add(n *tasks.NewTask) (*tasks.Task, tasks.Lease) {
	k.Helper()
	t, l, err := k.store.Create(k.Context(), n, lease)
	if err != nil {
		k.Fatalf("Create of %q: %v", n.ID, err)
	}
	return t, l
}

// change makes a change that must succeed.
func (k *kit) change(l tasks.Lease, c tasks.Change) *tasks.Task {
	k.Helper()
	t, err := k.store.Change(k.Context(), l, c)
	if err != nil {
		k.Fatalf("Change of %q: %v", l.ID, err)
	}
	return t
}

// get is a task of the owner "ada".
func (k *kit) get(id string) *tasks.Task {
	k.Helper()
	t, err := k.store.Get(k.Context(), id, "ada")
	if err != nil {
		k.Fatalf("Get of %q: %v", id, err)
	}
	return t
}

// claim claims all that there is, at most a hundred.
func (k *kit) claim() []*tasks.Claimed {
	k.Helper()
	claimed, err := k.store.Claim(k.Context(), lease, 100, nil)
	if err != nil {
		k.Fatalf("Claim: %v", err)
	}
	return claimed
}

// claimOne claims the only task that can be claimed.
func (k *kit) claimOne() *tasks.Claimed {
	k.Helper()
	claimed := k.claim()
	if len(claimed) != 1 {
		k.Fatalf("%d tasks were claimed, want one", len(claimed))
	}
	return claimed[0]
}

// refused tests that a lease is refused by every method that takes one.
func (k *kit) refused(what string, l tasks.Lease) {
	k.Helper()
	before, _ := k.store.Get(k.Context(), l.ID, "ada")
	message := "of a lost lease"
	for name, c := range map[string]tasks.Change{
		"nothing":  {},
		"Records":  {Records: records("lost")},
		"Ask":      {Ask: question("lost")},
		"Withdraw": {Withdraw: "open"},
		"Message":  {Message: &message},
		"End":      {End: &tasks.End{Status: tasks.Completed, Result: []byte(`{}`)}},
		"Release":  {Release: true},
	} {
		_, err := k.store.Change(k.Context(), l, c)
		k.fails("Change of "+name+" "+what, err, tasks.ErrLost)
	}
	_, err := k.store.Answers(k.Context(), l)
	k.fails("Answers "+what, err, tasks.ErrLost)
	lost, err := k.store.Renew(k.Context(), []tasks.Lease{l}, lease)
	if err != nil || len(lost) != 1 || lost[0] != l {
		k.Errorf("Renew %s: lost %v, error %v", what, lost, err)
	}
	after, _ := k.store.Get(k.Context(), l.ID, "ada")
	k.equal("the task "+what, after, before)
}

// fails tests that an error is another.
func (k *kit) fails(what string, got, want error) {
	k.Helper()
	if !errors.Is(got, want) {
		k.Errorf("%s: error %v, want %v", what, got, want)
	}
}

// equal compares values, tasks by what is in them.
func (k *kit) equal(what string, got, want any) {
	k.Helper()
	if !reflect.DeepEqual(got, want) {
		k.Errorf("%s: got %s, want %s", what, show(got), show(want))
	}
}

// show writes what a pointer leads to.
func show(v any) string {
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() {
		v = p.Elem().Interface()
	}
	text := fmt.Sprintf("%+v", v)
	if len(text) > 1000 {
		return text[:1000] + "…"
	}
	return text
}

// race calls f from many goroutines at once and returns what they returned.
func race[T any](f func(i int) T) []T {
	out := make([]T, racers)
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range racers {
		wg.Go(func() {
			<-begin
			out[i] = f(i)
		})
	}
	close(begin)
	wg.Wait()
	return out
}

// name is a name with a number.
func name(prefix string, i int) string { return fmt.Sprintf("%s%03d", prefix, i) }

func question(key string) *tasks.Question {
	return &tasks.Question{Key: key, Method: "elicitation/create", Params: []byte(`{"message":"` + key + `?"}`)}
}
