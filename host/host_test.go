package host_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// A turn is what a scripted model does when it is asked.
type turn func(r *host.Request) []host.Piece

// A scripted model takes its turns one after the other, and keeps what it was
// asked. After the last turn it says "end".
type scripted struct {
	turns []turn

	mu    sync.Mutex
	asked []*host.Request
}

func (m *scripted) Name() string  { return "scripted" }
func (m *scripted) Offline() bool { return false }

func (m *scripted) Generate(_ context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		m.mu.Lock()
		n := len(m.asked)
		kept := *r
		kept.Messages = append([]host.Message(nil), r.Messages...)
		m.asked = append(m.asked, &kept)
		m.mu.Unlock()
		pieces := say("end")
		if n < len(m.turns) {
			pieces = m.turns[n](r)
		}
		for _, p := range pieces {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func say(text string) []host.Piece { return []host.Piece{{Text: text}} }

// use is a turn that calls tools, written as name and arguments.
func use(calls ...string) turn {
	return func(*host.Request) []host.Piece {
		var pieces []host.Piece
		for i := 0; i < len(calls); i += 2 {
			pieces = append(pieces, host.Piece{Call: &mcp.ToolUseContent{
				ID: fmt.Sprintf("id-%d", i/2), Name: calls[i], Input: mcp.RawValue(calls[i+1]),
			}})
		}
		return pieces
	}
}

// results are the texts of the results that the last request of a model ends with.
func (m *scripted) results() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	messages := m.asked[len(m.asked)-1].Messages
	var list []string
	for _, c := range messages[len(messages)-1].Content {
		r, ok := c.(*mcp.ToolResultContent)
		if !ok {
			continue
		}
		var parts []string
		for _, c := range r.Content {
			parts = append(parts, host.ContentText(c))
		}
		list = append(list, strings.Join(parts, "|"))
	}
	return list
}

// A person is a scripted consent.
type person struct {
	answers []host.Decision

	mu    sync.Mutex
	asked []*host.Question
}

func (p *person) Ask(_ context.Context, q *host.Question) (host.Decision, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, q)
	if len(p.asked) > len(p.answers) {
		return host.Decision{}, errors.New("asked more often than expected")
	}
	return p.answers[len(p.asked)-1], nil
}

// newHost makes a host with servers, for the length of the test.
func newHost(t *testing.T, o *host.Options, servers map[string]transport.Handler) *host.Host {
	t.Helper()
	h := host.New(o)
	t.Cleanup(func() { closing(t, h) })
	for name, s := range servers {
		if err := h.Add(host.Server{Name: name, Dialer: mem.New(s, nil), Origin: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// closing closes a host.
func closing(t *testing.T, h *host.Host) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Errorf("closing the host: %v", err)
	}
}

// serverOf makes a server, for the length of the test.
func serverOf(t *testing.T, features ...server.Feature) *server.Server {
	t.Helper()
	s := server.New("test", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})
	s.Add(features...)
	t.Cleanup(func() {
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("shutting the server down: %v", err)
		}
	})
	return s
}

type textIn struct {
	Text string `json:"text"`
}

// echo is a tool that counts how often it ran.
func echo(name string, ran *int) *server.ToolFeature {
	var mu sync.Mutex
	return server.Tool(name, "Echoes "+name+".", func(_ context.Context, in textIn) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		*ran++
		return name + ":" + in.Text, nil
	})
}

// allowing is a policy that allows patterns.
func allowing(t *testing.T, patterns ...string) *host.Policy {
	t.Helper()
	p := &host.Policy{}
	for _, pattern := range patterns {
		p.Rules = append(p.Rules, rule(t, host.Allow, pattern))
	}
	return p
}

func rule(t *testing.T, e host.Effect, pattern string) host.Rule {
	t.Helper()
	r, err := host.ParseRule(e, pattern, "test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}
