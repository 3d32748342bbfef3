package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// Attack: the page of a server calls, and speaks, after another server has taken the place of
// its own, in the session and in one that is opened again.
func TestPageOfReplacedServer(t *testing.T) {
	ran, wrong := 0, 0
	store := new(host.Memory)
	h := newHost(t, pageOptions(host.Options{Attended: true, Policy: allowing(t, "*", "app:*"), Store: store}), nil)
	entry := func(key string, count *int) host.Server {
		return host.Server{Name: "one", Key: key, Dialer: mem.New(withPage(t, count), nil)}
	}
	if err := h.Add(entry("a", &ran)); err != nil {
		t.Fatal(err)
	}
	s := showing(t, h, &scripted{})
	attend(t, s, approve)
	args := mcp.RawValue(`{"text":"x"}`)
	if _, err := s.CallForPage(t.Context(), "one", viewURI, "refresh", args); err != nil || ran != 1 {
		t.Fatalf("ran %d times, %v", ran, err)
	}
	if _, err := h.Apply([]host.Server{entry("b", &wrong)}); err != nil {
		t.Fatal(err)
	}
	try := func(s *host.Session) {
		t.Helper()
		if _, err := s.CallForPage(t.Context(), "one", viewURI, "refresh", args); !errors.Is(err, host.ErrPageNotShown) || wrong != 0 {
			t.Errorf("the page of the server before called %d times: %v", wrong, err)
		}
		if err := s.UpdateContext(t.Context(), says("x")); !errors.Is(err, host.ErrPageNotShown) {
			t.Errorf("the page of the server before speaks: %v", err)
		}
	}
	try(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := h.OpenSession(t.Context(), s.ID(), &scripted{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	attend(t, again, approve)
	try(again)
	if _, err := again.Page(t.Context(), "one", viewURI); err != nil {
		t.Fatal(err)
	}
	if _, err := again.CallForPage(t.Context(), "one", viewURI, "refresh", args); err != nil || wrong != 1 {
		t.Errorf("its own page called %d times, %v", wrong, err)
	}
}

// Attack: a page calls a tool that has changed, again and again: the person is asked no more
// often than the server may ask.
func TestQuestionsOfPagesAboutChanges(t *testing.T) {
	ran := 0
	one := withPage(t, &ran)
	h := newHost(t, pageOptions(host.Options{Attended: true, Policy: allowing(t, "*", "app:*"), MaxQuestions: 2}), map[string]transport.Handler{"one": one})
	s := showing(t, h, &scripted{})
	who := attend(t, s, func(*host.Question) host.Answer { return host.Answer{} })
	call := func() error {
		_, err := s.CallForPage(t.Context(), "one", viewURI, "both", mcp.RawValue(`{"text":"p"}`))
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
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
	var err error
	for range 5 {
		err = call()
	}
	var budget *host.BudgetError
	if n := len(who.questions()); n != 2 || !errors.As(err, &budget) || budget.What != "questions" {
		t.Errorf("asked %d times, then %v", n, err)
	}
}

// Attack: a page to which the person agreed for longer wants the camera later, or more
// origins than a question tells.
func TestPageWantsMoreLater(t *testing.T) {
	ran := 0
	one := withPage(t, &ran)
	h := newHost(t, pageOptions(host.Options{Attended: true}), map[string]transport.Handler{"one": one})
	s := begin(t, h, &scripted{})
	who := attend(t, s, func(*host.Question) host.Answer { return host.Answer{Action: host.Approve, Offer: 1} })
	show := func() *host.Question {
		t.Helper()
		before := len(who.questions())
		if _, err := s.Page(t.Context(), "one", viewURI); err != nil {
			t.Fatal(err)
		}
		list := who.questions()
		if len(list) == before {
			t.Fatal("the person was not asked")
		}
		return list[len(list)-1]
	}
	show()
	domains := &apps.Domains{Connect: []string{"https://api.example.com"}}
	one.Add(apps.Page(viewURI, view, &apps.PageOptions{CSP: domains, Permissions: apps.Permissions{Camera: true}}))
	if q := show(); !strings.Contains(strings.Join(q.Warnings, "\n"), `"camera"`) {
		t.Errorf("warned of %q", q.Warnings)
	}
	for i := range 30 {
		domains.Connect = append(domains.Connect, fmt.Sprintf("https://x%d.example.com", i))
	}
	one.Add(apps.Page(viewURI, view, &apps.PageOptions{CSP: domains}))
	if q := show(); len(q.Warnings) > 20 || !strings.Contains(strings.Join(q.Warnings, "\n"), "15 more origins") {
		t.Errorf("warned of %q", q.Warnings)
	}
}

// Proves: SEC-DOS-1. The calls of the pages of one server leave room for those of another.
func TestPagesOfOneServerLeaveRoom(t *testing.T) {
	started, ended := make(chan struct{}, 4), make(chan struct{}, 4)
	ran := 0
	h := newHost(t, pageOptions(host.Options{Policy: allowing(t, "*", "app:*"), MaxCalls: 2, MaxParallel: 2}), map[string]transport.Handler{
		"one": withPage(t, &ran, apps.Tool(hanging(started, ended), viewURI, nil)), "two": withPage(t, &ran),
	})
	s := showing(t, h, &scripted{})
	if _, err := s.Page(t.Context(), "two", viewURI); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.CallForPage(context.Background(), "one", viewURI, "hang", nil)
			done <- err
		}()
		<-started
	}
	if _, err := s.CallForPage(t.Context(), "two", viewURI, "refresh", mcp.RawValue(`{"text":"x"}`)); err != nil || ran != 1 {
		t.Errorf("ran %d times, %v", ran, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-done; !errors.Is(err, host.ErrClosed) {
			t.Error(err)
		}
	}
}

// Proves: SEC-DOS-1. A page that calls without end is stopped, and goes on after a minute:
// what it calls for in vain is in the log, too.
func TestPageCallsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		h := newHost(t, pageOptions(host.Options{Policy: allowing(t, "*", "app:*"), MaxRunCalls: 3}), map[string]transport.Handler{"one": withPage(t, &ran)})
		s := showing(t, h, &scripted{})
		for minute := range 2 {
			var err error
			for range 10 {
				_, err = s.CallForPage(t.Context(), "one", viewURI, "none", nil)
			}
			var budget *host.BudgetError
			if n := len(bodies[*host.CallRecord](s)); n != 3*(minute+1) || !errors.As(err, &budget) || budget.What != "calls" {
				t.Errorf("the log has %d calls, then %v", n, err)
			}
			time.Sleep(time.Minute)
		}
	})
}
