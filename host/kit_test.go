package host_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// A turn is what a scripted model does when it is asked.
type turn func(r *host.Request) []host.Piece

// A scripted model takes its turns one after the other, and keeps what it was
// asked. After the last turn it says "end".
type scripted struct {
	info  host.ModelInfo
	turns []turn

	mu    sync.Mutex
	asked []*host.Request
}

func (m *scripted) Info() host.ModelInfo {
	info := m.info
	if info.Name == "" {
		info.Name = "scripted"
	}
	return info
}

func (m *scripted) Generate(_ context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		m.mu.Lock()
		n := len(m.asked)
		m.asked = append(m.asked, r)
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

// then sets what the model does next.
func (m *scripted) then(turns ...turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns = append(make([]turn, len(m.asked)), turns...)
}

// requests are what the model was asked.
func (m *scripted) requests() []*host.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
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
	requests := m.requests()
	messages := requests[len(requests)-1].Messages
	var list []string
	for _, b := range messages[len(messages)-1].Blocks {
		r, ok := b.Content.(*mcp.ToolResultContent)
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

// begin begins a session.
func begin(t *testing.T, h *host.Host, m host.Model) *host.Session {
	t.Helper()
	s, err := h.NewSession(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// approve agrees to everything.
func approve(*host.Question) host.Answer { return host.Answer{Action: host.Approve, Face: "test"} }

// A person answers the questions of a session with what a function says.
type person struct {
	mu    sync.Mutex
	asked []*host.Question
}

// attend has a person answer until the session is closed.
func attend(t *testing.T, s *host.Session, answer func(q *host.Question) host.Answer) *person {
	t.Helper()
	p := &person{}
	done := make(chan struct{})
	since := int64(len(s.Snapshot().Records))
	go func() {
		defer close(done)
		for r, err := range s.Watch(context.Background(), since) {
			if err != nil {
				t.Error(err)
				return
			}
			q, ok := r.Body.(*host.QuestionRecord)
			if !ok {
				continue
			}
			p.mu.Lock()
			p.asked = append(p.asked, &q.Question)
			p.mu.Unlock()
			if err := s.Answer(context.Background(), q.ID, answer(&q.Question)); err != nil {
				t.Errorf("answering %s: %v", q.ID, err)
				_ = s.Answer(context.Background(), q.ID, host.Answer{}) // so that the test ends
			}
		}
	}()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return p
}

func (p *person) questions() []*host.Question {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// one is the only question.
func (p *person) one(t *testing.T) *host.Question {
	t.Helper()
	list := p.questions()
	if len(list) != 1 {
		t.Fatalf("the person was asked %d times, want 1", len(list))
	}
	return list[0]
}

// bodies are the records of a session of one type.
func bodies[B host.Body](s *host.Session) []B {
	var list []B
	for _, r := range s.Snapshot().Records {
		if b, ok := r.Body.(B); ok {
			list = append(list, b)
		}
	}
	return list
}

// kinds are the kinds of the records of a session.
func kinds(s *host.Session) string {
	var list []string
	for _, r := range s.Snapshot().Records {
		list = append(list, r.Body.Kind())
	}
	return strings.Join(list, " ")
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

// policyOf makes a policy of rules in their short form, each after its effect.
func policyOf(t *testing.T, rules ...string) *policy.Policy {
	t.Helper()
	effects := map[string]policy.Effect{"allow": policy.Allow, "ask": policy.Ask, "deny": policy.Deny}
	var list []policy.Rule
	for i := 0; i < len(rules); i += 2 {
		r, err := policy.ParsePattern(effects[rules[i]], rules[i+1], policy.Source{File: "test", Line: i/2 + 1})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	p, err := policy.New(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// allowing is a policy that allows patterns.
func allowing(t *testing.T, patterns ...string) *policy.Policy {
	t.Helper()
	var rules []string
	for _, p := range patterns {
		rules = append(rules, "allow", p)
	}
	return policyOf(t, rules...)
}

// policyFrom makes a policy of rules in JSON.
func policyFrom(t *testing.T, rules ...string) *policy.Policy {
	t.Helper()
	var list []policy.Rule
	for i, raw := range rules {
		r, err := policy.ParseRule(mcp.RawValue(raw), policy.Source{File: "test", Line: i + 1})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	p, err := policy.New(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// silentMethod makes a server that never answers a method.
func silentMethod(t *testing.T, method string, asked chan<- struct{}) *server.Server {
	t.Helper()
	s := serverOf(t, echo("say", nil))
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Method() == method {
				asked <- struct{}{}
				<-c.Done()
				return nil, c.Err()
			}
			return next(c)
		}
	})
	return s
}
