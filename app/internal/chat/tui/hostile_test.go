package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// villain is what a stranger may write: sequences that move the cursor, set the title,
// write the clipboard and reverse text, and characters that nobody sees.
const villain = "A\x1b[2J\x1b]0;owned\a\x1b]52;c;eA==\x07\u009b31m\u202egnp.exe\u2066\u200b\U000e0041\x00\x7f\r\b\x9b"

// Whatever strangers say anywhere, the screen has text and our styles only.
func TestHostile(t *testing.T) {
	t.Parallel()
	evil := &host.CallRecord{ID: villain, ModelName: villain, Server: villain, Tool: villain, Arguments: mcp.RawValue(`{"a":"` + strings.ReplaceAll(villain, "\x00", "") + `"}`)}
	q := &host.QuestionRecord{Question: host.Question{
		ID: "q1", Kind: host.QuestionCall, Server: villain, Origin: villain, Call: villain, Name: villain, Why: villain, Warnings: []string{villain},
		Tool: &mcp.Tool{Name: villain, Title: villain, Description: villain}, Arguments: mcp.RawValue(`{"a":"\u001b[2J"}`),
	}}
	s := newFakeSession(
		user(villain), &host.UserRecord{Content: mcp.Contents{mcp.Text(villain)}, Server: villain, Name: villain},
		&host.TurnRecord{Step: 1, Model: villain},
		&host.ReasoningRecord{Reasoning: host.Reasoning{Text: villain + "\n" + villain}},
		&host.TextRecord{Text: villain + "\n\n```" + villain + "\n" + villain + "\n```\n\n[" + villain + "](https://example.com/" + villain + ")\n\n|" + villain + "|b|\n|-|-|\n|" + villain + "|d|\n"},
		evil, &host.StartRecord{Call: villain, Arguments: evil.Arguments, Why: villain},
		&host.ProgressRecord{Call: villain, Progress: 1, Message: villain},
		&host.ResultRecord{Call: villain, Outcome: host.OutcomeFailed, Why: villain, Content: mcp.Contents{mcp.Text(villain)}},
		&host.ResultRecord{Call: "none", Outcome: host.Outcome(villain), Why: villain},
		&host.NoticeRecord{Server: villain, Text: villain, Level: mcp.LogLevel(villain), Untrusted: true},
		&host.NoticeRecord{Text: villain},
		&host.CompactionRecord{Summary: villain},
		&host.RunEndRecord{Outcome: host.OutcomeFailed, Why: villain}, q,
	)
	drive(t, 60, 100, nil, s, func(k *kit) {
		k.host.status = []host.ServerStatus{{Name: villain, Origin: villain, State: host.StateWaiting, Err: errors.New(villain), Version: villain}}
		k.host.prompts = []*mcp.Prompt{{Name: villain, Description: villain, Arguments: []mcp.PromptArgument{{Name: villain, Description: villain}}}}
		k.m.note(villain)
		k.m.complain(host.EscapeLine(villain))
		k.sound()
		k.want(`\u{1b}`)
		for range 40 { // every card is opened once
			k.press("alt+up", "ctrl+o")
		}
		k.sound()
		for _, key := range []string{"tab", "f1", "esc", "ctrl+k", "esc", "ctrl+s", "esc"} {
			k.press(key)
			time.Sleep(400 * time.Millisecond)
			k.sound()
		}
		time.Sleep(400 * time.Millisecond)
		k.press("f")
		k.sound()
		k.press("esc")
		for _, command := range []string{"/servers", "/tools", "/prompts", "/history", "/retry " + villain, "/title", "/" + villain, "/cancel " + villain} {
			k.m.editor.set(command)
			k.press("enter")
			k.sound()
		}
		k.m.editor.set("/")
		k.m.complete()
		k.sound()
		k.m.editor.set("@")
		k.m.complete()
		k.sound()
	})
}

// Ten thousand nested lists, one token of a megabyte and 5,000 lines are drawn in bounded
// time, and the message stays visible.
func TestHuge(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nested lists": strings.Repeat("- ", 10_000) + "x",
		"one token":    strings.Repeat("x", 1<<20),
		"lines":        strings.Repeat("a line\n", 5000),
		"wide":         strings.Repeat("日", 100_000),
		"combining":    "e" + strings.Repeat("\u0301", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFakeSession(user(text), &host.TurnRecord{Step: 1, Model: "m"}, &host.TextRecord{Text: text}, &host.CallRecord{ID: "c1", Tool: "t", Arguments: mcp.RawValue(`{"a":"` + strings.ReplaceAll(text, "\n", " ") + `"}`)})
			drive(t, 80, 24, nil, s, func(k *kit) {
				k.sound()
				k.want("Write a message")
				k.press("ctrl+o")
				k.sound()
				k.press("ctrl+home")
				k.sound()
				k.want("›")
			})
		})
	}
}

// A paste of a megabyte is shown as a mark, and sent whole.
func TestPaste(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(), func(k *kit) {
		text := strings.Repeat("0123456789abcde\n", 1<<16)
		k.typed("Look: ")
		k.paste(text)
		k.want("Look: [pasted 1,048,576 characters]")
		k.typed(" and ")
		k.paste(villain)
		k.want("and [pasted")
		k.sound()
		k.press("enter")
		if len(k.session.sent) != 1 {
			t.Fatalf("%d messages", len(k.session.sent))
		}
		got := k.session.sent[0].Text
		if !strings.HasPrefix(got, "Look: "+text+" and A\x1b[2J") {
			t.Errorf("%d bytes were sent of %d", len(got), len(text))
		}
		k.paste("short\ntext")
		k.want("short", "text")
		k.press("ctrl+c")
		k.typed(" x")
		if got := k.m.editor.text(); got != "short\ntext x" {
			t.Errorf("the message is %q", got)
		}
	})
}

// The messages of before come back with Up, and the draft with Down.
func TestHistory(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(user("first"), user("second")), func(k *kit) {
		k.typed("draft")
		k.press("up")
		if got := k.m.editor.text(); got != "second" {
			t.Errorf("the message is %q", got)
		}
		k.press("up", "up")
		if got := k.m.editor.text(); got != "first" {
			t.Errorf("the message is %q", got)
		}
		k.press("down", "down")
		if got := k.m.editor.text(); got != "draft" {
			t.Errorf("the message is %q", got)
		}
		k.press("alt+enter")
		k.typed("more")
		k.press("enter")
		if len(k.session.sent) != 1 || k.session.sent[0].Text != "draft\nmore" {
			t.Errorf("sent %+v", k.session.sent)
		}
	})
}

// Commands, prompts with their arguments and values, and resources are completed.
func TestComplete(t *testing.T) {
	t.Parallel()
	opts := &Options{Resources: func(context.Context, string) ([]*mcp.Resource, error) {
		return []*mcp.Resource{{URI: "file:///notes.txt", Name: "notes"}}, nil
	}}
	drive(t, 80, 24, opts, newFakeSession(), func(k *kit) {
		k.host.prompts = []*mcp.Prompt{{Name: "greet", Description: "Greets.", Arguments: []mcp.PromptArgument{{Name: "city", Required: true}}}}
		k.host.values = []string{"Paris", "New York"}
		k.typed("/serv")
		k.want("▸ /servers")
		k.press("tab")
		if got := k.m.editor.text(); got != "/servers" {
			t.Fatalf("the message is %q", got)
		}
		k.m.editor.set("")
		k.typed("/files:gr")
		k.want("▸ greet")
		k.press("tab", "tab")
		if got := k.m.editor.text(); got != "/files:greet city=" {
			t.Fatalf("the message is %q", got)
		}
		k.want("Paris", "New York")
		k.press("down", "tab")
		if got := k.m.editor.text(); got != `/files:greet city="New York"` {
			t.Fatalf("the message is %q", got)
		}
		k.press("enter")
		if len(k.session.sent) != 1 || k.session.sent[0].Prompt.Arguments["city"] != "New York" {
			t.Fatalf("sent %+v", k.session.sent)
		}
		k.typed("see @files:no")
		k.press("tab")
		if got := k.m.editor.text(); got != "see @files:file:///notes.txt" {
			t.Fatalf("the message is %q", got)
		}
		k.press("enter")
		if len(k.session.sent) != 2 || len(k.session.sent[1].Resources) != 1 || k.session.sent[1].Resources[0].URI != "file:///notes.txt" {
			t.Fatalf("sent %+v", k.session.sent[1:])
		}
		k.typed("/h")
		k.press("esc")
		k.never("▸ /help")
	})
}

// A server that has started meanwhile is asked again with the next message.
func TestCompleteAgain(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(), func(k *kit) {
		k.typed("/files:")
		k.host.prompts = []*mcp.Prompt{{Name: "greet"}}
		k.typed("g")
		if n := len(k.m.completion.choices); n != 0 {
			t.Errorf("the server was asked twice for one message: %q", k.m.completion.choices)
		}
		for range len("/files:g") {
			k.press("backspace")
		}
		k.typed("/files:g")
		k.want("▸ greet")
	})
}

// A prompt without its argument is not used: the person goes on with it.
func TestMissingArgument(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(), func(k *kit) {
		k.host.prompts = []*mcp.Prompt{{Name: "greet", Arguments: []mcp.PromptArgument{{Name: "city", Required: true, Description: "Where."}}}}
		k.typed("/files:greet")
		k.press("esc", "enter")
		k.want("needs a value for city", "Where.")
		if got := k.m.editor.text(); got != "/files:greet city=" || len(k.session.sent) != 0 {
			t.Errorf("the message is %q, sent %v", got, k.session.sent)
		}
	})
}

// What could not be sent is told, and comes back into the editor.
func TestNotSent(t *testing.T) {
	t.Parallel()
	s := newFakeSession()
	s.sendErr = errors.New("server mail is down")
	drive(t, 80, 24, nil, s, func(k *kit) {
		k.typed("hello")
		k.press("enter")
		k.want("It was not sent: server mail is down.", "› hello")
	})
}

// Commands are those of every face.
func TestCommands(t *testing.T) {
	t.Parallel()
	titles := ""
	opts := &Options{SetTitle: func(_ context.Context, _, title string) error {
		titles += title
		return nil
	}}
	drive(t, 80, 40, opts, newFakeSession(talk()...), func(k *kit) {
		for command, want := range map[string]string{
			"/servers": "Server mail: waiting", "/nonsense": "There is no command /nonsense", "/retry gone": "It was not started: it was removed.",
			"/title A new one": "The title is A new one now.", "/model": "clever-1", "/cancel c1": "Cancelling call c1.", "/fork x": "Please write the number of a record",
		} {
			k.m.editor.set(command)
			k.press("enter")
			k.want(want)
		}
		if titles != "A new one" {
			t.Errorf("titles %q", titles)
		}
		k.m.editor.set("/fork 3")
		k.press("enter")
		k.want("a fork of ABC after record 3")
		k.m.editor.set("/quit")
		k.press("enter")
		if !k.quit {
			t.Error("it does not quit")
		}
	})
}

// Code stays code where a block is cut, and a table that is too wide becomes lines.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	const text = "# Title\n\n1. one\n2. two\n   - deep\n\n> quoted\n\n---\n\n| a | b |\n|---|---|\n| 1 | 22 |\n\n**bold** `code`\n"
	for _, width := range []int{40, 12} {
		p := &painter{must("none")}
		lines := p.document(ui.ParseMarkdown(text), width)
		got := styled.ReplaceAllString(strings.Join(lines, "\n"), "")
		for _, want := range []string{"Title", "1. one", "2. two", "   • deep", "▌ quoted", "bold code"} {
			if !strings.Contains(got, want) {
				t.Errorf("%d columns: no %q in\n%s", width, want, got)
			}
		}
	}
}
