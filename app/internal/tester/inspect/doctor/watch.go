package doctor

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// maxRefused is how much of what is no message is kept, in bytes.
const maxRefused = 120

// A Watch sees what the connections to a server carry. Its Tap is given to the dialer. The zero
// Watch is ready.
type Watch struct {
	mu      sync.Mutex
	events  []seen
	dropped int
	posts   map[uint64]bool // exchanges that are a POST
	status  int             // of the POST that was answered last
}

// A seen is an event that is a finding.
type seen struct{ code, where, reason string }

// maxSeen bounds the events that are kept.
const maxSeen = 50

// Tap is shown the events of connections.
func (w *Watch) Tap(e transport.TapEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case transport.TapRequest:
		if w.posts == nil || len(w.posts) > 10_000 {
			w.posts = make(map[uint64]bool)
		}
		w.posts[e.Exchange] = e.Method == "POST" && e.Link != 0 // not one of authorization
	case transport.TapResponse:
		if w.posts[e.Exchange] {
			w.status = e.Status
		}
	case transport.TapReceived: // clients mend more than is right
		if jsonrpc.IsBatch(e.Data) || len(bytes.TrimSpace(e.Data)) == 0 {
			break
		}
		if _, err := jsonrpc.Parse(bytes.Clone(e.Data), jsonrpc.Limits{}); err != nil {
			w.refused(&e, err)
		}
	case transport.TapRefused:
		w.refused(&e, e.Err)
	case transport.TapStep:
		if e.Name == transport.StepExit && e.Detail != "" && e.Detail != "exit status 0" {
			w.keep(seen{"MCP-CONN-006", "the process", "the process ended with: " + e.Detail})
		}
	default: // what is well-formed the examination sees as a client does
	}
}

// refused keeps what is no message, and why.
func (w *Watch) refused(e *transport.TapEvent, err error) {
	what := fmt.Sprintf("%v: %q", err, strings.ToValidUTF8(string(e.Data[:min(len(e.Data), maxRefused)]), "\uFFFD"))
	if e.Exchange == 0 {
		w.keep(seen{"MCP-CONN-004", "standard output", what})
	} else {
		w.keep(seen{"MCP-CONN-005", "the body of a response", what})
	}
}

func (w *Watch) keep(s seen) {
	if len(w.events) == maxSeen {
		w.dropped++
		return
	}
	w.events = append(w.events, s)
}

// take returns what was seen since it was called last.
func (w *Watch) take() []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.events
	w.events = nil
	return list
}

// lastStatus is the HTTP status of the last answer, or 0 where there are none. It is forgotten.
func (w *Watch) lastStatus() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := w.status
	w.status = 0
	return status
}

// A holder is a dialer that keeps the link that it made last, for messages that no client sends.
type holder struct {
	transport.Dialer

	mu   sync.Mutex
	link transport.Link
}

// Dial connects.
func (h *holder) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	l, err := h.Dialer.Dial(ctx, in)
	if err == nil {
		h.mu.Lock()
		h.link = l
		h.mu.Unlock()
	}
	return l, err
}

func (h *holder) last() transport.Link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.link
}
