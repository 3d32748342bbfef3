package server_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

const jobsID = "com.example/jobs"

// jobs is an extension as a stranger would write it: a call of a tool with the
// `_meta` key com.example/later is answered with a job, which runs on; jobs/get
// tells its state, jobs/answer answers what it asks, and a member of the
// subscription filter gives notice of both.
type jobs struct {
	srv  *server.Server
	mu   sync.Mutex
	byID map[string]*job
}

type job struct {
	State    string       `json:"state"`
	Result   mcp.RawValue `json:"result,omitzero"`
	Error    string       `json:"error,omitzero"`
	Question mcp.RawValue `json:"question,omitzero"`
	answer   chan mcp.RawValue
	cancel   context.CancelCauseFunc
}

// jobCreated is a result type of the extension's own.
type jobCreated struct {
	mcp.ResultBase
	JobID string `json:"jobId"`
}

type jobKey struct{}

// jobParams are the params of the methods that are about one job.
type jobParams struct {
	JobID  string       `json:"jobId"`
	Answer mcp.RawValue `json:"answer,omitzero"`
}

// jobResult is a job as jobs/get tells it.
type jobResult struct {
	mcp.ResultBase
	job
}

func about(*server.Call, mcp.None) (map[string]string, error) {
	return map[string]string{"about": "jobs"}, nil
}

func (j *jobs) extension() server.Extension {
	return server.Extension{
		ID: jobsID, Settings: map[string]int{"max": 9},
		Methods: []*server.ExtensionMethod{
			server.Method("jobs/get", j.get).With(server.MethodOptions{Target: "jobId", NameHeader: true}),
			server.Method("jobs/answer", j.reply).With(server.MethodOptions{Target: "jobId", NameHeader: true}),
			server.Method("jobs/about", about).With(server.MethodOptions{Anyone: true, Revisions: server.AllRevisions}),
		},
		Wrap:    j.wrap,
		Asker:   func(c *server.Call) server.Asker { return j.asker(c) },
		Filters: map[string]server.Filter{"jobs": j.filter},
	}
}

func (j *jobs) wrap(next server.Func) server.Func {
	return func(c *server.Call) (server.Result, error) {
		if _, later := c.Meta().Extra["com.example/later"]; !later || c.Method() != "tools/call" || !c.HasExtension(jobsID) {
			return next(c)
		}
		id := "j" + c.ID().String()
		own := &job{State: "working", answer: make(chan mcp.RawValue)}
		j.mu.Lock()
		defer j.mu.Unlock()
		_, cancel, err := c.Detach(next, &server.DetachOptions{
			Values: func(ctx context.Context, _ *server.Call) context.Context {
				return context.WithValue(ctx, jobKey{}, own)
			},
			Done: func(_ *server.Call, result mcp.RawValue, fault *jsonrpc.Error) {
				j.change(id, func() {
					own.State, own.Result = "done", result
					if fault != nil {
						own.State, own.Error = "failed", fault.Message
					}
				})
			},
		})
		if err != nil {
			return nil, err
		}
		own.cancel = cancel
		j.byID[id] = own
		return &jobCreated{ResultBase: mcp.ResultBase{ResultType: "com.example/job"}, JobID: id}, nil
	}
}

func (j *jobs) change(id string, f func()) {
	j.mu.Lock()
	f()
	j.mu.Unlock()
	if err := j.srv.Notify(jobsID, id, "notifications/jobs/changed", map[string]string{"jobId": id}); err != nil {
		panic(err)
	}
}

// parked lets a job's handler wait in its goroutine.
type parked struct {
	j   *jobs
	own *job
}

func (j *jobs) asker(c *server.Call) server.Asker {
	if own, ok := c.Value(jobKey{}).(*job); ok {
		return parked{j, own}
	}
	return nil
}

func (p parked) Ask(c *server.Call, _, _ string, params mcp.RawValue) (mcp.RawValue, error) {
	id := "j" + c.ID().String()
	p.j.change(id, func() { p.own.State, p.own.Question = "asks", params })
	select {
	case answer := <-p.own.answer:
		p.j.change(id, func() { p.own.State, p.own.Question = "working", nil })
		return answer, nil
	case <-c.Done():
		return nil, context.Cause(c)
	}
}

func (j *jobs) find(id string) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if own := j.byID[id]; own != nil {
		return own, nil
	}
	return nil, mcp.NewError(mcp.CodeInvalidParams, "unknown job %q", id)
}

func (j *jobs) get(_ *server.Call, p jobParams) (*jobResult, error) {
	own, err := j.find(p.JobID)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return &jobResult{job: job{State: own.State, Result: own.Result, Error: own.Error, Question: own.Question}}, nil
}

func (j *jobs) reply(_ *server.Call, p jobParams) (mcp.None, error) {
	own, err := j.find(p.JobID)
	if err != nil {
		return mcp.None{}, err
	}
	own.answer <- p.Answer
	return mcp.None{}, nil
}

func (j *jobs) filter(_ *server.Call, value mcp.RawValue) (mcp.RawValue, []string, error) {
	var ids []string
	if err := strictjson.Unmarshal(value, &ids); err != nil {
		return nil, nil, mcp.NewError(mcp.CodeInvalidParams, "jobs: %v", err)
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	return value, ids, nil
}

// withJobs is a server with the extension and some tools.
func withJobs(features ...server.Feature) (*server.Server, *jobs) {
	s := newServer(unlimited(), features...)
	j := &jobs{srv: s, byID: make(map[string]*job)}
	s.Extend(j.extension())
	return s, j
}

const jobCaps = `{"elicitation":{"form":{}},"extensions":{"com.example/jobs":{}}}`

// joinJobs connects as a client that knows the extension.
func joinJobs(t *testing.T, s *server.Server) *line {
	t.Helper()
	l := dial(t, s, v2607, nil)
	l.caps = jobCaps
	return l
}

// An extension brings methods, a result type, another way to ask, and notices,
// all through public seams.
func TestExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := withJobs(asker("drop", "Drop?"), echo(),
			server.Tool("panics", "", func(context.Context, none) (string, error) { panic("secret") }),
			server.Tool("exits", "", func(context.Context, none) (string, error) { runtime.Goexit(); return "", nil }))
		l := joinJobs(t, s)
		if got := l.text(l.tool("echo", `{"text":"now"}`)); got != "now" {
			t.Errorf("without the key: %q", got)
		}
		l.meta = `"com.example/later":true`
		m := l.tool("drop", emptyBody)
		created := decode[jobCreated](t, l.result(m))
		if created.ResultType != "com.example/job" || !strings.Contains(m.raw, mcp.MetaServerInfo) {
			t.Fatalf("got %s", m.raw)
		}
		filter := fmt.Sprintf(`{"jobs":[%q]}`, created.JobID)
		l.listen(filter, filter)
		synctest.Wait()
		get := func(id string) job {
			return decode[job](t, l.result(l.call("jobs/get", fmt.Sprintf(`{"jobId":%q}`, id))))
		}
		if got := get(created.JobID); got.State != "asks" || !strings.Contains(string(got.Question), `"message":"Drop?"`) {
			t.Fatalf("got %+v", got)
		}
		l.result(l.call("jobs/answer", fmt.Sprintf(`{"jobId":%q,"answer":%s}`, created.JobID, accepted)))
		synctest.Wait()
		if got := get(created.JobID); got.State != "done" || !strings.Contains(string(got.Result), `"text":"accept true"`) || !strings.Contains(string(got.Result), `"resultType":"complete"`) {
			t.Errorf("got %+v", got)
		}
		notices := 0
		for _, n := range l.notes {
			if n.Method == "notifications/jobs/changed" && strings.Contains(n.raw, mcp.MetaSubscriptionID) && strings.Contains(n.raw, created.JobID) {
				notices++
			}
		}
		if notices == 0 {
			t.Errorf("no notice of the job: %v", l.notes)
		}
		for _, name := range []string{"panics", "exits"} {
			created = decode[jobCreated](t, l.result(l.tool(name, emptyBody)))
			synctest.Wait()
			if got := get(created.JobID); got.State != "failed" || !strings.Contains(got.Error, "internal error (ref ") {
				t.Errorf("%s: %+v", name, got)
			}
		}
		l.fails(l.call("jobs/get", `{"jobId":"nosuch"}`), mcp.CodeInvalidParams)
		l.fails(l.call("subscriptions/listen", `{"notifications":{"jobs":5}}`), mcp.CodeInvalidParams)
	})
}

// A slow subscriber gets the newest state of each topic, and the topics in the
// order in which they first changed.
func TestNotifyNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := unlimited()
		o.Limits.ChangeRate = 1
		s := newServer(o)
		s.Extend(server.Extension{ID: jobsID, Filters: map[string]server.Filter{"jobs": (*jobs)(nil).filter}})
		l := joinJobs(t, s)
		l.listen(`{"jobs":["a","b"]}`, `{"jobs":["a","b"]}`)
		for i, topic := range []string{"a", "a", "b", "a", "b", "a"} { // the first is sent at once
			if err := s.Notify(jobsID, topic, "notifications/jobs/changed", map[string]any{"jobId": topic, "state": i}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for _, want := range []string{`"jobId":"a","state":0`, `"jobId":"a","state":5`, `"jobId":"b","state":4`} {
			if got := l.note("notifications/jobs/changed"); !strings.Contains(got.raw, want) {
				t.Errorf("got %s, want %s", got.raw, want)
			}
		}
		time.Sleep(time.Hour) // of the test's own clock
		if len(l.Lines()) != 0 {
			t.Errorf("also got %s", <-l.Lines())
		}
	})
}

// In a session a client gets the notices of topics that an extension follows for it.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stops := followers(1)
		l, other := join(t, s, v2511), join(t, s, v2511)
		notify := func() {
			if err := s.Notify(jobsID, "a", "notifications/jobs/changed", map[string]string{"jobId": "a"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		notify()
		for range 2 { // the same topic counts once against the limit
			l.result(l.call("jobs/follow", `{"jobId":"a"}`))
		}
		if text := l.fails(l.call("jobs/follow", `{"jobId":"b"}`), mcp.CodeInvalidParams); !strings.Contains(text, "Limits.MaxSubscriptions") {
			t.Errorf("got %q", text)
		}
		notify()
		if got := l.note("notifications/jobs/changed"); got.raw != `{"jsonrpc":"2.0","method":"notifications/jobs/changed","params":{"jobId":"a"}}` {
			t.Errorf("got %s", got.raw)
		}
		for _, stop := range *stops {
			stop()
		}
		notify()
		if len(l.Lines())+len(other.Lines()) != 0 {
			t.Error("told without being asked to")
		}
		modern := join(t, s, v2607)
		modern.fails(modern.call("jobs/follow", `{"jobId":"a"}`), jsonrpc.CodeInternalError)
	})
}

// followers is a server whose clients follow topics; stops are what each call of
// Follow gave.
func followers(most int) (s *server.Server, stops *[]func()) {
	o := unlimited()
	o.Limits.MaxSubscriptions = most
	s, stops = newServer(o, server.Text("test:a", "a", "A"), server.Text("test:b", "b", "B")), new([]func())
	s.Extend(server.Extension{ID: jobsID, Methods: []*server.ExtensionMethod{
		server.Method("jobs/follow", func(c *server.Call, p jobParams) (mcp.None, error) {
			stop, err := c.Follow(jobsID, p.JobID)
			if err == nil {
				*stops = append(*stops, stop)
			}
			return mcp.None{}, err
		}).With(server.MethodOptions{Anyone: true, Revisions: server.AllRevisions}),
	}})
	return s, stops
}

// A topic is followed until each of its followers has stopped, and a stop that is
// called again ends nobody else's following.
func TestFollowersOfOneTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stops := followers(1)
		l := join(t, s, v2511)
		told := func() bool {
			t.Helper()
			if err := s.Notify(jobsID, "a", "notifications/jobs/changed", nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := len(l.Lines()); n > 1 {
				t.Errorf("told %d times", n)
			}
			if len(l.Lines()) == 0 {
				return false
			}
			l.note("notifications/jobs/changed")
			return true
		}
		follow := func() { l.result(l.call("jobs/follow", `{"jobId":"a"}`)) }
		follow()
		follow()
		if (*stops)[0](); !told() {
			t.Error("the first stop ended the second following")
		}
		if (*stops)[0](); !told() {
			t.Error("the first stop, called again, ended the second following")
		}
		if (*stops)[1](); told() {
			t.Error("told after both stopped")
		}
		follow()
		(*stops)[0]()
		if (*stops)[1](); !told() {
			t.Error("an old stop ended a new following")
		}
		if m := l.call("jobs/follow", `{"jobId":"b"}`); m.Error == nil {
			t.Error("more topics than Limits.MaxSubscriptions")
		}
		if (*stops)[2](); told() {
			t.Error("told after the last stop")
		}
		l.result(l.call("jobs/follow", `{"jobId":"b"}`)) // there is room again
		l.Close()
		synctest.Wait()
		(*stops)[3]() // the session is gone
	})
}

// Subscriptions to resources and followed topics have limits of their own.
func TestFollowBesideSubscriptions(t *testing.T) {
	s, _ := followers(1)
	l := join(t, s, v2511)
	l.result(l.call("resources/subscribe", `{"uri":"test:a"}`))
	l.result(l.call("jobs/follow", `{"jobId":"a"}`))
	l.fails(l.call("resources/subscribe", `{"uri":"test:b"}`), mcp.CodeInvalidParams)
	l.fails(l.call("jobs/follow", `{"jobId":"b"}`), mcp.CodeInvalidParams)
}

// Params of a notice are an object whose _meta is the server's.
func TestNotifyParams(t *testing.T) {
	s, _ := withJobs()
	for _, params := range []any{7, []int{1}, mcp.RawValue("{"), func() {}, map[string]int{"_meta": 1}} {
		if err := s.Notify(jobsID, "a", "notifications/jobs/changed", params); err == nil {
			t.Errorf("%v was sent", params)
		}
	}
	if err := s.Notify(jobsID, "a", "notifications/jobs/changed", nil); err != nil {
		t.Error(err)
	}
}

// A detached call that nobody ends is ended with the server, after the time that
// requests have, and is waited for.
// Proves: FLOW-SHUTDOWN.
func TestDetachEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(map[string]error)
		var mu sync.Mutex
		s, j := withJobs(server.Tool("waits", "", func(ctx context.Context, in struct {
			Name string `json:"name"`
		},
		) (string, error) {
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			ended[in.Name] = context.Cause(ctx)
			return "", ctx.Err()
		}))
		l := joinJobs(t, s)
		l.meta = `"com.example/later":true`
		first := decode[jobCreated](t, l.result(l.tool("waits", `{"name":"first"}`)))
		l.result(l.tool("waits", `{"name":"second"}`))
		synctest.Wait() // both answers are out, and both handlers wait
		if len(ended) != 0 {
			t.Errorf("ended with the request: %v", ended)
		}
		enough := fmt.Errorf("enough")
		j.byID[first.JobID].cancel(enough)
		synctest.Wait()
		mu.Lock()
		if !errors.Is(ended["first"], enough) || len(ended) != 1 {
			t.Errorf("ended: %v", ended)
		}
		mu.Unlock()
		grace, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Shutdown(grace); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if !errors.Is(ended["second"], server.ErrShutdown) {
			t.Errorf("not ended, or not waited for: %v", ended)
		}
	})
}

// A call that is detached in a later round has what was answered and done once
// in the earlier ones.
func TestDetachInLaterRound(t *testing.T) {
	opened := 0
	type outcome struct {
		result string
		err    *jsonrpc.Error
	}
	ended := make(chan outcome, 1)
	s := newServer(nil, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		ticket, err := server.Once(ctx, "ticket", func() (int, error) {
			opened++
			return opened, nil
		})
		if err != nil {
			return "", err
		}
		a, err := server.Elicit[sure](ctx, "Sure?")
		return fmt.Sprintf("ticket %d: %s in round %d", ticket, a.Action, server.CallFrom(ctx).Round()), err
	}))
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Round() == 0 {
				return next(c)
			}
			_, _, err := c.Detach(next, &server.DetachOptions{Done: func(_ *server.Call, result mcp.RawValue, err *jsonrpc.Error) {
				ended <- outcome{string(result), err}
			}})
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("later")}}, err
		}
	})
	l := join(t, s, v2607)
	if got := l.text(l.retry("t", emptyBody, l.asked(l.tool("t", emptyBody)), accepted)); got != "later" {
		t.Errorf("got %q", got)
	}
	if got := <-ended; got.err != nil || !strings.Contains(got.result, "ticket 1: accept in round 1") {
		t.Errorf("ended with %s, %v", got.result, got.err)
	}
}

// Clients that do not declare an extension are refused its methods, unless it
// says otherwise; its settings are declared. Proves: SEC-CAP-1. Ruling 5.
func TestExtensionCapability(t *testing.T) {
	s, _ := withJobs(echo())
	l := join(t, s, v2607)
	m := l.call("jobs/get", `{"jobId":"x"}`)
	l.fails(m, mcp.CodeMissingClientCapability)
	if !strings.Contains(string(m.Error.Data), `"requiredCapabilities":{"extensions":{"com.example/jobs":{}}}`) {
		t.Errorf("data is %s", m.Error.Data)
	}
	l.meta = `"com.example/later":true`
	if got := l.text(l.tool("echo", `{"text":"core"}`)); got != "core" {
		t.Errorf("without the capability: %q", got)
	}
	if got := string(l.result(l.call("jobs/about", emptyBody))); !strings.Contains(got, `"about":"jobs"`) {
		t.Errorf("got %s", got)
	}
	if got := string(l.result(l.call("server/discover", emptyBody))); !strings.Contains(got, `"extensions":{"com.example/jobs":{"max":9}}`) {
		t.Errorf("got %s", got)
	}
	old := join(t, s, v2511)
	old.fails(old.call("jobs/get", `{"jobId":"x"}`), mcp.CodeMethodNotFound)
	if got := string(old.result(old.call("jobs/about", emptyBody))); got != `{"about":"jobs"}` {
		t.Errorf("got %s", got)
	}
}

func TestExtensionRegistration(t *testing.T) {
	s, _ := withJobs()
	for _, id := range []string{"", "jobs", "/x", "com..example/x"} {
		panics(t, "server.Extend", func() { s.Extend(server.Extension{ID: id}) })
	}
	// Found out here, and not by the first client.
	for _, settings := range []any{func() {}, 7, mcp.RawValue("{")} {
		panics(t, "settings of extension com.example/x", func() { s.Extend(server.Extension{ID: "com.example/x", Settings: settings}) })
	}
	panics(t, "exists already", func() {
		s.Extend(server.Extension{ID: "com.example/x", Methods: []*server.ExtensionMethod{server.Method("tools/call", about)}})
	})
	panics(t, "exists already", func() {
		s.Extend(server.Extension{ID: "com.example/x", Methods: []*server.ExtensionMethod{server.Method("jobs/get", about)}})
	})
}
