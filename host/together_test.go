package host_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// timesOf are n calls of a tool with the arguments 1 to n.
func timesOf(tool string, n int) []string {
	var list []string
	for i := range n {
		list = append(list, tool, fmt.Sprintf(`{"text":"%d"}`, i+1))
	}
	return list
}

// togetherRun is a turn that calls "echo" three times and "other" once in between, with a
// person who answers.
func togetherRun(t *testing.T, answer func(q *host.Question) host.Answer) (*host.Session, *person, *scripted, *host.RunEndRecord) {
	t.Helper()
	ran, other := 0, 0
	h := newHost(t, &host.Options{Attended: true}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran), echo("other", &other))})
	asked := timesOf("one__echo", 3)
	asked = append(asked[:2:2], append([]string{"one__other", `{"text":"x"}`}, asked[2:]...)...)
	m := &scripted{turns: []turn{use(asked...)}}
	s := begin(t, h, m)
	who := attend(t, s, answer)
	_, end, err := s.Ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	return s, who, m, end
}

// Proves: SEC-TOOL-5, FLOW-TOOL. Similar calls of a turn are one question, which shows all of
// them; another tool is a question of its own.
func TestCallsTogether(t *testing.T) {
	_, who, m, end := togetherRun(t, approve)
	if diff := cmp.Diff([]string{"echo:1", "other:x", "echo:2", "echo:3"}, m.results()); diff != "" || end.Calls != 4 {
		t.Errorf("%+v: %s", end, diff)
	}
	list := who.questions()
	if len(list) != 2 || list[0].Kind != host.QuestionCalls || list[1].Kind != host.QuestionCall || list[1].Name != "other" {
		t.Fatalf("asked %d times: %+v", len(list), list)
	}
	q := list[0]
	var shown []string
	for _, b := range q.Batch {
		shown = append(shown, string(b.Arguments))
	}
	if diff := cmp.Diff([]string{`{"text":"1"}`, `{"text":"2"}`, `{"text":"3"}`}, shown); diff != "" || q.Tool == nil || q.Arguments != nil || q.Call != "" {
		t.Errorf("asked %+v: %s", q, diff)
	}
}

// A refusal is for all of the calls, and the model is told why for each.
func TestCallsRefusedTogether(t *testing.T) {
	s, who, m, end := togetherRun(t, func(q *host.Question) host.Answer {
		if q.Kind == host.QuestionCalls {
			return host.Answer{Action: host.Refuse, Reason: "not today"}
		}
		return approve(q)
	})
	if end.Refused != 3 || end.Calls != 1 || len(who.questions()) != 2 || len(bodies[*host.StartRecord](s)) != 1 {
		t.Errorf("asked %d times, the end is %+v", len(who.questions()), end)
	}
	if got := m.results(); strings.Count(strings.Join(got, " "), "not today") != 3 || got[1] != "other:x" {
		t.Errorf("the model was told %q", got)
	}
}

// The person goes through the calls one by one.
func TestCallsOneByOne(t *testing.T) {
	_, who, m, end := togetherRun(t, func(q *host.Question) host.Answer {
		switch {
		case q.Kind == host.QuestionCalls:
			return host.Answer{Action: host.Each}
		case string(q.Arguments) == `{"text":"2"}`:
			return host.Answer{}
		case string(q.Arguments) == `{"text":"3"}`:
			return host.Answer{Action: host.Approve, Edited: mcp.RawValue(`{"text":"three"}`)}
		}
		return approve(q)
	})
	if got := m.results(); got[0] != "echo:1" || !strings.Contains(got[2], "refused") || got[3] != "echo:three" || end.Refused != 1 {
		t.Errorf("the model was told %q, the end is %+v", got, end)
	}
	if n := len(who.questions()); n != 5 {
		t.Errorf("asked %d times, want once together and four times apart", n)
	}
}

// What is granted with several calls is what the offer says.
func TestGrantOfCallsTogether(t *testing.T) {
	ran := 0
	h := newHost(t, &host.Options{Attended: true}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
	m := &scripted{turns: []turn{use(timesOf("one__echo", 2)...), use(timesOf("one__echo", 3)...)}}
	s := begin(t, h, m)
	who := attend(t, s, func(q *host.Question) host.Answer { return offer(q, host.ScopeArguments) })
	if _, end, err := s.Ask(t.Context(), "go"); err != nil || end.Calls != 5 {
		t.Fatalf("%+v, %v", end, err)
	}
	list := who.questions()
	if len(list) != 2 || list[0].Kind != host.QuestionCalls || list[1].Kind != host.QuestionCall || string(list[1].Arguments) != `{"text":"3"}` {
		t.Fatalf("asked %d times: %+v", len(list), list)
	}
	for _, o := range list[0].Offers {
		if o.Scope == host.ScopePattern {
			t.Errorf("a pattern of one call is offered for all: %+v", o)
		}
	}
}

// Proves: SEC-DOS-1. One question is about 16 calls and 32 KiB at most, and calls that are
// asked about for another reason are apart.
func TestCallsTogetherAreBounded(t *testing.T) {
	sizes := func(t *testing.T, o *host.Options, calls ...string) []int {
		t.Helper()
		ran := 0
		h := newHost(t, o, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
		s := begin(t, h, &scripted{turns: []turn{use(calls...)}})
		who := attend(t, s, approve)
		if _, end, err := s.Ask(t.Context(), "go"); err != nil || end.Calls != len(calls)/2 {
			t.Fatalf("%+v, %v", end, err)
		}
		var list []int
		for _, q := range who.questions() {
			list = append(list, len(q.Batch))
		}
		return list
	}
	if diff := cmp.Diff([]int{16, 3}, sizes(t, &host.Options{Attended: true}, timesOf("one__echo", 19)...)); diff != "" {
		t.Error(diff)
	}
	long := fmt.Sprintf(`{"text":"%s"}`, strings.Repeat("x", 20<<10))
	if diff := cmp.Diff([]int{0, 0}, sizes(t, &host.Options{Attended: true}, "one__echo", long, "one__echo", long)); diff != "" {
		t.Error(diff)
	}
	rules := policyFrom(t, `{"effect":"ask","server":"one","name":"echo","where":{"/text":{"equals":["2"]}}}`)
	if diff := cmp.Diff([]int{2, 0}, sizes(t, &host.Options{Attended: true, Policy: rules}, timesOf("one__echo", 3)...)); diff != "" {
		t.Error(diff)
	}
}

// An answer that does not fit a question about several calls leaves it open.
func TestAnswersToCallsTogether(t *testing.T) {
	var s *host.Session
	var errs []error
	ran := 0
	h := newHost(t, &host.Options{Attended: true}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
	s = begin(t, h, &scripted{turns: []turn{use(timesOf("one__echo", 2)...), use(timesOf("one__echo", 1)...)}})
	attend(t, s, func(q *host.Question) host.Answer {
		wrong := host.Answer{Action: host.Approve, Edited: mcp.RawValue(`{"text":"z"}`)}
		if q.Kind == host.QuestionCall {
			wrong = host.Answer{Action: host.Each}
		}
		errs = append(errs, s.Answer(t.Context(), q.ID, wrong))
		return approve(q)
	})
	if _, end, err := s.Ask(t.Context(), "go"); err != nil || end.Calls != 3 {
		t.Fatalf("%+v, %v", end, err)
	}
	if len(errs) != 2 || errs[0] == nil || errs[1] == nil {
		t.Errorf("wrong answers give %v", errs)
	}
}

// A refusal to use a tool that has changed is for all calls of it in the turn.
func TestChangedToolRefusedTogether(t *testing.T) {
	ran := 0
	one := serverOf(t, echo("echo", &ran))
	h := newHost(t, &host.Options{Attended: true, Policy: allowing(t, "*")}, map[string]transport.Handler{"one": one})
	m := &scripted{turns: []turn{use("one__echo", `{"text":"x"}`)}}
	s := begin(t, h, m)
	who := attend(t, s, func(*host.Question) host.Answer { return host.Answer{Reason: "not this"} })
	ask(t, s)
	generation := h.Catalog().Generation
	one.Add(server.Tool("echo", "Deletes everything.", func(context.Context, textIn) (string, error) { return "", nil }))
	for {
		c, err := h.WatchServers(t.Context(), generation)
		if err != nil {
			t.Fatal(err)
		}
		if tool, ok := c.Named("one__echo"); ok && tool.Def.Description == "Deletes everything." {
			break
		}
		generation = c.Generation
	}
	m.then(use(timesOf("one__echo", 3)...))
	if end := ask(t, s); end.Refused != 3 || strings.Count(strings.Join(m.results(), " "), "not this") != 3 {
		t.Errorf("the end is %+v, the model was told %q", end, m.results())
	}
	if q := who.one(t); q.Kind != host.QuestionChange {
		t.Errorf("asked %+v", q)
	}
	m.then(use("one__echo", `{"text":"x"}`)) // another turn asks again
	ask(t, s)
	if n := len(who.questions()); n != 2 {
		t.Errorf("asked %d times", n)
	}
}
