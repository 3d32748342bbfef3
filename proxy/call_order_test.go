package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
)

func named(subject string) *principal.Principal {
	return &principal.Principal{Issuer: "https://as.example", Subject: subject}
}

// A person answers forms when the test lets it, and notes what it was asked.
type person struct {
	*client.Client
	asked  logtest.List
	answer chan struct{} // closed when it answers all
}

// meet connects a person to a proxy.
func meet(t *testing.T, p *proxy.Proxy, version string, who *principal.Principal) *person {
	t.Helper()
	m := &person{answer: make(chan struct{})}
	m.Client = joinAs(t, p.Server(), version, who, &client.Options{
		CallTimeout: time.Hour, MaxCallTime: time.Hour, Retries: -1,
		OnElicit: func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			m.asked.Add(r.Params.Message)
			select {
			case <-m.answer:
				return client.Accept(confirm{true})
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	})
	return m
}

// start calls a tool and returns what becomes of it.
func (m *person) start(ctx context.Context, tool string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		r, err := m.CallTool(ctx, tool, nil, nil)
		done <- outcome{r, err}
	}()
	synctest.Wait()
	return done
}

type outcome struct {
	r   *mcp.CallToolResult
	err error
}

func (o outcome) text() string {
	switch {
	case o.err != nil:
		return "error: " + o.err.Error()
	case len(o.r.Content) == 0:
		return ""
	}
	return o.r.Content[0].(*mcp.TextContent).Text
}

// want checks what a call gives.
func want(t *testing.T, done <-chan outcome, part string) {
	t.Helper()
	if got := (<-done).text(); !strings.Contains(got, part) {
		t.Errorf("got %q, want %q", got, part)
	}
}

// wantUnder checks that a call is not over.
func wantUnder(t *testing.T, done <-chan outcome) {
	t.Helper()
	synctest.Wait()
	select {
	case o := <-done:
		t.Errorf("it is over: %s", o.text())
	default:
	}
}

// callOrder runs a test with callers of both eras, in fake time.
func callOrder(t *testing.T, body func(t *testing.T, caller string)) {
	t.Helper()
	for _, version := range upstreams {
		t.Run("caller "+version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { body(t, version) })
		})
	}
}

// asks is a tool that asks some questions, one after the other.
func asks(name string, questions ...string) server.Feature {
	return server.Tool(name, "", func(ctx context.Context, _ mcp.None) (string, error) {
		for _, q := range questions {
			if _, err := server.Elicit[confirm](ctx, q); err != nil {
				return "", mcp.Errorf("%s", err.Error()) // the text is shown to the caller
			}
		}
		return name + " is done", nil
	})
}

// takes is a tool that takes some time.
func takes(name string, d time.Duration) server.Feature {
	return server.Tool(name, "", func(context.Context, mcp.None) (string, error) {
		time.Sleep(d) // of fake time
		return name + " is done", nil
	})
}

func serverOf(features ...server.Feature) *server.Server {
	s := server.New("upstream", "1", &server.Options{Logger: quiet, Limits: timeless})
	s.Add(features...)
	return s
}

// While a question waits, the call of another caller runs beside it. What asks has
// its turn when its owner's comes, and nobody is shown what was asked of another.
func TestBesideAnOpenQuestion(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		p := connect(t, serverOf(asks("form", "Sure?"), takes("plain", time.Second)), v2511, nil)
		ada, bob, eve := meet(t, p, version, named("ada")), meet(t, p, version, named("bob")), meet(t, p, version, &principal.Principal{Remote: "192.0.2.1"})
		first := ada.start(t.Context(), "form")
		want(t, bob.start(t.Context(), "plain"), "plain is done")
		want(t, eve.start(t.Context(), "plain"), "plain is done")
		second := bob.start(t.Context(), "form") // known to ask
		third := eve.start(t.Context(), "form")
		want(t, ada.start(t.Context(), "plain"), "plain is done")
		time.Sleep(90 * time.Second) // of fake time: longer than CallTimeout, which stands still
		wantUnder(t, second)
		wantUnder(t, third)
		close(ada.answer)
		want(t, first, "form is done")
		synctest.Wait()
		if got := len(bob.asked.Take()); got != 1 {
			t.Errorf("bob was asked %d times", got)
		}
		wantUnder(t, third)
		close(bob.answer)
		want(t, second, "form is done")
		close(eve.answer)
		want(t, third, "form is done")
		if got := len(ada.asked.Take()); got != 1 {
			t.Errorf("ada was asked %d times", got)
		}
	})
}

// A question of a call beside that of another caller is refused, and says what to do
// to who reads it. The tool is known to ask from then on.
func TestQuestionBesideAnother(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		var log bytes.Buffer
		p := connect(t, serverOf(asks("form", "Sure?"), asks("other", "Other?")), v2511, &proxy.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ada, bob := meet(t, p, version, named("ada")), meet(t, p, version, named("bob"))
		close(bob.answer)
		first := ada.start(t.Context(), "form")
		want(t, bob.start(t.Context(), "other"), "send the request again")
		again := bob.start(t.Context(), "other")
		wantUnder(t, again)
		if got := bob.asked.Take(); len(got) != 0 {
			t.Errorf("bob was asked %q", got)
		}
		close(ada.answer)
		want(t, first, "form is done")
		want(t, again, "other is done")
		if got := ada.asked.Take(); len(got) != 1 || got[0] != "Sure?" {
			t.Errorf("ada was asked %q", got)
		}
		if got := bob.asked.Take(); len(got) != 1 || got[0] != "Other?" {
			t.Errorf("bob was asked %q", got)
		}
		if !strings.Contains(log.String(), "a question of the upstream server was refused") {
			t.Errorf("the log says %s", log.String())
		}
	})
}

// What an asked call asks while another caller's runs beside it is refused too. The
// other's tool is suspected until it has run without a question.
func TestSuspect(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		two := server.Tool("two", "Asks again while the first question waits.", func(ctx context.Context, _ mcp.None) (string, error) {
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = server.Elicit[confirm](ctx, "First?") })
			wg.Go(func() { time.Sleep(2 * time.Second); _, _ = server.Elicit[confirm](ctx, "Second?") })
			wg.Wait()
			return "two is done", nil
		})
		p := connect(t, serverOf(two, asks("form", "Sure?"), takes("plain", 4*time.Second)), v2511, nil)
		ada, bob := meet(t, p, version, named("ada")), meet(t, p, version, named("bob"))
		first := ada.start(t.Context(), "two")
		want(t, bob.start(t.Context(), "plain"), "plain is done")
		suspected := bob.start(t.Context(), "plain")
		time.Sleep(10 * time.Second) // of fake time
		wantUnder(t, suspected)
		if got := append(ada.asked.Take(), bob.asked.Take()...); len(got) != 1 || got[0] != "First?" {
			t.Errorf("asked %q", got)
		}
		close(ada.answer)
		want(t, first, "two is done")
		want(t, suspected, "plain is done")
		ada.answer = make(chan struct{})
		second := ada.start(t.Context(), "form")
		want(t, bob.start(t.Context(), "plain"), "plain is done")
		wantUnder(t, second)
		close(ada.answer)
		want(t, second, "form is done")
	})
}

// An answer waits while the call of another caller runs, so that what is asked next
// is certain. Calls of the same caller do not hold it up.
func TestAnswerWaitsForOthers(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		p := connect(t, serverOf(asks("form", "First?", "Second?"), takes("plain", 5*time.Second)), v2511, nil)
		ada, bob := meet(t, p, version, named("ada")), meet(t, p, version, named("bob"))
		first := ada.start(t.Context(), "form")
		beside := bob.start(t.Context(), "plain")
		began := time.Now()
		close(ada.answer)
		want(t, first, "form is done")
		if d := time.Since(began); d != 5*time.Second {
			t.Errorf("after %v", d)
		}
		want(t, beside, "plain is done")

		ada.answer = make(chan struct{})
		first = ada.start(t.Context(), "form")
		own := ada.start(t.Context(), "plain")
		began = time.Now()
		close(ada.answer)
		want(t, first, "form is done")
		if d := time.Since(began); d != 0 {
			t.Errorf("beside the caller's own: after %v", d)
		}
		want(t, own, "plain is done")
		if got := ada.asked.Take(); len(got) != 4 {
			t.Errorf("asked %q", got)
		}
	})
}

// A call that waits upstream for one that is asked does not hold up the answer for
// ever: for a lock, for the only worker, or for a server that reads nothing else.
func TestUpstreamLock(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		mu := make(chan struct{}, 1) // a lock that fake time knows of
		locked := func(f func(context.Context) error) func(context.Context, mcp.None) (string, error) {
			return func(ctx context.Context, _ mcp.None) (string, error) {
				mu <- struct{}{}
				defer func() { <-mu }()
				return "done", f(ctx)
			}
		}
		form := server.Tool("form", "", locked(func(ctx context.Context) error {
			_, err := server.Elicit[confirm](ctx, "Sure?")
			return err
		}))
		plain := server.Tool("plain", "", locked(func(context.Context) error { return nil }))
		p := connect(t, serverOf(form, plain), v2511, nil)
		ada, bob := meet(t, p, version, named("ada")), meet(t, p, version, named("bob"))
		first := ada.start(t.Context(), "form")
		beside := bob.start(t.Context(), "plain")
		began := time.Now()
		close(ada.answer)
		want(t, first, "done")
		want(t, beside, "done")
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("after %v", d)
		}
	})
}

// A server that does one thing at a time gets no call beside its question.
func TestSerialUpstream(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		up := serverOf(asks("form", "First?", "Second?"), takes("plain", 0))
		mu := make(chan struct{}, 1) // a lock that fake time knows of
		up.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if m := c.Method(); m == mcp.MethodToolsCall || m == mcp.MethodPing {
					mu <- struct{}{}
					defer func() { <-mu }()
				}
				return next(c)
			}
		})
		p := connect(t, up, v2511, nil)
		ada, bob := meet(t, p, version, named("ada")), meet(t, p, version, named("bob"))
		first := ada.start(t.Context(), "form")
		time.Sleep(5 * time.Second) // of fake time
		beside := bob.start(t.Context(), "plain")
		began := time.Now()
		close(ada.answer)
		want(t, first, "done")
		want(t, beside, "done")
		if d := time.Since(began); d > 5*time.Second { // a sign of life is waited for twice
			t.Errorf("after %v", d)
		}
		if got := ada.asked.Take(); len(got) != 2 {
			t.Errorf("asked %q", got)
		}
	})
}

// A question that is taken for that of a client of the same person that cannot answer it
// goes to the other client.
func TestQuestionOfAnotherClientOfTheCaller(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		form := server.Tool("form", "", func(ctx context.Context, _ mcp.None) (string, error) {
			time.Sleep(time.Second) // of fake time
			_, err := server.Elicit[confirm](ctx, "Sure?")
			return "form is done", err
		})
		p := connect(t, serverOf(form, takes("plain", 5*time.Second)), v2511, nil)
		able, other := meet(t, p, version, named("ada")), joinAs(t, p.Server(), version, named("ada"), nil)
		close(able.answer)
		done := able.start(t.Context(), "form")
		if r, err := other.CallTool(t.Context(), "plain", nil, nil); err != nil || r.IsError {
			t.Errorf("%v, %v", r, err)
		}
		want(t, done, "form is done")
	})
}

// A question that the caller's client cannot answer is refused at once while another client of the
// same person has a question open, which it may never answer.
func TestQuestionBesideAnOpenOneOfTheCaller(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		p := connect(t, serverOf(asks("one", "One?"), asks("two", "Two?")), v2511, nil)
		able, other := meet(t, p, version, named("ada")), joinAs(t, p.Server(), version, named("ada"), nil)
		done := able.start(t.Context(), "one")
		began := time.Now()
		if r, err := other.CallTool(t.Context(), "two", nil, nil); err == nil && !r.IsError {
			t.Errorf("%v, want that the client cannot answer", r)
		}
		if waited := time.Since(began); waited > time.Second { // of fake time
			t.Errorf("the refusal took %v", waited)
		}
		if got := able.asked.Take(); len(got) != 1 || got[0] != "One?" {
			t.Errorf("the other client was asked %q", got)
		}
		close(able.answer)
		want(t, done, "one is done")
	})
}

// Calls of one caller run and ask at the same time. A question is taken for that of a call
// whose tool is known to ask, reaches its caller also if it is the wrong one of them, and
// nothing waits for nothing.
func TestParallelQuestionsOfOneCaller(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		up := serverOf(asks("three", "One?", "Two?", "Three?"), takes("plain", 3*time.Second))
		p := connect(t, up, v2511, nil)
		ada, bob := meet(t, p, version, named("ada")), meet(t, p, version, named("bob"))
		close(ada.answer)
		want(t, ada.start(t.Context(), "three"), "three is done")
		ada.answer = make(chan struct{})
		began := time.Now()
		var calls []<-chan outcome
		for range 5 {
			calls = append(calls, ada.start(t.Context(), "three"), ada.start(t.Context(), "plain"))
		}
		calls = append(calls, bob.start(t.Context(), "plain"))
		time.AfterFunc(time.Second, func() { close(ada.answer) })
		for _, done := range calls {
			want(t, done, "is done")
		}
		if d := time.Since(began); d > time.Minute {
			t.Errorf("after %v", d)
		}
		// In a session a question is asked again if the call that it was taken for ends meanwhile.
		if got := ada.asked.Take(); len(got) < 3+15 || len(got) > 3+15 && version == v2607 {
			t.Errorf("asked %q", got)
		}
		if got := bob.asked.Take(); len(got) != 0 {
			t.Errorf("bob was asked %q", got)
		}
	})
}

// While a call runs, those of its caller begin beside it, but none before the waiting call
// of another caller.
func TestOthersAreNotOvertaken(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		p := connect(t, serverOf(takes("plain", 3*time.Second)), v2511, nil)
		ada, bob := meet(t, p, version, named("ada")), meet(t, p, version, named("bob"))
		began := time.Now()
		for i, call := range []struct {
			done  <-chan outcome
			after time.Duration
		}{
			{ada.start(t.Context(), "plain"), 3 * time.Second},
			{ada.start(t.Context(), "plain"), 3 * time.Second},
			{bob.start(t.Context(), "plain"), 6 * time.Second},
			{ada.start(t.Context(), "plain"), 9 * time.Second},
			{ada.start(t.Context(), "plain"), 9 * time.Second},
		} {
			want(t, call.done, "plain is done")
			if d := time.Since(began); d != call.after {
				t.Errorf("call %d ended after %v, want %v", i, d, call.after)
			}
		}
	})
}

// A question that was taken for another call of the caller, which ends while it is
// open, is asked in the one that it belongs to.
func TestQuestionOfTheWrongCall(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		late := server.Tool("late", "", func(ctx context.Context, _ mcp.None) (string, error) {
			for _, q := range []string{"1s", "10s"} {
				if _, err := server.Elicit[confirm](ctx, q); err != nil {
					return "", err
				}
				time.Sleep(3 * time.Second) // of fake time
			}
			return "late is done", nil
		})
		quick := server.Tool("quick", "", func(ctx context.Context, _ mcp.None) (string, error) {
			_, err := server.Elicit[confirm](ctx, "2s")
			time.Sleep(4 * time.Second) // of fake time
			return "quick is done", err
		})
		p := connect(t, serverOf(late, quick), v2511, nil)
		ada := &person{Client: joinAs(t, p.Server(), version, named("ada"), &client.Options{
			CallTimeout: time.Hour, Retries: -1,
			OnElicit: func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
				d, err := time.ParseDuration(r.Params.Message)
				if err != nil {
					return nil, err
				}
				select {
				case <-time.After(d):
					return client.Accept(confirm{true})
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
		})}
		first, second := ada.start(t.Context(), "late"), ada.start(t.Context(), "quick")
		want(t, second, "quick is done")
		want(t, first, "late is done")
	})
}

// A question that nobody answers ends with its call, in every era of its caller.
func TestUnansweredQuestion(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		p := connect(t, serverOf(asks("form", "Sure?")), v2511, &proxy.Options{KeptTime: time.Minute})
		ada, bob := meet(t, p, version, named("ada")), meet(t, p, version, named("bob"))
		began := time.Now()
		first := ada.start(t.Context(), "form")
		second := bob.start(t.Context(), "form")
		close(bob.answer)
		want(t, second, "form is done")
		if d := time.Since(began); d < time.Minute || d > 62*time.Second {
			t.Errorf("after %v", d)
		}
		if version == v2511 { // the other one has not come back yet
			o := <-first
			wantCode(t, o.err, mcp.CodeTimeout, "proxy.Options.KeptTime")
		}
	})
}

// A call that waits too long for its turn is refused, and so is one more than there is
// room for.
func TestQueueBounds(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		o := &proxy.Options{QueueTime: time.Minute, KeptTime: time.Hour, MaxQueued: 5, MaxQueuedPerPrincipal: 3}
		p := connect(t, serverOf(asks("form", "Sure?")), v2511, o)
		ada, bob, eve := meet(t, p, version, named("ada")), meet(t, p, version, named("bob")), meet(t, p, version, named("eve"))
		first := ada.start(t.Context(), "form")
		var waits []<-chan outcome
		began := time.Now()
		for range 3 {
			waits = append(waits, bob.start(t.Context(), "form"))
		}
		o4 := <-bob.start(t.Context(), "form")
		wantCode(t, o4.err, mcp.CodeTooManyInFlight, "MaxQueuedPerPrincipal")
		waits = append(waits, eve.start(t.Context(), "form"), eve.start(t.Context(), "form"))
		o6 := <-eve.start(t.Context(), "form")
		wantCode(t, o6.err, mcp.CodeTooManyInFlight, "proxy.Options.MaxQueued)")
		for _, done := range waits {
			o := <-done
			wantCode(t, o.err, mcp.CodeTooManyInFlight, "proxy.Options.QueueTime")
		}
		if d := time.Since(began); d != time.Minute {
			t.Errorf("after %v", d)
		}
		close(ada.answer)
		want(t, first, "form is done")
		close(bob.answer)
		want(t, bob.start(t.Context(), "form"), "form is done")
	})
}

// What a call asks when its question ends because its caller has gone is shown to
// nobody.
func TestCancelledQuestionGoesOn(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		again := server.Tool("again", "Asks again whatever becomes of it.", func(ctx context.Context, _ mcp.None) (string, error) {
			_, err := server.Elicit[confirm](ctx, "Ada?")
			for range 3 {
				_, _ = server.Elicit[confirm](context.WithoutCancel(ctx), "Ada again?")
				time.Sleep(100 * time.Millisecond) // of fake time
			}
			return "", err
		})
		up := serverOf(again, asks("form", "Sure?"))
		p := connect(t, up, v2511, &proxy.Options{KeptTime: time.Minute})
		ada, bob := meet(t, p, version, named("ada")), meet(t, p, version, named("bob"))
		close(bob.answer)
		ctx, cancel := context.WithCancel(t.Context())
		first := ada.start(ctx, "again")
		warm := bob.start(t.Context(), "form") // it is known to ask, or becomes it
		if o := <-warm; !strings.Contains(o.text(), "send the request again") {
			t.Errorf("got %s", o.text())
		}
		second := bob.start(t.Context(), "form")
		cancel()
		if o := <-first; !errors.Is(o.err, context.Canceled) {
			t.Errorf("got %v", o.err)
		}
		want(t, second, "form is done")
		if got := bob.asked.Take(); len(got) != 1 || got[0] != "Sure?" {
			t.Errorf("bob was asked %q", got)
		}
	})
}

// While a person is busy on a page for minutes, calls of others go on.
func TestBesideAPage(t *testing.T) {
	callOrder(t, func(t *testing.T, version string) {
		end := time.Now().Add(3 * time.Minute)
		page := server.Tool("page", "", func(ctx context.Context, _ mcp.None) (string, error) {
			_, err := server.ElicitURL(ctx, "https://example.com/pay", "Pay", func(context.Context) (bool, error) { return time.Now().After(end), nil })
			return "paid", err
		})
		p := connect(t, serverOf(page, takes("plain", time.Second)), v2511, nil)
		o := answers()
		o.CallTimeout = time.Hour
		ada, bob := joinAs(t, p.Server(), version, named("ada"), o), meet(t, p, version, named("bob"))
		var wg sync.WaitGroup
		wg.Go(func() {
			r, err := ada.CallTool(t.Context(), "page", nil, nil)
			if got := (outcome{r, err}).text(); got != "paid" {
				t.Errorf("got %s", got)
			}
		})
		time.Sleep(time.Minute) // of fake time
		began := time.Now()
		want(t, bob.start(t.Context(), "plain"), "plain is done")
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("after %v", d)
		}
		wg.Wait()
	})
}

// Where the stream tells whose a question is, it is shown beside another's.
func TestQuestionsOnStreams(t *testing.T) {
	for _, version := range upstreams { // of the callers
		t.Run("caller "+version, func(t *testing.T) {
			up := serverOf(asks("form", "Sure?"), asks("other", "Other?"))
			p := connectBy(t, up, v2511, "streamable", nil)
			asked := make(chan struct{}, 1)
			answer := make(chan struct{})
			ada := joinAs(t, p.Server(), version, named("ada"), &client.Options{
				OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
					asked <- struct{}{}
					<-answer
					return client.Accept(confirm{true})
				},
			})
			var messages logtest.List
			bob := joinAs(t, p.Server(), version, named("bob"), &client.Options{
				OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
					messages.Add(r.Params.Message)
					return client.Accept(confirm{true})
				},
			})
			var wg sync.WaitGroup
			wg.Go(func() {
				r, err := ada.CallTool(t.Context(), "form", nil, nil)
				if err != nil || (outcome{r, err}).text() != "form is done" {
					t.Errorf("got %+v, %v", r, err)
				}
			})
			<-asked
			r, err := bob.CallTool(t.Context(), "other", nil, nil)
			if got := text(t, r, err); got != "other is done" {
				t.Error(got)
			}
			if got := messages.Take(); len(got) != 1 || got[0] != "Other?" {
				t.Errorf("bob was asked %q", got)
			}
			close(answer)
			wg.Wait()
		})
	}
}
