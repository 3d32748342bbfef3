package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// renew has the leases of the tasks that run here hold on. A task whose lease ends is stopped
// by its deadline: another process may have it.
func (t *manager) renew(ctx context.Context) {
	t.mu.Lock()
	runs := make(map[Lease]*run, len(t.runs))
	for _, r := range t.runs {
		if r.isKept() {
			runs[r.lease] = r
		}
	}
	t.mu.Unlock()
	if len(runs) == 0 {
		return
	}
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, t.opts.Lease/3)
	defer cancel()
	lost, err := t.store.Renew(within, slices.Collect(maps.Keys(runs)), t.opts.Lease)
	if err != nil {
		if ctx.Err() == nil {
			t.opts.Log.WarnContext(ctx, "tasks: renewing leases", "err", err)
		}
		return
	}
	for _, l := range lost {
		if r := runs[l]; r != nil {
			delete(runs, l)
			r.lose(within)
		}
	}
	for _, r := range runs {
		r.hold(began)
	}
}

// takeUp takes up tasks that nobody holds, until the server is about to end.
func (t *manager) takeUp(ctx context.Context) {
	ticker := time.NewTicker(t.opts.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-t.srv.Closing():
			<-ctx.Done()
			return
		default:
		}
		if err := t.claimAll(ctx); err != nil && ctx.Err() == nil {
			t.opts.Log.WarnContext(ctx, "tasks: taking up tasks", "err", err)
		}
		pause(ctx, claimPause)
		select {
		case <-t.claim:
		case <-ticker.C:
		case <-t.srv.Closing():
		case <-ctx.Done():
			return
		}
	}
}

// claimAll takes up all tasks that nobody holds, but for those that run here, whose leases may
// have ended by a jump of the store's clock, and those that were found to have no place here a
// short time ago.
func (t *manager) claimAll(ctx context.Context) error {
	for {
		skip := t.skipped()
		t.mu.Lock()
		skip = slices.AppendSeq(skip, maps.Keys(t.runs))
		t.mu.Unlock()
		began := time.Now()
		claimed, err := t.store.Claim(ctx, t.opts.Lease, claimMost, skip)
		if err != nil {
			return err
		}
		for _, c := range claimed {
			t.resume(ctx, c, began)
		}
		if len(claimed) < claimMost || len(t.skip) >= maxSkipped { // the next ones may be the same
			return nil
		}
	}
}

// maxSkipped bounds the tasks that are left to other processes.
const maxSkipped = 1000

// skipped are the tasks that are left to other processes for the time being.
func (t *manager) skipped() []string {
	now := time.Now()
	maps.DeleteFunc(t.skip, func(_ string, until time.Time) bool { return now.After(until) })
	return slices.Collect(maps.Keys(t.skip))
}

// resume takes up one task, ends it if it is not to be run again, or gives it back if this
// process cannot run it.
func (t *manager) resume(ctx context.Context, c *Claimed, began time.Time) {
	r := &run{
		t: t, id: c.ID, name: c.Task.Tool, tool: t.tool(c.Task.Tool), task: c.Task, lease: c.Lease, phase: kept,
		created: make(chan struct{}), over: make(chan struct{}), asked: make(map[string]int),
	}
	r.tool.Repeatable = c.Repeatable
	for _, rec := range c.Records {
		if rec.Kind == server.RecordAnswer {
			r.asked[rec.Key] = len(rec.Key)
		}
	}
	close(r.created)
	change := Change{End: r.unfit(c)}
	if change.End == nil {
		d, _, err := t.srv.Resume(ID, c.Call, c.Records, r.options())
		if err == nil {
			r.owner = d.Principal().Identity()
			r.hold(began)
			t.addRunning(r)
			return
		}
		t.leave(ctx, c, err)
		change.Release = true
	}
	r.values(ctx, nil)
	defer r.stop(errOver)
	if err := r.change(ctx, change); err != nil && ctx.Err() == nil && !errors.Is(err, ErrLost) {
		t.opts.Log.WarnContext(ctx, "tasks: giving a task back", "task", c.ID, "err", err)
	}
}

// leave leaves a task that this process cannot run to others: there is no room for it, or
// they have a tool that this one has not, as while servers are replaced one by one.
func (t *manager) leave(ctx context.Context, c *Claimed, err error) {
	wait := t.opts.Lease / 3
	if full := new(server.DetachLimitError); !errors.As(err, &full) && !errors.Is(err, server.ErrShutdown) {
		wait = 10 * t.opts.Lease
		t.opts.Log.WarnContext(ctx, "tasks: a task is left to other processes, since this one cannot run it", "task", c.ID, "tool", c.Task.Tool, "err", err)
	}
	if len(t.skip) < maxSkipped {
		t.skip[c.ID] = time.Now().Add(wait)
	}
}

// addRunning has a run found by changes of its task, which may have ended or been changed
// meanwhile.
func (t *manager) addRunning(r *run) {
	t.add(r)
	select {
	case <-r.over:
		t.remove(r)
	default:
		t.changed(r.id)
	}
}

// unfit is why a task is not run again, or nil.
func (r *run) unfit(c *Claimed) *End {
	switch most := r.t.opts.MaxAttempts; {
	case !c.Repeatable:
		return failure(mcp.CodeInternalError, "the process that ran the task ended before it was done; the tool is not marked as repeatable, so it was not run again")
	case over(c.Losses, most):
		return failure(mcp.CodeInternalError, fmt.Sprintf("the task lost its process %d times before it was done (tasks.Options.MaxAttempts)", c.Losses))
	}
	return nil
}
