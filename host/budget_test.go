package host_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/transport"
)

// A person sees what a run has used, raises the limit that ended it, and goes on; the log has
// it.
func TestBudgetIsRaised(t *testing.T) {
	ran := 0
	costly := func(r *host.Request) []host.Piece {
		return append(use("one__echo", `{"text":""}`)(r), host.Piece{Usage: &host.Usage{Input: 900, Output: 100}})
	}
	done := say2("done")
	opts := &host.Options{Policy: allowing(t, "*"), MaxSteps: 2, MaxTokens: 10_000, MaxCost: 5}
	h := newHost(t, opts, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
	s := begin(t, h, &scripted{info: host.ModelInfo{InputPrice: 1000}, turns: []turn{costly, costly, costly, costly, done}})
	if b := s.Budget(); b.Used != (host.Amount{}) || b.Limit != (host.Amount{Steps: 2, Calls: 256, Tokens: 10_000, Cost: 5, Time: 10 * time.Minute}) {
		t.Errorf("at first it is %+v", b)
	}
	if _, _, err := s.Ask(t.Context(), "go"); err == nil {
		t.Fatal("the run has not ended")
	}
	b := s.Budget()
	b.Used.Time = 0
	if b.Used != (host.Amount{Steps: 2, Calls: 2, Tokens: 2000, Cost: 1.8}) {
		t.Errorf("the run has used %+v", b.Used)
	}
	for what, wrong := range map[string]host.Amount{
		"at least one step": {Calls: 1, Time: 1},
		"more than nothing": {Steps: 1, Calls: 1},
		"negative":          {Steps: 1, Calls: 1, Time: 1, Tokens: -1},
	} {
		if err := s.SetLimit(wrong); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	more := b.Limit
	more.Steps, more.Cost = 4, 0
	for range 2 { // the second time nothing changes
		if err := s.SetLimit(more); err != nil {
			t.Fatal(err)
		}
	}
	if text, _, err := s.Ask(t.Context(), "go on"); err != nil || text != "done" {
		t.Errorf("%q, %v", text, err)
	}
	notices := bodies[*host.NoticeRecord](s)
	if len(notices) != 1 || notices[0].Text != "The person changed the limits of a run: 4 steps (before: 2), any cost (before: 5.00 dollars)" {
		t.Errorf("the notices are %+v", notices)
	}
	if other := begin(t, h, &scripted{}).Budget().Limit; other.Steps != 2 {
		t.Errorf("another session may take %d steps", other.Steps)
	}
}

// The time that is used is without that in which the person was asked.
func TestBudgetTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		h := newHost(t, &host.Options{Attended: true}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
		slow := func(r *host.Request) []host.Piece {
			time.Sleep(3 * time.Second)
			return use("one__echo", `{"text":""}`)(r)
		}
		s := begin(t, h, &scripted{turns: []turn{slow, say2("done")}})
		if err := s.Send(t.Context(), host.Input{Text: "go"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		if used := s.Budget().Used; used.Time < 3*time.Second || used.Time > time.Minute || used.Steps != 1 {
			t.Errorf("while the person is asked it is %+v", used)
		}
		if err := s.Answer(t.Context(), s.Snapshot().Questions[0].ID, host.Answer{Action: host.Approve}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if used := s.Budget().Used; used.Time < 3*time.Second || used.Time > time.Minute || used.Calls != 1 {
			t.Errorf("after the run it is %+v", used)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}
