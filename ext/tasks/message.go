package tasks

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// progress has the task say how far it is.
func (r *run) progress(p *mcp.ProgressParams) {
	if r.forward && !r.isKept() {
		// It fails when the request has ended, of which the handler hears.
		_ = server.Progress(r.request, p.Progress, total(p), p.Message)
	}
	r.mu.Lock()
	r.message, r.unsaid = progressText(p), true
	r.mu.Unlock()
	r.sayIfUnsaid()
}

// sayIfUnsaid has the message of the task kept, if there is a task.
func (r *run) sayIfUnsaid() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsaid && !r.saying && r.isKept() {
		r.saying = r.t.srv.Go(func(context.Context) { r.say() })
	}
}

// sayEvery is the pause between two messages of a task that are kept.
const sayEvery = 200 * time.Millisecond

// say keeps messages, of those that come meanwhile the newest, until there is none.
func (r *run) say() {
	for {
		r.mu.Lock()
		if !r.unsaid || r.ctx.Err() != nil {
			r.saying = false
			r.mu.Unlock()
			return
		}
		message := r.message
		r.unsaid = false
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(r.ctx, storeTimeout)
		if err := r.change(ctx, Change{Message: &message}); err != nil && r.ctx.Err() == nil && !errors.Is(err, ErrLost) {
			r.t.opts.Log.WarnContext(ctx, "tasks: keeping a message", "task", r.id, "err", err)
		}
		cancel()
		pause(r.ctx, sayEvery)
	}
}

func (r *run) takeMessage() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsaid = false
	return r.message
}

// progressText is progress as a message.
func progressText(p *mcp.ProgressParams) string {
	far := strconv.FormatFloat(p.Progress, 'g', -1, 64)
	if all := total(p); all > 0 {
		far += " of " + strconv.FormatFloat(all, 'g', -1, 64)
	}
	if p.Message == "" {
		return far
	}
	return p.Message + " (" + far + ")"
}

// total is the total of progress, or 0.
func total(p *mcp.ProgressParams) float64 {
	if p.Total == nil {
		return 0
	}
	return *p.Total
}
