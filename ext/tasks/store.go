package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

var (
	// ErrUnknown says that there is no such task: there never was, it was deleted
	// after its TTL, or it is of another caller. Nothing tells these apart.
	ErrUnknown = errors.New("no such task")
	// ErrLost says that a lease holds no more: the task has ended, was deleted, or
	// another worker has it.
	ErrLost = errors.New("the lease of the task is lost")
)

// A Store keeps tasks. [Memory] is one; app/internal/store/tasks has them in SQLite and
// PostgreSQL, and package storetest checks one. [Task.Apply] and [Task.Take] are what
// Change and Answer do to the state of a task.
//
// A task that has not ended is held by one worker at most, under a lease that ends by
// itself: after a crash another worker takes the task. Each holder has a fencing token
// of its own: that of the first is 1, and each further one is greater by one. All that a
// worker writes is refused with ErrLost unless its token is that of the last lease, the
// lease was not released, and the task has not ended. A lease that ran out but was not
// taken by another worker may be renewed and used.
//
// Each method is atomic, and durable when it returns. The store's clock is the only one:
// it dates tasks, ends leases and, after their TTL, tasks, which are unknown from then on
// to every method. If it goes back the dates of a task do not. Errors other than those that
// a method names mean that the store failed, and that the change may have been made or
// not. All methods may be called by many goroutines at once, and processes if the store
// is shared; what they return belongs to the caller, but for bytes, which must not be
// written to. Bytes that a store is given must not change after.
type Store interface {
	// Durable reports whether tasks survive the process.
	Durable() bool
	// Create keeps a new task with the state Working, held under a lease for a time.
	// The error is a *LimitError if one of the bounds of n is reached.
	Create(ctx context.Context, n *NewTask, lease time.Duration) (*Task, Lease, error)
	// Get is a task of an owner, or ErrUnknown.
	Get(ctx context.Context, id, owner string) (*Task, error)
	// List is tasks in the order of their creation, newest first, without Result and
	// Questions. It returns ErrUnknown if the task q.After is unknown.
	List(ctx context.Context, q Query) ([]*Task, error)
	// Answer keeps answers to open questions of a task of an owner, which are then not
	// open any more. Without open questions the state is Working. Keys that are not
	// open are ignored, also of a task that has ended. It returns the task after that,
	// or ErrUnknown.
	Answer(ctx context.Context, id, owner string, answers mcp.InputResponses) (*Task, error)
	// Cancel ends a task of an owner as Cancelled, with a message, if it has not
	// ended. It returns the task after that, or ErrUnknown.
	Cancel(ctx context.Context, id, owner, message string) (*Task, error)

	// Claim takes tasks that have not ended and that nobody holds, oldest first, but for
	// those of skip: at most n, each under a lease for a time.
	Claim(ctx context.Context, lease time.Duration, n int, skip []string) ([]*Claimed, error)
	// Renew has leases hold for a time from now, and returns those that are lost.
	Renew(ctx context.Context, held []Lease, lease time.Duration) (lost []Lease, err error)
	// Change makes a change under a lease, whole or not at all, and returns the task after
	// it, or ErrLost.
	Change(ctx context.Context, l Lease, c Change) (*Task, error)
	// Answers are those that were given to questions of a held task, by key, since its
	// creation; or ErrLost.
	Answers(ctx context.Context, l Lease) (mcp.InputResponses, error)

	// Expire deletes tasks whose TTL has passed, and returns how many. A store that
	// does so by itself returns 0.
	Expire(ctx context.Context) (int, error)
	// Watch calls changed with the identifier of each task that was created, changed,
	// cancelled, released or deleted, by any process, after that was made; Claim, Renew and
	// Records alone change nothing of the Task, and need not be told. It returns when
	// ctx ends, with its error, or when changes may have been missed. Several changes of
	// one task may be told as one; changed returns quickly. ready is called when no further
	// change will be missed.
	Watch(ctx context.Context, ready func(), changed func(id string)) error
}

// A Query selects tasks for Store.List.
type Query struct {
	// Owner is the identity of the caller whose tasks are listed.
	Owner string
	// All has the tasks of all owners listed; Owner is then ignored.
	All bool
	// After is the identifier of the task after which the list goes on; "" is its
	// beginning.
	After string
	// Most is how many are listed at most.
	Most int
}

// A NewTask is what Store.Create keeps.
type NewTask struct {
	// ID is the identifier, which was never used.
	ID string
	// Owner is the identity of the caller.
	Owner string
	// LimitKey is what callers are counted by; it differs from Owner for anonymous ones.
	LimitKey string
	// Tool is the name of the tool.
	Tool string
	// Message is the first message; it may be empty.
	Message string
	// TTL and PollInterval are those of the Task.
	TTL, PollInterval time.Duration
	// Repeatable says that another worker may run the task again after a crash.
	Repeatable bool
	// Call is the call as server.Call.Save made it; nil if the store is not durable.
	Call []byte
	// Records are what the call has recorded since.
	Records []server.Record
	// MaxByKey and MaxAll bound the tasks that are kept, with this LimitKey and in
	// all; 0 is without bound.
	MaxByKey, MaxAll int
}

// A Lease is a worker's hold on a task.
type Lease struct {
	// ID is the identifier of the task.
	ID string
	// Token is the fencing token.
	Token int64
}

// A Claimed task was held by a worker that is gone.
type Claimed struct {
	Lease

	// Task is its state.
	Task *Task
	// Losses is how many of its holders neither ended nor released it.
	Losses int
	// Repeatable, Call and Records are what was kept: see NewTask.
	Repeatable bool
	Call       []byte
	Records    []server.Record
}

// A Change is what the worker of a task writes at once. Its members are applied in
// their order here; those that are zero change nothing.
type Change struct {
	// Records are added to those of the task.
	Records []server.Record
	// Ask is a further open question; the state is then InputRequired. A key that is open
	// already, or was answered, changes nothing.
	Ask *Question
	// Withdraw is the key of a question that is not open any more.
	Withdraw string
	// Message replaces the message.
	Message *string
	// End ends the task, and with it the lease.
	End *End
	// Release gives the task back, for another worker to claim at once.
	Release bool
}

// An End is how a task ends.
type End struct {
	// Status is Completed, Failed or Cancelled.
	Status Status
	// Result is that of a Completed task.
	Result mcp.RawValue
	// Error is that of a Failed task.
	Error *jsonrpc.Error
	// Message replaces the message of the task; it may be empty.
	Message string
}

// A LimitError says that no more tasks can be kept.
type LimitError struct {
	// All says that it is the bound on the tasks of all callers, Options.MaxAllKept,
	// and not the one on those of one caller, Options.MaxKept.
	All bool
	// Most is the bound.
	Most int
}

// Error says which limit was reached, and what helps.
func (e *LimitError) Error() string {
	whose, limit := " of one caller, or of the anonymous callers of one address,", "MaxKept"
	if e.All {
		whose, limit = "", "MaxAllKept"
	}
	return fmt.Sprintf("more than %d tasks%s are kept (tasks.Options.%s); they are deleted some time after they were created", e.Most, whose, limit)
}
