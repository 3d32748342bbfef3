package thinking

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// thoughts are the thoughts of all callers.
type thoughts struct {
	o *Options

	mu    sync.Mutex
	of    map[string]*history
	order []string // the keys of of, the oldest first
}

// A history is what is remembered of the thoughts of one session or caller.
type history struct {
	count    int
	branches []string
}

func (t *thoughts) think(ctx context.Context, in thoughtIn) (mcp.With[State], error) {
	var none mcp.With[State]
	if len(in.Thought) > t.o.MaxThought {
		return none, mcp.Errorf("the thought has %d bytes, and at most %d are accepted; split it into several thoughts", len(in.Thought), t.o.MaxThought)
	}
	in.TotalThoughts = max(in.TotalThoughts, in.ThoughtNumber)
	key, _ := ctx.Value(callerKey{}).(string)
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.history(key)
	if in.BranchFromThought > 0 && in.BranchID != "" && !slices.Contains(h.branches, in.BranchID) {
		if len(h.branches) >= t.o.MaxBranches {
			return none, mcp.Errorf("there are %d branches already, which is the most: go on with one of them, or in a new session", t.o.MaxBranches)
		}
		h.branches = append(h.branches, in.BranchID)
	}
	h.count++
	if t.o.Thoughts != nil {
		if _, err := io.WriteString(t.o.Thoughts, box(&in)); err != nil {
			return none, fmt.Errorf("writing the thought for people: %w", err)
		}
	}
	state := State{
		ThoughtNumber: int64(in.ThoughtNumber), TotalThoughts: int64(in.TotalThoughts), NextThoughtNeeded: bool(in.NextThoughtNeeded),
		Branches: append([]string{}, h.branches...), ThoughtHistoryLength: h.count,
	}
	text, err := servers.Indent(state)
	if err != nil {
		return none, err
	}
	return mcp.With[State]{Value: state, Content: []mcp.Content{mcp.Text(text)}}, nil
}

// history returns the history of a key. The oldest is forgotten for a new one.
func (t *thoughts) history(key string) *history {
	if h := t.of[key]; h != nil {
		return h
	}
	if len(t.order) >= t.o.MaxCallers {
		delete(t.of, t.order[0])
		t.order = slices.Delete(t.order, 0, 1)
	}
	h := &history{}
	t.of[key] = h
	t.order = append(t.order, key)
	return h
}

// maxBorder is the width of the widest box; longer lines stand out of it.
const maxBorder = 100

// box draws a thought, with characters escaped that a terminal would obey.
func box(in *thoughtIn) string {
	header := "💭 Thought"
	context := ""
	switch {
	case bool(in.IsRevision):
		header, context = "🔄 Revision", fmt.Sprintf(" (revising thought %d)", in.RevisesThought)
	case in.BranchFromThought > 0:
		header, context = "🌿 Branch", fmt.Sprintf(" (from thought %d, ID: %s)", in.BranchFromThought, host.EscapeLine(in.BranchID))
	}
	lines := append([]string{fmt.Sprintf("%s %d/%d%s", header, in.ThoughtNumber, in.TotalThoughts, context)},
		strings.Split(host.Escape(string(in.Thought)), "\n")...)
	width := 0
	for _, line := range lines {
		width = max(width, min(utf8.RuneCountInString(line), maxBorder))
	}
	border := strings.Repeat("─", width+2)
	var out strings.Builder
	fmt.Fprintf(&out, "\n┌%s┐\n", border)
	for i, line := range lines {
		fmt.Fprintf(&out, "│ %s%s │\n", line, strings.Repeat(" ", max(0, width-utf8.RuneCountInString(line))))
		if i == 0 {
			fmt.Fprintf(&out, "├%s┤\n", border)
		}
	}
	fmt.Fprintf(&out, "└%s┘\n", border)
	return out.String()
}
