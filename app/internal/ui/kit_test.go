package ui_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/app/internal/ui/uitest"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// noon is when everything happens.
var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// A session is a ui.Session without a host: onSend plays the run.
type session struct {
	uitest.Limits

	id     string
	title  string
	onSend func(s *session, in host.Input)

	mu       sync.Mutex
	records  []host.Record
	changed  chan struct{}
	open     map[string]chan host.Answer
	check    func(a host.Answer) error
	live     []host.Record // progress
	busy     bool
	cancel   context.CancelFunc
	ctx      context.Context //nolint:containedctx // of the run that is under way
	sent     []host.Input
	answers  []host.Answer
	calls    map[string]bool // that can be cancelled
	compacts int
	forks    []int64
	closed   bool
	model    host.Model // that was set
	refused  error      // what SetModel fails with
	empty    bool       // there is nothing to summarize
}

func newSession(onSend func(s *session, in host.Input)) *session {
	return &session{
		id: "abc", title: "A talk", onSend: onSend, changed: make(chan struct{}),
		open: make(map[string]chan host.Answer), calls: make(map[string]bool),
	}
}

func (s *session) ID() string { return s.id }
func (s *session) Model() host.ModelInfo {
	if s.model == nil {
		return host.ModelInfo{Name: "scripted"}
	}
	return s.model.Info()
}

func (s *session) SetModel(m host.Model) error {
	if s.refused == nil {
		s.model = m
	}
	return s.refused
}
func (s *session) Info() host.SessionInfo { return host.SessionInfo{ID: s.id, Title: s.title} }

func (s *session) Context(ctx context.Context) context.Context { return ctx }
func (s *session) Compact(context.Context) error {
	s.mu.Lock()
	s.compacts++
	s.mu.Unlock()
	if s.empty {
		return nil
	}
	s.write(&host.CompactionRecord{Through: 3, Summary: "They talked.\nAbout files."})
	return nil
}

func (s *session) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// write adds records.
func (s *session) write(bodies ...host.Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bodies {
		s.records = append(s.records, host.Record{N: int64(len(s.records)) + 1, Time: noon, Body: b})
	}
	s.wake()
}

// tell shows progress.
func (s *session) tell(p *host.ProgressRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = append(s.live, host.Record{Time: noon, Body: p})
	s.wake()
}

func (s *session) Snapshot() *host.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := &host.Snapshot{Info: s.Info(), Records: slices.Clone(s.records), Busy: s.busy}
	for i := range s.records {
		if q, ok := s.records[i].Body.(*host.QuestionRecord); ok && s.open[q.ID] != nil {
			snap.Questions = append(snap.Questions, &q.Question)
		}
	}
	return snap
}

func (s *session) Watch(ctx context.Context, since int64) iter.Seq2[host.Record, error] {
	return func(yield func(host.Record, error) bool) {
		told := 0
		for {
			s.mu.Lock()
			batch := slices.Clone(s.records[min(since, int64(len(s.records))):])
			live := slices.Clone(s.live[told:])
			told += len(live)
			changed, closed := s.changed, s.closed
			s.mu.Unlock()
			since += int64(len(batch))
			for _, r := range slices.Concat(batch, live) {
				if !yield(r, nil) {
					return
				}
			}
			if len(batch)+len(live) > 0 {
				continue
			}
			if closed {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(host.Record{}, context.Cause(ctx))
				return
			}
		}
	}
}

func (s *session) Send(_ context.Context, in host.Input) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return host.ErrBusy
	}
	s.busy = true
	s.sent = append(s.sent, in)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if in.Text != "" {
		s.records = append(s.records, host.Record{N: int64(len(s.records)) + 1, Time: noon, Body: &host.UserRecord{Content: mcp.Contents{mcp.Text(in.Text)}}})
		s.wake()
	}
	if in.Prompt != nil {
		s.records = append(s.records, host.Record{N: int64(len(s.records)) + 1, Time: noon, Body: &host.UserRecord{
			Server: in.Prompt.Server, Name: "prompt " + in.Prompt.Name, Content: mcp.Contents{mcp.Text("Plan a trip.")},
		}})
		s.wake()
	}
	go func() {
		s.onSend(s, in)
		end := &host.RunEndRecord{Outcome: host.OutcomeDone, Steps: 1}
		if s.ctx.Err() != nil {
			end.Outcome, end.Why = host.OutcomeCancelled, "cancelled by the person"
		}
		s.mu.Lock()
		s.busy = false
		s.mu.Unlock()
		s.write(end)
	}()
	return nil
}

// ask asks and waits for the answer, or the end of the run.
func (s *session) ask(q host.Question) host.Answer {
	s.mu.Lock()
	q.ID = fmt.Sprintf("q%d", len(s.records)+1)
	done := make(chan host.Answer, 1)
	s.open[q.ID] = done
	var ended <-chan struct{}
	if s.ctx != nil {
		ended = s.ctx.Done()
	}
	s.mu.Unlock()
	s.write(&host.QuestionRecord{Question: q})
	select {
	case a := <-done:
		return a
	case <-ended:
		s.mu.Lock()
		delete(s.open, q.ID)
		s.mu.Unlock()
		s.write(&host.AnswerRecord{Question: q.ID, Withdrawn: "withdrawn: cancelled by the person"})
		return host.Answer{}
	}
}

func (s *session) Answer(_ context.Context, id string, a host.Answer) error {
	s.mu.Lock()
	done, check := s.open[id], s.check
	s.mu.Unlock()
	if done == nil {
		return fmt.Errorf("question %s: %w", id, host.ErrSettled)
	}
	if check != nil {
		if err := check(a); err != nil {
			return err
		}
	}
	rec := &host.AnswerRecord{Question: id, Answer: a}
	if a.Offer > 0 {
		rec.Grant = &host.Grant{ID: "g1", Rule: s.question(id).Offers[a.Offer-1].Rule, Created: noon}
		if a.Minutes > 0 {
			rec.Grant.Expires = noon.Add(time.Duration(a.Minutes) * time.Minute)
		}
	}
	s.mu.Lock()
	delete(s.open, id)
	s.answers = append(s.answers, a)
	s.mu.Unlock()
	s.write(rec)
	done <- a
	return nil
}

func (s *session) question(id string) *host.Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.records {
		if q, ok := s.records[i].Body.(*host.QuestionRecord); ok && q.ID == id {
			return &q.Question
		}
	}
	return nil
}

func (s *session) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		s.cancel()
	}
}

func (s *session) CancelCall(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.calls[call] {
		return false
	}
	s.cancel()
	return true
}

func (s *session) Fork(_ context.Context, at int64) (ui.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at > int64(len(s.records)) {
		return nil, fmt.Errorf("there is no record %d", at)
	}
	f := newSession(s.onSend)
	f.id, f.records = "fork", slices.Clone(s.records[:at])
	s.forks = append(s.forks, at)
	return f, nil
}

// A fakeHost is a ui.Host.
type fakeHost struct {
	mu      sync.Mutex
	tools   []*host.Tool
	down    []*host.ServerError
	status  []host.ServerStatus
	grants  []host.Grant
	prompts map[string][]*mcp.Prompt
	values  []string
	skills  []*host.Skill
	asked   []*mcp.CompleteParams
	retried []string
}

func (h *fakeHost) Catalog() *host.Catalog {
	return &host.Catalog{Tools: h.tools, Down: h.down, Skills: h.skills, Servers: h.status}
}

func (h *fakeHost) Settle(context.Context, time.Duration) *host.Catalog { return h.Catalog() }
func (h *fakeHost) Status() []host.ServerStatus                         { return h.status }
func (h *fakeHost) Grants(context.Context) ([]host.Grant, error)        { return h.grants, nil }
func (h *fakeHost) Prompts(_ context.Context, server string) ([]*mcp.Prompt, error) {
	return h.prompts[server], nil
}

func (h *fakeHost) Retry(server string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retried = append(h.retried, server)
	if server == "none" {
		return fmt.Errorf("server %q: %w", server, host.ErrNoServer)
	}
	return nil
}

func (h *fakeHost) Revoke(_ context.Context, id string) error {
	for i := range h.grants {
		if h.grants[i].ID == id {
			h.grants[i].Revoked = noon
			return nil
		}
	}
	return fmt.Errorf("revoking: %w", host.ErrNoGrant)
}

func (h *fakeHost) Complete(_ context.Context, _ string, p *mcp.CompleteParams) (*mcp.Completion, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, p)
	var fit []string
	for _, v := range h.values {
		if strings.HasPrefix(v, p.Argument.Value) {
			fit = append(fit, v)
		}
	}
	return &mcp.Completion{Values: fit}, nil
}

// servers are two servers that are ready.
func servers() *fakeHost {
	return &fakeHost{status: []host.ServerStatus{
		{Name: "files", Origin: "/home/ada/.mcp.json", State: host.StateReady, Tools: 2},
		{Name: "db", State: host.StateGivenUp, Err: fmt.Errorf("starting: exit status 1\x1b[2J")},
	}}
}

// A safeBuffer is written by one goroutine and read by another.
type safeBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	more chan struct{} // closed at the next write, or nil
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.more != nil {
		close(b.more)
		b.more = nil
	}
	return b.b.Write(p)
}

// written is closed as soon as there is more than what was read.
func (b *safeBuffer) written(read string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.more == nil {
		b.more = make(chan struct{})
	}
	c := b.more
	if b.b.Len() > len(read) {
		close(b.more)
		b.more = nil
	}
	return c
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// talk runs a Line with a person who types the lines, and returns what they see. No
// control character but newlines may be in it.
func talk(t *testing.T, h ui.Host, s *session, o *ui.LineOptions, lines ...string) string {
	t.Helper()
	opts := ui.LineOptions{Echo: true, Now: func() time.Time { return noon }}
	if o != nil {
		opts = *o
		opts.Echo = true
		if opts.Now == nil {
			opts.Now = func() time.Time { return noon }
		}
	}
	var out safeBuffer
	in := strings.NewReader(strings.Join(append(lines, ""), "\n"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := ui.NewLine(in, &out, &opts).Run(ctx, h, s); err != nil {
		t.Fatalf("%v; after:\n%s", err, out.String())
	}
	checkPlain(t, out.String())
	return out.String()
}

// patience ends a test that hangs; nothing else lasts so long, on a busy machine either.
const patience = 5 * time.Minute

// checkPlain fails if a text has a control character but newline, or one that hides.
func checkPlain(t *testing.T, shown string) {
	t.Helper()
	if shown != host.Escape(shown) || strings.Contains(shown, "\t") {
		t.Errorf("not safe to show: %q", shown)
	}
}

// golden compares with a file of testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (go test -update writes it anew):\n%s", path, diff)
	}
}

// wantAnswers compares the answers that a session got.
func wantAnswers(t *testing.T, s *session, want ...host.Answer) {
	t.Helper()
	for i := range want {
		want[i].Face = "terminal"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.answers); diff != "" {
		t.Errorf("the answers: %s", diff)
	}
}
