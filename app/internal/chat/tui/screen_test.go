package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// Screens that were looked at, in several sizes.
func TestGoldens(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ width, height int }{{80, 24}, {40, 12}, {20, 8}} {
		name := fmt.Sprintf("%dx%d", size.width, size.height)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drive(t, size.width, size.height, nil, newFakeSession(talk()...), func(k *kit) {
				k.golden("talk-" + name)
				k.press("ctrl+o")
				k.golden("card-" + name)
				k.press("ctrl+s")
				k.golden("servers-" + name)
				k.press("esc", "ctrl+k")
				k.typed("tools")
				k.golden("palette-" + name)
				k.press("esc", "f1")
				k.golden("help-" + name)
				k.press("esc", "ctrl+end")
				k.write(user("Once more."), &host.TurnRecord{Step: 1, Model: "clever-1"}, call("c2"), question("q1", "c2"))
				k.golden("banner-" + name)
			})
		})
	}
}

// Without colours the screen has bold, underlined and reversed text only.
func TestNoColor(t *testing.T) {
	t.Parallel()
	drive(t, 60, 16, &Options{Environ: []string{"NO_COLOR=1"}}, newFakeSession(talk()...), func(k *kit) {
		k.write(question("q1", ""))
		content := k.m.View().Content
		for _, sgr := range styled.FindAllString(content, -1) {
			for part := range strings.SplitSeq(strings.Trim(sgr, "\x1b[m"), ";") {
				if !strings.Contains(" 0 1 3 4 7 ", " "+part+" ") && part != "" {
					t.Fatalf("%q is a colour", sgr)
				}
			}
		}
		k.want("I wrote hello", "a question waits")
		compare(t, "no-color.txt", strings.ReplaceAll(content, "\x1b", "ESC")+"\n")
	})
}

// What the model says is visible with the next message, and grows.
func TestStreaming(t *testing.T) {
	t.Parallel()
	drive(t, 60, 12, nil, newFakeSession(user("Hi"), &host.TurnRecord{Step: 1, Model: "clever-1"}), func(k *kit) {
		k.write(&host.TextRecord{Text: "One **two"})
		k.want("● clever-1", "One **two", "the model works")
		k.write(&host.TextRecord{Text: "** three.\n\nNext"})
		k.want("One two three.", "Next")
		before := k.m.conv.drawn
		k.write(&host.TextRecord{Text: " word"})
		k.want("Next word")
		if got := k.m.conv.drawn - before; got != 1 {
			t.Errorf("%d items were drawn for a word", got)
		}
	})
}

// A token is on the screen within a frame.
func TestLatency(t *testing.T) {
	t.Parallel()
	drive(t, 60, 12, nil, newFakeSession(user("Hi"), &host.TurnRecord{Step: 1, Model: "clever-1"}), func(k *kit) {
		k.session.write(&host.TextRecord{Text: "first "})
		began := time.Now()
		k.update(<-k.msgs)
		k.want("first")
		k.session.write(&host.TextRecord{Text: "second"})
		k.update(<-k.msgs)
		k.want("second")
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("two tokens took %v", took)
		}
	})
}

// While 10,000 lines arrive by 200 records a second, a key is drawn with what is visible,
// and nothing that is out of sight is drawn.
func TestTypingWhileManyLines(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(user("Much"), &host.TurnRecord{Step: 1, Model: "clever-1"}), func(k *kit) {
		const records, perRecord = 200, 50
		for i := range records {
			var b strings.Builder
			for j := range perRecord {
				fmt.Fprintf(&b, "line %d\n\n", i*perRecord+j)
			}
			k.session.write(&host.TextRecord{Text: b.String()})
			if i%10 != 0 {
				continue
			}
			before := k.m.conv.drawn
			k.update(tea.KeyPressMsg{Code: 'x', Text: "x"})
			k.m.View()
			if got := k.m.conv.drawn - before; got > 2*24 {
				t.Fatalf("a key had %d items drawn", got)
			}
			k.settle()
		}
		k.settle()
		before := k.m.conv.drawn
		k.m.View()
		k.update(tea.KeyPressMsg{Code: 'y', Text: "y"})
		k.m.View()
		if got := k.m.conv.drawn - before; got > 24 {
			t.Errorf("%d items were drawn for a key", got)
		}
		k.want("line 9999", "xxxxxxxxxxxxxxxxxxxxy")
		if k.updates > 500 {
			t.Errorf("%d messages: the records did not come in batches", k.updates)
		}
	})
}

// Keys of somebody who types never reach a question; Tab goes there, Escape comes back.
func TestBanner(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(user("Hi"), &host.TurnRecord{Step: 1, Model: "clever-1"}, call("c1")), func(k *kit) {
		k.typed("my mess")
		k.write(question("q1", "c1"))
		k.want("Tab: a question waits.", "waits for your answer")
		k.typed("age y")
		k.press("enter")
		if len(k.session.answers) != 0 || len(k.session.sent) != 1 || k.session.sent[0].Text != "my message y" {
			t.Fatalf("answers %v, sent %+v", k.session.answers, k.session.sent)
		}
		k.press("tab")
		k.never("a question waits")
		k.want("[y]")
	})
}

// Keys within 400 ms of the panel's getting the keys are dropped.
func TestKeysDropped(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(user("Hi"), call("c1"), question("q1", "c1")), func(k *kit) {
		k.update(keyOf(t, "tab"))
		k.update(keyOf(t, "y"))
		k.settle()
		if len(k.session.answers) != 0 {
			t.Fatal("a key that came at once has answered")
		}
		time.Sleep(400 * time.Millisecond)
		k.press("esc")
		if k.m.inPanel || len(k.session.answers) != 0 {
			t.Fatal("Escape did not put the question aside")
		}
		k.want("a question waits")
		k.press("tab")
		time.Sleep(400 * time.Millisecond)
		k.press("y")
		if len(k.session.answers) != 1 || k.session.answers[0].Action != host.Approve || k.session.answers[0].Face != "screen" {
			t.Fatalf("answers %+v", k.session.answers)
		}
		k.never("a question waits")
		if k.m.inPanel {
			t.Error("the panel still has the keys")
		}
	})
}

// Who presses Tab for a completion just when a question arrives, and types on, answers nothing.
func TestKeysDroppedWhileTyping(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(user("Hi"), call("c1"), question("q1", "c1")), func(k *kit) {
		k.update(keyOf(t, "tab"))
		for _, key := range strings.Split("every story", "") {
			time.Sleep(200 * time.Millisecond)
			k.update(keyOf(t, strings.ReplaceAll(key, " ", "space")))
			k.settle()
		}
		if len(k.session.answers) != 0 {
			t.Fatalf("answers %+v", k.session.answers)
		}
		k.never("Your reason", "Go to a value")
		time.Sleep(400 * time.Millisecond)
		k.press("y")
		if len(k.session.answers) != 1 {
			t.Errorf("answers %+v", k.session.answers)
		}
	})
}

// After an answer the next question has the panel, and again drops what was typed for the
// one before.
func TestNextQuestion(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(user("Hi"), call("c1"), question("q1", "c1"), question("q2", "c1")), func(k *kit) {
		k.want("2 questions wait")
		k.press("tab")
		time.Sleep(400 * time.Millisecond)
		k.update(keyOf(t, "y"))
		k.update(keyOf(t, "y"))
		k.update(keyOf(t, "y"))
		k.settle()
		k.update(keyOf(t, "y"))
		k.settle()
		if len(k.session.answers) != 1 || !k.m.inPanel {
			t.Fatalf("answers %+v, in the panel: %v", k.session.answers, k.m.inPanel)
		}
		if k.m.panel.Question().ID != "q2" {
			t.Errorf("the panel shows %s", k.m.panel.Question().ID)
		}
	})
}

// An answer that does not count is told, and the question stays.
func TestAnswerRejected(t *testing.T) {
	t.Parallel()
	s := newFakeSession(user("Hi"), call("c1"), question("q1", "c1"))
	s.answerErr = errors.New("the arguments are no object")
	drive(t, 80, 24, nil, s, func(k *kit) {
		k.press("tab")
		time.Sleep(400 * time.Millisecond)
		k.press("y")
		k.want("does not count", "the arguments are no object")
		if !k.m.inPanel {
			t.Error("the panel is gone")
		}
	})
}

// A question that another face answers is gone, also from the panel.
func TestAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(user("Hi"), call("c1"), question("q1", "c1")), func(k *kit) {
		k.press("tab")
		k.write(&host.AnswerRecord{Question: "q1", Answer: host.Answer{Action: host.Refuse, Face: "web"}})
		if k.m.inPanel {
			t.Fatal("the panel has the keys without a question")
		}
		k.typed("y")
		if k.m.editor.text() != "y" || len(k.session.answers) != 0 {
			t.Errorf("the message is %q, answers %v", k.m.editor.text(), k.session.answers)
		}
	})
}

// Any size at any moment draws exactly the screen.
func TestResize(t *testing.T) {
	t.Parallel()
	s := newFakeSession(append(talk(), user("日本語 e\u0301 👩‍👩‍👧 \u200d"), call("c2"), question("q1", "c2"))...)
	drive(t, 80, 24, nil, s, func(k *kit) {
		for _, width := range []int{300, 20, 21, 1, 80, 37} {
			for _, height := range []int{1, 2, 3, 5, 8, 24, 100} {
				k.update(tea.WindowSizeMsg{Width: width, Height: height})
				k.sound()
				for _, keys := range [][]string{{"tab"}, {"esc"}, {"f1"}, {"esc"}, {"ctrl+k"}, {"esc"}, {"ctrl+s"}, {"esc"}, {"ctrl+f"}, {"esc"}, {"pgup"}, {"ctrl+end"}} {
					k.press(keys...)
					time.Sleep(400 * time.Millisecond)
					k.sound()
				}
			}
		}
	})
}

// Ctrl-C cancels, and again quits.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(user("Hi"), &host.TurnRecord{Step: 1}), func(k *kit) {
		k.press("ctrl+c")
		if k.session.cancels != 1 || k.quit {
			t.Fatalf("%d cancels, quit %v", k.session.cancels, k.quit)
		}
		k.want("Cancelling. Ctrl-C once more quits.")
		k.typed("x")
		k.press("ctrl+c")
		if k.quit {
			t.Fatal("a key in between does not count")
		}
		k.press("ctrl+c")
		if !k.quit {
			t.Error("it does not quit")
		}
	})
}

// The end of the session ends the screen.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(talk()...), func(k *kit) {
		k.session.end()
		k.settle()
		if !k.quit {
			t.Error("the screen goes on")
		}
	})
}

func TestStatusLine(t *testing.T) {
	t.Parallel()
	drive(t, 160, 24, nil, newFakeSession(talk()...), func(k *kit) {
		k.write(&host.LabelRecord{Labels: []policy.Label{policy.LabelPrivate, policy.LabelUntrusted}, Server: "files"})
		k.want("1 of 2 servers ready, 1 failed (Ctrl-S)", "1712 in, 100 out", "clever-1", "session ABC", "holds private-data, untrusted-input")
		k.write(call("c9"), &host.StartRecord{Call: "c9", Arguments: mcp.RawValue(`{}`)}, &host.ProgressRecord{Call: "c9", Progress: 4, Total: 10, Message: "reading"})
		k.want("at 4 of 10 (untrusted: reading)", "/cancel c9 ends it")
	})
	// A call that runs may wait for the answer to a question.
	running := []host.Body{user("Hi"), call("c1"), &host.StartRecord{Call: "c1", Arguments: mcp.RawValue(`{}`)}}
	drive(t, 160, 24, &Options{ReducedMotion: true}, newFakeSession(running...), func(k *kit) {
		k.want(" running files.write_file ·")
		k.write(question("q1", "c1"))
		k.want(" waits for you ·")
	})
}

// The servers are listed with the reason why one failed, and started again.
func TestServers(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(), func(k *kit) {
		k.press("ctrl+s")
		k.want("files: ready, 3 tools", "mail: waiting", "the process ended with status 1")
		k.press("down", "ctrl+r")
		if len(k.host.retried) != 1 || k.host.retried[0] != "mail" {
			t.Errorf("retried %v", k.host.retried)
		}
		k.press("ctrl+s")
		k.never("mail: waiting")
	})
}

// What is searched for is shown, further up with each key.
func TestSearch(t *testing.T) {
	t.Parallel()
	var bodies []host.Body
	for i := range 100 {
		bodies = append(bodies, user(fmt.Sprintf("message %d, needle %d", i, i%10)))
	}
	drive(t, 60, 12, nil, newFakeSession(bodies...), func(k *kit) {
		k.want("message 99")
		k.press("ctrl+f")
		k.typed("NEEDLE 3")
		k.press("enter")
		k.want("message 93")
		k.press("up")
		k.want("message 83")
		k.press("down")
		k.want("message 93")
		for range 10 {
			k.press("up")
		}
		k.want("message 93") // from the beginning on to the end
		k.press("esc")
		k.typed("z")
		if k.m.editor.text() != "z" {
			t.Errorf("the message is %q", k.m.editor.text())
		}
	})
}

// Keys are those of the configuration, on the screen too.
func TestRemapped(t *testing.T) {
	t.Parallel()
	keys, err := style.NewKeys(map[string][]string{style.Question: {"ctrl+g"}, style.Send: {"ctrl+d"}})
	if err != nil {
		t.Fatal(err)
	}
	drive(t, 80, 24, &Options{Keys: keys}, newFakeSession(user("Hi"), call("c1"), question("q1", "c1")), func(k *kit) {
		k.want("Ctrl-G: a question waits.")
		k.typed("hello")
		k.press("ctrl+d")
		if len(k.session.sent) != 1 {
			t.Errorf("sent %v", k.session.sent)
		}
		k.press("ctrl+g")
		if !k.m.inPanel {
			t.Error("the key does not go to the panel")
		}
	})
}

// The theme follows the background of the terminal, unless one was chosen.
func TestTheme(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(talk()...), func(k *kit) {
		before := k.m.View().Content
		k.update(tea.BackgroundColorMsg{Color: must("light").Banner.GetForeground()})
		if k.m.theme.Name != "light" || k.m.View().Content == before {
			t.Errorf("the theme is %s", k.m.theme.Name)
		}
	})
	drive(t, 80, 24, &Options{Theme: must("dark")}, newFakeSession(), func(k *kit) {
		k.update(tea.BackgroundColorMsg{Color: must("light").Banner.GetForeground()})
		if k.m.theme.Name != "dark" {
			t.Errorf("the theme is %s", k.m.theme.Name)
		}
	})
}
