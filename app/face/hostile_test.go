package face_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/face"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/strictjson"
)

// forged is a line that a stranger would like to show as one of the program.
const forged = "  asked because: rule: allow everything"

// honest is why the person is asked.
const honest = "no rule"

// hostileTexts are what strangers put where a text is expected.
func hostileTexts() map[string]string {
	return map[string]string{
		"escapes":   "\x1b[2J\x1b]0;title\x07 \x9b31m \u009b31m \x00\x7f\b\r\n" + forged + "\t|",
		"bidi":      "a\u202eb\u2066c\u200e\u061c\u2028\u2029",
		"invisible": "a\u3164b\u115f\uffa0\u2800\u034f\u00ad\u200b\ufeff\ufe01\U000e0041\U000e0100\ue000",
		"invalid":   "\xff\xfe\xc3(\xed\xa0\x80",
		"long":      strings.Repeat("name ", 2<<10) + "\x1b",
		"forged":    strings.Repeat(".", 60) + forged + strings.Repeat(" 文字", 40),
		"markdown":  "[a](javascript:x) \n\n" + forged + "\n```\n\x1b\n&#27;[2J <b>",
		"empty":     "",
	}
}

// fill sets every field that can be set from outside to something hostile.
func fill(t *testing.T, v reflect.Value, text string, deep int) {
	t.Helper()
	if !v.CanSet() || deep > 8 {
		return
	}
	switch v.Type() {
	case reflect.TypeFor[mcp.RawValue]():
		raw, err := strictjson.Marshal(map[string]string{strings.ToValidUTF8(text, "?"): strings.ToValidUTF8(text, "?")})
		if err != nil {
			t.Fatal(err)
		}
		v.SetBytes(raw)
		return
	case reflect.TypeFor[mcp.Contents]():
		var list mcp.Contents
		for _, c := range []mcp.Content{
			new(mcp.TextContent), new(mcp.ImageContent), new(mcp.AudioContent), new(mcp.ResourceLink), new(mcp.EmbeddedResource),
			new(mcp.ToolUseContent), new(mcp.ToolResultContent),
		} {
			fill(t, reflect.ValueOf(c).Elem(), text, deep+2)
			list = append(list, c)
		}
		v.Set(reflect.ValueOf(list))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), text, deep+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), text, deep+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), text, deep+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, text, deep+1)
		fill(t, value, text, deep+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	}
}

// hostileQuestions are questions of every kind with a text in every place.
func hostileQuestions(t *testing.T, text string) []host.Question {
	t.Helper()
	var list []host.Question
	for _, kind := range []host.QuestionKind{
		host.QuestionCall, host.QuestionCalls, host.QuestionChange, host.QuestionSample, host.QuestionSampled, host.QuestionForm, host.QuestionPage,
		host.QuestionRoots, host.QuestionUse, host.QuestionApp, host.QuestionMessage, host.QuestionSkill, host.QuestionKind(text),
	} {
		var q host.Question
		fill(t, reflect.ValueOf(&q).Elem(), text, 0)
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
			fill(t, reflect.ValueOf(b).Elem(), text, 0)
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
func checkEntries(t *testing.T, what string, entries []face.Entry) {
	t.Helper()
	for _, e := range entries {
		if e.Label != host.EscapeLine(e.Label) || e.Kind != face.EntryBlock && e.Text != host.EscapeLine(e.Text) || e.Text != host.Escape(e.Text) {
			t.Errorf("%s: %+v is not escaped", what, e)
		}
	}
}

// Proves: SEC-TOOL-3. Whatever strangers write wherever they can, no control character but
// newlines is shown, nothing is hidden, and no line of theirs passes for one of the program.
func TestHostile(t *testing.T) {
	t.Parallel()
	for label, text := range hostileTexts() {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			for _, q := range hostileQuestions(t, text) {
				p := face.NewWording(&q)
				checkEntries(t, string(q.Kind), append(p.Lines, face.Entry{Text: p.Title}))
				for _, c := range p.Choices {
					checkEntries(t, string(q.Kind), []face.Entry{{Label: c.Key, Text: c.Label}})
				}
				if p.Page != nil {
					checkEntries(t, "page", []face.Entry{{Text: p.Page.Before + p.Page.Domain + p.Page.After}})
				}
				for _, width := range []int{0, 30} {
					if width > 0 && len(text) > 1<<10 { // takes long, and shows the same
						continue
					}
					s := newSession(asks(q))
					shown := talk(t, servers(), s, &face.LineOptions{Width: func() int { return width }}, "Go.", "e", "a=b", "s", "y", "1", "/decline")
					checkForged(t, shown)
				}
			}
			var script face.Transcript
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
			fill(t, reflect.ValueOf(&tool).Elem(), text, 0)
			h.tools = []*host.Tool{{Server: text, Def: &tool}}
			h.down = []*host.ServerError{{Server: text, Err: fmt.Errorf("starting: %s", text)}}
			var entry host.SkillEntry
			fill(t, reflect.ValueOf(&entry).Elem(), text, 0)
			h.skills = []*host.Skill{{Server: text, SkillEntry: entry}, {Server: text, SkillEntry: entry, Err: fmt.Errorf("entry: %s", text)}}
			h.status = []host.ServerStatus{{Name: text, Origin: text, State: host.StateReady, Err: fmt.Errorf("listing: %s", text), SkillsErr: fmt.Errorf("skills: %s", text)}, {Name: "s", State: host.StateReady}}
			var prompt mcp.Prompt
			fill(t, reflect.ValueOf(&prompt).Elem(), text, 0)
			h.prompts[text] = []*mcp.Prompt{&prompt}
			prompt2 := prompt
			prompt2.Name = "p"
			h.prompts["s"] = []*mcp.Prompt{&prompt2}
			h.values = []string{text}
			var rule policy.Rule
			fill(t, reflect.ValueOf(&rule).Elem(), text, 0)
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
