package ui

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// recordLimits are those of what is shown without a question.
var recordLimits = limits{block: 2 << 10, claim: maxClaim}

// record shows a record and notes what it says about now.
func (l *Line) record(r *host.Record) {
	l.seen = max(l.seen, r.N)
	switch b := r.Body.(type) {
	case *host.UserRecord:
		l.running = true
		if own := l.mine; own != "" && b.Server == "" && textOf(b.Content) == own {
			l.mine = ""
			return
		}
	case *host.TurnRecord:
		l.running = true
	case *host.RunEndRecord:
		l.running = false
		if l.task != nil {
			l.task.past = true
		}
		clear(l.progress)
	case *host.CompactionRecord:
		if l.task != nil && !l.running { // else a run summarizes what became too long
			l.task.past = true
		}
	case *host.ProgressRecord:
		if !l.due(b.Call) {
			return
		}
	case *host.QuestionRecord:
		l.asked(&b.Question, r.N)
	case *host.AnswerRecord:
		l.settled(b.Question)
	}
	l.print(l.script.Add(r), recordLimits)
	if b, ok := r.Body.(*host.RunEndRecord); ok && r.N > l.replay && !l.opts.QuestionsOnly {
		if hint := EndHint(b); hint != "" {
			l.say("%s", hint)
		}
	}
}

// textOf is the text of content that is one text, or "".
func textOf(c mcp.Contents) string {
	if len(c) == 1 {
		if text, ok := c[0].(*mcp.TextContent); ok {
			return text.Text
		}
	}
	return ""
}

// progressEvery is the least time between two lines about the progress of a call.
const progressEvery = time.Second

// due reports whether progress of a call is shown again.
func (l *Line) due(call string) bool {
	now := l.opts.Now()
	if last, ok := l.progress[call]; ok && now.Sub(last) < progressEvery {
		return false
	}
	l.progress[call] = now
	return true
}

// asked notes a question that waits; one of before may have been settled meanwhile.
func (l *Line) asked(q *host.Question, n int64) {
	if n <= l.replay && !l.open[q.ID] {
		return
	}
	l.waiting = append(l.waiting, q)
}

// settled notes that a question needs no answer any more.
func (l *Line) settled(id string) {
	l.waiting = slices.DeleteFunc(l.waiting, func(q *host.Question) bool { return q.ID == id })
	if l.asking != nil && l.asking.question.ID == id {
		l.asking = nil
		if l.stopped && l.opts.Discard != nil { // the person knows that it is settled
			l.input.shown()
			return
		}
		l.input.settled()
	}
}

// take takes a line: for the question, as a command, or as a message.
func (l *Line) take(ctx context.Context, text string) {
	s := l.step()
	if s == nil && l.opts.QuestionsOnly {
		return // a line that was begun for a question which is settled
	}
	if s == nil {
		s = messageStep
	}
	command, isCommand := strings.CutPrefix(text, "/")
	word := strings.TrimSpace(text)
	switch {
	case word == wordQuit:
		l.over = true
	case l.task != nil && l.task.past && l.asking == nil && word != wordCancel:
		l.held = &text // the person was told of the end of the run
	case s.commands && isCommand && !strings.HasPrefix(command, "/"):
		l.commands.Run(ctx, command)
	case s.take != nil:
		s.take(ctx, text)
	default:
		l.commands.Message(ctx, text)
	}
}
