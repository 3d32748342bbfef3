package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// Proves: SEC-TOOL-5. A call of a page is asked about, written down with the page, and its
// whole result goes to the page; no model is given any of it.
func TestCallForPage(t *testing.T) {
	ran := 0
	store := new(host.Memory)
	long := strings.Repeat("only for the page ", 100)
	h := newHost(t, pageOptions(host.Options{Attended: true, Policy: policyOf(t, "allow", "app:*"), Store: store, MaxResultBytes: 200}),
		map[string]transport.Handler{"one": withPage(t, &ran, apps.Tool(give("long", long), viewURI, forPages))})
	m := &scripted{}
	s := showing(t, h, m)
	who := attend(t, s, approve)
	got, err := s.CallForPage(t.Context(), "one", viewURI, "refresh", mcp.RawValue(` { "text" : "now" } `))
	if err != nil || textOf(got) != "refresh:now" {
		t.Fatalf("%q, %v", textOf(got), err)
	}
	if q := who.one(t); q.Kind != host.QuestionCall || q.ByPage != viewURI || string(q.Arguments) != `{"text":"now"}` || len(q.Offers) == 0 || q.Tool == nil {
		t.Errorf("asked %+v", q)
	}
	if kinds(s) != "page call question answer start result" {
		t.Errorf("the records are %s", kinds(s))
	}
	call := bodies[*host.CallRecord](s)[0]
	want := &host.CallRecord{ID: call.ID, Server: "one", Tool: "refresh", ByPage: viewURI, Arguments: mcp.RawValue(`{"text":"now"}`)}
	if diff := cmp.Diff(want, call); diff != "" {
		t.Error(diff)
	}
	if got, err := s.CallForPage(t.Context(), "one", viewURI, "long", nil); err != nil || textOf(got) != long {
		t.Errorf("a long result has %d bytes, %v", len(textOf(got)), err)
	}
	calls := bodies[*host.CallRecord](s)
	m.then(use("read_result", `{"call":"`+calls[1].ID+`"}`))
	if _, _, err := s.Ask(t.Context(), "what does the page show?"); err != nil {
		t.Fatal(err)
	}
	for _, r := range m.requests() {
		for _, message := range r.Messages {
			for _, b := range message.Blocks {
				if text := blockText(b); strings.Contains(text, "refresh") || strings.Contains(text, "only for the page") {
					t.Errorf("the model was given %q", text)
				}
			}
		}
		for _, tool := range r.Tools {
			if tool.Name == "read_result" {
				t.Error("the model is offered to read results of the page")
			}
		}
	}
	if got := m.results(); !strings.Contains(got[0], "no call") {
		t.Errorf("the model read %q", got)
	}
	events := ""
	for _, e := range store.AuditLog() {
		events += e.Event + " "
	}
	if !strings.Contains(events, "approved called pinned") && !strings.Contains(events, "approved pinned called") {
		t.Errorf("the audit log has %s", events)
	}
}

// blockText is the text of a block that a model is given.
func blockText(b host.Block) string {
	switch c := b.Content.(type) {
	case nil:
		return b.Reasoning.Text
	case *mcp.ToolUseContent:
		return c.Name + string(c.Input)
	case *mcp.ToolResultContent:
		text := ""
		for _, part := range c.Content {
			text += host.ContentText(part)
		}
		return text
	default:
		return host.ContentText(c)
	}
}

// Proves: SEC-TOOL-4, SEC-TOOL-7. What is refused to a page is not sent, the page is told, and
// the log says so; grants, rules, pins and labels are those of the model's calls.
func TestCallForPageRefused(t *testing.T) {
	ran := 0
	h := newHost(t, pageOptions(host.Options{Attended: true, Policy: policyOf(t, "allow", "app:*", "deny", "one/both")}), map[string]transport.Handler{"one": withPage(t, &ran)})
	s := showing(t, h, &scripted{})
	who := attend(t, s, func(*host.Question) host.Answer { return host.Answer{Reason: "not now"} })
	args := mcp.RawValue(`{"text":"x"}`)
	var refused *host.ConsentError
	if _, err := s.CallForPage(t.Context(), "one", viewURI, "refresh", args); !errors.As(err, &refused) || !refused.Refused || refused.Reason != "not now" {
		t.Errorf("the person refuses: %v", err)
	}
	who.one(t)
	for tool, want := range map[string]string{"both": "not run", "report": "not for pages", "nothing": "has no tool"} {
		if _, err := s.CallForPage(t.Context(), "one", viewURI, tool, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if _, err := s.CallForPage(t.Context(), "one", viewURI, "refresh", mcp.RawValue(`{"text":`)); err == nil || !strings.Contains(err.Error(), "no JSON object") {
		t.Errorf("broken arguments: %v", err)
	}
	res := bodies[*host.ResultRecord](s)
	if len(bodies[*host.CallRecord](s)) != 5 || len(res) != 5 || len(bodies[*host.StartRecord](s)) != 0 || ran != 0 {
		t.Fatalf("ran %d times, %d results", ran, len(res))
	}
	if res[0].Outcome != host.OutcomeRefused || res[4].Outcome != host.OutcomeNotRun {
		t.Errorf("the outcomes are %s and %s", res[0].Outcome, res[4].Outcome)
	}
}

// A grant that the person gave for the model's calls holds for those of the page, and a tool
// that has changed asks, whichever calls it.
func TestCallForPageIsJudgedAlike(t *testing.T) {
	ran := 0
	one := withPage(t, &ran)
	h := newHost(t, pageOptions(host.Options{Attended: true, Policy: policyOf(t, "allow", "app:*")}), map[string]transport.Handler{"one": one})
	s := showing(t, h, &scripted{turns: []turn{use("one__both", `{"text":"m"}`)}})
	who := attend(t, s, func(q *host.Question) host.Answer { return offer(q, host.ScopeTool) })
	if _, _, err := s.Ask(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	call := func() error {
		_, err := s.CallForPage(t.Context(), "one", viewURI, "both", mcp.RawValue(`{"text":"p"}`))
		return err
	}
	if err := call(); err != nil || len(who.questions()) != 1 || ran != 2 {
		t.Fatalf("asked %d times, ran %d times, %v", len(who.questions()), ran, err)
	}
	generation := h.Catalog().Generation
	one.Add(apps.Tool(server.Tool("both", "Deletes everything.", func(context.Context, textIn) (string, error) { return "", nil }), viewURI, nil))
	for {
		c, err := h.WatchServers(t.Context(), generation)
		if err != nil {
			t.Fatal(err)
		}
		if tool, ok := c.Named("one__both"); ok && tool.Def.Description == "Deletes everything." {
			break
		}
		generation = c.Generation
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	list := who.questions()
	if len(list) < 2 || list[1].Kind != host.QuestionChange || list[1].ByPage != viewURI {
		t.Errorf("asked %+v", list)
	}
}

// What a page reads labels the conversation as what the model reads does.
func TestCallForPageLabels(t *testing.T) {
	ran := 0
	h := newHost(t, pageOptions(host.Options{Attended: true, Policy: allowing(t, "*", "app:*")}), nil)
	for name, labels := range map[string][]policy.Label{"one": {policy.LabelPrivate, policy.LabelUntrusted}, "mail": {policy.LabelSends}} {
		if err := h.Add(host.Server{Name: name, Labels: labels, Dialer: mem.New(withPage(t, &ran), nil)}); err != nil {
			t.Fatal(err)
		}
	}
	s := showing(t, h, &scripted{turns: []turn{use("mail__both", `{"text":"x"}`)}})
	who := attend(t, s, func(*host.Question) host.Answer { return host.Answer{} })
	if _, err := s.CallForPage(t.Context(), "one", viewURI, "refresh", mcp.RawValue(`{"text":"x"}`)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]policy.Label{policy.LabelPrivate, policy.LabelUntrusted}, s.Snapshot().Labels); diff != "" {
		t.Error(diff)
	}
	if _, _, err := s.Ask(t.Context(), "send it"); err != nil {
		t.Fatal(err)
	}
	if q := who.one(t); q.Server != "mail" || !strings.Contains(q.Why, "private data") {
		t.Errorf("asked %+v", q)
	}
}

// Calls of pages and a run go on beside each other: neither ends the other. CancelCall, the
// end of the page and Close end calls of pages, and the log says so.
func TestCallForPageEnds(t *testing.T) {
	started, ended := make(chan struct{}, 4), make(chan struct{}, 4)
	ran := 0
	h := newHost(t, pageOptions(host.Options{Policy: allowing(t, "*", "app:*")}), map[string]transport.Handler{
		"one": withPage(t, &ran, apps.Tool(hanging(started, ended), viewURI, nil)),
	})
	s := showing(t, h, &scripted{turns: []turn{use("one__hang", "{}")}})
	began := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := s.CallForPage(ctx, "one", viewURI, "hang", nil)
			done <- err
		}()
		<-started
		return done
	}
	of := func(i int) string { return bodies[*host.CallRecord](s)[i].ID }
	first := began(t.Context())
	if err := s.Send(t.Context(), host.Input{Text: "go"}); err != nil {
		t.Fatal(err)
	}
	<-started
	s.Cancel()
	if _, err := s.Wait(t.Context()); !errors.Is(err, host.ErrCancelled) {
		t.Fatal(err)
	}
	<-ended
	if n := len(bodies[*host.ResultRecord](s)); n != 1 {
		t.Errorf("%d calls have ended with the run", n)
	}
	if !s.CancelCall(of(0)) {
		t.Error("the call cannot be cancelled")
	}
	if err := <-first; !errors.Is(err, host.ErrCancelled) {
		t.Errorf("cancelled: %v", err)
	}
	gone := errors.New("the page is gone")
	ctx, leave := context.WithCancelCause(t.Context())
	second := began(ctx)
	leave(gone)
	if err := <-second; !errors.Is(err, gone) {
		t.Errorf("the page is gone: %v", err)
	}
	third := began(t.Context())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-third; !errors.Is(err, host.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	var outcomes []host.Outcome
	for _, r := range bodies[*host.ResultRecord](s) {
		outcomes = append(outcomes, r.Outcome)
	}
	want := []host.Outcome{host.OutcomeCancelled, host.OutcomeCancelled, host.OutcomeInterrupted, host.OutcomeInterrupted}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Error(diff)
	}
	before := len(s.Snapshot().Records)
	again, err := h.OpenSession(t.Context(), s.ID(), &scripted{}, nil)
	if err != nil || len(again.Snapshot().Records) != before {
		t.Errorf("opened again it has %d records, want %d; %v", len(again.Snapshot().Records), before, err)
	}
}

// Proves: SEC-DOS-1. Pages have so many calls open at once, and their server asks the person
// so many times.
func TestCallForPageIsBounded(t *testing.T) {
	started, ended := make(chan struct{}, 4), make(chan struct{}, 4)
	ran := 0
	h := newHost(t, pageOptions(host.Options{Attended: true, Policy: policyOf(t, "allow", "app:*", "allow", "one/hang"), MaxCalls: 2, MaxQuestions: 1}),
		map[string]transport.Handler{"one": withPage(t, &ran, apps.Tool(hanging(started, ended), viewURI, nil))})
	s := showing(t, h, &scripted{})
	who := attend(t, s, approve)
	var budget *host.BudgetError
	args := mcp.RawValue(`{"text":"x"}`)
	for i := range 2 {
		_, err := s.CallForPage(t.Context(), "one", viewURI, "refresh", args)
		if i == 1 && (!errors.As(err, &budget) || budget.What != "questions") || i == 0 && err != nil {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.CallForPage(context.Background(), "one", viewURI, "hang", nil)
			done <- err
		}()
		<-started
	}
	if _, err := s.CallForPage(t.Context(), "one", viewURI, "hang", nil); !errors.As(err, &budget) || budget.What != "calls" {
		t.Errorf("a third call at once: %v", err)
	}
	if err := s.UpdateContext(t.Context(), host.PageInput{Server: "one", URI: viewURI, Content: mcp.Contents{mcp.Text("x")}}); !errors.As(err, &budget) {
		t.Errorf("another question: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-done; !errors.Is(err, host.ErrClosed) {
			t.Error(err)
		}
	}
	who.one(t)
}

// The result of a call that shows a page is there for it as the server gave it.
func TestResultForPage(t *testing.T) {
	ran := 0
	long := strings.Repeat("x", 1000)
	h := newHost(t, pageOptions(host.Options{Policy: allowing(t, "*", "app:*"), MaxResultBytes: 100}),
		map[string]transport.Handler{"one": withPage(t, &ran, apps.Tool(give("long", long), viewURI, nil), give("plain", "text"))})
	s := begin(t, h, &scripted{turns: []turn{use("one__long", "{}", "one__plain", "{}")}})
	if _, _, err := s.Ask(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	calls := bodies[*host.CallRecord](s)
	if got := s.ResultForPage(calls[0].ID); textOf(got) != long {
		t.Errorf("the result has %d bytes", len(textOf(got)))
	}
	if s.ResultForPage(calls[1].ID) != nil {
		t.Error("a tool without a page has one")
	}
}
