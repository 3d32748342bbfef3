package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

const workID = "com.example/work"

// A worker is an extension that runs every call of a tool detached, and keeps all
// that is needed to take it up in another process, as a stranger would write it.
type worker struct {
	srv *server.Server

	mu      sync.Mutex
	worked                          // what happened; see now
	answers map[string]mcp.RawValue // by message
	call    *server.Call
	cancel  context.CancelCauseFunc

	checked   func(method string, params mcp.RawValue)
	recording func(context.Context, server.Record) error // before a record is kept
}

type worked struct {
	saved    []byte
	records  []string // as JSON, like those of a store
	progress []string
	asked    []string
	elicited string
	result   string
	fault    *jsonrpc.Error
	cause    error
	detach   error
}

// now is what has happened until now.
func (w *worker) now() worked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.worked
}

func (w *worker) extension() server.Extension {
	return server.Extension{ID: workID, Wrap: w.wrap}
}

func (w *worker) wrap(next server.Func) server.Func {
	return func(c *server.Call) (server.Result, error) {
		if c.Method() != mcp.MethodToolsCall || c.Detached() {
			return next(c)
		}
		if _, now := c.Meta().Extra["com.example/now"]; now {
			return next(c)
		}
		saved, err := c.Save(workID)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.saved = saved
		if w.call, w.cancel, err = c.Detach(next, w.options()); err != nil {
			w.detach = err
			return nil, err
		}
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("later")}}, nil
	}
}

func (w *worker) options() *server.DetachOptions {
	return &server.DetachOptions{
		Asker: w,
		Record: func(ctx context.Context, r server.Record) error {
			if w.recording != nil {
				if err := w.recording(ctx, r); err != nil {
					return err
				}
			}
			text, err := strictjson.Marshal(r)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.records = append(w.records, string(text))
			return err
		},
		Elicited: func(id string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.elicited = id
		},
		Progress: func(p *mcp.ProgressParams) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.progress = append(w.progress, fmt.Sprint(p.Progress, p.Message))
		},
		Done: func(d *server.Call, result mcp.RawValue, fault *jsonrpc.Error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.result, w.fault, w.cause = string(result), fault, context.Cause(d)
		},
	}
}

// Ask answers a question at once if the answer is known, or waits for the end.
func (w *worker) Ask(c *server.Call, _, method string, params mcp.RawValue) (mcp.RawValue, error) {
	if w.checked != nil {
		w.checked(method, params)
	}
	var q struct {
		Message string `json:"message"`
	}
	if err := strictjson.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.asked = append(w.asked, q.Message)
	answer, ok := w.answers[q.Message]
	w.mu.Unlock()
	if ok {
		return answer, nil
	}
	<-c.Done()
	return nil, context.Cause(c)
}

// take is what the store has, in another process.
func (w *worker) take(t *testing.T) (saved []byte, records []server.Record) {
	t.Helper()
	for _, text := range w.now().records {
		var r server.Record
		if err := strictjson.Unmarshal([]byte(text), &r, &strictjson.Options{RefuseUnknown: true}); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return w.now().saved, records
}

// withWorker is a server with the extension and some tools.
func withWorker(o *server.Options, features ...server.Feature) (*server.Server, *worker) {
	if o == nil {
		o = unlimited()
	}
	s := newServer(o, features...)
	w := &worker{srv: s, answers: make(map[string]mcp.RawValue)}
	s.Extend(w.extension())
	return s, w
}

// stepper is a tool that opens a ticket once, and asks two questions.
func stepper(opened *int) server.Feature {
	return server.Tool("step", "", func(ctx context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		ticket, err := server.Once(ctx, "ticket", func() (int, error) {
			*opened++
			return *opened, nil
		})
		if err != nil {
			return "", err
		}
		for i, question := range []string{"First?", "Second?"} {
			if a, err := server.Elicit[sure](ctx, question); err != nil || !a.Value.Sure {
				return "", mcp.Errorf("%s: %v", question, err)
			}
			if err := server.Progress(ctx, float64(i+1), 2, question); err != nil {
				return "", err
			}
		}
		c := server.CallFrom(ctx)
		info := ""
		if c.ClientInfo() != nil {
			info = c.ClientInfo().Name
		}
		return fmt.Sprintf("%s: ticket %d for %s by %s over %s in %s, %t", in.Name, ticket, server.Caller(ctx).Subject, info, c.Transport(), c.Version(),
			server.Caller(ctx) == principal.Local), nil
	})
}

// A call is taken up in another process from bytes: what was answered and done once
// is not asked or done again.
func TestResume(t *testing.T) {
	each(t, bothEras, func(t *testing.T, version string) {
		for _, who := range []*principal.Principal{nil, ada} {
			synctest.Test(t, func(t *testing.T) {
				opened := 0
				s, first := withWorker(nil, stepper(&opened))
				first.answers["First?"] = mcp.RawValue(accepted)
				l := joinAs(t, s, version, who)
				l.meta = `"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}`
				if got := l.text(l.tool("step", `{"name":"n"}`)); got != "later" {
					t.Fatalf("got %s", got)
				}
				synctest.Wait()
				if got := strings.Join(first.now().records, ";"); !strings.HasPrefix(got, `{"kind":"once","key":"ticket","value":1};{"kind":"answer","key":`) || len(first.now().records) != 2 {
					t.Errorf("recorded %s", got)
				}
				cut, cancel := context.WithCancel(t.Context())
				cancel()
				_ = s.Shutdown(cut) // its error is that of the context
				if !errors.Is(first.now().cause, server.ErrShutdown) {
					t.Errorf("ended with %v", first.now().cause)
				}

				s, second := withWorker(nil, stepper(&opened))
				second.answers["Second?"] = mcp.RawValue(accepted)
				saved, records := first.take(t)
				if _, _, err := s.Resume(workID, saved, records, second.options()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				subject, local := "local", true
				if who != nil {
					subject, local = who.Subject, false
				}
				want := fmt.Sprintf("n: ticket 1 for %s by raw over stdio in %s, %t", subject, version, local)
				if !strings.Contains(second.now().result, want) || opened != 1 || !slices.Equal(second.now().asked, []string{"Second?"}) || len(second.now().records) != 1 {
					t.Errorf("got %s (%v), opened %d, asked %v, recorded %v", second.now().result, second.now().fault, opened, second.now().asked, second.now().records)
				}
				if typed := strings.Contains(second.now().result, `"resultType":"complete"`); typed != (version == v2607) {
					t.Errorf("got %s", second.now().result)
				}
			})
		}
	})
}

// The caller of a resumed call is the one who was let in, with its scopes, and the
// trace goes on.
func TestResumeCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		features := []server.Feature{
			server.Tool("scoped", "", func(ctx context.Context, _ none) (string, error) {
				p := server.Caller(ctx)
				return fmt.Sprint(p.Identity(), p.Scopes, p.Groups, p.LimitKey() == p.Identity(), server.TraceFrom(ctx).Parent == parent, ctx.Value(jobKey{})), nil
			}).With(server.ToolOptions{Scopes: []string{"write"}}),
		}
		s, w := withWorker(nil, features...)
		who := &principal.Principal{Issuer: "https://as.example", Subject: "a b", Client: "c", Scopes: []string{"read", "write"}, Groups: []string{"g"}}
		l := joinAs(t, s, v2607, who)
		l.meta = fmt.Sprintf(`"traceparent":%q`, parent)
		l.tool("scoped", emptyBody)
		synctest.Wait()
		first := w.now().result
		if !strings.Contains(first, "https://as.example a%20b c[read write] [g] true true") {
			t.Errorf("got %s, %v", first, w.now().fault)
		}
		s, again := withWorker(nil, features...)
		o := again.options()
		o.Values = func(ctx context.Context, _ *server.Call) context.Context {
			return context.WithValue(ctx, jobKey{}, "value")
		}
		if _, _, err := s.Resume(workID, w.now().saved, nil, o); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := again.now().result; got != strings.Replace(first, " <nil>", "value", 1) {
			t.Errorf("got %s, want %s", got, first)
		}
		less := strings.Replace(string(w.now().saved), `"scopes":["read","write"]`, `"scopes":["read"]`, 1)
		if _, _, err := s.Resume(workID, []byte(less), nil, again.options()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if fault := again.now().fault; fault == nil || fault.Code != mcp.CodeInsufficientScope {
			t.Errorf("without the scope: %s, %v", again.now().result, fault)
		}
	})
}

// What is saved later has what was recorded until then, and rounds of the client
// before it.
func TestSaveLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		s, w := withWorker(nil, stepper(&opened))
		l := join(t, s, v2607)
		l.meta = `"com.example/now":true`
		asked := l.asked(l.tool("step", `{"name":"n"}`))
		l.meta = ""
		if got := l.text(l.retry("step", `{"name":"n"}`, asked, accepted)); got != "later" {
			t.Fatalf("got %s", got)
		}
		synctest.Wait()
		saved, err := w.call.Save(workID)
		if err != nil || !slices.Equal(w.now().asked, []string{"Second?"}) || strings.Contains(string(saved), "requestState") {
			t.Fatalf("asked %v, saved %s, %v", w.now().asked, saved, err)
		}
		w.cancel(errors.New("enough"))
		synctest.Wait()
		w.answers["Second?"] = mcp.RawValue(accepted)
		d, _, err := s.Resume(workID, saved, nil, w.options())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !strings.Contains(w.now().result, "n: ticket 1") || opened != 1 || d.Round() != 1 || d.RoundsID() == "" {
			t.Errorf("got %s (%v), opened %d, round %d", w.now().result, w.now().fault, opened, d.Round())
		}
	})
}

// The handler goes on only when a record is kept, and not at all if it cannot be.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, keep := 0, make(chan error)
		s, w := withWorker(nil, stepper(&opened), server.Tool("keeps", "", func(ctx context.Context, _ none) (string, error) {
			if err := server.Keep(ctx, "a", 1); err != nil {
				return "", err
			}
			return "kept", server.Keep(ctx, "a", 2)
		}))
		w.answers["First?"] = mcp.RawValue(accepted)
		w.recording = func(context.Context, server.Record) error { return <-keep }
		l := join(t, s, v2607)
		l.tool("step", `{"name":"n"}`)
		synctest.Wait()
		if opened != 1 || len(w.now().asked) != 0 {
			t.Errorf("opened %d, asked %v before the ticket was kept", opened, w.now().asked)
		}
		keep <- nil
		synctest.Wait()
		if len(w.now().asked) != 1 || len(w.now().progress) != 0 {
			t.Errorf("asked %v, progress %v before the answer was kept", w.now().asked, w.now().progress)
		}
		keep <- errors.New("no space on the disk")
		synctest.Wait()
		if !strings.Contains(w.now().result, `"isError":true`) || !strings.Contains(w.now().result, "no space on the disk") || len(w.now().records) != 1 {
			t.Errorf("got %s, recorded %v", w.now().result, w.now().records)
		}
		w.recording = nil
		l.tool("keeps", emptyBody)
		synctest.Wait()
		if got := strings.Join(w.now().records[1:], ""); !strings.Contains(w.now().result, "kept") || got != `{"kind":"once","key":"a","value":1}{"kind":"once","key":"a","value":2}` {
			t.Errorf("got %s, recorded %s", w.now().result, got)
		}
	})
}

// Progress of a detached call reaches the extension, token or not, and never
// the client. It must increase there too.
func TestDetachedProgress(t *testing.T) {
	each(t, bothEras, func(t *testing.T, version string) {
		synctest.Test(t, func(t *testing.T) {
			s, w := withWorker(nil, server.Tool("works", "", func(ctx context.Context, _ none) (string, error) {
				for i := range 3 {
					if err := server.Progress(ctx, float64(i), 3, "step"); err != nil {
						return "", err
					}
				}
				if err := server.Progress(ctx, 1, 3, "back"); !errors.Is(err, server.ErrNoProgress) {
					return "", fmt.Errorf("went back: %w", err)
				}
				return "done", nil
			}))
			l := join(t, s, version)
			for _, meta := range []string{"", `"progressToken":"p"`} {
				l.meta = meta
				w.mu.Lock()
				w.progress = nil
				w.mu.Unlock()
				l.tool("works", emptyBody)
				synctest.Wait()
				if !slices.Equal(w.now().progress, []string{"0 step", "1 step", "2 step"}) && !slices.Equal(w.now().progress, []string{"0step", "1step", "2step"}) {
					t.Errorf("progress %q, %s", w.now().progress, w.now().result)
				}
				if !strings.Contains(w.now().result, "done") || len(l.notes) != 0 || len(l.Lines()) != 0 {
					t.Errorf("got %s (%v), told %v", w.now().result, w.now().fault, l.notes)
				}
			}
		})
	})
}

// A detached call waits for what a person does behind a URL, as long as it takes.
func TestDetachedElicitURL(t *testing.T) {
	each(t, bothEras, func(t *testing.T, version string) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			s, w := withWorker(nil, server.Tool("pays", "", func(ctx context.Context, _ none) (string, error) {
				paid, err := server.ElicitURL(ctx, "https://pay.example", "Pay", func(context.Context) (bool, error) {
					return time.Since(began) > time.Hour, nil
				})
				return fmt.Sprint("paid ", paid), err
			}))
			w.answers["Pay"] = mcp.RawValue(`{"action":"accept"}`)
			var asked mcp.ElicitParams
			w.checked = func(_ string, params mcp.RawValue) {
				if err := strictjson.Unmarshal(params, &asked); err != nil || (asked.ElicitationID != "") != (version == v2511) {
					t.Errorf("asked %s, %v", params, err)
				}
			}
			join(t, s, version).tool("pays", emptyBody)
			time.Sleep(time.Minute)
			synctest.Wait()
			if w.now().result != "" || w.now().fault != nil {
				t.Errorf("after a minute: %s, %v", w.now().result, w.now().fault)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if !strings.Contains(w.now().result, "paid true") || w.now().elicited != asked.ElicitationID {
				t.Errorf("got %s, %v; told of %q, want %q", w.now().result, w.now().fault, w.now().elicited, asked.ElicitationID)
			}
		})
	})
}

// Without an Asker a detached call cannot ask, in any revision.
func TestDetachedWithoutAsker(t *testing.T) {
	each(t, bothEras, func(t *testing.T, version string) {
		fault := make(chan error, 1)
		s := newServer(nil, server.Tool("asks", "", func(ctx context.Context, _ none) (string, error) {
			_, err := server.Elicit[sure](ctx, "Sure?")
			if retry := server.CallFrom(ctx).RetryLater(); !errors.Is(retry, server.ErrCannotAsk) {
				err = retry
			}
			fault <- err
			return "", err
		}))
		s.Extend(server.Extension{ID: workID, Wrap: func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if c.Method() != mcp.MethodToolsCall {
					return next(c)
				}
				_, _, err := c.Detach(next, nil)
				return &mcp.CallToolResult{}, err
			}
		}})
		l := join(t, s, version)
		l.toolResult(l.tool("asks", emptyBody))
		if err := <-fault; !errors.Is(err, server.ErrCannotAsk) {
			t.Errorf("got %v", err)
		}
	})
}

// Detached calls have a bound for each caller, for each address, and in all, and end
// after a time.
func TestDetachLimits(t *testing.T) {
	for limit, test := range map[string]struct {
		limits server.Limits
		who    *principal.Principal
	}{
		"Limits.MaxDetached":          {server.Limits{MaxDetached: 2}, ada},
		"Limits.MaxAnonymousDetached": {server.Limits{MaxAnonymousDetached: 2}, &principal.Principal{Remote: "192.0.2.1"}},
		"Limits.MaxAllDetached":       {server.Limits{MaxAllDetached: 2}, ada},
	} {
		t.Run(limit, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := unlimited()
				test.limits.ToolRate, test.limits.MaxDetachedTime = server.Unlimited, time.Hour
				o.Limits = test.limits
				s, w := withWorker(o, server.Tool("waits", "", func(ctx context.Context, _ none) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				}))
				l := joinAs(t, s, v2607, test.who)
				l.tool("waits", emptyBody)
				l.tool("waits", emptyBody)
				text := l.fails(l.tool("waits", emptyBody), mcp.CodeTooManyInFlight)
				full, ok := errors.AsType[*server.DetachLimitError](w.now().detach)
				if !ok || full.Limit != limit || full.Most != 2 || !strings.Contains(text, limit) {
					t.Errorf("got %q, %+v", text, w.now().detach)
				}
				if _, _, err := s.Resume(workID, w.now().saved, nil, nil); !errors.As(err, &full) {
					t.Errorf("resumed: %v", err)
				}
				other := l
				if limit != "Limits.MaxAllDetached" {
					other = joinAs(t, s, v2607, bob)
					other.text(other.tool("waits", emptyBody))
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if w.now().fault == nil || w.now().fault.Code != mcp.CodeTimeout || !errors.Is(w.now().cause, server.ErrTimeout) || !strings.Contains(w.now().fault.Message, "Limits.MaxDetachedTime") {
					t.Errorf("ended with %v, %v", w.now().fault, w.now().cause)
				}
				l.text(l.tool("waits", emptyBody)) // there is room again
				saved := w.now().saved
				w.cancel(nil)
				time.Sleep(2 * time.Hour) // its time is over, wherever it runs
				d, _, err := s.Resume(workID, saved, nil, nil)
				if err != nil || !errors.Is(context.Cause(d), server.ErrTimeout) {
					t.Errorf("resumed with %v", err)
				}
			})
		})
	}
}

// Bytes that are no saved call of the server are refused, whatever is wrong.
func TestResumeRefuses(t *testing.T) {
	opened := 0
	s, w := withWorker(nil, stepper(&opened))
	l := join(t, s, v2607)
	l.tool("step", `{"name":"n"}`)
	w.cancel(nil)
	good := string(w.now().saved)
	bad := map[string]string{
		"empty":           "",
		"no object":       "[]",
		"version":         strings.Replace(good, `"version":1`, `"version":2`, 1),
		"no version":      strings.Replace(good, `"version":1,`, ``, 1),
		"unknown":         strings.Replace(good, `"version":1`, `"version":1,"more":1`, 1),
		"letter case":     strings.Replace(good, `"method"`, `"Method"`, 1),
		"twice":           strings.Replace(good, `"version":1`, `"version":1,"version":1`, 1),
		"other server":    strings.Replace(good, `"server":"test"`, `"server":"other"`, 1),
		"other extension": strings.Replace(good, `"extension":"`+workID, `"extension":"com.example/other`, 1),
		"no extension":    strings.Replace(good, `"extension":"`+workID+`",`, ``, 1),
		"no tool":         strings.Replace(good, `"name":"step",`, ``, 1),
		"no params":       strings.Replace(good, `"params":{`, `"params":{},"client":{`, 1),
		"revision":        strings.Replace(good, `"revision":"`+v2607, `"revision":"1999-01-01`, 1),
		"method":          strings.Replace(good, `"tools/call"`, `"tools/list"`, 1),
		"unknown method":  strings.Replace(good, `"tools/call"`, `"tools/take"`, 1),
		"listen":          strings.Replace(good, `"tools/call"`, `"subscriptions/listen"`, 1),
		"params":          strings.Replace(good, `"name":"step"`, `"name":7`, 1),
		"no id":           strings.Replace(good, `"id":1,`, ``, 1),
		"trailing":        good + "{}",
	}
	for i := range len(good) - 1 {
		bad[fmt.Sprint("cut at ", i)] = good[:i]
	}
	for name, text := range bad {
		if _, _, err := s.Resume(workID, []byte(text), nil, nil); !errors.Is(err, server.ErrSavedCall) || text == good {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, r := range []server.Record{
		{},
		{Kind: "more", Key: "a", Value: mcp.RawValue("1")},
		{Kind: server.RecordOnce, Key: "a"},
		{Kind: server.RecordOnce, Key: "a", Value: mcp.RawValue("{")},
		{Kind: server.RecordAnswer, Key: "a", Value: mcp.RawValue("{}")},
		{Kind: server.RecordAnswer, Key: "a", Question: "q"},
		{Kind: server.RecordQuestion, Key: "a"},
		{Kind: server.RecordQuestion, Key: "a", Question: "q", Value: mcp.RawValue("{}")},
	} {
		if _, _, err := s.Resume(workID, w.now().saved, []server.Record{r}, nil); !errors.Is(err, server.ErrSavedCall) {
			t.Errorf("record %+v: %v", r, err)
		}
	}
	if _, _, err := s.Resume("com.example/other", w.now().saved, nil, nil); err == nil || !strings.Contains(err.Error(), `no extension "com.example/other"`) {
		t.Errorf("got %v", err)
	}
	if _, err := w.call.Save("com.example/other"); err == nil || !strings.Contains(err.Error(), `no extension "com.example/other"`) {
		t.Errorf("got %v", err)
	}
	s.RemoveTools("step")
	if _, _, err := s.Resume(workID, w.now().saved, nil, nil); !errors.Is(err, server.ErrNotFound) || !strings.Contains(err.Error(), `no tool "step" any more`) {
		t.Errorf("got %v", err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Add(stepper(&opened))
	if _, _, err := s.Resume(workID, w.now().saved, nil, nil); !errors.Is(err, server.ErrShutdown) {
		t.Errorf("got %v", err)
	}
}

// An extension can check an answer before it wakes the handler with it.
func TestCheckAnswer(t *testing.T) {
	each(t, bothEras, func(t *testing.T, version string) {
		fault := make(chan error, 10)
		s, w := withWorker(nil, server.Tool("asks", "", func(ctx context.Context, _ none) (string, error) {
			_, err := server.Elicit[sure](ctx, "Sure?")
			return "", err
		}))
		w.checked = func(method string, params mcp.RawValue) {
			for _, answer := range []string{accepted, `{"action":"decline"}`, `{"action":"accept","content":{"sure":7}}`, `{"action":"accept"}`, `{"action":"maybe"}`, `[]`, `{`} {
				fault <- server.CheckAnswer(method, params, mcp.RawValue(answer))
			}
			fault <- server.CheckAnswer("tools/call", params, mcp.RawValue(`{}`))
		}
		w.answers["Sure?"] = mcp.RawValue(accepted)
		join(t, s, version).tool("asks", emptyBody)
		for i := range 8 {
			if err := <-fault; (err == nil) != (i < 2) {
				t.Errorf("answer %d: %v", i, err)
			} else if i == 2 && !strings.Contains(err.Error(), "/sure") {
				t.Errorf("answer %d: %v", i, err)
			}
		}
	})
	if err := server.CheckAnswer(mcp.MethodElicit, mcp.RawValue(`{"mode":"url","url":"https://a.example","message":""}`), mcp.RawValue(`{"action":"accept"}`)); err != nil {
		t.Error(err)
	}
	for method, answer := range map[string]string{
		mcp.MethodCreateMessage: `{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}`, mcp.MethodRootsList: `{"roots":[]}`,
	} {
		if err := server.CheckAnswer(method, mcp.RawValue(`{}`), mcp.RawValue(answer)); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		if err := server.CheckAnswer(method, mcp.RawValue(`{}`), mcp.RawValue(`{}`)); err == nil {
			t.Errorf("%s: {} is an answer", method)
		}
	}
}

// Bytes of a store that was tampered with end in an error or a call, never in a panic.
func FuzzResume(f *testing.F) {
	opened := 0
	for _, text := range []string{
		`{"version":1,"server":"test","extension":"com.example/work","began":"2026-11-23T00:00:00Z","revision":"2026-07-28","id":1,"method":"tools/call","params":{"name":"step","arguments":{"name":"n"}},"capabilities":{},"records":[{"kind":"once","key":"ticket","value":1}]}`,
		`{"version":1,"server":"test","extension":"com.example/work","began":"2026-11-23T00:00:00Z","revision":"2025-11-25","id":"a","method":"tools/call","params":{"name":"step"},"capabilities":{},"caller":{"local":true}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, w := withWorker(nil, stepper(&opened))
		if _, _, err := s.Resume(workID, text, nil, w.options()); err != nil && w.now().result != "" {
			t.Errorf("%v, and %s", err, w.now().result)
		}
		cut, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.Shutdown(cut) // its error is that of the context
		if w.now().fault != nil && strings.Contains(w.now().fault.Message, "internal error (ref") {
			t.Errorf("ended with %v", w.now().fault)
		}
	})
}
