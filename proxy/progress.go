package proxy

import (
	"context"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Bounds of what waits for a caller that reads slowly.
const (
	// maxSteps is how many steps of progress and log messages of one call wait.
	// Then the newest step replaces the one before, and log messages are lost.
	maxSteps = 64
	// maxStepBytes is how many bytes of log messages of one call wait.
	maxStepBytes = 1 << 20
)

// A step is one of progress, or a log message.
type step struct {
	progress, total float64
	message         string
	log             *mcp.LogParams
}

// progress has the caller told.
func (a *upstreamCall) progress(progress, total float64, message string) {
	a.step(step{progress: progress, total: total, message: message})
}

// step has the caller told, and reports whether there was room. It never waits: all
// callers share the connection that steps come from.
func (a *upstreamCall) step(s step) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := s.size()
	switch n := len(a.steps); {
	case size > 0 && a.stepBytes > 0 && a.stepBytes+size > maxStepBytes:
		return false
	case n < maxSteps:
		a.steps = append(a.steps, s)
	case s.log != nil || a.steps[n-1].log != nil:
		return false
	default:
		a.steps[n-1] = s
	}
	a.stepBytes += size
	if a.idle == nil {
		a.idle = make(chan struct{})
		go a.tellSteps(a.idle) // it ends with the caller's request at the latest
	}
	return true
}

// size is what the bytes of a log message count.
func (s *step) size() int {
	if s.log == nil {
		return 0
	}
	return len(s.log.Data) + len(s.log.Logger)
}

// tellSteps tells the caller of the moment. What does not grow from its point of
// view, and what it can no longer be told, is left out.
func (a *upstreamCall) tellSteps(idle chan struct{}) {
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
			if s.log != nil {
				_ = server.Log(caller, s.log.Level, s.log.Logger, s.log.Data) // it ended
			} else {
				_ = server.Progress(caller, s.progress, s.total, s.message) // it ended, or has heard of more
			}
		}
		a.mu.Lock()
		a.stepBytes -= s.size()
		a.mu.Unlock()
	}
}

// told waits until the caller was told of the progress of its call and what it logged.
func (a *upstreamCall) told(ctx context.Context) {
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
