package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// LineOptions are what is not required of a Line. A nil *LineOptions, and each zero
// field, means the default that is told.
type LineOptions struct {
	// Face is the name of this face in answers. Default "terminal".
	Face string
	// Width tells the columns of the terminal. Default: 80.
	Width func() int
	// Echo writes each line that was read, for transcripts of an input that is no
	// terminal.
	Echo bool
	// Discard throws away what was typed at the terminal and not read yet, also the line
	// that was begun. It is called when a question is shown. With it, lines are read at
	// any time, and those that come within a tenth of a second after the question, or
	// after one another from then on, do not answer it: they are the rest of a paste.
	// Default: lines are read only when one is wanted, and the line of a read that was
	// under way when a question was shown does not answer it. What waits in a pipe was
	// typed when it is read.
	Discard func()
	// Interrupts tell that the person wants to interrupt: the first cancels what is
	// under way, a second one ends Run. Default none.
	Interrupts <-chan os.Signal
	// Open opens a page to which the person agreed, in a browser. Default: the address is
	// printed only.
	Open func(ctx context.Context, address string) error
	// Edit lets the person edit a text in an editor and returns it. Default: not offered.
	Edit func(ctx context.Context, text string) (string, error)
	// Model finds a model by what the person calls it, such as "openai:NAME". Default: the
	// model of a session cannot be changed here.
	Model func(ctx context.Context, name string) (host.Model, error)
	// SetTitle changes the title of a session. Default: not offered.
	SetTitle func(ctx context.Context, session, title string) error
	// Sessions are those to which the person can go. Default: to none.
	Sessions Sessions
	// Logs are the last lines that a server logged. Default: they are not kept.
	Logs func(server string) []string
	// Image reads an image from the clipboard. Default: it cannot be read.
	Image func(ctx context.Context) (mcp.Content, error)
	// QuestionsOnly says that no messages are taken and nothing but questions and notices
	// is shown: for a program that does something else with the session. Run ends with
	// its context then, or when the session is closed.
	QuestionsOnly bool
	// Since is the number of the last record that is not shown at the beginning, which is
	// told. Default: all are shown. See [LastExchanges].
	Since int64
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// A Line is the face for plain terminals, pipes and screen readers: it prints whole
// sentences and reads lines. It moves no cursor and writes nothing twice over.
type Line struct {
	opts  LineOptions
	out   io.Writer
	input *input

	host    Host
	session Session

	records chan event
	unwatch func() // ends the watching of the session, and waits for it
	done    chan func()
	task    *task
	tasks   sync.WaitGroup

	commands *Commands
	script   Transcript
	seen     int64 // the last record
	replay   int64 // records up to it are of before
	upTo     int64 // records up to it are shown before a line is asked for
	open     map[string]bool
	running  bool
	mine     string // what was sent from here and has no record yet
	asking   *asking
	waiting  []*host.Question
	base     *step   // what is asked for apart from questions; nil for messages
	prompted *step   // whose prompt stands at the end of the output
	held     *string // a line that is taken once the task has ended
	progress map[string]time.Time
	stopped  bool // the person has cancelled, and typed nothing since
	ended    bool // the input has
	warned   bool // a second interrupt quits
	over     bool
}

// An event is a record of the session, or its end.
type event struct {
	record host.Record
	err    error
	closed bool
}

// A task is under way beside the loop: it waits for the host or a server.
type task struct {
	what   string
	cancel context.CancelFunc
	// past says that a run has ended meanwhile, or that the summary is written which the task was to
	// write: it is about to end.
	past bool
}

// A step is what the next line is for.
type step struct {
	prompt string
	// take takes the line.
	take func(ctx context.Context, text string)
	// byHand says that the line must be typed, and not be a part of what was pasted.
	byHand bool
	// commands says that a line with a slash in front is a command.
	commands bool
}

// NewLine makes a face of an input and an output. opts may be nil. The output is for one
// person: everything that is written to it from elsewhere should begin on a new line.
func NewLine(in io.Reader, out io.Writer, opts *LineOptions) *Line {
	l := &Line{out: out, done: make(chan func()), progress: make(map[string]time.Time)}
	if opts != nil {
		l.opts = *opts
	}
	l.opts.Face = cmp.Or(l.opts.Face, "terminal")
	if l.opts.Now == nil {
		l.opts.Now = time.Now
	}
	l.input = newInput(in, l.opts.Discard, l.opts.Now)
	l.script.Face = l.opts.Face
	return l
}

// Run shows the session and reads what the person types, until they quit or the input
// ends; then what is under way is waited for, and questions that nobody can answer any
// more are withdrawn with it. The error is that of ctx, of the input, or why the session
// cannot be gone on with. The session is not closed. A Line runs once.
func (l *Line) Run(ctx context.Context, h Host, s Session) error {
	ctx, cancel := context.WithCancel(ctx)
	defer l.tasks.Wait()
	defer cancel()
	l.host = h
	l.commands = l.newCommands(h)
	l.attach(ctx, s, l.opts.Since)
	if l.opts.Since > 0 && !l.opts.QuestionsOnly {
		l.say("%s not shown here; /history shows all.", count(l.opts.Since, "earlier record is", "earlier records are"))
	}
	defer func() { l.unwatch() }()
	for !l.over {
		l.await(ctx)
		if l.over {
			break
		}
		if err := l.next(ctx); err != nil {
			return err
		}
	}
	l.print(l.script.Flush(), limits{})
	if l.prompted != nil {
		l.write("\n")
	}
	return nil
}

// newCommands makes the commands that are typed here.
func (l *Line) newCommands(h Host) *Commands {
	return &Commands{
		Host: h, Face: l.opts.Face, Now: l.opts.Now, SetTitle: l.opts.SetTitle, Model: l.opts.Model,
		Sessions: l.opts.Sessions, Logs: l.opts.Logs, Image: l.opts.Image,
		Print: func(lines []Entry, claim, block int) { l.print(lines, limits{block: block, claim: claim}) },
		Start: l.start, Running: l.busy, Asking: func() bool { return l.asking != nil },
		Cancel: l.cancel, Send: l.send, Quit: func() { l.over = true },
		Forked: func(ctx context.Context, s Session, at int64) {
			l.asking, l.waiting, l.script = nil, nil, Transcript{Face: l.opts.Face}
			l.attach(ctx, s, at)
		},
		Opened: l.opened,
		Missing: func(ctx context.Context, server string, p *mcp.Prompt, arguments map[string]string) {
			f := &promptFilling{line: l, server: server, prompt: p, arguments: arguments}
			f.next(ctx)
		},
	}
}

// opened shows another session: what it is, and its last exchanges.
func (l *Line) opened(ctx context.Context, s Session) {
	info, records := s.Info(), s.Snapshot().Records
	l.asking, l.waiting, l.mine, l.script = nil, nil, "", Transcript{Face: l.opts.Face}
	l.say("This is session %s now: %s.", name(info.ID), firstOf(claim(info.Title), "it has no title yet"))
	since := LastExchanges(records, ShownExchanges)
	if since > 0 {
		l.say("%s not shown here; /history shows all.", count(since, "earlier record is", "earlier records are"))
	}
	l.attach(ctx, s, since)
}

// next handles what happens next. The error ends Run.
func (l *Line) next(ctx context.Context) error {
	select {
	case e := <-l.records:
		switch {
		case e.closed:
			l.over = !l.commands.Forking() // its fork takes its place
		case e.err != nil:
			return e.err
		default:
			l.record(&e.record)
		}
	case t := <-l.input.lines:
		return l.typed(ctx, l.input.got(t))
	case after := <-l.done:
		l.task = nil
		after()
		l.catchUp()
		if held := l.held; held != nil {
			l.held = nil
			l.take(ctx, *held)
		}
	case <-l.opts.Interrupts:
		l.interrupted()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// attach goes on with a session, after a record.
func (l *Line) attach(ctx context.Context, s Session, since int64) {
	if l.unwatch != nil {
		l.unwatch()
	}
	snap := s.Snapshot()
	l.session, l.seen, l.running = s, since, snap.Busy
	l.commands.Session = s
	l.open = make(map[string]bool)
	for _, q := range snap.Questions {
		l.open[q.ID] = true
	}
	for i := range snap.Records {
		if r := &snap.Records[i]; r.N <= since {
			l.script.Add(r)
			if q, ok := r.Body.(*host.QuestionRecord); ok && l.open[q.ID] {
				l.waiting = append(l.waiting, &q.Question)
			}
		}
	}
	l.replay = since
	if n := len(snap.Records); n > 0 {
		l.replay = max(since, snap.Records[n-1].N)
	}
	l.upTo = l.replay
	ctx, cancel := context.WithCancel(ctx)
	records := make(chan event)
	var ended sync.WaitGroup
	ended.Go(func() { watch(ctx, s, since, records) })
	l.records = records
	l.unwatch = func() {
		cancel()
		ended.Wait()
	}
}

// watch sends the records of a session until ctx ends.
func watch(ctx context.Context, s Session, since int64, to chan<- event) {
	send := func(e event) bool {
		select {
		case to <- e:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for r, err := range s.Watch(ctx, since) {
		if !send(event{record: r, err: err}) || err != nil {
			return
		}
	}
	send(event{closed: true})
}

// busy reports whether something is under way.
func (l *Line) busy() bool { return l.running || l.task != nil }

// catchUp sees to it that what the session has written until now is shown before a line
// is asked for.
func (l *Line) catchUp() {
	if records := l.session.Snapshot().Records; len(records) > 0 {
		l.upTo = max(l.upTo, records[len(records)-1].N)
	}
}

// behind reports whether there are records to show before a line is asked for.
func (l *Line) behind() bool { return l.seen < l.upTo }

// step is what the next line is for, or nil if none is wanted now.
func (l *Line) step() *step {
	switch {
	case l.behind(), l.stopped && l.running: // what was asked is withdrawn
		return nil
	case l.asking != nil:
		return l.asking.step
	case l.busy():
		return nil
	case l.base != nil:
		return l.base
	case l.opts.QuestionsOnly:
		return nil
	}
	return messageStep
}

// messageStep asks for the next message. Lines for which there is no other step are
// messages, too.
var messageStep = &step{prompt: "> ", commands: true}

// await shows the prompt, and begins to read.
func (l *Line) await(ctx context.Context) {
	if !l.behind() && l.asking == nil && len(l.waiting) > 0 {
		q := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.ask(q)
	}
	s := l.step()
	switch {
	case l.ended && !l.behind():
		l.leave(ctx)
		return
	case l.ended, l.held != nil, s == nil && (l.opts.Discard == nil || l.opts.QuestionsOnly):
		return
	}
	if s != nil && l.prompted != s {
		l.write(wrapPrompt(s.prompt, l.width()))
		l.prompted = s
	}
	l.input.begin()
}

// wrapPrompt breaks a prompt that is longer than a line.
func wrapPrompt(s string, width int) string {
	w := &wrapper{width: columnsOf(width), rest: indent}
	w.text(strings.TrimRight(s, " "))
	return w.b.String() + " "
}

// leave ends Run after the end of the input, once nothing is under way. A question that
// waits is withdrawn.
func (l *Line) leave(ctx context.Context) {
	switch {
	case l.asking != nil:
		q := l.asking.question
		l.asking = nil
		l.say("The input has ended: the question cannot be answered here.")
		if l.running || l.task != nil {
			l.cancel()
			return
		}
		action := host.Refuse
		if q.Kind == host.QuestionForm || q.Kind == host.QuestionPage {
			action = host.Dismiss
		}
		if err := l.session.Answer(ctx, q.ID, host.Answer{Action: action, Face: l.opts.Face}); err != nil {
			l.say("It was not refused: %s.", claim(err.Error()))
		}
		l.catchUp()
	case !l.busy() && !l.opts.QuestionsOnly:
		l.over = true
	}
}

// typed takes a line that was read.
func (l *Line) typed(ctx context.Context, t typed) error {
	switch {
	case errors.Is(t.err, io.EOF):
		l.ended = true
		return nil
	case errors.Is(t.err, errLong):
		l.say("The line is longer than %d bytes and was not used.", maxLine)
		return nil
	case t.err != nil:
		return t.err
	}
	if l.opts.Echo {
		l.write(host.EscapeLine(t.text) + "\n")
	}
	l.prompted, l.warned, l.stopped = nil, false, false
	switch {
	case t.stale && t.again: // it is told already
		return nil
	case t.stale && l.asking != nil:
		l.say("That line may have been begun before the question was shown, so that it does not answer it. Please answer now.")
		return nil
	case t.pasted && l.asking != nil && l.asking.step.byHand:
		l.say("That line was pasted, and does not answer the question. Please type the answer.")
		return nil
	case t.stale:
		l.say("That line was begun for a question that needs no answer any more, and was not used.")
		return nil
	}
	l.take(ctx, t.text)
	return nil
}

// interrupted cancels what is under way, or quits.
func (l *Line) interrupted() {
	if l.warned {
		l.over = true
		return
	}
	l.warned = true
	if l.running || l.task != nil {
		l.say("Cancelling. Interrupt once more to quit.")
		l.cancel()
		return
	}
	l.say("Nothing is under way. Interrupt once more to quit, or type /quit.")
}

// cancel cancels what is under way.
func (l *Line) cancel() {
	l.stopped = true
	if l.task != nil {
		l.task.cancel()
	}
	l.session.Cancel()
}

// start begins a task: f runs beside the loop, and what it returns in the loop. Only
// one is under way at a time.
func (l *Line) start(ctx context.Context, what string, f func(ctx context.Context) (after func())) {
	if l.task != nil {
		l.say("This is still under way: %s. Wait for it, or cancel it with /cancel.", l.task.what)
		return
	}
	taskCtx, cancel := context.WithCancel(ctx)
	l.task = &task{what: what, cancel: cancel}
	taskCtx = l.session.Context(taskCtx)
	l.tasks.Go(func() {
		defer cancel()
		after := f(taskCtx)
		select {
		case l.done <- after:
		case <-ctx.Done():
		}
	})
}

// width is the columns of the terminal, 0 if unknown.
func (l *Line) width() int {
	if l.opts.Width == nil {
		return 0
	}
	return l.opts.Width()
}

// say prints a sentence of the program. Names in it are escaped by the caller.
func (l *Line) say(format string, args ...any) {
	l.print([]Entry{said(format, args...)}, limits{})
}

// print prints lines.
func (l *Line) print(lines []Entry, limit limits) {
	if len(lines) > 0 {
		l.raw(layout(lines, l.width(), limit))
	}
}

// raw prints text that is laid out, on a new line.
func (l *Line) raw(text string) {
	if l.prompted != nil {
		l.prompted = nil
		text = "\n" + text
	}
	l.write(text)
}

// write writes to the output. A person who cannot see a question cannot answer it
// either, so that an error needs no other notice than that of reading.
func (l *Line) write(s string) { _, _ = fmt.Fprint(l.out, s) }
