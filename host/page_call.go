package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parley-mcp/parley/mcp"
)

// CallForPage calls a tool of a server for a page of the same server that was shown with
// [Session.Page], and returns the whole result, which is for the page: no model is given
// it. The call is decided, asked about, written down and audited as those of the model
// are; the record names the page. It works while a run is under way and while none is.
// [Session.CancelCall] cancels it, and so does the end of ctx.
//
// The error is [ErrPageNotShown], [ErrNotForPages], a [ConsentError], a [BudgetError] if
// too many calls of pages of the server are open or came in a minute, [ErrClosed],
// [ErrCancelled], or that of the server.
//
// SEP-1865, Visibility: "Host MUST reject tools/call requests from apps for tools that
// don't include "app" in visibility".
func (s *Session) CallForPage(ctx context.Context, server, page, tool string, args mcp.RawValue) (*mcp.CallToolResult, error) {
	ctx, end, err := s.beside(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	call, err := s.beginPageCall(server, page, tool, args)
	if err != nil {
		return nil, err
	}
	ctx, done := s.cancellable(ctx, call.ID)
	defer done()
	result, err := s.callForPage(ctx, call)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	return result, errors.Join(err, s.endPageCall(call, err))
}

// beginPageCall writes down that a page asks for a call.
func (s *Session) beginPageCall(server, page, tool string, args mcp.RawValue) (*CallRecord, error) {
	rec := &CallRecord{Server: server, Tool: bounded(tool, maxName), ByPage: page, Arguments: mcp.RawValue("{}")}
	if len(args) > 0 {
		var err error
		if rec.Arguments, err = compact(args); err != nil {
			rec.Text = bounded(string(args), maxWhy)
		}
	}
	spec, ok := s.host.spec(server)
	if !ok {
		return nil, fmt.Errorf("server %q: %w", server, ErrNoServer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkShown(&spec, page); err != nil {
		return nil, err
	}
	open := 0
	for _, c := range s.state.calls {
		if c.ByPage != "" && c.Server == server {
			open++
		}
	}
	if open >= s.host.opts.MaxCalls {
		return nil, &BudgetError{"calls", fmt.Sprintf("%d calls of pages of server %s at once", s.host.opts.MaxCalls, server)}
	}
	if err := s.roomForPages(server).count(server, s.host.opts.MaxRunCalls); err != nil {
		return nil, err
	}
	rec.ID = "c" + strconv.Itoa(len(s.records)+1)
	_, err := s.appendLocked(rec)
	return rec, err
}

// endPageCall closes a call of a page that has no result yet.
func (s *Session) endPageCall(call *CallRecord, err error) error {
	s.mu.Lock()
	open := slices.Contains(s.state.calls, call)
	s.mu.Unlock()
	if !open || err == nil {
		return nil
	}
	var refused *ConsentError
	errors.As(err, &refused)
	return s.notRun(call, err, refused, new(RunEndRecord))
}

// callForPage authorizes a call of a page and carries it out.
func (s *Session) callForPage(ctx context.Context, call *CallRecord) (*mcp.CallToolResult, error) {
	if _, err := s.host.Client(ctx, call.Server); err != nil {
		return nil, err
	}
	_, tool, err := s.host.listed(ctx, call.Server, call.Tool)
	switch {
	case err != nil:
		return nil, err
	case tool == nil || tool.leftOut:
		return nil, fmt.Errorf("%w: server %q has no tool %s", errCall, call.Server, quoteFlag(call.Tool))
	case !s.shownBy(tool.owner, call.ByPage):
		return nil, fmt.Errorf("%w: the server of the page was replaced", ErrPageNotShown)
	case !tool.uses.app:
		return nil, fmt.Errorf("tool %s: %w", quoteFlag(call.Tool), ErrNotForPages)
	case call.Arguments == nil:
		return nil, fmt.Errorf("%w: the arguments of %s are no JSON object", errCall, quoteFlag(call.Tool))
	}
	c, err := newAuthorizer(s, s.host.Catalog(), call).consent(ctx, call, tool)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	running := s.roomForPages(call.Server).running
	s.mu.Unlock()
	select {
	case running <- struct{}{}:
		defer func() { <-running }()
	case <-ctx.Done():
		return nil, errNotSent
	}
	if err := s.carryOut(ctx, ctx, c, new(RunEndRecord)); err != nil {
		return nil, err
	}
	return c.result, c.failure
}

// shownBy reports whether a page is of the server that a connection is of.
func (s *Session) shownBy(owner *link, page string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkShown(&owner.spec, page) == nil
}

// A pageRoom bounds the calls of the pages of one server: those of other servers do not
// wait for them.
type pageRoom struct {
	running chan struct{} // has a token for each call that is under way
	since   time.Time     // the begin of the minute in which calls are counted
	calls   int
}

// roomForPages has the room for the pages of a server. s.mu is held.
func (s *Session) roomForPages(server string) *pageRoom {
	room := s.pageRoom[server]
	if room == nil {
		room = &pageRoom{running: make(chan struct{}, s.host.opts.MaxParallel)}
		s.pageRoom[server] = room
	}
	return room
}

// count counts a call. The error says that there were too many in a minute.
func (r *pageRoom) count(server string, most int) error {
	if now := time.Now(); now.Sub(r.since) >= time.Minute {
		r.since, r.calls = now, 0
	}
	if r.calls++; r.calls > most {
		return &BudgetError{"calls", fmt.Sprintf("%d calls of pages of server %s in a minute", most, server)}
	}
	return nil
}

// countForPage counts the question about a call of a page.
func (s *Session) countForPage(c *readyCall) error {
	if c.record.ByPage == "" || !s.host.opts.Attended {
		return nil
	}
	return c.tool.owner.countQuestion()
}

// maxShownResults bounds the results that are kept for pages.
const maxShownResults = 16

// keepForPage keeps the whole result of a call of the model for the page that shows it.
// s.mu is held.
func (s *Session) keepForPage(c *readyCall, result *mcp.CallToolResult) {
	if result == nil || !c.tool.uses.page || c.record.ByPage != "" || s.host.opts.Pages == nil {
		return
	}
	s.shown = append(s.shown, shownResult{c.record.ID, result})
	s.shown = s.shown[max(0, len(s.shown)-maxShownResults):]
}

// A shownResult is the result of a call.
type shownResult struct {
	call   string
	result *mcp.CallToolResult
}

// ResultForPage returns the whole result of a call of a tool that has a page, as the
// server gave it, for the page to show: the log has what the model was given of it. It is
// nil for other calls, and for those of before: the last 16 are kept, and none after the
// session was opened again.
func (s *Session) ResultForPage(call string) *mcp.CallToolResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.shown {
		if r.call == call {
			return r.result
		}
	}
	return nil
}
