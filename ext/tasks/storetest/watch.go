package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
)

var watching = []check{
	{"Watch tells of each task that was created, changed, cancelled or deleted", true, testWatch},
	{"Watch tells of what is seen then, of changes by any process", false, testWatchShared},
	{"Watch tells all of many watchers", false, testWatchers},
	{"Watch returns when its context ends", false, testWatchEnds},
	{"a context that has ended changes nothing and hangs nothing", false, testContext},
}

// hearing is how long a change may take to be told. It is for machines that are busy:
// a test that succeeds waits for what happens, and no longer.
const hearing = 2 * time.Minute

// A listener is a call of Watch.
type listener struct {
	k     *kit
	store tasks.Store
	ids   chan string
}

// listen begins to watch, and returns when nothing is missed any more.
func (k *kit) listen(store tasks.Store) *listener {
	k.Helper()
	l := &listener{k: k, store: store, ids: make(chan string, 10_000)}
	ctx, stop := context.WithCancel(k.Context())
	ready, over := make(chan struct{}), make(chan error, 1)
	go func() {
		var once sync.Once
		over <- store.Watch(ctx, func() { once.Do(func() { close(ready) }) }, func(id string) { l.ids <- id })
	}()
	k.Cleanup(func() {
		stop()
		if err := <-over; !errors.Is(err, context.Canceled) {
			k.Errorf("Watch returns %v, want %v", err, context.Canceled)
		}
	})
	select {
	case <-ready:
	case err := <-over:
		over <- context.Canceled
		k.Fatalf("Watch returns %v before it is ready", err)
	}
	return l
}

// hears waits until a task was told of, and then tests that it is as it should be.
func (l *listener) hears(what, id string, is func() bool) {
	l.k.Helper()
	late := time.NewTimer(hearing)
	defer late.Stop()
	for {
		select {
		case got := <-l.ids:
			// What is told late is of an earlier change, and another comes.
			if got == id && is() {
				return
			}
		case <-late.C:
			l.k.Fatalf("%s was not told of", what)
		}
	}
}

// has reports whether a task has a state.
func (l *listener) has(id string, status tasks.Status) func() bool {
	return func() bool {
		t, err := l.store.Get(l.k.Context(), id, "ada")
		return err == nil && t.Status == status
	}
}

func testWatch(k *kit) {
	l := k.listen(k.store)
	held := k.create("t")
	l.hears("the creation", "t", l.has("t", tasks.Working))
	k.change(held, tasks.Change{Ask: question("open")})
	l.hears("a question", "t", l.has("t", tasks.InputRequired))
	_, err := k.store.Answer(k.Context(), "t", "ada", mcp.InputResponses{"open": []byte(`1`)})
	k.equal("error of Answer", err, nil)
	l.hears("an answer", "t", l.has("t", tasks.Working))
	message := "half"
	k.change(held, tasks.Change{Message: &message})
	l.hears("a message", "t", func() bool { return k.get("t").Message == message })
	k.change(held, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(`1`)}})
	l.hears("the end", "t", l.has("t", tasks.Completed))
	k.create("u")
	l.hears("the creation", "u", l.has("u", tasks.Working))
	_, err = k.store.Cancel(k.Context(), "u", "ada", "")
	k.equal("error of Cancel", err, nil)
	l.hears("the cancellation", "u", l.has("u", tasks.Cancelled))
	k.Advance(time.Hour)
	_, err = k.store.Expire(k.Context())
	k.equal("error of Expire", err, nil)
	told := map[string]bool{}
	for len(told) < 2 { // in any order
		select {
		case id := <-l.ids:
			told[id] = true
		case <-time.After(hearing):
			k.Fatalf("of the deletion of two tasks, %v was told", told)
		}
	}
}

func testWatchShared(k *kit) {
	other := k.Open(k)
	here, there := k.listen(k.store), k.listen(other)
	held := k.create("t")
	there.hears("the creation in another process", "t", there.has("t", tasks.Working))
	_, err := other.Cancel(k.Context(), "t", "ada", "")
	k.equal("error of Cancel", err, nil)
	here.hears("the cancellation in another process", "t", here.has("t", tasks.Cancelled))
	k.refused("after a cancellation in another process", held)
}

func testWatchers(k *kit) {
	var all []*listener
	for range 8 {
		all = append(all, k.listen(k.store))
	}
	race(func(i int) error {
		_, _, err := k.store.Create(k.Context(), newTask(name("t", i), "ada"), lease)
		if err != nil {
			k.Errorf("Create: %v", err)
		}
		return err
	})
	for _, l := range all {
		left := make(map[string]bool)
		for i := range racers {
			left[name("t", i)] = true
		}
		late := time.NewTimer(hearing)
		for len(left) > 0 {
			select {
			case id := <-l.ids:
				delete(left, id)
			case <-late.C:
				k.Fatalf("a watcher was not told of %d tasks", len(left))
			}
		}
		late.Stop()
	}
}

func testWatchEnds(k *kit) {
	ctx, stop := context.WithCancel(k.Context())
	over := make(chan error, 1)
	go func() { over <- k.store.Watch(ctx, stop, func(string) {}) }()
	k.fails("Watch", <-over, context.Canceled)
	k.create("t")
}

func testContext(k *kit) {
	l := k.create("t")
	want := k.get("t")
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	call := map[string]func() error{
		"Create":  func() error { _, _, err := k.store.Create(ctx, newTask("u", "ada"), lease); return err },
		"Get":     func() error { _, err := k.store.Get(ctx, "t", "ada"); return err },
		"List":    func() error { _, err := k.store.List(ctx, tasks.Query{Owner: "ada", Most: 1}); return err },
		"Answer":  func() error { _, err := k.store.Answer(ctx, "t", "ada", nil); return err },
		"Cancel":  func() error { _, err := k.store.Cancel(ctx, "t", "ada", ""); return err },
		"Claim":   func() error { _, err := k.store.Claim(ctx, lease, 1, nil); return err },
		"Renew":   func() error { _, err := k.store.Renew(ctx, []tasks.Lease{l}, lease); return err },
		"Change":  func() error { _, err := k.store.Change(ctx, l, tasks.Change{Ask: question("q")}); return err },
		"Answers": func() error { _, err := k.store.Answers(ctx, l); return err },
		"Expire":  func() error { _, err := k.store.Expire(ctx); return err },
		"Watch":   func() error { return k.store.Watch(ctx, func() {}, func(string) {}) },
	}
	for name, f := range call {
		k.fails(name, f(), context.Canceled)
	}
	k.equal("the task after that", k.get("t"), want)
	_, err := k.store.Get(k.Context(), "u", "ada")
	k.fails("Get of what was not created", err, tasks.ErrUnknown)
}
