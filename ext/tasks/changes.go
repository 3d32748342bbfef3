package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/parley-mcp/parley/server"
)

// watch hears of changes in the store.
func (t *manager) watch(ctx context.Context) {
	for wait := retryPause; ; wait = min(2*wait, retryMost) {
		err := t.store.Watch(ctx, func() {
			wait = retryPause
			t.allStale()
		}, t.changed)
		if ctx.Err() != nil {
			return
		}
		t.opts.Log.WarnContext(ctx, "tasks: changes of tasks may come late; watching the store again", "err", err)
		t.allStale()
		pause(ctx, wait)
	}
}

// changed notes that a task has changed. It does not wait.
func (t *manager) changed(id string) {
	t.mu.Lock()
	_, wanted := t.watched[id]
	own := t.runs[id] != nil
	if own || wanted {
		t.stale[id] = true
	}
	if w := t.waiting[id]; w != nil {
		w.wake()
	}
	t.mu.Unlock()
	signal(t.nudge)
	if !own {
		signal(t.claim)
	}
}

// allStale notes that changes may have been missed.
func (t *manager) allStale() {
	t.mu.Lock()
	for id := range t.runs {
		t.stale[id] = true
	}
	for id := range t.watched {
		t.stale[id] = true
	}
	for _, w := range t.waiting {
		w.wake()
	}
	t.mu.Unlock()
	signal(t.nudge)
	signal(t.claim)
}

// A waiter is for the requests and questions of this process that wait for a change of a task.
type waiter struct {
	changed chan struct{} // closed at the next change
	count   int           // of those that wait
}

func (w *waiter) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// waitFor returns a channel that is closed at the next change of a task, until release is
// called.
func (t *manager) waitFor(id string) (changed <-chan struct{}, release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.waiting[id]
	if w == nil {
		w = &waiter{changed: make(chan struct{})}
		t.waiting[id] = w
		t.beginWork()
	}
	w.count++
	return w.changed, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if w.count--; w.count == 0 {
			delete(t.waiting, id)
			t.endWork()
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look reads tasks that have changed, for their handlers and subscribers, one after the
// other, so that what subscribers hear last is the newest.
func (t *manager) look(ctx context.Context) {
	for {
		select {
		case <-t.nudge:
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			signal(t.nudge) // it is for the goroutine that looks next: see beginWork
			return
		}
		t.mu.Lock()
		stale := t.stale
		t.stale = make(map[string]bool)
		t.mu.Unlock()
		failed := false
		for id := range stale {
			err := t.inspect(ctx, id)
			if err == nil {
				continue
			}
			t.changed(id)
			if ctx.Err() == nil {
				t.opts.Log.WarnContext(ctx, "tasks: reading a task that changed; trying again", "task", id, "err", err)
				failed = true
			}
		}
		if failed {
			pause(ctx, claimPause)
		}
	}
}

// inspect reads a task that has changed.
func (t *manager) inspect(ctx context.Context, id string) error {
	t.looking.Lock()
	defer t.looking.Unlock()
	t.mu.Lock()
	r, w := t.runs[id], t.watched[id]
	t.mu.Unlock()
	owner := w.owner
	if r != nil {
		owner = r.owner
	} else if w.since.IsZero() {
		return nil
	}
	if r != nil && !r.isKept() {
		r = nil // it is looked at when it has been created
	}
	within, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	task, err := t.store.Get(within, id, owner)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return err
	}
	if r != nil {
		switch {
		case err != nil:
			r.stop(ErrUnknown)
		case task.Status == Cancelled:
			r.stop(ErrCancelled)
		case task.Status.Ended():
			r.stop(ErrLost)
		}
	}
	if err == nil && !w.since.IsZero() && t.isNews(id, task) {
		if t.srv.Subscribed(ID, id) {
			t.tell(id, Notify, id, wireTask(task))
		}
		if w.unfollow != nil {
			t.tell(id, notifyStatus, sessionTopic(id), wireCore(task))
		}
	}
	if w.unfollow != nil {
		if err != nil || task.Status.Ended() {
			w.unfollow()
			t.mu.Lock()
			delete(t.watched, id)
			t.endWork()
			t.mu.Unlock()
		}
	}
	return nil
}

// isNews reports whether the state of a task is another than the one that was told last.
func (t *manager) isNews(id string, task *Task) bool {
	now := toldState{updated: task.Updated, status: task.Status, message: task.Message, questions: len(task.Questions)}
	if len(task.Questions) > 0 {
		now.lastKey = task.Questions[len(task.Questions)-1].Key
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w, ok := t.watched[id]
	if !ok || w.told == now {
		return false
	}
	w.told = now
	t.watched[id] = w
	return true
}

// tell sends the state of a task to its subscribers, as tasks/get says it.
func (t *manager) tell(id, method, topic string, state any) {
	if err := t.srv.Notify(ID, topic, method, state); err != nil {
		t.opts.Log.Error("tasks: a notification cannot be encoded", "task", id, "err", err)
	}
}

// A watchedTask is one whose changes clients are told.
type watchedTask struct {
	owner    string
	since    time.Time
	unfollow func() // of the session that created it, or nil
	told     toldState
}

// A toldState tells one state of a task from another.
type toldState struct {
	updated   time.Time
	status    Status
	message   string
	questions int
	lastKey   string
}

// watchFor has changes of tasks told to subscriptions.
func (t *manager) watchFor(owner string, ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		w := t.watched[id]
		w.owner, w.since = owner, time.Now()
		t.watched[id] = w
	}
	t.beginWork()
}

// sessionTopic is what the session follows that has created a task.
func sessionTopic(id string) string { return "session " + id }

// follow has changes of a task told to the session that created it, if it has one and room.
func (t *manager) follow(c *server.Call, id string) {
	unfollow, err := c.Follow(ID, sessionTopic(id))
	if err != nil {
		return // it is told by tasks/get
	}
	t.mu.Lock()
	t.watched[id] = watchedTask{owner: c.Principal().Identity(), since: time.Now(), unfollow: unfollow}
	t.beginWork()
	t.mu.Unlock()
	t.changed(id) // it may have changed before
}

// tidy deletes what is not needed any more, and has all be looked at, in case a change was
// not told.
func (t *manager) tidy(ctx context.Context) {
	t.allStale()
	if _, err := t.store.Expire(ctx); err != nil && ctx.Err() == nil {
		t.opts.Log.WarnContext(ctx, "tasks: deleting tasks whose time has passed", "err", err)
	}
	t.mu.Lock()
	old := make([]string, 0, len(t.watched))
	for id, w := range t.watched {
		if time.Since(w.since) > expireEvery && w.unfollow == nil { // its subscription has begun
			old = append(old, id)
		}
	}
	t.mu.Unlock()
	for _, id := range old {
		if t.srv.Subscribed(ID, id) {
			continue
		}
		t.mu.Lock()
		if w := t.watched[id]; time.Since(w.since) > expireEvery && w.unfollow == nil {
			delete(t.watched, id)
			t.endWork()
		}
		t.mu.Unlock()
	}
}
