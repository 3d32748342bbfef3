package ui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// A Transcript words the records of a session, in their order. The zero value is at
// the beginning of a session. It must not be used by two goroutines at once.
type Transcript struct {
	// Face is the name of the face that shows it: answers given there are worded
	// shorter than those of others.
	Face string

	calls     map[string]*host.CallRecord // without a result
	questions map[string]*host.Question   // without an answer
	turn      *host.TurnRecord
	headed    bool // the turn's model was named
	text      blockBuffer
	usage     host.Usage // of the run
}

// Add words a record. Text of the model comes a block at a time: the rest with the
// next record of another kind. A [host.QuestionRecord] gives no lines: see [NewWording].
func (t *Transcript) Add(r *host.Record) []Entry {
	if b, ok := r.Body.(*host.TextRecord); ok {
		return t.model(t.text.add(b.Text))
	}
	return append(t.Flush(), t.body(r)...)
}

// Flush returns the text of the model that was held back.
func (t *Transcript) Flush() []Entry { return t.model(t.text.rest()) }

// model is a block of the model's text, the first of a turn after its name.
func (t *Transcript) model(source string) []Entry {
	if strings.TrimSpace(source) == "" {
		return nil
	}
	var lines []Entry
	follows := t.headed
	if !t.headed {
		t.headed = true
		lines = append(lines, said("%s", t.speaker()))
	}
	return append(lines, Entry{Kind: EntryModel, Doc: ParseMarkdown(source), Follows: follows})
}

// speaker names the model of the turn.
func (t *Transcript) speaker() string {
	switch {
	case t.turn == nil:
		return "The model says:"
	case t.turn.Offline:
		return "The built-in planner, which is no language model, says:"
	}
	return "Model " + name(t.turn.Model) + " says:"
}

func said(format string, args ...any) Entry {
	return Entry{Kind: EntrySaid, Text: fmt.Sprintf(format, args...)}
}

// body words a record that is no text.
func (t *Transcript) body(r *host.Record) []Entry {
	switch b := r.Body.(type) {
	case *host.UserRecord:
		return userLines(b)
	case *host.TurnRecord:
		t.turn, t.headed = b, false
		if b.Step == 1 {
			t.usage = host.Usage{}
		}
		return nil
	case *host.ReasoningRecord:
		if b.Text == "" {
			return nil
		}
		return []Entry{said("%s", strings.Replace(t.speaker(), "says:", "thinks:", 1)), {Kind: EntryBlock, Text: host.Escape(b.Text)}}
	case *host.CallRecord:
		return t.called(b)
	case *host.TurnEndRecord:
		return t.turnEnd(b)
	case *host.PageRecord:
		return []Entry{
			said("Page %s of server %s is shown, because %s.", name(b.URI), name(b.Server), claim(b.Why)),
			{Kind: EntryClaim, Label: "its policy", Text: host.EscapeLine(b.CSP)},
		}
	case *host.StartRecord:
		return t.started(b)
	case *host.ResultRecord:
		return t.result(b)
	case *host.QuestionRecord:
		if t.questions == nil {
			t.questions = make(map[string]*host.Question)
		}
		t.questions[b.ID] = &b.Question
		return nil
	case *host.AnswerRecord:
		return t.answered(b, r)
	case *host.NoticeRecord:
		return noticeLines(b)
	case *host.LabelRecord:
		return labelLines(b)
	case *host.UsageRecord:
		t.usage = host.Usage{
			Input: t.usage.Input + b.Usage.Input, Output: t.usage.Output + b.Usage.Output, Cost: t.usage.Cost + b.Usage.Cost,
			CacheRead: t.usage.CacheRead + b.Usage.CacheRead, CacheWrite: t.usage.CacheWrite + b.Usage.CacheWrite,
		}
		return nil
	case *host.CompactionRecord:
		return []Entry{
			said("The model is given a summary in the place of the records up to %d; the records stay.", b.Through),
			{Kind: EntryBlock, Text: host.Escape(b.Summary)},
		}
	case *host.RunEndRecord:
		return t.runEnd(b)
	case *host.ProgressRecord:
		return t.progress(b)
	case *host.SkillRecord:
		return skillLines(b)
	case nil:
		return nil
	}
	return []Entry{said("Record %d is of kind %s, which this program cannot show.", r.N, name(r.Body.Kind()))}
}

// userLines words what the person put in.
func userLines(b *host.UserRecord) []Entry {
	head := said("You:")
	if b.Server != "" {
		head = said("Put into the conversation: %s of server %s.", name(b.Name), name(b.Server))
		if b.Role == mcp.RoleAssistant {
			head = said("Put into the conversation as if the model had said it: %s of server %s.", name(b.Name), name(b.Server))
		}
	}
	return []Entry{head, {Kind: EntryBlock, Text: contents(b.Content)}}
}

// callName names a call: "Call c4, write_file of server files,".
func (t *Transcript) callName(id string) string {
	c := t.calls[id]
	switch {
	case c == nil:
		return "Call " + name(id)
	case c.Tool == "":
		return "Call " + name(id) + ", " + name(c.ModelName)
	case c.Server == "":
		return "Call " + name(id) + ", " + name(c.Tool)
	}
	return "Call " + name(id) + ", " + name(c.Tool) + " of server " + name(c.Server)
}

// called words a call that the model asked for.
func (t *Transcript) called(b *host.CallRecord) []Entry {
	if t.calls == nil {
		t.calls = make(map[string]*host.CallRecord)
	}
	t.calls[b.ID] = b
	by := "the model"
	if b.ByPage != "" {
		by = "page " + name(b.ByPage)
	}
	if b.Arguments == nil {
		return []Entry{said("%s: %s asks for it with arguments that are no JSON.", t.callName(b.ID), by), {Kind: EntryBlock, Text: host.Escape(b.Text)}}
	}
	return []Entry{said("%s: %s asks for it.", t.callName(b.ID), by)}
}

// started words that a call is sent.
func (t *Transcript) started(b *host.StartRecord) []Entry {
	edited := ""
	if b.Edited {
		edited = " with your arguments"
	}
	return []Entry{
		said("%s: sent now%s, because %s.", t.callName(b.Call), edited, claim(b.Why)),
		{Kind: EntryBlock, Text: host.Indent(b.Arguments)},
	}
}

// result words how a call ended.
func (t *Transcript) result(b *host.ResultRecord) []Entry {
	call := t.callName(b.Call)
	byPage := t.calls[b.Call] != nil && t.calls[b.Call].ByPage != ""
	delete(t.calls, b.Call)
	why := ended(firstOf(claim(b.Why), "no reason was given"))
	took := ""
	if b.Millis >= 1000 {
		took = fmt.Sprintf(" after %.1f s", float64(b.Millis)/1000)
	}
	var head Entry
	switch b.Outcome {
	case host.OutcomeDone:
		head = said("%s: done%s.", call, took)
		if b.Failed {
			head = said("%s: done%s; the tool says that it failed.", call, took)
		}
		lines := []Entry{head}
		if len(b.Content) > 0 {
			lines = append(lines, Entry{Kind: EntryBlock, Text: contents(b.Content)})
		}
		switch {
		case byPage:
			lines = append(lines, said("The result is for the page; the model is not given it."))
		case b.Whole != "":
			lines = append(lines, said("All %d bytes of the result are kept; the model reads on from there.", b.Size))
		}
		return lines
	case host.OutcomeFailed:
		head = said("%s: failed%s: %s", call, took, why)
	case host.OutcomeRefused:
		head = said("%s: refused, nothing was done: %s", call, why)
	case host.OutcomeNotRun:
		head = said("%s: not run: %s", call, why)
	case host.OutcomeCancelled:
		head = said("%s: cancelled%s: %s", call, took, why)
	case host.OutcomeInterrupted:
		head = said("%s: interrupted: %s", call, why)
	default:
		head = said("%s: ended as %s: %s", call, name(string(b.Outcome)), why)
	}
	return []Entry{head}
}

// turnEnd words the end of a turn if it is not the usual one.
func (t *Transcript) turnEnd(b *host.TurnEndRecord) []Entry {
	t.usage.Input += b.Usage.Input
	t.usage.Output += b.Usage.Output
	t.usage.Cost += b.Usage.Cost
	switch b.Stop {
	case host.StopLength:
		return []Entry{said("The answer was cut off at its bound.")}
	case host.StopRefusal:
		return []Entry{said("The model refused to answer.")}
	case host.StopEnd, host.StopCalls, host.StopSequence, host.StopOther:
	}
	return nil
}

// answered words how a question was settled.
func (t *Transcript) answered(b *host.AnswerRecord, r *host.Record) []Entry {
	q := t.questions[b.Question]
	delete(t.questions, b.Question)
	about := "The question"
	if q != nil {
		about = "The question about " + subject(q)
	}
	if b.Withdrawn != "" {
		return []Entry{said("%s needs no answer any more: %s.", about, claim(b.Withdrawn))}
	}
	verdict := map[host.Action]string{
		host.Approve: "agreed to", host.Dismiss: "closed without an answer", host.Each: "to be asked one by one",
	}[b.Action]
	if verdict == "" {
		verdict = "refused"
	}
	if len(b.Edited) > 0 {
		verdict += ", edited"
	}
	if b.Reason != "" {
		verdict += ", because: " + claim(b.Reason)
	}
	by := ""
	if b.Face != "" && b.Face != t.Face {
		by = fmt.Sprintf(" was answered at the %s face", name(b.Face))
	}
	lines := []Entry{said("%s%s: %s.", about, by, verdict)}
	if b.Grant != nil {
		lines = append(lines, said("From now on allowed: %s /revoke %s takes it back.", GrantText(b.Grant, r.Time), name(b.Grant.ID)))
	}
	return lines
}

// subject names what a question is about.
func subject(q *host.Question) string {
	server := " of server " + name(q.Server)
	switch q.Kind {
	case host.QuestionSample:
		return "the use of the model by server " + name(q.Server)
	case host.QuestionSampled:
		return "the answer to server " + name(q.Server)
	case host.QuestionForm:
		return "the form" + server
	case host.QuestionPage:
		return "the page" + server
	case host.QuestionRoots:
		return "the directories for server " + name(q.Server)
	case host.QuestionCalls:
		return fmt.Sprintf("%d calls of %s", len(q.Batch), name(q.Name)) + server
	case host.QuestionMessage:
		return "what page " + name(q.ByPage) + server + " says"
	case host.QuestionSignIn:
		return "the sign-in to server " + name(q.Server)
	case host.QuestionSkill:
		return "the skill " + name(q.Name) + server
	case host.QuestionCall, host.QuestionChange, host.QuestionUse, host.QuestionApp:
	}
	return name(q.Name) + server
}

// noticeLines words a notice.
func noticeLines(b *host.NoticeRecord) []Entry {
	label := "Notice"
	if b.Server != "" {
		label += " about server " + name(b.Server)
	}
	if b.Level != "" {
		label += ", level " + name(string(b.Level))
	}
	if b.Untrusted {
		return []Entry{{Kind: EntryClaim, Label: label, Text: host.EscapeLine(strings.TrimSpace(b.Text))}}
	}
	return []Entry{said("%s: %s", label, host.EscapeLine(b.Text))}
}

// labelLines words what a conversation has come to hold.
func labelLines(b *host.LabelRecord) []Entry {
	var what []string
	for _, l := range b.Labels {
		switch l {
		case policy.LabelPrivate:
			what = append(what, "private data")
		case policy.LabelUntrusted:
			what = append(what, "untrusted input")
		case policy.LabelSends:
			what = append(what, "something that can send data out")
		default:
			what = append(what, name(string(l)))
		}
	}
	from := "server " + name(b.Server)
	if b.Name != "" {
		from = name(b.Name) + " of " + from
	}
	return []Entry{said("The conversation now holds %s, from %s.", strings.Join(what, " and "), from)}
}

// runEnd words the end of a run.
func (t *Transcript) runEnd(b *host.RunEndRecord) []Entry {
	maps.DeleteFunc(t.calls, func(_ string, c *host.CallRecord) bool { return c.ByPage == "" })
	outcome := map[host.Outcome]string{
		host.OutcomeDone: "Done", host.OutcomeFailed: "Failed", host.OutcomeRefused: "Refused",
		host.OutcomeCancelled: "Cancelled", host.OutcomeInterrupted: "Interrupted", host.OutcomeNotRun: "Not run",
	}[b.Outcome]
	if outcome == "" {
		outcome = "Ended as " + name(string(b.Outcome))
	}
	parts := []string{
		count(int64(b.Steps), "turn of the model", "turns of the model"), count(int64(b.Calls), "call", "calls"),
		count(int64(b.Failed), "of them failed", "of them failed"), count(int64(b.Refused), "call refused", "calls refused"),
		count(t.usage.Input, "token in", "tokens in"), count(t.usage.Output, "token out", "tokens out"),
	}
	if t.usage.Cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", t.usage.Cost))
	}
	t.usage = host.Usage{}
	text := outcome
	if parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" }); len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	text += "."
	if b.Why != "" {
		text += " The reason: " + ended(claim(b.Why))
	}
	return []Entry{said("%s", text)}
}

// ended ends a sentence.
func ended(s string) string {
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}

// count is a number and what it counts, or nothing for none.
func count(n int64, one, many string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// progress words how far a call is.
func (t *Transcript) progress(b *host.ProgressRecord) []Entry {
	far := fmt.Sprintf("%s: at %.6g", t.callName(b.Call), b.Progress)
	if b.Total > 0 {
		far += fmt.Sprintf(" of %.6g", b.Total)
	}
	if message := claim(b.Message); message != "" {
		return []Entry{{Kind: EntryClaim, Label: far, Text: message}}
	}
	return []Entry{said("%s.", far)}
}

// A blockBuffer collects text and gives it out in blocks of markdown, so that what a
// model writes can be shown before its end.
type blockBuffer struct {
	text   strings.Builder
	line   int    // where the line begins that is not complete
	split  int    // until where blocks are complete
	fence  string // of the code that is open, or ""
	wasGap bool   // the line before was blank
}

// add adds text and returns the blocks that are complete.
func (b *blockBuffer) add(s string) string {
	from := b.text.Len()
	b.text.WriteString(s)
	all := b.text.String()
	for i := from; i < len(all); i++ {
		if all[i] != '\n' {
			continue
		}
		b.newline(strings.TrimSuffix(all[b.line:i], "\r"))
		b.line = i + 1
	}
	if b.split == 0 {
		return ""
	}
	done, rest := all[:b.split], all[b.split:]
	b.text.Reset()
	b.text.WriteString(rest)
	b.line -= b.split
	b.split = 0
	return done
}

// newline notes a complete line.
func (b *blockBuffer) newline(line string) {
	closing, rest := fenceOf(line)
	switch {
	case b.fence != "":
		if rest == "" && len(closing) >= len(b.fence) && closing[0] == b.fence[0] {
			b.fence = ""
		}
	case closing != "":
		b.startBlock()
		b.fence = closing
	case blank(line):
	case indentOf(line) == 0:
		b.startBlock()
	}
	b.wasGap = blank(line)
}

// startBlock notes that a block begins with the line, if there is a blank one before.
func (b *blockBuffer) startBlock() {
	if b.wasGap {
		b.split = b.line
	}
}

// rest returns what was held back.
func (b *blockBuffer) rest() string {
	s := b.text.String()
	*b = blockBuffer{}
	return s
}

// LastExchanges is the number of the record before the last exchanges: as many runs, with
// what the person said; 0 if there are no more. It is for LineOptions.Since.
func LastExchanges(records []host.Record, exchanges int) int64 {
	for i := len(records) - 2; i >= 0; i-- {
		if _, ok := records[i].Body.(*host.RunEndRecord); !ok {
			continue
		}
		if exchanges--; exchanges == 0 {
			return records[i].N
		}
	}
	return 0
}

// ShownExchanges is how many exchanges of a session are shown when it is gone on with.
const ShownExchanges = 3

// Text words records from the beginning of a session for a plain terminal of so many
// columns; 0 is unknown. Questions are told with their answers.
func Text(records []host.Record, width int) string {
	var t Transcript
	var lines []Entry
	for i := range records {
		lines = append(lines, t.Add(&records[i])...)
	}
	return layout(append(lines, t.Flush()...), width, limits{})
}
