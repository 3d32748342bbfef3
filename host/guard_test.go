package host_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// A trapped host does everything with what it was given, and keeps what a person sees of it.
type trapped struct {
	trap   *trap
	host   *host.Host
	model  trapModel
	log    lockedBuffer
	status lockedBuffer // of the servers
	seen   []string     // errors
	// session is the one that work began, or nil.
	session *host.Session
}

// newTrapped makes a host, all of whose parts have a trap, with two servers.
func newTrapped(t *testing.T, trap *trap) *trapped {
	w := &trapped{trap: trap}
	w.model = trapModel{&scripted{info: host.ModelInfo{Provider: "tests", Window: 1 << 20}}, trap}
	ran := 0
	flood := give("flood", strings.Repeat("x", 500))
	noisy := server.Tool("noisy", "Logs.", func(ctx context.Context, _ mcp.None) (string, error) {
		return "logged", server.Log(ctx, mcp.LogError, "", "something")
	})
	w.host = newHost(t, &host.Options{
		Attended: true, Store: &trapStore{trap: trap}, Skills: trapSkills{trap: trap}, Pages: trapPages{trap: trap},
		Extensions: []client.Extension{skills.Extension(), apps.Extension()}, SampleModels: []host.Model{w.model},
		Roots: []mcp.Root{{URI: "file:///a"}}, OnLog: func(string, *mcp.LogParams) { trap.step("OnLog") },
		Logger:    slog.New(slog.NewTextHandler(&w.log, nil)),
		StartWait: time.Minute, MaxResultBytes: 200,
	}, nil)
	for name, s := range map[string]transport.Handler{
		"one": withPage(t, &ran, flood, noisy, asker(mcp.Text("what?"))), "docs": skillsOf(t, pdfSkill()).Server,
	} {
		if err := w.host.Add(host.Server{Name: name, Key: name, Dialer: trapDialer{mem.New(s, nil), trap}, Origin: "test", Trusted: true}); err != nil {
			t.Fatal(err)
		}
	}
	go w.watch()
	return w
}

// note keeps an error, and reports whether there is none.
func (w *trapped) note(err error) bool {
	if err != nil {
		w.seen = append(w.seen, err.Error())
	}
	return err == nil
}

// approveAll agrees to all questions that a session asks from now on, for longer than once where that is
// offered.
func (w *trapped) approveAll(s *host.Session) {
	go w.approveSince(s, int64(len(s.Snapshot().Records)))
}

// approveSince agrees to the questions after a record, until the session is closed.
func (w *trapped) approveSince(s *host.Session, since int64) {
	for r, err := range s.Watch(context.Background(), since) {
		if err != nil {
			return
		}
		q, ok := r.Body.(*host.QuestionRecord)
		for i := 0; ok && i < 2; i++ { // a trap may end the first attempt
			over := make(chan struct{})
			go func() {
				defer close(over)
				_ = s.Answer(context.Background(), q.ID, host.Answer{Action: host.Approve, Offer: min(1, len(q.Offers))}) // the question says whether it counts
			}()
			<-over
		}
	}
}

// readOn reads on in the first long result of the request, or says that there is none.
func readOn(r *host.Request) []host.Piece {
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			res, ok := b.Content.(*mcp.ToolResultContent)
			if !ok || len(res.Content) == 0 {
				continue
			}
			if found := regexp.MustCompile(`call "(c\d+)"`).FindStringSubmatch(host.ContentText(res.Content[0])); found != nil {
				return use("read_result", fmt.Sprintf(`{"call":%q,"offset":100}`, found[1]))(r)
			}
		}
	}
	return say("nothing to read")
}

// work does everything that calls what the host was given. Each part goes on if the one before
// failed, for which a trap is the only reason.
func (w *trapped) work(ctx context.Context) *host.Session {
	h := w.host
	s, err := h.NewSession(ctx, w.model, nil)
	if !w.note(err) {
		if s, err = h.NewSession(ctx, w.model, nil); !w.note(err) {
			return nil
		}
	}
	w.session = s
	w.approveAll(s)
	w.model.then(use("one__flood", "{}"), readOn, load("docs", pdfURI), readFile("docs", pdfURI, "references/FORMS.md"),
		use("one__ask", "{}", "one__noisy", "{}", "one__flood", "{}"), func(*host.Request) []host.Piece { return say("end") }, use("one__ask", "{}"))
	_, _, err = s.Ask(ctx, "please")
	w.note(err)
	if w.note(s.Send(ctx, host.Input{Text: "more", Skill: &host.SkillInput{Server: "docs", URI: pdfURI}})) {
		_, err = s.Wait(ctx)
		w.note(err)
	}
	_, err = s.Page(ctx, "one", viewURI)
	w.note(err)
	_, err = s.CallForPage(ctx, "one", viewURI, "refresh", mcp.RawValue(`{"text":"`+strings.Repeat("y", 500)+`"}`))
	w.note(err)
	w.note(s.UpdateContext(ctx, host.PageInput{Server: "one", URI: viewURI, Content: mcp.Contents{mcp.Text("hi")}}))
	w.model.then()
	w.note(s.Compact(ctx))
	w.note(s.SetModel(w.model))
	w.model.then(use("one__ask", "{}"))
	_, _, err = s.Ask(ctx, "again")
	w.note(err)
	grants, err := h.Grants(ctx)
	if w.note(err) && len(grants) > 0 {
		w.note(h.Revoke(ctx, grants[0].ID))
	}
	fork, err := s.Fork(ctx, 1, nil)
	if w.note(err) {
		w.note(fork.Close())
	}
	return s
}

// reopen closes a session and opens it again.
func (w *trapped) reopen(ctx context.Context, s *host.Session) *host.Session {
	w.note(s.Close())
	again, err := w.host.OpenSession(ctx, s.ID(), w.model, nil)
	if !w.note(err) {
		if again, err = w.host.OpenSession(ctx, s.ID(), w.model, nil); !w.note(err) {
			return nil
		}
	}
	w.approveAll(again)
	return again
}

// trapCalls are the calls of what a host is given, and whether only the log has the reference.
var trapCalls = map[string]bool{
	"Model.Info": false, "Model.Generate": false, "the beginning of a turn": false, "the end of a turn": false,
	"Store.CreateSession": false, "Store.Session": false, "Store.Append": false, "Store.Append, at its end": false,
	"Store.Records": false, "Store.PutBlob": false, "Store.Blob": false, "Store.Pin": false, "Store.Pins": false, "Store.PutPin": false,
	"Store.Grants": false, "Store.RevokeGrant": false,
	"Store.SetTitle": true, "Store.PutGrant": true, "Store.Audit": true, // the work goes on
	"Skills.Offers": false, "Skills.List": false, "the beginning of a list of skills": false, "the end of a list of skills": false,
	"Skills.Check": false, "Skills.Get": false, "Skills.Load": false, "Skills.Read": false, "Skills.Differs": false,
	"Pages.LoadPage": false, "Dialer.Key": false,
}

var (
	loggedRef = regexp.MustCompile(`ref=([0-9A-F]{6}) panic="` + boom + `" stack="goroutine`)
	stackText = regexp.MustCompile(`goroutine \d+|` + boom)
)

// Proves: SEC-TOOL-6. A panic of what a host was given, at any of its calls, is an error with a
// reference, of which the log has the stack and nobody else. The session is usable afterwards,
// or says that it is broken, and Close returns.
func TestPanicIsErrorWithReference(t *testing.T) {
	racetest.SkipSerial(t)
	for call, onlyLogged := range trapCalls {
		t.Run(call, func(t *testing.T) {
			for before := 0; ; before++ {
				sprung := false
				synctest.Test(t, func(t *testing.T) { sprung = checkPanic(t, call, before, onlyLogged) })
				if t.Failed() {
					t.Fatalf("at call %d", before+1)
				}
				if !sprung && before == 0 {
					t.Error("the host never calls it")
				}
				if !sprung || call == "Dialer.Key" { // its further calls are inside the client
					return
				}
			}
		})
	}
}

// checkPanic has a call panic after others that work. It reports whether there was that call.
func checkPanic(t *testing.T, call string, before int, onlyLogged bool) bool {
	w := newTrapped(t, &trap{call: call, before: before})
	s := w.work(t.Context())
	if s == nil {
		t.Fatalf("no session: %q", w.seen)
	}
	w.model.then()
	if _, _, err := s.Ask(t.Context(), "still there?"); !w.note(err) {
		_, _, err = s.Ask(t.Context(), "and now?") // the trap may have waited for the first
		broken := err != nil && strings.Contains(err.Error(), "writing to session") && strings.HasPrefix(call, "Store.Append")
		if err != nil && !broken {
			t.Errorf("the session is not usable: %v", err)
		}
	}
	if s.Snapshot().Busy {
		t.Error("the session is busy")
	}
	shown := w.shown(t, s)
	if again := w.reopen(t.Context(), s); again != nil {
		s = again
	} else {
		t.Errorf("the session cannot be opened: %q", w.seen)
	}
	sprung := w.trap.over()
	w.model.then()
	if text, _, err := s.Ask(t.Context(), "still there?"); err != nil || text != "end" {
		t.Errorf("the session that was opened again says %q, %v", text, err)
	}
	shown += w.shown(t, s)
	if !sprung {
		if len(w.seen) > 0 || strings.Contains(shown, "(ref ") {
			t.Errorf("without a panic: %q", w.seen)
		}
		return false
	}
	logged := loggedRef.FindStringSubmatch(w.log.String())
	if logged == nil {
		t.Fatalf("the log has no reference:\n%s", w.log.String())
	}
	if !onlyLogged && !strings.Contains(shown, "(ref "+logged[1]+")") {
		t.Errorf("no error has the reference %s: %q\n%s", logged[1], w.seen, w.log.String())
	}
	if found := stackText.FindString(shown); found != "" {
		t.Errorf("%q is shown", found)
	}
	return true
}

// shown is what a person sees: records, errors and what is said of servers.
func (w *trapped) shown(t *testing.T, s *host.Session) string {
	var b strings.Builder
	for _, r := range s.Snapshot().Records {
		raw, err := host.EncodeBody(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&b, "%s %s\n", r.Body.Kind(), raw)
	}
	return b.String() + w.status.String() + strings.Join(w.seen, "\n")
}

// watch keeps what the catalog says of servers until the host is closed.
func (w *trapped) watch() {
	for since := uint64(0); ; {
		c, err := w.host.WatchServers(context.Background(), since)
		if err != nil {
			return
		}
		since = c.Generation
		for i := range c.Servers {
			_, _ = fmt.Fprintln(&w.status, c.Servers[i].Err, c.Servers[i].SkillsErr) // it never fails
		}
	}
}

// A panic of what the client calls ends nothing.
func TestPanicInClientEndsNothing(t *testing.T) {
	for _, call := range []string{"OnLog", "Dialer.Dial", "Link.Do"} {
		everyCall(t, call, func(t *testing.T, before int) bool {
			w := newTrapped(t, &trap{call: call, before: before})
			s := w.work(t.Context())
			synctest.Wait()
			sprung := w.trap.over()
			w.model.then()
			if text, _, err := s.Ask(t.Context(), "still there?"); err != nil || text != "end" {
				t.Errorf("the session says %q, %v", text, err)
			}
			return sprung
		})
	}
}

// everyCall runs a test that has a call fail, after none, one and more that work, as long as it returns
// that there was that call.
func everyCall(t *testing.T, call string, test func(t *testing.T, before int) bool) {
	t.Run(call, func(t *testing.T) {
		for before := 0; ; before++ {
			sprung := false
			synctest.Test(t, func(t *testing.T) { sprung = test(t, before) })
			if t.Failed() {
				t.Fatalf("at call %d", before+1)
			}
			if !sprung && before == 0 {
				t.Error("the host never calls it")
			}
			if !sprung {
				return
			}
		}
	})
}

// A link whose Close panics does not keep the host from being closed.
func TestLinkPanicsAtEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(nil)
		dialer := trapDialer{mem.New(serverOf(t, echo("echo", new(int))), nil), &trap{call: "Link.Close"}}
		if err := h.Add(host.Server{Name: "one", Dialer: dialer}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Client(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(); err == nil || !strings.Contains(err.Error(), "(ref ") {
			t.Errorf("closing the host: %v", err)
		}
	})
}

// What ends its goroutine, as t.FailNow does in a store of a test, leaves no session busy and no mutex
// locked: the host can be closed.
func TestExits(t *testing.T) {
	for _, call := range []string{
		"Model.Info", "Model.Generate", "the end of a turn", "Store.Append", "Store.Append, at its end", "Store.PutBlob", "Store.Blob",
		"Store.Pin", "Store.PutPin", "Store.SetTitle", "Store.PutGrant", "Store.Grants", "Store.Audit", "Skills.Load", "Skills.Offers", "Skills.Check",
	} {
		everyCall(t, call, func(t *testing.T, before int) bool {
			w := newTrapped(t, &trap{call: call, before: before, exit: true})
			over := make(chan struct{})
			go func() {
				defer close(over)
				w.work(t.Context())
			}()
			<-over
			sprung := w.trap.over()
			if s := w.session; s != nil && s.Snapshot().Busy {
				t.Error("the session is busy")
			}
			if err := w.host.Close(); err != nil {
				t.Errorf("closing the host: %v", err)
			}
			return sprung
		})
	}
}

// A logger that panics loses what it was to log, and nothing else.
func TestLoggerThatPanicsLosesRecords(t *testing.T) {
	for _, call := range []string{"Handler.Enabled", "Handler.Handle", "Handler.WithAttrs"} {
		synctest.Test(t, func(t *testing.T) {
			ran := 0
			logger, audit := &trap{call: call}, &trap{call: "Store.Audit"}
			h := newHost(t, &host.Options{
				Policy: allowing(t, "*"), Store: &trapStore{trap: audit}, Logger: slog.New(trapHandler{slog.NewTextHandler(io.Discard, nil), logger}),
			}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
			s := begin(t, h, &scripted{turns: []turn{use("one__echo", `{"text":"a"}`)}})
			if end := ask(t, s); end.Calls != 1 || ran != 1 {
				t.Errorf("the run ended as %+v", end)
			}
			if !logger.over() {
				t.Errorf("%s was not called", call)
			}
		})
	}
}

// A badModel is a model whose first turn does not do what the contract says.
type badModel struct {
	*scripted
	bad   iter.Seq2[host.Piece, error]
	turns int
}

func (m *badModel) Generate(ctx context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	if m.turns++; m.turns > 1 {
		return m.scripted.Generate(ctx, r)
	}
	return m.bad
}

// A model that breaks its contract ends its run, in an error, and nothing else.
func TestModelBreaksContract(t *testing.T) {
	for name, bad := range map[string]iter.Seq2[host.Piece, error]{
		"no iterator": nil,
		"a panic between pieces": func(yield func(host.Piece, error) bool) {
			yield(host.Piece{Text: "I will "}, nil)
			panic(boom)
		},
		"goes on after it was stopped": func(yield func(host.Piece, error) bool) {
			for range 3 {
				yield(host.Piece{Text: strings.Repeat("x", 2<<20)}, nil)
			}
		},
		"ends its goroutine": func(func(host.Piece, error) bool) { runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := begin(t, newHost(t, nil, nil), &badModel{scripted: &scripted{}, bad: bad})
				_, end, err := s.Ask(t.Context(), "go")
				if err == nil || end.Outcome != host.OutcomeFailed || end.Why != err.Error() {
					t.Errorf("the run ended as %+v, %v", end, err)
				}
				if text, _, err := s.Ask(t.Context(), "again"); err != nil || text != "end" {
					t.Errorf("afterwards: %q, %v", text, err)
				}
			})
		})
	}
}

// A model that is nil is refused where it is set.
func TestNilModelIsRefused(t *testing.T) {
	h := newHost(t, nil, nil)
	s := begin(t, h, &scripted{})
	_, newErr := h.NewSession(t.Context(), nil, nil)
	_, openErr := h.OpenSession(t.Context(), s.ID(), nil, nil)
	_, sampleErr := newHost(t, &host.Options{SampleModels: []host.Model{&scripted{}, nil}}, nil).NewSession(t.Context(), &scripted{}, nil)
	for _, test := range []struct {
		err  error
		want string
	}{
		{newErr, "beginning a session: the model is nil; pass one that answers"},
		{openErr, "opening session " + s.ID() + ": the model is nil; pass one that answers"},
		{s.SetModel(nil), "setting the model of session " + s.ID() + ": the model is nil; pass one that answers"},
		{sampleErr, "beginning a session: model 2 of Options.SampleModels is nil; leave it out"},
	} {
		if test.err == nil || test.err.Error() != test.want {
			t.Errorf("got %v, want %s", test.err, test.want)
		}
	}
	if got := s.Model().Name; got != "scripted" {
		t.Errorf("the model is %q", got)
	}
	s = begin(t, h, trapModel{&scripted{}, &trap{call: "Model.Info"}})
	if got := s.Model().Name; got != "" {
		t.Errorf("a model whose Info panics is %q", got)
	}
}
