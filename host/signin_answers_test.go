package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// askedIssuer has what the logs must not keep.
const askedIssuer = "https://as.example/?code=sesame"

// asksFirst is a dialer that asks the person before it dials.
type asksFirst struct {
	transport.Dialer

	agreed chan bool
	err    chan error
}

func (d *asksFirst) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	agreed, err := host.AskSignIn(ctx, &host.SignIn{
		Resource: "https://user:sesame@one.example/mcp?token=sesame", Issuer: askedIssuer, Scopes: []string{"read"},
		Previous: "https://old.example/#sesame",
	})
	d.agreed <- agreed
	d.err <- err
	if err != nil || !agreed {
		return nil, transport.ErrDenied
	}
	return d.Dialer.Dial(ctx, in)
}

// What the person says to a sign-in counts, and neither log keeps a secret of its addresses.
// Nobody is asked without a person, when the session is closed, or where it is not known which
// session it is for.
func TestAskSignInAnswers(t *testing.T) {
	type session = host.Session
	for name, test := range map[string]struct {
		unattended bool
		sessions   int
		answer     func(s *session) host.Answer
		want, said string // in the audit log; of the error
		questions  int
	}{
		"agreed":       {sessions: 1, answer: func(*session) host.Answer { return host.Answer{Action: host.Approve} }, want: "approved", questions: 1},
		"refused":      {sessions: 1, answer: func(*session) host.Answer { return host.Answer{} }, want: "refused", questions: 1},
		"dismissed":    {sessions: 1, answer: func(*session) host.Answer { return host.Answer{Action: host.Dismiss} }, want: "refused", questions: 1},
		"nobody":       {unattended: true, sessions: 1, said: "nobody can be asked"},
		"no session":   {said: "which"},
		"two sessions": {sessions: 2, said: "which"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(host.Memory)
				h := newHost(t, &host.Options{Attended: !test.unattended, Store: store}, nil)
				ran := 0
				d := &asksFirst{mem.New(serverOf(t, echo("echo", &ran)), nil), make(chan bool, 9), make(chan error, 9)}
				if err := h.Add(host.Server{Name: "one", Dialer: d}); err != nil {
					t.Fatal(err)
				}
				var people []*person
				for range test.sessions {
					s := begin(t, h, &scripted{})
					people = append(people, attend(t, s, func(*host.Question) host.Answer { return test.answer(s) }))
				}
				if err := h.Start(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				agreed, err := <-d.agreed, <-d.err
				if agreed != (test.want == "approved") || (err == nil) != (test.said == "") || err != nil && !strings.Contains(err.Error(), test.said) {
					t.Errorf("agreed: %v, %v", agreed, err)
				}
				questions := 0
				for _, p := range people {
					for _, q := range p.questions() {
						if questions++; q.Kind != host.QuestionSignIn || q.Server != "one" || q.SignIn.Issuer != askedIssuer {
							t.Errorf("asked: %+v", q)
						}
					}
				}
				if questions != test.questions {
					t.Errorf("%d questions, want %d", questions, test.questions)
				}
				checkSignInLogs(t, store, test.want)
			})
		})
	}
	if _, err := host.AskSignIn(t.Context(), &host.SignIn{}); err == nil {
		t.Error("somebody was asked outside of a host")
	}
}

// checkSignInLogs checks what is kept of a sign-in: an event, if there is one, and no secret.
func checkSignInLogs(t *testing.T, store *host.Memory, event string) {
	t.Helper()
	var kept strings.Builder
	infos, err := store.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		records, err := store.Records(t.Context(), info.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			raw, err := host.EncodeBody(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			kept.Write(raw)
		}
	}
	found := ""
	for _, e := range store.AuditLog() {
		fmt.Fprintf(&kept, "%+v", e)
		if e.Server == "one" {
			found += e.Event
		}
	}
	if found != event {
		t.Errorf("the audit log has %q, want %q", found, event)
	}
	if text := kept.String(); strings.Contains(text, "sesame") || strings.Contains(text, "user:") {
		t.Errorf("kept: %s", text)
	}
}

// A session that is closed while it is asked ends the question, and the time of others goes on.
func TestAskSignInClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		h := newHost(t, &host.Options{Attended: true, MaxTime: time.Minute}, map[string]transport.Handler{"two": serverOf(t, echo("echo", &ran))})
		d := &asksFirst{mem.New(serverOf(t, echo("echo", &ran)), nil), make(chan bool, 9), make(chan error, 9)}
		if err := h.Add(host.Server{Name: "one", Dialer: d}); err != nil {
			t.Fatal(err)
		}
		asked := begin(t, h, &scripted{})
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := asked.Close(); err != nil {
			t.Fatal(err)
		}
		if agreed, err := <-d.agreed, <-d.err; agreed || !errors.Is(err, host.ErrClosed) {
			t.Errorf("agreed: %v, %v", agreed, err)
		}
		slow := &scripted{turns: []turn{func(*host.Request) []host.Piece {
			time.Sleep(2 * time.Minute)
			return say("late")
		}}}
		var spent *host.BudgetError
		if _, _, err := begin(t, h, slow).Ask(t.Context(), "please"); !errors.As(err, &spent) || spent.What != "time" {
			t.Errorf("the run ended with %v, want its limit of time", err)
		}
	})
}
