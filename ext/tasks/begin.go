package tasks

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// ErrBegun is what [Begin] returns where a handler has to return so that its call becomes
// a task, as server.ErrInputPending where it has to be asked first.
var ErrBegun error = mcp.NewError(mcp.CodeInternalError, "the call becomes a task; the handler will run again")

// A beginning is whether a handler called Begin in a call that is no task yet.
type beginning struct{ called atomic.Bool }

type beginKey struct{}

// Begin says in the handler of a tool with Tool.Begins that the call is a task from here on.
// What was asked before has been asked by the request. If the error is ErrBegun the handler
// must return it: it then runs again from the top as a task, with the answers and results of
// server.Once that it had, and Begin returns nil. Where calls do not become tasks it returns
// nil too.
func Begin(ctx context.Context) error {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		_, err := r.create(ctx)
		if errors.Is(err, errOver) {
			return context.Cause(ctx)
		}
		return err
	}
	if b, ok := ctx.Value(beginKey{}).(*beginning); ok {
		b.called.Store(true)
		return ErrBegun
	}
	return nil
}

// untilBegin answers a call as an ordinary one, or with a task if its handler calls Begin.
func (t *manager) untilBegin(c *server.Call, tool Tool, next server.Func) (server.Result, error) {
	b := new(beginning)
	res, err := next(c.WithContext(context.WithValue(c, beginKey{}, b)))
	if !b.called.Load() {
		return res, err
	}
	return t.atOnce(c, tool, next)
}
