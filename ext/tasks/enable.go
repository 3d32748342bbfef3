package tasks

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Enable has the calls of tools become tasks, as the options say. Handlers are not
// changed: what they ask by server.Elicit, Sample and Roots is asked by the task, what they
// say by server.Progress is its message, and server.Once holds for its life. A cancelled
// task ends the context of the handler, which has the values that middleware gave to the
// request. ToolOptions.Timeout does not hold for a task.
//
// A store that survives the process is served by every process that has Enable with it: a
// task that was left by one is taken up by another when its lease has ended, at once after
// Server.Shutdown. A process does so from its first request on; [server.Server.Start] has
// it begin earlier. The store stays open until Server.Shutdown has returned.
//
// The answers of a task are asked of a client with the capabilities that it had in the
// request that created the task. Tasks belong to their caller: for others they do not
// exist. To a task of a tool with scopes only a token with those has access. In a server that
// others are mounted in, tools have the names that they have there; Enable is for that server:
// in a mounted one it makes no tasks.
//
// Enable panics if the store is nil or an option is wrong, and where [server.Server.Extend]
// does.
//
// spec ext-tasks (SEP-2663).
func Enable(s *server.Server, store Store, o *Options) {
	if store == nil {
		panic("tasks.Enable: the store is nil; use tasks.Memory()")
	}
	filled, err := o.filled()
	if err != nil {
		panic("tasks.Enable: " + err.Error())
	}
	t := &manager{
		srv: s, store: store, opts: filled, durable: store.Durable(),
		runs: make(map[string]*run), watched: make(map[string]watchedTask), waiting: make(map[string]*waiter), stale: make(map[string]bool),
		skip: make(map[string]time.Time), nudge: make(chan struct{}, 1), claim: make(chan struct{}, 1),
	}
	with := server.MethodOptions{Target: targetTask, NameHeader: true}
	s.Extend(server.Extension{
		ID: ID,
		Methods: append(t.coreMethods(),
			server.Method(MethodGet, t.get).With(with),
			server.Method(MethodUpdate, t.update).With(with),
			server.Method(MethodCancel, t.cancel).With(with),
		),
		Capabilities: []server.Capability{coreTasks},
		ToolMembers:  t.coreMembers,
		Wrap:         t.wrap,
		Filters:      map[string]server.Filter{filterIDs: t.filter},
	})
}

// A manager makes tasks of calls and serves them.
type manager struct {
	srv     *server.Server
	store   Store
	opts    Options
	durable bool

	nudge chan struct{} // there is something stale
	claim chan struct{} // another process has changed something

	skip map[string]time.Time // tasks left to others until a time; of the goroutine that claims

	looking sync.Mutex // held while the state of a task is read and told

	mu      sync.Mutex
	rest    context.CancelFunc     // ends run; nil while it does not run, or need not end
	runs    map[string]*run        // the tasks that run here, by identifier
	watched map[string]watchedTask // tasks that subscriptions named
	waiting map[string]*waiter     // tasks whose changes requests and questions wait for
	stale   map[string]bool        // tasks that changed and were not looked at since
}

// tool is how calls of a tool become tasks.
func (t *manager) tool(name string) Tool {
	if own, ok := t.opts.Tools[name]; ok {
		return own
	}
	return t.opts.Others
}

// lease is how long tasks of this process are held.
func (t *manager) lease() time.Duration {
	if !t.durable {
		return endless
	}
	return t.opts.Lease
}

// wrap makes tasks of calls of tools.
func (t *manager) wrap(next server.Func) server.Func {
	if t.durable {
		t.srv.Go(t.run)
	}
	return func(c *server.Call) (server.Result, error) {
		if c.Method() != mcp.MethodToolsCall {
			return next(c)
		}
		tool := t.tool(c.Target())
		inCore := c.Revisions()&server.CoreTasks != 0
		switch {
		case tool.Mode == Never && !inCore, c.MayCall(c.Target()) != nil:
			return next(c)
		case inCore:
			return t.coreCall(c, tool, next)
		case !c.HasExtension(ID) || c.Revisions()&server.Stateless == 0:
			if tool.Mode == Must {
				return nil, server.NeedExtension(ID)
			}
			return next(c)
		case tool.Begins:
			return t.untilBegin(c, tool, next)
		case tool.After > 0:
			return t.after(c, tool, next)
		}
		res, err := t.atOnce(c, tool, next)
		if tool.Mode == May && noRoom(err) {
			return next(c)
		}
		return res, err
	}
}

// noRoom reports whether a call did not become a task since there are too many.
func noRoom(err error) bool {
	kept, running := new(LimitError), new(server.DetachLimitError)
	return errors.As(err, &kept) || errors.As(err, &running)
}

// atOnce answers a call with a task.
func (t *manager) atOnce(c *server.Call, tool Tool, next server.Func) (server.Result, error) {
	task, err := t.begin(c, tool, next)
	if err != nil {
		return nil, err
	}
	return createdMessage(task), nil
}

// begin makes a task of a call.
func (t *manager) begin(c *server.Call, tool Tool, next server.Func) (*Task, error) {
	r := t.newRun(c, tool)
	if err := r.start(next, r.created); err != nil {
		return nil, err
	}
	task, err := r.create(c)
	if err != nil {
		r.stop(err)
		<-r.over
		if _, ended := r.answer(); errors.Is(err, errOver) && ended != nil {
			err = ended // it was ended by what ends the server
		}
		return nil, err
	}
	return task, t.abandoned(c, task, r.owner)
}

// abandoned cancels a task of which its client cannot learn, since it has left, and returns
// why the request ended.
func (t *manager) abandoned(c *server.Call, task *Task, owner string) error {
	if c.Err() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c), storeTimeout)
	defer cancel()
	_, err := t.store.Cancel(ctx, task.ID, owner, "the client left before it was told of the task")
	t.changed(task.ID)
	if err != nil && !errors.Is(err, ErrUnknown) {
		t.opts.Log.WarnContext(ctx, "tasks: cancelling a task whose client has left", "task", task.ID, "err", err)
	}
	return context.Cause(c)
}

// forget cancels a task that may have been created although the store failed.
func (t *manager) forget(ctx context.Context, id, owner string, err error) {
	if full := new(LimitError); errors.As(err, &full) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()
	// If it fails the task is taken up when its lease ends: it was asked for.
	_, _ = t.store.Cancel(ctx, id, owner, "its creation failed")
}

// after answers a call with a task if it takes longer or asks something, and else with
// its result.
func (t *manager) after(c *server.Call, tool Tool, next server.Func) (server.Result, error) {
	r := t.newRun(c, tool)
	r.forward = true
	if err := r.start(next, nil); err != nil {
		if noRoom(err) {
			return next(c)
		}
		return nil, err
	}
	timer := time.NewTimer(tool.After)
	defer timer.Stop()
	select {
	case <-r.over:
	case <-r.created:
	case <-c.Done():
	case <-timer.C:
		if _, err := r.create(c); err != nil && !errors.Is(err, errOver) && c.Err() == nil {
			t.opts.Log.WarnContext(c, "tasks: a call that takes long did not become a task", "tool", r.name, "err", err)
		}
	}
	select {
	case <-r.over:
	case <-r.created:
	case <-c.Done():
		if !r.isKept() {
			r.stop(context.Cause(c))
			<-r.over
		}
	}
	if r.isKept() {
		if err := t.abandoned(c, r.task, r.owner); err != nil {
			return nil, err
		}
	}
	return r.answer()
}

// newRun is a task that is not created yet.
func (t *manager) newRun(c *server.Call, tool Tool) *run {
	return &run{
		t: t, id: newID(), name: c.Target(), owner: c.Principal().Identity(), tool: tool, request: c,
		created: make(chan struct{}), over: make(chan struct{}),
	}
}

// newID is an identifier that cannot be guessed: 130 random bits.
func newID() string { return rand.Text() }

// add has a run found by changes of its task.
func (t *manager) add(r *run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs[r.id] = r
	t.beginWork()
}

func (t *manager) remove(r *run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs[r.id] == r {
		delete(t.runs, r.id)
		t.endWork()
	}
}

// createdMessage is the answer to a call that has become a task.
func createdMessage(t *Task) *taskMessage {
	m := wireCreated(t)
	m.ResultType = ResultTask
	return m
}
