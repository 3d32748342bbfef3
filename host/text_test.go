package host_test

import (
	"context"
	"iter"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// A slowModel says two pieces and nothing more until it is released.
type slowModel struct {
	scripted
	release chan struct{}
}

func (m *slowModel) Generate(ctx context.Context, _ *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		for _, text := range []string{"first ", "second"} {
			if !yield(host.Piece{Text: text}, nil) {
				return
			}
		}
		select {
		case <-m.release:
		case <-ctx.Done():
			yield(host.Piece{}, context.Cause(ctx))
		}
	}
}

// Text is shown soon after it came, also if the model says nothing more for a while.
func TestTextDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, &host.Options{}, nil)
		m := &slowModel{release: make(chan struct{})}
		s := begin(t, h, m)
		began := time.Now()
		if err := s.Send(t.Context(), host.Input{Text: "go"}); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for r, err := range s.Watch(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if b, ok := r.Body.(*host.TextRecord); ok {
				text.WriteString(b.Text)
			}
			if text.String() == "first second" {
				break
			}
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the text was shown after %v", took)
		}
		close(m.release)
		if _, err := s.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Text that waits to be written down is not lost when the run is cancelled, and the
// session can be closed at once.
func TestTextOfCancelledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, &host.Options{}, nil)
		s := begin(t, h, &slowModel{release: make(chan struct{})})
		if err := s.Send(t.Context(), host.Input{Text: "go"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the model has said both; the timer has not fired
		s.Cancel()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, b := range bodies[*host.TextRecord](s) {
			text.WriteString(b.Text)
		}
		if text.String() != "first second" {
			t.Errorf("the log has %q", text.String())
		}
	})
}

// Attack: half characters, and what is no JSON, in all that a model says. The run goes on,
// and the log can be read again.
func TestInvalidModel(t *testing.T) {
	ran := 0
	odd := func(*host.Request) []host.Piece {
		return []host.Piece{
			{Reasoning: &host.Reasoning{Provider: "p\xff", Text: "half \xc3", Data: mcp.RawValue("\"\xff\"")}},
			{Text: "caf\xc3"},
			{Call: &mcp.ToolUseContent{ID: "\xff", Name: "one__\xff", Input: mcp.RawValue("{}")}},
			{Usage: &host.Usage{Input: 1, Cost: math.NaN()}},
			{Stop: "\xff" + host.StopReason(strings.Repeat("x", 1000))},
		}
	}
	h := newHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
	s := begin(t, h, &scripted{info: host.ModelInfo{Name: "m\xff"}, turns: []turn{odd}})
	if _, end, err := s.Ask(t.Context(), "go"); err != nil || end.Outcome != host.OutcomeDone {
		t.Fatalf("%+v, %v", end, err)
	}
	r := bodies[*host.ReasoningRecord](s)[0]
	if r.Provider != "p\uFFFD" || r.Text != "half \uFFFD" || r.Data != nil {
		t.Errorf("the reasoning is %+v", r)
	}
	if text := bodies[*host.TextRecord](s)[0].Text + bodies[*host.TextRecord](s)[1].Text; text != "caf\uFFFD" {
		t.Errorf("the text is %q", text)
	}
	if end := bodies[*host.TurnEndRecord](s)[0]; len(end.Stop) > 300 || end.Usage.Input != 1 || end.Usage.Cost != 0 {
		t.Errorf("the turn ended with %+v", end)
	}
	for _, r := range s.Snapshot().Records {
		if _, err := host.EncodeBody(r.Body); err != nil {
			t.Errorf("record %d: %v", r.N, err)
		}
	}
}

// Attack: counts and costs that no turn has, so that sums of them overflow, or give a budget
// back.
func TestAbsurdUsage(t *testing.T) {
	for _, usage := range []host.Usage{
		{Input: math.MaxInt64, Output: math.MaxInt64, Cost: math.MaxFloat64},
		{Input: math.MinInt64, Output: -5, CacheRead: -5, CacheWrite: -5, Cost: -5},
	} {
		says := func(*host.Request) []host.Piece { return []host.Piece{{Text: "hi"}, {Usage: &usage}} }
		s := begin(t, newHost(t, &host.Options{}, nil), &scripted{turns: []turn{says, says, says}})
		for range 3 {
			if _, _, err := s.Ask(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
		}
		u := s.Snapshot().Usage
		if min(u.Input, u.Output, u.CacheRead, u.CacheWrite) < 0 || u.Cost < 0 || math.IsInf(u.Cost, 0) || usage.Input > 0 && u.Input == 0 {
			t.Errorf("%+v became %+v", usage, u)
		}
	}
}
