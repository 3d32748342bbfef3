package host_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// changedEcho is the tool echo with another description.
func changedEcho(ran *atomic.Int32) *server.ToolFeature {
	return server.Tool("echo", "Something else.", func(_ context.Context, in textIn) (string, error) {
		ran.Add(1)
		return "said " + in.Text, nil
	})
}

// A call whose tool has changed can be cancelled while others of its turn are under way: it is
// not asked about again.
func TestCancelCallOfChangedTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran, started, release := 0, make(chan struct{}, 1), make(chan struct{})
		var changed atomic.Int32
		wait := server.Tool("wait", "Waits.", func(context.Context, mcp.None) (string, error) {
			started <- struct{}{}
			<-release
			return "waited", nil
		})
		one := serverOf(t, echo("echo", &ran))
		h := newHost(t, &host.Options{Attended: true, Policy: allowing(t, "two/*")}, map[string]transport.Handler{"one": one, "two": serverOf(t, wait)})
		m := &scripted{turns: []turn{use("two__wait", `{}`, "one__echo", `{"text":"a"}`)}}
		s := begin(t, h, m)
		var asked []host.QuestionKind
		attend(t, s, func(q *host.Question) host.Answer {
			asked = append(asked, q.Kind)
			one.Add(changedEcho(&changed))
			time.Sleep(10 * time.Second)
			return host.Answer{Action: host.Approve}
		})
		if err := s.Send(t.Context(), host.Input{Text: "please"}); err != nil {
			t.Fatal(err)
		}
		<-started
		time.Sleep(10 * time.Second)
		if !s.CancelCall(bodies[*host.CallRecord](s)[1].ID) {
			t.Error("the call of the tool that has changed cannot be cancelled")
		}
		close(release)
		end, err := s.Wait(t.Context())
		if err != nil || end.Calls != 2 || end.Failed != 1 || ran != 0 || changed.Load() != 0 {
			t.Errorf("ran %d and %d times, %+v, %v", ran, changed.Load(), end, err)
		}
		if !slices.Equal(asked, []host.QuestionKind{host.QuestionCall}) {
			t.Errorf("the person was asked %q", asked)
		}
		if got := m.results(); len(got) != 2 || !strings.Contains(got[1], "cancelled the call before it was sent") {
			t.Errorf("the model was told %q", got)
		}
	})
}

// Where nobody can be asked, a tool that changes between the consent and the call is not
// called, and the run, of which other calls were carried out, goes on.
func TestToolChangesWithoutPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		var changed atomic.Int32
		one := serverOf(t, echo("echo", &ran))
		change := server.Tool("change", "Changes another tool.", func(context.Context, mcp.None) (string, error) {
			one.Add(changedEcho(&changed))
			time.Sleep(10 * time.Second)
			return "changed", nil
		})
		h := newHost(t, &host.Options{Policy: allowing(t, "*"), MaxParallel: 1}, map[string]transport.Handler{"one": one, "two": serverOf(t, change)})
		m := &scripted{turns: []turn{use("two__change", `{}`, "one__echo", `{"text":"a"}`)}}
		s := begin(t, h, m)
		_, end, err := s.Ask(t.Context(), "please")
		if err != nil || end.Outcome != host.OutcomeDone || ran != 0 || changed.Load() != 0 {
			t.Fatalf("ran %d and %d times, %+v, %v", ran, changed.Load(), end, err)
		}
		if got := m.results(); len(got) != 2 || got[0] != "changed" || !strings.Contains(got[1], "changed this tool between") {
			t.Errorf("the model was told %q", got)
		}
		// The next call needs a person.
		m.then(use("one__echo", `{"text":"a"}`))
		if _, _, err := s.Ask(t.Context(), "again"); !errors.Is(err, host.ErrConsent) || ran != 0 || changed.Load() != 0 {
			t.Errorf("ran %d and %d times, %v", ran, changed.Load(), err)
		}
	})
}

// The person who is asked again about a call is shown the arguments that they wrote, each call
// alone, and nothing is offered for longer.
func TestEditedArgumentsOfChangedTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		var changed atomic.Int32
		one := serverOf(t, echo("echo", &ran))
		h := newHost(t, &host.Options{Attended: true}, map[string]transport.Handler{"one": one})
		m := &scripted{turns: []turn{use("one__echo", `{"text":"a"}`, "one__echo", `{"text":"b"}`)}}
		s := begin(t, h, m)
		var asked []string
		attend(t, s, func(q *host.Question) host.Answer {
			asked = append(asked, string(q.Kind)+string(q.Arguments))
			answer := host.Answer{Action: host.Approve}
			switch len(asked) {
			case 1:
				answer.Action = host.Each
			case 2:
				answer.Edited = mcp.RawValue(`{"text":"mine"}`)
			case 3:
				one.Add(changedEcho(&changed))
				time.Sleep(10 * time.Second)
			case 5:
				if len(q.Offers) > 0 {
					t.Errorf("edited arguments are offered for longer: %+v", q.Offers)
				}
			}
			return answer
		})
		if _, _, err := s.Ask(t.Context(), "please"); err != nil {
			t.Fatal(err)
		}
		want := []string{"calls", `call{"text":"a"}`, `call{"text":"b"}`, "change", `call{"text":"mine"}`, `call{"text":"b"}`}
		if !slices.Equal(asked, want) {
			t.Errorf("the person was asked %q, want %q", asked, want)
		}
		if got := m.results(); ran != 0 || changed.Load() != 2 || !slices.Equal(got, []string{"said mine", "said b"}) {
			t.Errorf("ran %d and %d times; the model was told %q", ran, changed.Load(), got)
		}
		start := bodies[*host.StartRecord](s)
		if len(start) != 2 {
			t.Fatalf("%d calls were sent", len(start))
		}
		for _, r := range start {
			if mine := string(r.Arguments) == `{"text":"mine"}`; r.Edited != mine || strings.Contains(r.Why, "other arguments") != mine {
				t.Errorf("%s was sent, edited: %v, because %s", r.Arguments, r.Edited, r.Why)
			}
		}
	})
}
