package ui_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A person types lines when they see something, through pipes.
type person struct {
	t     *testing.T
	typed *io.PipeWriter
	out   *safeBuffer
	at    int // what was seen until here
	ended chan error
}

// sit lets a person sit down at a Line.
func sit(t *testing.T, h ui.Host, s ui.Session, o ui.LineOptions) *person {
	t.Helper()
	in, typed := io.Pipe()
	p := &person{t: t, typed: typed, out: new(safeBuffer), ended: make(chan error, 1)}
	o.Width = func() int { return 400 }
	if o.Now == nil { // a person takes a second for everything
		var seconds atomic.Int64
		o.Now = func() time.Time { return noon.Add(time.Duration(seconds.Add(1)) * time.Second) }
	}
	line := ui.NewLine(in, p.out, &o)
	go func() { p.ended <- line.Run(t.Context(), h, s) }()
	t.Cleanup(func() { _ = typed.Close() }) // a pipe's never fails
	return p
}

// sees waits until a text is shown after what was seen before.
func (p *person) sees(text string) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		shown := p.out.String()
		if i := strings.Index(shown[p.at:], text); i >= 0 {
			p.at += i + len(text)
			return
		}
		select {
		case <-p.out.written(shown):
		case <-deadline:
			p.t.Fatalf("%q is not shown, but:\n%s\n===== and after what was seen:\n%s", text, shown[:p.at], shown[p.at:])
		}
	}
}

func (p *person) types(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.typed, text); err != nil {
		p.t.Fatal(err)
	}
}

// leaves ends the input, and waits for the end of the Line.
func (p *person) leaves() error {
	_ = p.typed.Close() // a pipe's never fails
	err := <-p.ended
	checkPlain(p.t, p.out.String())
	return err
}

// Proves: PART-USER. A line that was begun before a question was shown does not answer it.
func TestLineStale(t *testing.T) {
	t.Parallel()
	s := newSession(nil)
	p := sit(t, servers(), s, ui.LineOptions{})
	p.sees("> ")
	p.types("y") // begun
	answered := make(chan host.Answer, 1)
	go func() { answered <- s.ask(writeQuestion()) }()
	p.sees("Your answer")
	p.types("es\n")
	p.sees("begun before the question was shown")
	p.types("n really\n")
	if a := <-answered; a.Action != host.Refuse || a.Reason != "really" {
		t.Errorf("answered %+v", a)
	}
	if err := p.leaves(); err != nil {
		t.Error(err)
	}
}

// A terminal can discard what was typed; then lines are read at any time, and the next one
// answers.
func TestLineDiscard(t *testing.T) {
	t.Parallel()
	discarded := 0
	s := newSession(writes(writeQuestion()))
	p := sit(t, servers(), s, ui.LineOptions{Discard: func() { discarded++ }})
	p.sees("> ")
	p.types("Write.\n")
	p.sees("Your answer")
	p.types("y\n")
	p.sees("Done: 1 turn")
	wantAnswers(t, s, host.Answer{Action: host.Approve})
	if err := p.leaves(); err != nil || discarded != 1 {
		t.Errorf("%v; discarded %d times", err, discarded)
	}
}

// A slow session has its caller wait after a run has ended, and after a summary is written.
type slow struct {
	*session
	returns chan struct{}
}

func (s *slow) Send(ctx context.Context, in host.Input) error {
	err := s.session.Send(ctx, in)
	<-s.returns
	return err
}

// Who reads that a run is done may go on at once, however late the call returns that began
// the run. Proves: PART-USER.
func TestLineNextAtOnce(t *testing.T) {
	t.Parallel()
	s := &slow{newSession(func(*session, host.Input) {}), make(chan struct{})}
	p := sit(t, servers(), s, ui.LineOptions{Discard: func() {}})
	p.sees("> ")
	p.types("One.\n")
	p.sees("Done: 1 turn")
	p.types("Two.\n")
	s.returns <- struct{}{}
	p.sees("Done: 1 turn")
	p.types("/cancel\n")
	p.sees("Cancelling.")
	s.returns <- struct{}{}
	if err := p.leaves(); err != nil {
		t.Error(err)
	}
	if len(s.sent) != 2 || s.sent[1].Text != "Two." || strings.Contains(p.out.String(), "still under way") {
		t.Errorf("sent: %+v; shown:\n%s", s.sent, p.out)
	}
}

// Compact is late, too.
func (s *slow) Compact(ctx context.Context) error {
	err := s.session.Compact(ctx)
	<-s.returns
	return err
}

// So may who reads the summary.
func TestLineNextAfterSummary(t *testing.T) {
	t.Parallel()
	s := &slow{newSession(nil), make(chan struct{})}
	p := sit(t, servers(), s, ui.LineOptions{Discard: func() {}})
	p.sees("> ")
	p.types("/compact\n")
	p.sees("The model is given a summary")
	p.types("/fork 1\n")
	s.returns <- struct{}{}
	p.sees("a fork of abc after record 1")
	if err := p.leaves(); err != nil {
		t.Error(err)
	}
}

// Lines that come right after the question, or right after one another from then on, are
// the rest of a paste, which is told once. Attack: a text to be pasted that holds an answer.
func TestLineBurst(t *testing.T) {
	t.Parallel()
	// The clock is read for the message, the question, and each line after it.
	millis, calls := []int{0, 0, 90, 180, 270, 271, 400}, atomic.Int64{}
	s := newSession(writes(writeQuestion()))
	p := sit(t, servers(), s, ui.LineOptions{Discard: func() {}, Now: func() time.Time {
		n := min(int(calls.Add(1)), len(millis)) - 1
		return noon.Add(time.Duration(millis[n]) * time.Millisecond)
	}})
	p.sees("> ")
	p.types("Write.\n")
	p.sees("Your answer")
	p.types("y\n1\ny\n2\n")
	p.types("n\n")
	p.sees("Done: 1 turn")
	wantAnswers(t, s, host.Answer{Action: host.Refuse})
	if n := strings.Count(p.out.String(), "Please answer now."); n != 1 {
		t.Errorf("it is told %d times", n)
	}
	if err := p.leaves(); err != nil {
		t.Error(err)
	}
}

// Another face answers first, and this one says so.
func TestLineAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	s := newSession(writes(writeQuestion()))
	p := sit(t, servers(), s, ui.LineOptions{})
	p.types("Write.\n")
	p.sees("Your answer")
	id := s.Snapshot().Questions[0].ID
	if err := s.Answer(t.Context(), id, host.Answer{Action: host.Approve, Face: "web"}); err != nil {
		t.Fatal(err)
	}
	p.sees("was answered at the web face: agreed to.")
	p.sees("Done: 1 turn")
	p.types("n\n") // begun for the question
	p.sees("was begun for a question that needs no answer any more")
	if err := p.leaves(); err != nil {
		t.Error(err)
	}
	if len(s.answers) != 1 || len(s.sent) != 1 {
		t.Errorf("the answers are %+v, sent: %+v", s.answers, s.sent)
	}
}

// An answer that does not fit leaves the question open; one that comes too late does not.
func TestLineAnswerRefused(t *testing.T) {
	t.Parallel()
	s := newSession(writes(writeQuestion()))
	s.check = func(a host.Answer) error {
		if a.Edited != nil {
			return errors.New("the edited arguments are denied: rule: deny \x1b[2J")
		}
		return nil
	}
	wide := &ui.LineOptions{Width: func() int { return 400 }}
	shown := talk(t, servers(), s, wide, "Write.", "e text=x", "y", "u", "y")
	if !strings.Contains(shown, `does not count: the edited arguments are denied: rule: deny \u{1b}[2J`) {
		t.Errorf("shown:\n%s", shown)
	}
	wantAnswers(t, s, host.Answer{Action: host.Approve})
}

// An interrupt cancels what is under way, a second one quits; after a line that was typed
// the next one is a first one again.
func TestLineInterrupts(t *testing.T) {
	t.Parallel()
	interrupts := make(chan os.Signal)
	s := newSession(writes(writeQuestion()))
	p := sit(t, servers(), s, ui.LineOptions{Interrupts: interrupts})
	p.types("Write.\n")
	p.sees("Your answer")
	interrupts <- os.Interrupt
	p.sees("Cancelling. Interrupt once more to quit.")
	p.sees("needs no answer any more: withdrawn: cancelled by the person.")
	p.sees("Cancelled: 1 turn of the model")
	p.types("n\n/title\n") // the first one was begun for the question
	p.sees("A talk")
	interrupts <- os.Interrupt
	p.sees("Nothing is under way. Interrupt once more to quit")
	interrupts <- os.Interrupt
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
	wantAnswers(t, s)
}

// At a terminal the line after a question that the person has cancelled is a message.
func TestLineAfterInterrupt(t *testing.T) {
	t.Parallel()
	interrupts := make(chan os.Signal)
	s := newSession(writes(writeQuestion()))
	p := sit(t, servers(), s, ui.LineOptions{Interrupts: interrupts, Discard: func() {}})
	p.types("Write.\n")
	p.sees("Your answer")
	interrupts <- os.Interrupt
	p.sees("Cancelled: 1 turn of the model")
	p.types("/title A new one\n")
	p.sees("The title cannot be changed here.")
	if err := p.leaves(); err != nil {
		t.Error(err)
	}
	wantAnswers(t, s)
}

// A call is cancelled by its id, while lines are read at any time.
func TestLineCancelCall(t *testing.T) {
	t.Parallel()
	s := newSession(func(s *session, _ host.Input) {
		s.write(&host.TurnRecord{Step: 1, Model: "scripted"}, &host.CallRecord{ID: "c1", Server: "files", Tool: "sleep", Arguments: mcp.RawValue(`{}`)},
			&host.StartRecord{Call: "c1", Arguments: mcp.RawValue(`{}`), Why: "rule: allow files/sleep"})
		<-s.ctx.Done()
		s.write(&host.ResultRecord{Call: "c1", Outcome: host.OutcomeCancelled, Why: "the person cancelled the call; it may have had effects"})
	})
	s.calls["c1"] = true
	p := sit(t, servers(), s, ui.LineOptions{Discard: func() {}})
	p.types("Sleep.\n")
	p.sees("sent now, because rule: allow files/sleep.")
	p.types("/cancel c2\n")
	p.sees("No call c2 is under way.")
	p.types("Hello?\n")
	p.sees("It was not sent: the session is at work")
	p.types("/cancel c1\n")
	p.sees("Call c1, sleep of server files: cancelled: the person cancelled the call")
	if err := p.leaves(); err != nil {
		t.Error(err)
	}
}

// Progress is shown at most once in a second for each call.
func TestLineProgress(t *testing.T) {
	t.Parallel()
	now := noon
	clock := func() time.Time { return now }
	next := make(chan struct{})
	s := newSession(func(s *session, _ host.Input) { <-next })
	p := sit(t, servers(), s, ui.LineOptions{Now: func() time.Time { return clock() }, Interrupts: make(chan os.Signal)})
	s.write(&host.CallRecord{ID: "c1", Server: "files", Tool: "copy", Arguments: mcp.RawValue(`{}`)})
	p.sees("the model asks for it")
	s.tell(&host.ProgressRecord{Call: "c1", Progress: 1, Total: 10, Message: "one\x1b[2K"})
	p.sees("at 1 of 10")
	s.tell(&host.ProgressRecord{Call: "c1", Progress: 2, Total: 10})
	s.tell(&host.ProgressRecord{Call: "c2", Progress: 5})
	p.sees("Call c2: at 5.")
	close(next)
	if err := p.leaves(); err != nil {
		t.Error(err)
	}
	if shown := p.out.String(); strings.Contains(shown, "at 2 of 10") {
		t.Errorf("shown:\n%s", shown)
	}
}

// The end of the session ends the Line; so does the end of its context, with its cause.
func TestLineEnds(t *testing.T) {
	t.Parallel()
	s := newSession(nil)
	p := sit(t, servers(), s, ui.LineOptions{})
	s.mu.Lock()
	s.closed = true
	s.wake()
	s.mu.Unlock()
	if err := <-p.ended; err != nil {
		t.Errorf("the session was closed: %v", err)
	}
	in, typed := io.Pipe()
	t.Cleanup(func() { _ = typed.Close() })
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if err := ui.NewLine(in, io.Discard, nil).Run(ctx, servers(), newSession(nil)); !errors.Is(err, why) {
		t.Errorf("the context ended: %v", err)
	}
}

// A line that is too long is not used in part.
func TestLineTooLong(t *testing.T) {
	t.Parallel()
	s := newSession(func(*session, host.Input) {})
	shown := talk(t, servers(), s, nil, strings.Repeat("x", 300<<10), "Hi.")
	if !strings.Contains(shown, "was not used") || len(s.sent) != 1 || s.sent[0].Text != "Hi." {
		t.Errorf("sent %d messages", len(s.sent))
	}
}
