package ui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/app/internal/ui/uitest"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// forged is a line that a stranger would like to show as one of the program.
const forged = "  asked because: rule: allow everything"

// honest is why the person is asked.
const honest = "no rule"

// hostileTexts are what strangers put where a text is expected.
func hostileTexts() map[string]string { return uitest.Texts(forged, 2<<10) }

// hostileQuestions are questions of every kind with a text in every place.
func hostileQuestions(t *testing.T, text string) []host.Question {
	t.Helper()
	var list []host.Question
	for _, kind := range []host.QuestionKind{
		host.QuestionCall, host.QuestionCalls, host.QuestionChange, host.QuestionSample, host.QuestionSampled, host.QuestionForm, host.QuestionPage,
		host.QuestionRoots, host.QuestionUse, host.QuestionApp, host.QuestionMessage, host.QuestionSkill, host.QuestionSignIn,
		host.QuestionKind(text),
	} {
		var q host.Question
		uitest.Fill(t, &q, text)
		q.Kind, q.Why = kind, honest
		q.Skill.Dynamic = len(list)%2 == 1
		for i := range q.Form.RequestedSchema.Properties {
			q.Form.RequestedSchema.Properties[i].Schema.Type = []string{"string", "array"}[i%2]
		}
		list = append(list, q)
	}
	return list
}

// hostileRecords are records of every kind with a text in every place.
func hostileRecords(t *testing.T, text string) []host.Body {
	t.Helper()
	var list []host.Body
	for _, outcome := range []host.Outcome{
		host.OutcomeDone, host.OutcomeFailed, host.OutcomeRefused, host.OutcomeNotRun, host.OutcomeCancelled, host.OutcomeInterrupted, host.Outcome(text),
	} {
		for _, b := range []host.Body{
			new(host.UserRecord), new(host.TurnRecord), new(host.TextRecord), new(host.ReasoningRecord), new(host.CallRecord), new(host.TurnEndRecord),
			new(host.StartRecord), new(host.ProgressRecord), new(host.NoticeRecord), new(host.LabelRecord), new(host.CompactionRecord), new(host.AnswerRecord),
			new(host.ResultRecord), new(host.RunEndRecord), new(host.UsageRecord), new(host.PageRecord), new(host.SkillRecord),
		} {
			uitest.Fill(t, b, text)
			switch b := b.(type) {
			case *host.ResultRecord:
				b.Outcome = outcome
			case *host.RunEndRecord:
				b.Outcome = outcome
			case *host.AnswerRecord:
				if outcome != host.OutcomeDone {
					b.Withdrawn = ""
				}
			case *host.NoticeRecord:
				b.Untrusted = outcome == host.OutcomeDone
			case *host.CallRecord:
				if outcome == host.OutcomeFailed {
					b.Arguments = nil
				}
			}
			list = append(list, b)
		}
	}
	return list
}

// checkEntries fails if an entry is not escaped.
func checkEntries(t *testing.T, what string, entries []ui.Entry) {
	t.Helper()
	for _, e := range entries {
		if e.Label != host.EscapeLine(e.Label) || e.Kind != ui.EntryBlock && e.Text != host.EscapeLine(e.Text) || e.Text != host.Escape(e.Text) {
			t.Errorf("%s: %+v is not escaped", what, e)
		}
	}
}

// Proves: SEC-TOOL-3. Whatever strangers write wherever they can, no control character but
// newlines is shown, nothing is hidden, and no line of theirs passes for one of the program.
func TestHostile(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	for label, text := range hostileTexts() {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			for _, q := range hostileQuestions(t, text) {
				p := ui.NewWording(&q)
				checkEntries(t, string(q.Kind), append(p.Lines, ui.Entry{Text: p.Title}))
				for _, c := range p.Choices {
					checkEntries(t, string(q.Kind), []ui.Entry{{Label: c.Key, Text: c.Label}})
				}
				if p.Page != nil {
					checkEntries(t, "page", []ui.Entry{{Text: p.Page.Before + p.Page.Domain + p.Page.After}})
				}
				for _, width := range []int{0, 30} {
					if width > 0 && len(text) > 1<<10 { // takes long, and shows the same
						continue
					}
					s := newSession(asks(q))
					shown := talk(t, servers(), s, &ui.LineOptions{Width: func() int { return width }}, "Go.", "e", "a=b", "s", "y", "1", "/decline")
					checkForged(t, shown)
				}
			}
			var script ui.Transcript
			s := newSession(nil)
			for _, b := range hostileRecords(t, text) {
				checkEntries(t, b.Kind(), script.Add(&host.Record{Body: b}))
				s.write(b)
			}
			s.write(&host.RunEndRecord{Outcome: host.OutcomeDone})
			checkForged(t, talk(t, servers(), s, nil, "/history"))
		})
	}
}

// checkForged fails if a stranger's line looks like one of the program.
func checkForged(t *testing.T, shown string) {
	t.Helper()
	for line := range strings.SplitSeq(shown, "\n") {
		if because, ok := strings.CutPrefix(line, "  asked because: "); ok && because != honest && because != "" || strings.HasPrefix(line, "asked because") {
			t.Errorf("a forged line %q in:\n%s", line, shown)
		}
	}
}

// What hosts and servers say is escaped in the answers to commands, too.
func TestHostileCommands(t *testing.T) {
	t.Parallel()
	for label, text := range hostileTexts() {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			h := &fakeHost{prompts: make(map[string][]*mcp.Prompt)}
			var tool mcp.Tool
			uitest.Fill(t, &tool, text)
			h.tools = []*host.Tool{{Server: text, Def: &tool}}
			h.down = []*host.ServerError{{Server: text, Err: fmt.Errorf("starting: %s", text)}}
			var entry host.SkillEntry
			uitest.Fill(t, &entry, text)
			h.skills = []*host.Skill{{Server: text, SkillEntry: entry}, {Server: text, SkillEntry: entry, Err: fmt.Errorf("entry: %s", text)}}
			h.status = []host.ServerStatus{{Name: text, Origin: text, State: host.StateReady, Err: fmt.Errorf("listing: %s", text), SkillsErr: fmt.Errorf("skills: %s", text)}, {Name: "s", State: host.StateReady}}
			var prompt mcp.Prompt
			uitest.Fill(t, &prompt, text)
			h.prompts[text] = []*mcp.Prompt{&prompt}
			prompt2 := prompt
			prompt2.Name = "p"
			h.prompts["s"] = []*mcp.Prompt{&prompt2}
			h.values = []string{text}
			var rule policy.Rule
			uitest.Fill(t, &rule, text)
			for op := range policy.OpRange + 2 {
				rule.Where[0].Op = op
				r := rule
				r.Where = append([]policy.Predicate(nil), rule.Where...)
				h.grants = append(h.grants, host.Grant{ID: text, Rule: r})
			}
			s := newSession(func(*session, host.Input) {})
			s.title, s.id = text, text
			talk(t, h, s, nil, "/tools", "/skills", "/skill s:none", "/servers", "/prompts", "/grants", "/title", "/s:p", "?", "1", "/retry none", "/revoke "+strings.Map(oneLine, text),
				"/"+strings.Map(oneLine, text), "@none:x://"+strings.Map(oneLine, text), "/cancel "+strings.Map(oneLine, text))
		})
	}
}

// oneLine drops newlines, so that a text can be typed.
func oneLine(r rune) rune {
	if r == '\n' || r == '\r' {
		return -1
	}
	return r
}
