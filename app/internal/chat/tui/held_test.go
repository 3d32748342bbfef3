package tui

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/policy"
)

// hold holds a key down on a terminal that does not tell repeats.
func (k *kit) hold(key string) {
	k.press(key)
	time.Sleep(660 * time.Millisecond) // the longest usual delay before a key is repeated
	for range 20 {
		k.press(key)
		time.Sleep(10 * time.Millisecond)
	}
}

// A key that is held down deletes no session, and takes back one grant and doubles a limit once.
func TestHeldKeyInViews(t *testing.T) {
	t.Parallel()
	kept := keptFor()
	drive(t, 80, 24, viewOptions(kept), newFakeSession(granted()...), func(k *kit) {
		viewHost(k)
		k.each("f3", "down", "down")
		k.hold("x")
		if len(kept.deleted) != 0 {
			t.Errorf("deleted %q", kept.deleted)
		}
		time.Sleep(releaseTime)
		k.hold("x")
		if !slices.Equal(kept.deleted, []string{"OTHER"}) {
			t.Errorf("deleted %q", kept.deleted)
		}
		k.each("esc", "f4")
		k.hold("+")
		if got := k.session.Budget().Limit.Steps; got != 32 {
			t.Errorf("the limit is %d steps", got)
		}
		k.each("esc", "f5")
		k.hold("x")
		if n := liveGrants(k); n != 1 {
			t.Errorf("%d of 2 grants are left", n)
		}
	})
}

// liveGrants counts the grants that hold.
func liveGrants(k *kit) int {
	n := 0
	for i := range k.host.grants {
		if k.host.grants[i].Over(time.Now()) == "" {
			n++
		}
	}
	return n
}

// Two limits that are raised at once are both raised.
func TestRaiseTwoLimits(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(talk()...), func(k *kit) {
		k.each("f4")
		k.update(keyOf(t, "+")) // and nothing of what comes of it
		k.update(keyOf(t, "down"))
		k.update(keyOf(t, "+"))
		k.settle()
		if got := k.session.Budget().Limit; got.Steps != 32 {
			t.Errorf("the limits are %+v", got)
		}
	})
}

// What is marked stays marked when the list is read again.
func TestMarkStays(t *testing.T) {
	t.Parallel()
	kept := keptFor()
	kept.next = newFakeSession()
	drive(t, 80, 24, viewOptions(kept), newFakeSession(granted()...), func(k *kit) {
		kept.next.changed = make(chan struct{}) // of this bubble
		viewHost(k)
		k.each("f3", "down")
		kept.mu.Lock()
		kept.list = append([]host.SessionInfo{{ID: "NEWER", Title: "Of another program"}}, kept.list...)
		kept.mu.Unlock()
		k.m.refresh()
		k.settle()
		k.each("enter")
		if !slices.Equal(kept.opened, []string{"open PARENT"}) {
			t.Errorf("opened %q", kept.opened)
		}
		k.each("f5")
		newer := host.Grant{ID: "g9", Rule: policy.Rule{Kind: policy.KindTool, Server: "files", Name: "newer"}, Created: time.Now()}
		k.host.grants = append(k.host.grants, newer)
		k.m.refresh()
		k.settle()
		k.each("x")
		if last := k.host.grants[len(k.host.grants)-1]; last.Over(time.Now()) != "" || liveGrants(k) != 2 {
			t.Errorf("the grants are %+v", k.host.grants)
		}
	})
}

// The key that goes to a question attaches no file, nor does one for which there is no room to
// say so; and the file that is attached is the one whose path was pasted.
func TestPastedFileUnseen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	for name, text := range map[string]string{path: "wrong", path + " ": "the right one"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	drive(t, 80, 24, nil, newFakeSession(), func(k *kit) {
		k.paste(path)
		k.want("Tab attaches the file key")
		k.write(question("q1", "c1"))
		k.never("attaches the file")
		k.each("tab")
		k.never("Your next message has it")
		if !k.m.inPanel {
			t.Error("the key did not go to the question")
		}
		k.each("esc")
	})
	drive(t, 80, 2, nil, newFakeSession(), func(k *kit) {
		k.paste(path)
		k.never("attaches")
		k.each("tab")
		k.update(tea.WindowSizeMsg{Width: 80, Height: 24})
		k.never("Your next message has it")
	})
	drive(t, 80, 24, nil, newFakeSession(), func(k *kit) {
		k.paste("'" + path + " '")
		k.each("tab")
		k.want("13 bytes")
	})
}

// twice presses a key, lets go of it, and presses it again.
func (k *kit) twice(key string) {
	k.press(key)
	time.Sleep(releaseTime)
	k.press(key)
}
