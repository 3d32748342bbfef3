package proxy

import (
	"context"
	"time"

	"github.com/parley-mcp/parley/server"
)

// maxSteps is how many steps of progress wait for a caller that reads slowly. Then
// the newest replaces the one before.
const maxSteps = 64

// A step is one of progress.
type step struct {
	progress, total float64
	message         string
}

// progress has the caller told. It never waits: all callers share the connection
// that progress comes from.
func (a *asking) progress(progress, total float64, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.steps) >= maxSteps {
		a.steps = a.steps[:len(a.steps)-1]
	}
	a.steps = append(a.steps, step{progress, total, message})
	if a.idle == nil {
		a.idle = make(chan struct{})
		go a.tellSteps(a.idle) // it ends with the caller's request at the latest
	}
}

// tellSteps tells the caller of the moment. What does not grow from its point of
// view, and what it can no longer be told, is left out.
func (a *asking) tellSteps(idle chan struct{}) {
	defer close(idle)
	for {
		a.mu.Lock()
		if len(a.steps) == 0 {
			a.idle = nil
			a.mu.Unlock()
			return
		}
		s := a.steps[0]
		a.steps = a.steps[1:]
		a.mu.Unlock()
		if caller := a.caller.Load(); caller != nil {
			_ = server.Progress(caller, s.progress, s.total, s.message) // it ended, or has heard of more
		}
	}
}

// told waits until the caller was told of the progress of its call.
func (a *asking) told(ctx context.Context) {
	a.mu.Lock()
	idle := a.idle
	a.mu.Unlock()
	if idle == nil {
		return
	}
	late := time.NewTimer(noticeTime)
	defer late.Stop()
	select {
	case <-idle:
	case <-late.C:
	case <-ctx.Done():
	}
}
