package host_test

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/server"
)

// The loading of a skill is cancelled at any time before there is consent: while its entry is
// asked for, and while the person is. Nothing of it is read, the question is withdrawn, and
// the model is told.
func TestCancelSkillBeforeConsent(t *testing.T) {
	for name, hangs := range map[string]bool{"entry": true, "question": false} {
		t.Run(name, func(t *testing.T) {
			srv := skillsOf(t, pdfSkill())
			asked := make(chan struct{}, 1)
			srv.Use(func(next server.Func) server.Func {
				return func(c *server.Call) (server.Result, error) {
					if c.Method() == "skills/get" && hangs {
						asked <- struct{}{}
						<-c.Done()
						return nil, c.Err()
					}
					return next(c)
				}
			})
			h := skillHost(t, &host.Options{Attended: true}, map[string]*skillServer{"docs": srv})
			m := &scripted{turns: []turn{load("docs", pdfURI)}}
			s := begin(t, h, m)
			cancelled := make(chan bool, 1)
			go func() {
				if hangs {
					<-asked
				} else {
					awaitQuestion(s)
				}
				cancelled <- s.CancelCall(bodies[*host.CallRecord](s)[0].ID)
			}()
			if end := ask(t, s); !<-cancelled || end.Failed != 1 || end.Outcome != host.OutcomeDone {
				t.Errorf("the run ended as %+v", end)
			}
			if res := bodies[*host.ResultRecord](s); len(res) != 1 || res[0].Outcome != host.OutcomeNotRun {
				t.Errorf("results %+v", res)
			}
			if got := m.results(); len(got) != 1 || !strings.Contains(got[0], "cancelled the call before the skill was read") {
				t.Errorf("the model was told %q", got)
			}
			if open, read := s.Snapshot().Questions, strings.Join(srv.requests(), " "); len(open) != 0 || strings.Contains(read, "resources/read") {
				t.Errorf("open questions %v; the server was asked %s", open, read)
			}
			if s.CancelCall(bodies[*host.CallRecord](s)[0].ID) {
				t.Error("a call is cancelled that is over")
			}
		})
	}
}

// awaitQuestion returns when the person has been asked.
func awaitQuestion(s *host.Session) {
	for r, err := range s.Watch(context.Background(), 0) {
		if err != nil {
			return // the test fails by what it waits for
		}
		if _, ok := r.Body.(*host.QuestionRecord); ok {
			return
		}
	}
}

// A skill that is loaded anew after a change says that its text of before is void, whoever
// loads it; one that is loaded again as it was does not.
func TestSkillLoadedAnew(t *testing.T) {
	const void = `[host: the server has changed the skill skill://pdf/SKILL.md of server "docs". What was loaded or read of it before is void`
	srv := skillsOf(t, pdfSkill())
	h := skillHost(t, &host.Options{Attended: true}, map[string]*skillServer{"docs": srv})
	m := &scripted{turns: []turn{load("docs", pdfURI), load("docs", pdfURI)}}
	s := begin(t, h, m)
	attend(t, s, approve)
	ask(t, s)
	srv.change(t, map[string]string{"pdf/SKILL.md": skillDoc("pdf", "") + "Now otherwise.\n"})
	m.then(load("docs", pdfURI), load("docs", pdfURI))
	ask(t, s)
	for n, want := range []bool{false, false, true, false} {
		got := resultText(t, s, n)
		if strings.HasPrefix(got, void) != want || strings.Contains(got, "Now otherwise.") != (n >= 2) {
			t.Errorf("result %d: %q", n, got)
		}
	}
	srv.change(t, map[string]string{"pdf/SKILL.md": skillDoc("pdf", "") + "Once more.\n"})
	if err := s.Send(t.Context(), host.Input{Skill: &host.SkillInput{Server: "docs", URI: pdfURI}, Text: "use it"}); err != nil {
		t.Fatal(err)
	}
	var put string
	for _, r := range bodies[*host.UserRecord](s) {
		if r.Name == "skill "+pdfURI {
			put = host.ContentText(r.Content[0])
		}
	}
	if !strings.HasPrefix(put, void) || !strings.Contains(put, "Once more.") {
		t.Errorf("the person has put in %q", put)
	}
	if _, err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}
