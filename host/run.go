package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// maxTurnText bounds the text of one turn of a model, in bytes.
const maxTurnText = 1 << 20

// A run is what a message of the person began: turns of the model and calls of
// tools, until the model calls nothing any more.
type run struct {
	session *Session
	end     context.CancelCauseFunc
	done    chan struct{}          // closed when nothing of the run is left
	count   RunEndRecord           // steps, calls, failed, refused; under session.mu
	told    map[string]ServerState // servers that are down, as the log says
	// noSummary is why the conversation was not summarized in this run, or nil. It is not tried again.
	noSummary *summaryError
}

// An Input is what the person puts into a conversation.
type Input struct {
	// Text is what the person wrote, or empty.
	Text string
	// Attached are texts of the person's files, and images that the model takes, which
	// stand before Text.
	Attached mcp.Contents
	// Resources are read from servers, Prompt is expanded by its server, and Skill is
	// loaded, before the text.
	Resources []ResourceInput
	Prompt    *PromptInput
	Skill     *SkillInput
	// Page is what a page of a server says (ui/message), or nil. The person is asked.
	Page *PageInput
}

// Send puts what the person says into the conversation and starts a run, which
// goes on by itself: [Session.Watch] shows it, [Session.Wait] waits for its end. An
// error says that nothing was started: [ErrBusy], ErrClosed, a resource that cannot
// be read, or that of the store.
func (s *Session) Send(ctx context.Context, in Input) error {
	_, err := s.startRun(ctx, in)
	return err
}

// startRun is Send, and returns the run.
func (s *Session) startRun(ctx context.Context, in Input) (_ *run, err error) {
	// The run belongs to the session: a face that goes away does not end it.
	r, runCtx, err := s.reserve(ctx)
	if err != nil {
		return nil, err
	}
	started := false
	defer func() {
		if !started {
			s.release(r, err)
		}
	}()
	bodies, err := s.gatherFor(ctx, runCtx, &in)
	if err == nil {
		_, err = s.write(bodies...)
	}
	if err != nil {
		return nil, err
	}
	s.entitle(ctx, in.Text)
	started = true
	go r.work(runCtx)
	return r, nil
}

// errExited is why something ends whose goroutine was ended by runtime.Goexit.
var errExited = errors.New("what the host was given ended the goroutine that called it")

// work runs the turns of a run and finishes it, whatever ends them.
func (r *run) work(ctx context.Context) {
	err := errExited
	defer r.end(nil)
	defer func() {
		if v := recover(); v != nil {
			err = panicked(r.session.log, "the run", v)
		}
		r.session.finish(r, err)
	}()
	err = r.loop(ctx)
}

// gatherFor is gather, which ends with the caller's context and with the run's.
func (s *Session) gatherFor(ctx, runCtx context.Context, in *Input) ([]Body, error) {
	gatherCtx, end := context.WithCancelCause(runCtx)
	defer end(nil)
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	defer stop()
	gathering := func(now bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gathering = now
	}
	gathering(true)
	defer gathering(false)
	bodies, err := s.gather(gatherCtx, in)
	if err != nil && gatherCtx.Err() != nil {
		err = context.Cause(gatherCtx)
	}
	return bodies, err
}

// reserve makes the session busy. The context is the run's: it ends with r.end.
func (s *Session) reserve(ctx context.Context) (*run, context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, ErrClosed
	case s.broken != nil:
		return nil, nil, s.broken
	case s.current != nil:
		return nil, nil, ErrBusy
	}
	runCtx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	s.current = &run{session: s, end: end, done: make(chan struct{}), told: make(map[string]ServerState)}
	return s.current, runCtx, nil
}

// release ends a run that has written nothing.
func (s *Session) release(r *run, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.lastErr = nil, err
	r.end(nil)
	close(r.done)
	s.wake()
}

// entitle gives a session without a title the beginning of its first message.
func (s *Session) entitle(ctx context.Context, text string) {
	title := strings.Join(strings.Fields(text), " ")
	title, _ = cut(title, 80)
	s.mu.Lock()
	untitled := s.info.Title == "" && title != ""
	if untitled {
		s.info.Title = title
	}
	s.mu.Unlock()
	if !untitled {
		return
	}
	if err := s.host.opts.Store.SetTitle(ctx, s.info.ID, title); err != nil {
		s.log.Warn("keeping the title of a session", "error", err)
	}
}

// finish writes how a run ended: calls without a result are closed first.
func (s *Session) finish(r *run, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		s.current = nil
		clear(s.progress)
		close(r.done)
		s.wake()
	}()
	s.lastErr = err
	end := r.count
	end.Outcome = OutcomeDone
	if err != nil {
		end.Outcome, end.Why = outcomeOf(err), bounded(err.Error(), maxWhy)
		why := "nothing was done: the run ended before: " + end.Why
		_, _ = s.appendLocked(s.state.closeCalls(s.state.callsOfModel(), end.Outcome, why, "the run ended while the call was under way; it may have had effects")...)
	}
	if _, writeErr := s.appendLocked(&end); writeErr != nil {
		s.lastErr = errors.Join(err, writeErr)
	}
}

// outcomeOf says how a run ended with an error.
func outcomeOf(err error) Outcome {
	switch {
	case errors.Is(err, ErrCancelled):
		return OutcomeCancelled
	case errors.Is(err, ErrClosed):
		return OutcomeInterrupted
	case errors.Is(err, ErrConsent):
		return OutcomeRefused
	}
	return OutcomeFailed
}

// Wait waits until no run is under way and returns how the last one ended. The
// error is why it did not end as it should: a *BudgetError when a budget is
// spent; a *ConsentError when consent is needed and no person can be asked, in
// which case no call of that turn was carried out; the model's; [ErrCancelled];
// the first *ServerError when all servers are down; that of ctx. A call that was
// refused, or whose tool failed, is no error: the model is told.
func (s *Session) Wait(ctx context.Context) (*RunEndRecord, error) {
	s.mu.Lock()
	r := s.current
	s.mu.Unlock()
	if r != nil {
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.records) - 1; i >= 0; i-- {
		if end, ok := s.records[i].Body.(*RunEndRecord); ok {
			return end, s.lastErr
		}
	}
	return &RunEndRecord{}, s.lastErr
}

// Ask sends a text, waits for the end of the run and returns what the model said
// last. When ctx ends, the run is cancelled. The errors are those of Send and Wait.
func (s *Session) Ask(ctx context.Context, text string) (string, *RunEndRecord, error) {
	r, err := s.startRun(ctx, Input{Text: text})
	if err != nil {
		return "", &RunEndRecord{Outcome: OutcomeFailed}, err
	}
	// This run alone: it may be over, and another one under way, when ctx is seen to end.
	stop := context.AfterFunc(ctx, func() { r.end(context.Cause(ctx)) })
	defer stop()
	end, err := s.Wait(context.WithoutCancel(ctx))
	return s.lastText(), end, err
}

// lastText is the text of the last turn.
func (s *Session) lastText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := len(s.records)
	for from > 0 {
		from--
		if _, ok := s.records[from].Body.(*TurnRecord); ok {
			break
		}
	}
	var b strings.Builder
	for _, r := range s.records[from:] {
		if t, ok := r.Body.(*TextRecord); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// Cancel ends the run that is under way: calls are cancelled at their servers, and
// the log says so.
func (s *Session) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.end(ErrCancelled)
	}
}

// loop takes turns until the model calls nothing any more.
func (r *run) loop(ctx context.Context) error {
	s := r.session
	ctx, stop := s.host.limit(ctx, s.limits().Time)
	defer stop()
	err := r.turns(withSession(ctx, s, ""))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

func (r *run) turns(ctx context.Context) error {
	s := r.session
	for step := 1; step <= s.limits().Steps; step++ {
		catalog, err := r.catalog(ctx, step)
		if err != nil {
			return err
		}
		if err := r.compactIfLong(ctx); err != nil {
			return err
		}
		calls, err := r.turn(ctx, catalog, step)
		if err != nil {
			return err
		}
		if len(calls) == 0 {
			return nil
		}
		if err := r.calls(ctx, catalog, calls); err != nil {
			return err
		}
	}
	return &BudgetError{"steps", fmt.Sprintf("%d steps", s.limits().Steps)}
}

// catalog reads the tools of now. A server that is down is told once in a run; if
// all are, there is nothing to work with.
func (r *run) catalog(ctx context.Context, step int) (*Catalog, error) {
	s := r.session
	var catalog *Catalog
	if step > 1 {
		s.host.refresh()
		catalog = s.host.Catalog()
	} else {
		// It starts the servers: a sign-in that one needs pauses the time that is waited.
		catalog = s.host.Settle(ctx, s.host.opts.StartWait)
		if len(catalog.Tools) == 0 && slices.ContainsFunc(catalog.Down, starting) { // there is nothing to begin with
			s.host.settle(ctx, s.host.opts.ConnectTimeout, func(s *supervisor) bool { return s.status.State == StateReady && len(s.tools) > 0 })
			catalog = s.host.Settle(ctx, s.host.opts.StartWait)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, e := range catalog.Down {
		if _, told := r.told[e.Server]; told {
			continue
		}
		if starting(e) {
			continue
		}
		r.told[e.Server] = e.State
		if _, err := s.write(&NoticeRecord{Level: mcp.LogWarning, Server: e.Server, Text: bounded(e.Error(), maxWhy), Untrusted: true}); err != nil {
			return nil, err
		}
	}
	if err := s.noticeProblems(catalog); err != nil {
		return nil, err
	}
	down := slices.DeleteFunc(slices.Clone(catalog.Down), starting)
	if len(down) > 0 && len(down) == len(catalog.Servers) {
		return nil, down[0]
	}
	return catalog, nil
}

// maxNoticed bounds the problems that a session reports to the user.
const maxNoticed = 10_000

// noticeProblems writes a notice for each server with problems that the session has not reported.
func (s *Session) noticeProblems(c *Catalog) error {
	for i := range c.Servers {
		status := &c.Servers[i]
		fresh := s.unnoticed(status.Name, status.Problems)
		if len(fresh) == 0 {
			continue
		}
		notice := &NoticeRecord{Level: mcp.LogWarning, Server: status.Name, Text: bounded(fmt.Sprintf("server %q: %s", status.Name, status.wrong(fresh)), maxWhy), Untrusted: true}
		if _, err := s.write(notice); err != nil {
			return err
		}
	}
	return nil
}

// unnoticed returns the problems of a server that the session has not reported, and marks them as
// reported.
func (s *Session) unnoticed(server string, all []client.Problem) (fresh []client.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range all {
		if !s.noticedProblems[noticedAs(server, p)] && len(s.noticedProblems)+len(fresh) < maxNoticed {
			fresh = append(fresh, p)
		}
	}
	if s.noticedProblems == nil {
		s.noticedProblems = make(map[noticedProblem]bool)
	}
	for _, p := range fresh {
		s.noticedProblems[noticedAs(server, p)] = true
	}
	return fresh
}

// A noticedProblem is a wrong part of an answer of a server.
type noticedProblem struct {
	server string
	client.Problem
}

// noticedAs returns a problem as it is remembered: what has a name is the same at another index of a
// list or result.
func noticedAs(server string, p client.Problem) noticedProblem {
	if parts := strings.SplitN(p.Place, "/", 4); p.Subject != "" && len(parts) > 2 { // "", "tools", "3", "title"
		parts[2] = ""
		p.Place = strings.Join(parts, "/")
	}
	return noticedProblem{server, p}
}

// firstNoticeLocked marks a notice as given, and reports whether it was the first of its kind. The caller
// holds s.mu.
func (s *Session) firstNoticeLocked(of string) bool {
	if s.noticed[of] {
		return false
	}
	if s.noticed == nil {
		s.noticed = make(map[string]bool)
	}
	s.noticed[of] = true
	return true
}

// maxChangedTools is how often in a turn the person is asked about tools that change between
// the consent and the call.
const maxChangedTools = 3

// calls authorizes the calls of a turn and carries out those that may be. All have a result
// in the log then, but for those of a run that is ended. Calls whose tool has changed in
// between, of which the notice may come after the result that it follows, are authorized
// once more, with the definition of now and the arguments that the person wrote. Where nobody
// can be asked they are not run, and the run goes on.
func (r *run) calls(ctx context.Context, catalog *Catalog, calls []*CallRecord) error {
	edited := make(map[string]mcp.RawValue)
	for again := maxChangedTools; ; again-- {
		ready, err := r.authorize(ctx, catalog, calls, edited)
		if err != nil {
			return err
		}
		for _, c := range ready {
			c.askAgain = again > 0 && r.session.host.opts.Attended
		}
		if err := r.carryOut(ctx, ready); err != nil {
			return err
		}
		calls = nil
		for _, c := range ready {
			if !c.changed {
				continue
			}
			calls = append(calls, c.record)
			if c.edited {
				edited[c.record.ID] = c.args
			}
		}
		if len(calls) == 0 {
			return nil
		}
		catalog = r.session.host.Catalog()
	}
}

// authorize gets consent for calls, one after the other, and returns those that may be
// carried out. The others have their results. edited are arguments that the person wrote, by
// the ids of calls.
func (r *run) authorize(ctx context.Context, catalog *Catalog, calls []*CallRecord, edited map[string]mcp.RawValue) ([]*readyCall, error) {
	s := r.session
	a := newAuthorizer(s, catalog, calls...)
	a.edited = edited
	var ready []*readyCall
	for _, call := range calls {
		if s.own(call) {
			if err := r.callOwn(ctx, catalog, call); err != nil {
				return nil, err
			}
			continue
		}
		c, err := a.authorize(ctx, call)
		var refused *ConsentError
		switch {
		case err == nil:
			ready = append(ready, c)
			continue
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &refused) && !refused.Refused, refused == nil && !errors.Is(err, errCall):
			return nil, err
		}
		if err := s.notRun(call, err, refused, &r.count); err != nil {
			return nil, err
		}
	}
	if n, most := r.count.Calls+len(ready), s.limits().Calls; n > most {
		return nil, &BudgetError{"calls", fmt.Sprintf("%d calls", most)}
	}
	return ready, nil
}

// carryOut carries calls out, several at once.
func (r *run) carryOut(ctx context.Context, ready []*readyCall) error {
	s := r.session
	contexts, ends := make([]context.Context, len(ready)), make([]func(), len(ready))
	for i, c := range ready {
		contexts[i], ends[i] = s.cancellable(ctx, c.record.ID)
		defer ends[i]()
	}
	room := make(chan struct{}, s.host.opts.MaxParallel)
	errs := make([]error, len(ready))
	carryOut := func(i int) {
		err := errExited
		defer func() { errs[i] = err }()
		defer recovered(s.log, "a call", &err)
		err = s.carryOut(ctx, contexts[i], ready[i], &r.count)
	}
	var wg sync.WaitGroup
	for i := range ready {
		select {
		case room <- struct{}{}:
			wg.Go(func() {
				defer func() { <-room }()
				carryOut(i)
			})
		case <-contexts[i].Done():
			carryOut(i)
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, c := range ready {
		// The person may have cancelled a call while it waited for the others.
		if ends[i](); c.changed && errors.Is(context.Cause(contexts[i]), ErrCancelled) {
			c.changed = false
			errs[i] = s.notRun(c.record, errNotSent, nil, &r.count)
		}
	}
	return errors.Join(errs...)
}
