package ui_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// Proves: FLOW-TOOL-H. What a terminal marks as pasted is a message, and no answer of one
// letter; a paste within a line that was begun by hand counts.
// Attack: a text to be pasted that holds an answer.
func TestPastedLineIsNoAnswer(t *testing.T) {
	t.Parallel()
	s := newSession(writes(writeQuestion()))
	shown := talk(t, servers(), s, &ui.LineOptions{}, "\x1b[200~write it\x1b[201~",
		"\x1b[200~some text", "y", "1\x1b[201~", "\x1b[200~y\x1b[201~", "n \x1b[200~not this file\x1b[201~")
	if n := strings.Count(shown, "That line was pasted"); n != 4 {
		t.Errorf("%d lines were refused, want 4\n%s", n, shown)
	}
	if !strings.Contains(shown, "You said: not this file") || strings.Contains(shown, "\x1b") {
		t.Errorf("shown is\n%s", shown)
	}
	if got := s.answers; len(got) != 1 || got[0].Action != host.Refuse || got[0].Reason != "not this file" {
		t.Errorf("answers %+v", got)
	}
}
