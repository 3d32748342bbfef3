package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// SessionOptions are what is not required of a session. A nil *SessionOptions,
// and each zero field, means the default that is told.
type SessionOptions struct {
	// ID names a new session. Default: a random one.
	ID string
	// Title is for people. Default: the beginning of the first message.
	Title string
}

// A Session is one conversation of a person with a model, with the calls of
// tools, the questions to the person and their answers in between: a numbered log
// of records, which the host's Store keeps. Faces show the records and answer the
// questions; several may do so at once. Its methods may be called by many
// goroutines at once.
//
// A session is written by one process at a time: what another one writes makes the
// next record of this one fail with [ErrConflict].
type Session struct {
	host *Host
	opts SessionOptions
	log  *slog.Logger
	// person holds a token while a question is open: they come one at a time.
	person chan struct{}
	failed chan struct{}  // closed when nothing can be written any more
	over   chan struct{}  // closed by Close, once nothing is under way
	once   sync.Once      // closes over
	asking sync.WaitGroup // questions

	mu        sync.Mutex
	model     Model
	before    Model // the first one, once SetModel has set another
	limit     Amount
	info      SessionInfo
	records   []Record      // all, those of ancestors first: records[i].N is i+1
	state     state         // what the records say
	changed   chan struct{} // closed and made anew when there is something to see
	progress  map[string]liveProgress
	ticks     int64 // counts progress
	open      map[string]*openQuestion
	current   *run                               // nil if none is under way
	cancels   map[string]context.CancelCauseFunc // of calls that were authorized and have no result
	gathering bool                               // a message's resources and prompts are being fetched
	lastErr   error
	closed    bool
	sealed    bool // closed, and nothing is under way: nothing is written any more
	// chosenRoots are the roots that the person was asked about, by server and URI.
	chosenRoots map[PinKey]bool
	// refusedText are the digests of instructions that the person refused.
	refusedText map[string]bool
	// noticed are the digests of tools of which the person was told what is suspicious, and
	// noticedProblems the wrong parts of answers that they were told of.
	noticed         map[string]bool
	noticedProblems map[noticedProblem]bool
	// pageRoom bounds the calls of pages, by server.
	pageRoom map[string]*pageRoom
	// pages: what is under way for them, what they want the model to know, and the results
	// that they show.
	works    int // counts working
	working  map[int]context.CancelCauseFunc
	contexts []pageContext
	shown    []shownResult
	broken   error // why nothing can be written any more
}

// A liveProgress is the newest progress of a call, and when it came.
type liveProgress struct {
	body *ProgressRecord
	at   time.Time
	tick int64
}

// Errors of sessions, for errors.Is.
var (
	// ErrBusy says that the session is still at work on the message before.
	ErrBusy = errors.New("the session is at work; wait for its end or cancel it")
	// ErrNoQuestion says that no question has the id.
	ErrNoQuestion = errors.New("no such question")
	// ErrSettled says that the question has been answered or withdrawn before.
	ErrSettled = errors.New("the question is settled")
	// ErrCancelled says that the person cancelled.
	ErrCancelled = errors.New("cancelled by the person")
)

// NewSession begins a session with a model, which must not be nil.
func (h *Host) NewSession(ctx context.Context, m Model, opts *SessionOptions) (*Session, error) {
	if err := h.checkModel(m); err != nil {
		return nil, fmt.Errorf("beginning a session: %w", err)
	}
	s := h.session(m, opts)
	s.info = SessionInfo{ID: s.opts.ID, Title: s.opts.Title, Created: time.Now()}
	if s.info.ID == "" {
		s.info.ID = newID()
	}
	if err := h.opts.Store.CreateSession(ctx, &s.info); err != nil {
		return nil, fmt.Errorf("beginning a session: %w", err)
	}
	return s, h.enter(s)
}

// newID returns a random name for a session: 10 characters that can be typed.
func newID() string { return rand.Text()[:10] }

func (h *Host) session(m Model, opts *SessionOptions) *Session {
	s := &Session{
		host: h, model: m, limit: limitOf(&h.opts),
		person:   make(chan struct{}, 1),
		pageRoom: make(map[string]*pageRoom),
		working:  make(map[int]context.CancelCauseFunc),
		failed:   make(chan struct{}),
		over:     make(chan struct{}),
		changed:  make(chan struct{}),
		progress: make(map[string]liveProgress),
		open:     make(map[string]*openQuestion),
		cancels:  make(map[string]context.CancelCauseFunc),
	}
	if opts != nil {
		s.opts = *opts
	}
	s.log = h.opts.Logger
	return s
}

// enter adds a session to those that are closed with the host.
func (h *Host) enter(s *Session) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	h.sessions = append(h.sessions, s)
	return nil
}

// OpenSession goes on with a session of the store. What was under way when its
// process ended is closed in the log: calls that had been sent may have had
// effects, and nothing was done about calls and questions that waited. What looked like
// a secret in arguments of calls is replaced: no store has it.
func (h *Host) OpenSession(ctx context.Context, id string, m Model, opts *SessionOptions) (*Session, error) {
	if err := h.checkModel(m); err != nil {
		return nil, fmt.Errorf("opening session %s: %w", id, err)
	}
	s := h.session(m, opts)
	info, err := h.opts.Store.Session(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	s.info = *info
	records, err := History(ctx, h.opts.Store, id)
	if err != nil {
		return nil, fmt.Errorf("opening session %s: %w", id, err)
	}
	s.records = records
	for i := range records {
		s.state.apply(&records[i])
	}
	if err := s.recover(ctx); err != nil {
		return nil, fmt.Errorf("opening session %s: %w", id, err)
	}
	return s, h.enter(s)
}

// maxAncestors bounds the forks of forks.
const maxAncestors = 64

// History returns all records of a session of a store, those of the sessions that it is
// a fork of first.
func History(ctx context.Context, store Store, id string) ([]Record, error) {
	info, err := store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	chain := []*SessionInfo{info}
	for info.Parent != "" {
		if len(chain) > maxAncestors {
			return nil, fmt.Errorf("more than %d forks of forks", maxAncestors)
		}
		if info, err = store.Session(ctx, info.Parent); err != nil {
			return nil, err
		}
		chain = append(chain, info)
	}
	var all []Record
	for i, s := range slices.Backward(chain) {
		own, err := store.Records(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, own...)
		if i > 0 {
			at := chain[i-1].At
			if int64(len(all)) < at {
				return nil, fmt.Errorf("session %s has %d records, but %s goes on after record %d", s.ID, len(all), chain[i-1].ID, at)
			}
			all = all[:at]
		}
	}
	for i := range all {
		if all[i].N != int64(i)+1 {
			return nil, fmt.Errorf("record %d is missing", i+1)
		}
	}
	return all, nil
}

// recover closes what the end of a process, or a fork, left open, and takes up
// grants that were given but not kept.
func (s *Session) recover(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.state.questions)+len(s.state.calls) > 0 || s.state.running {
		what := "the program ended"
		if s.info.Parent != "" && int64(len(s.records)) == s.info.At {
			what = "the fork begins before its end"
		}
		why := what + "; nothing was done"
		var bodies []Body
		for _, id := range s.state.questions {
			bodies = append(bodies, &AnswerRecord{Question: id, Answer: Answer{Action: Refuse}, Withdrawn: why})
		}
		bodies = append(bodies, s.state.closeCalls(s.state.calls, OutcomeInterrupted, why, what+" while the call was under way; it may have had effects")...)
		if s.state.running {
			bodies = append(bodies, &RunEndRecord{Outcome: OutcomeInterrupted, Why: what})
		}
		if _, err := s.appendLocked(bodies...); err != nil {
			return err
		}
	}
	for i := range s.records {
		if a, ok := s.records[i].Body.(*AnswerRecord); ok && a.Grant != nil && a.Grant.Session == s.info.ID {
			if err := s.host.opts.Store.PutGrant(ctx, a.Grant); err != nil {
				return err
			}
		}
	}
	return nil
}

// ID returns the session's name.
func (s *Session) ID() string { return s.info.ID }

// Info describes the session.
func (s *Session) Info() SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// Model describes the session's model. If its Info panics, the description is empty.
func (s *Session) Model() ModelInfo {
	info, _ := s.describe() // the log has the error
	return info
}

// describe calls Info of the session's model.
func (s *Session) describe() (ModelInfo, error) { return s.host.describe(s.using()) }

// SetModel has another model go on with the conversation, from the next run on. Which model
// took a turn is in its [TurnRecord]. In what servers may use for the session it takes the
// place of the one before: see Options.SampleModels. It fails with [ErrBusy] while a run is
// under way, and for a nil model.
func (s *Session) SetModel(m Model) error {
	if err := s.host.checkModel(m); err != nil {
		return fmt.Errorf("setting the model of session %s: %w", s.info.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.current != nil:
		return ErrBusy
	}
	if s.before == nil {
		s.before = s.model
	}
	s.model = m
	return nil
}

// sampleModels are the models that servers may use for the session: those of the host, in
// which the session's model now stands for the one that it began with.
func (s *Session) sampleModels() ([]describedModel, error) {
	models, err := s.host.describeAll(s.host.opts.SampleModels...)
	s.mu.Lock()
	now, before := s.model, s.before
	s.mu.Unlock()
	if err != nil || before == nil {
		return models, err
	}
	own, err := s.host.describeAll(now, before)
	if err != nil {
		return nil, err
	}
	named := func(m describedModel) func(describedModel) bool {
		return func(other describedModel) bool {
			return other.info.Provider == m.info.Provider && other.info.Name == m.info.Name
		}
	}
	if i := slices.IndexFunc(models, named(own[1])); i >= 0 {
		rest := slices.DeleteFunc(slices.Delete(models, i, i+1), named(own[0]))
		return slices.Insert(rest, min(i, len(rest)), own[0]), nil
	}
	return models, nil
}

// using is the session's model.
func (s *Session) using() Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model
}

// write adds records to the log: they are in the store when it returns. The error
// is why the session cannot go on.
func (s *Session) write(bodies ...Body) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.appendLocked(bodies...)
}

// appendLocked is write for a caller that holds mu. It returns the number of the
// first record.
func (s *Session) appendLocked(bodies ...Body) (int64, error) {
	if s.broken != nil {
		return 0, s.broken
	}
	if s.sealed {
		return 0, ErrClosed
	}
	if len(bodies) == 0 {
		return 0, nil
	}
	first := int64(len(s.records)) + 1
	now := time.Now()
	list, kept := make([]Record, len(bodies)), make([]Record, len(bodies))
	for i, b := range bodies {
		// What no store could take is the fault of what wrote it, not of the store.
		if _, err := EncodeBody(b); err != nil {
			return 0, err
		}
		list[i] = Record{N: first + int64(i), Time: now, Body: b}
		kept[i] = Record{N: list[i].N, Time: now, Body: stored(b)}
	}
	// What has happened is written down also while the caller is being cancelled.
	if err := s.host.opts.Store.Append(context.Background(), s.info.ID, kept...); err != nil {
		s.broken = fmt.Errorf("writing to session %s: %w", s.info.ID, err)
		close(s.failed)
		s.wake()
		return 0, s.broken
	}
	s.records = append(s.records, list...)
	for i := range list {
		s.state.apply(&list[i])
		s.said(list[i].Body)
	}
	s.wake()
	return first, nil
}

// wake tells watchers that there is something to see. s.mu is held.
func (s *Session) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// tell notes progress of a call, which only watchers see.
func (s *Session) tell(p *ProgressRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ticks++
	s.progress[p.Call] = liveProgress{p, time.Now(), s.ticks}
	s.wake()
}

// Watch yields the records after number since, and then each new one when it is
// written, until ctx ends or the session is closed. In between it yields progress,
// as records without a number. The error is that of ctx, or why the session can
// not be written to any more.
func (s *Session) Watch(ctx context.Context, since int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		next, tick := max(since, 0), int64(0)
		for {
			s.mu.Lock()
			batch := s.records[min(next, int64(len(s.records))):]
			live := s.progressSince(tick)
			tick = s.ticks
			changed, closed, broken := s.changed, s.sealed, s.broken
			s.mu.Unlock()
			next += int64(len(batch))
			for _, r := range slices.Concat(batch, live) {
				if !yield(r, nil) {
					return
				}
			}
			switch {
			case len(batch)+len(live) > 0:
				continue
			case broken != nil:
				yield(Record{}, broken)
				return
			case closed:
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(Record{}, context.Cause(ctx))
				return
			}
		}
	}
}

// progressSince returns what came after a tick, in order. s.mu is held.
func (s *Session) progressSince(tick int64) []Record {
	var list []liveProgress
	for _, p := range s.progress {
		if p.tick > tick && s.state.started[p.body.Call] { // it has no result yet
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b liveProgress) int { return int(a.tick - b.tick) })
	records := make([]Record, len(list))
	for i, p := range list {
		records[i] = Record{Time: p.at, Body: p.body}
	}
	return records
}

// A Snapshot is a session at one moment.
type Snapshot struct {
	Info SessionInfo
	// Records are all records, those of the sessions that it is a fork of first.
	Records []Record
	// Busy says that a run is under way.
	Busy bool
	// Questions are those that wait for an answer, the oldest first.
	Questions []*Question
	// Labels are those of the conversation.
	Labels []policy.Label
	// Usage is what the models have cost.
	Usage Usage
	// Skills are those on which the model acts.
	Skills []*SkillRecord
}

// Snapshot returns the session as it is now.
func (s *Session) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := &Snapshot{
		Info:    s.info,
		Records: s.records[:len(s.records):len(s.records)],
		Busy:    s.current != nil,
		Labels:  s.state.labelList(),
		Usage:   s.state.usage,
		Skills:  s.state.acting(),
	}
	for _, id := range s.state.questions {
		if o := s.open[id]; o != nil {
			snap.Questions = append(snap.Questions, o.question)
		}
	}
	return snap
}

// Fork begins a session that has the records of this one up to number at, and
// goes on by itself. Nothing is copied, and this session stays as it is. The fork has
// the records as the store has them, as with [Host.OpenSession].
func (s *Session) Fork(ctx context.Context, at int64, opts *SessionOptions) (*Session, error) {
	s.mu.Lock()
	last := int64(len(s.records))
	s.mu.Unlock()
	if at < 0 || at > last {
		return nil, fmt.Errorf("forking session %s: there is no record %d; the last is %d", s.info.ID, at, last)
	}
	f := s.host.session(s.using(), opts)
	// A fork of what the parent has from its own parent goes on from there.
	parent, err := s.owner(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("forking session %s: %w", s.info.ID, err)
	}
	info := SessionInfo{ID: f.opts.ID, Parent: parent, At: at, Title: f.opts.Title, Created: time.Now()}
	if info.ID == "" {
		info.ID = newID()
	}
	if info.Title == "" {
		info.Title = s.Info().Title
	}
	if err := s.host.opts.Store.CreateSession(ctx, &info); err != nil {
		return nil, fmt.Errorf("forking session %s: %w", s.info.ID, err)
	}
	return s.host.OpenSession(ctx, info.ID, s.using(), opts)
}

// owner returns the session, this one or an ancestor, whose own record number at
// is, so that a fork does not depend on more than it has.
func (s *Session) owner(ctx context.Context, at int64) (string, error) {
	info := s.Info()
	for info.Parent != "" && at <= info.At {
		parent, err := s.host.opts.Store.Session(ctx, info.Parent)
		if err != nil {
			return "", err
		}
		info = *parent
	}
	return info.ID, nil
}

// Notice adds a notice to the log.
func (s *Session) Notice(level mcp.LogLevel, text string) error {
	_, err := s.write(&NoticeRecord{Level: level, Text: bounded(text, maxWhy)})
	return err
}

// Close ends the session in this process: a run that is under way is interrupted, and so
// is what is done for pages.
// It returns once nothing of it is left; from then on nothing is written, and what
// would write returns [ErrClosed]. The log stays in the store.
func (s *Session) Close() error {
	s.mu.Lock()
	s.closed = true
	r := s.current
	for _, cancel := range s.working {
		cancel(ErrClosed)
	}
	s.wake()
	s.mu.Unlock()
	if r != nil {
		r.end(ErrClosed)
		<-r.done
	}
	s.once.Do(func() { close(s.over) }) // for questions that belong to no run
	s.asking.Wait()
	s.mu.Lock()
	if !s.sealed {
		s.sealed = true
		s.wake()
	}
	s.mu.Unlock()
	s.host.leave(s)
	return nil
}

// leave forgets a session.
func (h *Host) leave(s *Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions = slices.DeleteFunc(h.sessions, func(other *Session) bool { return other == s })
}
