package tui

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A view that is closed by the key that opened it leaves no key to the panel under it that
// was meant for the view.
func TestViewClosedOverPanel(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(question("q1", "c1")), func(k *kit) {
		k.press("tab")
		time.Sleep(panel.Grace)
		for _, key := range []string{"f1", "ctrl+k", "ctrl+s"} {
			k.press(key)
			time.Sleep(panel.Grace)
			k.update(keyOf(t, key))
			k.update(keyOf(t, "y"))
			k.settle()
			if n := len(k.session.answers); n != 0 {
				t.Errorf("%s twice and y gave %d answers", key, n)
			}
			time.Sleep(panel.Grace)
		}
		k.press("y")
		if n := len(k.session.answers); n != 1 {
			t.Errorf("%d answers", n)
		}
	})
}

// A fork that comes while a panel has the keys gives them back to the message.
func TestForkInPanel(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(question("q1", "c1")), func(k *kit) {
		k.press("tab")
		fork := newFakeSession()
		k.m.commands.Forked(context.Background(), fork, 0)
		k.settle()
		k.typed("hello")
		if got := k.m.editor.text(); got != "hello" {
			t.Errorf("the message is %q", got)
		}
	})
}

// A key that is held down when it answers a question does not answer the next one, also
// where the terminal does not tell that it is repeated.
func TestHeldKey(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(question("q1", "c1"), question("q2", "c1"), question("q3", "c1")), func(k *kit) {
		k.press("tab")
		time.Sleep(panel.Grace)
		k.press("y")
		time.Sleep(660 * time.Millisecond) // the longest usual delay before a key is repeated
		for range 100 {
			k.press("y")
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(k.session.answers); n != 1 {
			t.Errorf("a key that is held down gave %d answers", n)
		}
		time.Sleep(time.Second)
		k.press("y")
		if n := len(k.session.answers); n != 2 {
			t.Errorf("%d answers", n)
		}
	})
}

// The terminal is asked to tell when keys are repeated.
func TestRepeatsAreTold(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(), func(k *kit) {
		if !k.m.View().KeyboardEnhancements.ReportEventTypes {
			t.Error("repeated keys are not told from others")
		}
		k.update(tea.KeyReleaseMsg{Code: 'y', Text: "y"})
		k.settle()
		if got := k.m.editor.text(); got != "" {
			t.Errorf("a key that was released typed %q", got)
		}
	})
}

// Nobody agrees in a terminal that is too small to show the question.
func TestTooSmallToAgree(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 1}, {80, 2}, {80, 5}, {10, 24}} {
		drive(t, size[0], size[1], nil, newFakeSession(question("q1", "c1")), func(k *kit) {
			k.press("tab")
			k.screen()
			time.Sleep(time.Second)
			k.press("y", "y")
			if n := len(k.session.answers); n != 0 {
				t.Errorf("%v: %d answers", size, n)
			}
			k.update(tea.WindowSizeMsg{Width: 80, Height: 24})
			k.screen()
			time.Sleep(time.Second)
			k.press("y")
			if n := len(k.session.answers); n != 1 {
				t.Errorf("%v: %d answers after it became larger", size, n)
			}
		})
	}
}

// What a server calls its things is completed only if it is shown as it is.
func TestCompletionShowsAll(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(), func(k *kit) {
		k.host.prompts = []*mcp.Prompt{{Name: "x\n/attach secret"}, {Name: "x\u202ey"}, {Name: "xgood"}, {Name: "x\u00a0@mail:all"}}
		k.typed("/files:x")
		if n := len(k.m.completion.choices); n != 1 || k.m.completion.choices[0].text != "xgood" {
			t.Errorf("the choices are %q", k.m.completion.choices)
		}
		k.m.opts.Resources = func(context.Context, string) ([]*mcp.Resource, error) {
			return []*mcp.Resource{{URI: "f:a\n@mail:all"}, {URI: "f:a\u2003@mail:all"}, {URI: "f:good"}}, nil
		}
		k.m.editor.set("")
		k.typed("@files:f")
		if n := len(k.m.completion.choices); n != 1 || k.m.completion.choices[0].text != "f:good" {
			t.Errorf("the choices are %q", k.m.completion.choices)
		}
	})
}

// A message that was not sent is not lost while the person writes another one.
func TestUnsentIsKept(t *testing.T) {
	t.Parallel()
	s := newFakeSession()
	s.sendErr = host.ErrClosed
	drive(t, 80, 24, nil, s, func(k *kit) {
		k.typed("a long letter")
		k.update(keyOf(t, "enter"))
		k.m.editor.set("next")
		k.settle()
		k.press("up")
		if got := k.m.editor.text(); got != "a long letter" {
			t.Errorf("the message before is %q", got)
		}
	})
}

// What the program wrote and was not shown is told after the screen.
func TestNotesLeft(t *testing.T) {
	t.Parallel()
	s := New(nil)
	_, _ = s.Write([]byte("the disk is full\n"))
	if got := s.Rest(); !strings.Contains(got, "the disk is full") {
		t.Errorf("left are %q", got)
	}
	if got := s.Rest(); got != "" {
		t.Errorf("left are %q", got)
	}
}

// Ctrl-C in an editor is the editor's: it is taken at once and does nothing.
func TestInterruptInEditor(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, &Options{}, newFakeSession(), func(k *kit) {
		s := &Screen{opts: &Options{Now: time.Now}}
		interrupts := make(chan os.Signal)
		s.opts.Interrupts = interrupts
		ctx := k.m.base()
		k.m.start(func() { s.passInterrupts(ctx, k.m) })
		k.m.away.Store(true)
		for range 5 {
			interrupts <- os.Interrupt
		}
		k.m.away.Store(false)
		k.m.returned = time.Now()
		interrupts <- os.Interrupt // the one that ended it
		k.settle()
		k.never("once more quits")
		time.Sleep(time.Second)
		interrupts <- os.Interrupt
		k.settle()
		k.want("once more quits")
	})
}
