package panel_test

import (
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/host"
)

// fuzzKeys are what the bytes of a sequence press.
var fuzzKeys = []string{
	"y", "n", "r", "e", "d", "f", "t", "c", "a", "o", "m", "h", "i", "w", "u", "b", "1", "2", "3", "9", "x", "=", "{", "}", "/", "\"",
	"enter", "tab", "shift+tab", "esc", "up", "down", "left", "right", "pgup", "pgdown", "home", "end", "space", "backspace", "delete",
	"alt+left", "ctrl+u", "ctrl+w", "ctrl+k", "ctrl+home", "ctrl+end", "Y", "ü",
}

// Any sequence of keys, pastes and texts from the editor does no harm: the panel stays within
// its size, and approves only by the key of a yes or an offer, or by Enter on what was moved
// to, 400 ms or more after it appeared. Nothing else that is typed approves.
func FuzzKeys(f *testing.F) {
	f.Add(uint8(0), []byte{0}, uint16(400))
	f.Add(uint8(0), []byte{0}, uint16(399))
	f.Add(uint8(0), []byte{2, 16}, uint16(500))
	f.Add(uint8(0), []byte{3, 31, 26, 20, 26, 15, 0}, uint16(500))
	f.Add(uint8(5), []byte{0, 20, 20, 27, 27, 27, 38, 27, 27, 27, 26, 0}, uint16(500))
	f.Add(uint8(7), []byte{16, 0}, uint16(500))
	f.Add(uint8(3), []byte{10, 17, 0}, uint16(500))
	list := kinds[:12]
	all := questions()
	f.Fuzz(func(t *testing.T, which uint8, sequence []byte, after uint16) {
		q := all[string(list[int(which)%len(list)])]
		start := time.Unix(0, 0)
		now := start
		edits := 0
		p := panel.New(q, &panel.Options{
			Theme: style.NoColor(), Keys: style.DefaultKeys(), Now: func() time.Time { return now },
			Edit: func(string) tea.Cmd { edits++; return nil },
		})
		now = now.Add(time.Duration(after) * time.Millisecond)
		if len(sequence) > 300 {
			sequence = sequence[:300]
		}
		for i, b := range sequence {
			var msg tea.Msg
			key := ""
			switch {
			case int(b) < len(fuzzKeys):
				key = fuzzKeys[b]
				msg = keyOf(key)
			case b >= 250:
				msg = tea.PasteMsg{Content: "y\n1\r"}
			case b >= 245:
				msg = panel.EditedMsg{Text: `{"y":"y"}`}
			default:
				msg = tea.KeyPressMsg{Text: "yes y"}
			}
			asked := edits
			out, _ := p.Update(msg)
			width, height := 20+int(b)%70, 5+i%30
			checkView(t, p.View(width, height), width, height)
			if out.Answer == nil {
				if now.Sub(start) < panel.Grace && (out.Aside || edits > asked) {
					t.Fatalf("%s counts %v after it appeared", key, now.Sub(start))
				}
				continue
			}
			if now.Sub(start) < panel.Grace {
				t.Fatalf("%s answers %v after it appeared", key, now.Sub(start))
			}
			if out.Answer.Action == host.Approve && !slices.Contains([]string{"y", "Y", "1", "2", "3", "enter"}, key) {
				t.Fatalf("%q approves: %+v", key, out.Answer)
			}
			if key == "enter" && out.Answer.Action == host.Approve && !movedBefore(sequence[:i]) {
				t.Fatalf("Enter approves on nothing: %v", sequence[:i])
			}
			return
		}
	})
}

// movedBefore reports whether a key of a sequence moves the focus.
func movedBefore(sequence []byte) bool {
	return slices.ContainsFunc(sequence, func(b byte) bool {
		return int(b) < len(fuzzKeys) && slices.Contains([]string{"tab", "shift+tab", "up", "down", "left", "right"}, fuzzKeys[b])
	})
}
