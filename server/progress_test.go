package server_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/linetest"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// A thousand values reach a slow reader, in order, all before the answer; the
// sender waits for the reader. Proves: FLOW-PROGRESS, SEC-PROG-1.
func TestProgressToSlowReader(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		const n = 1000
		s := newServer(nil, server.Tool("count", "Counts.", func(ctx context.Context, _ none) (string, error) {
			for i := range n {
				if err := server.Progress(ctx, float64(i+1), n, strings.Repeat("x", 1000)); err != nil {
					return "", err
				}
			}
			return "done", nil
		}))
		l := join(t, s, v)
		l.meta = `"progressToken":"p"`
		m := l.tool("count", emptyBody)
		if got := l.text(m); got != "done" || len(l.notes) != n {
			t.Fatalf("%q after %d notices", got, len(l.notes))
		}
		for i, note := range l.notes {
			if !strings.Contains(note.raw, fmt.Sprintf(`"progressToken":"p","progress":%d,"total":%d,`, i+1, n)) {
				t.Fatalf("notice %d is %.200s", i, note.raw)
			}
		}
	})
}

// Progress that waits for another one, which the peer does not read, ends with its
// own context.
func TestProgressWithinItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := make(chan time.Duration, 1)
		s := newServer(nil, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := server.Progress(ctx, 1, 0, ""); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // it is being sent
			own, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			begun := time.Now()
			if err := server.Progress(own, 2, 0, ""); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
			took <- time.Since(begun)
			wg.Wait()
			return "", nil
		}))
		c := &fakeConn{sends: func(*jsonrpc.Outgoing) { time.Sleep(30 * time.Second) }}
		s.Serve(t.Context(), c.exchange(t, (&line{version: v2607, caps: allCaps, meta: `"progressToken":1`}).request("1", "tools/call", toolParams("t", emptyBody))))
		if d := <-took; d != time.Second {
			t.Errorf("it took %v", d)
		}
		if len(c.answers) != 1 || c.answers[0].Error != nil {
			t.Errorf("answered %v", c.answers)
		}
	})
}

// A peer that does not read slows the sender; nothing is kept without bound.
// Proves: SEC-PROG-1.
func TestProgressBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, stop := 0, errors.New("stop")
		s := newServer(nil, server.Tool("flood", "Floods.", func(ctx context.Context, _ none) (string, error) {
			for {
				if err := server.Progress(ctx, float64(sent+1), 0, strings.Repeat("x", 1000)); err != nil {
					return "", errors.Join(err, stop)
				}
				if sent++; sent > 50_000 {
					return "", errors.New("nothing held me back")
				}
			}
		}))
		near := &line{version: v2607, caps: allCaps, meta: `"progressToken":1`}
		pipe := linetest.Unread(t, over(s, nil))
		if _, err := pipe.Write([]byte(near.request("1", "tools/call", toolParams("flood", emptyBody)) + "\n")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if sent == 0 || sent > 20_000 {
			t.Errorf("%d sent to a peer that reads nothing", sent)
		}
	})
}

// Values must grow and be finite; the peer sees the good ones only.
// Proves: FLOW-PROGRESS.
func TestProgressMonotonic(t *testing.T) {
	var errs []bool
	s := newServer(nil, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		errs = nil
		for _, p := range [][2]float64{{1, 2}, {1, 2}, {0.5, 2}, {math.NaN(), 2}, {math.Inf(1), 2}, {1.5, math.NaN()}, {2, 0}, {-1, 0}} {
			errs = append(errs, errors.Is(server.Progress(ctx, p[0], p[1], "a\x1b[2Jb\u0007"), server.ErrNoProgress))
		}
		return "", nil
	}))
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		l.meta = `"progressToken":7`
		l.text(l.tool("t", emptyBody))
		if d := cmp.Diff([]bool{false, true, true, true, true, true, false, true}, errs); d != "" {
			t.Error(d)
		}
		var got []string
		for _, n := range l.notes {
			got = append(got, string(n.Params))
		}
		want := []string{`{"progressToken":7,"progress":1,"total":2,"message":"a[2Jb"}`, `{"progressToken":7,"progress":2,"message":"a[2Jb"}`}
		if v == v2024 { // no message yet
			want = []string{`{"progressToken":7,"progress":1,"total":2}`, `{"progressToken":7,"progress":2}`}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

// Without a token, and outside of a request, progress does nothing; a long
// message is cut. Proves: SEC-PROG-1.
func TestProgressUnasked(t *testing.T) {
	s := newServer(nil, server.Tool("t", "", func(ctx context.Context, in struct {
		N int `json:"n"`
	},
	) (string, error) {
		return "", server.Progress(ctx, 1, 0, strings.Repeat("é", in.N))
	}))
	l := join(t, s, v2607)
	l.text(l.tool("t", `{"n":1}`))
	if len(l.notes) != 0 {
		t.Errorf("unasked: %v", l.notes)
	}
	if err := server.Progress(t.Context(), 1, 0, ""); err != nil {
		t.Errorf("outside of a request: %v", err)
	}
	l.meta = `"progressToken":1`
	l.text(l.tool("t", `{"n":5000}`))
	if len(l.notes) != 1 || len(l.notes[0].raw) > 1300 {
		t.Errorf("a long message: %.200v", l.notes)
	}
}

// After the answer a late notice is an error of its sender, and is not sent.
func TestProgressLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan error, 1)
		go1 := make(chan struct{})
		s := newServer(nil, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
			go func() {
				<-go1
				late <- server.Progress(ctx, 1, 0, "")
			}()
			return "", nil
		}))
		l := join(t, s, v2607)
		l.meta = `"progressToken":1`
		l.text(l.tool("t", emptyBody))
		close(go1)
		if err := <-late; err == nil {
			t.Error("a late notice was sent")
		}
		l.Silent()
	})
}

// Proves: FLOW-PROGRESS, in every revision and transport.
func TestProgressEachEra(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("eras", "1", o)
		s.Add(server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
			for i := range 3 {
				if err := server.Progress(ctx, float64(i+1), 3, fmt.Sprintf("step %d", i+1)); err != nil {
					return "", err
				}
			}
			return "done", nil
		}))
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		var got []string
		_, err := c.CallTool(t.Context(), "t", nil, &client.CallOptions{OnProgress: func(progress, total float64, message string) {
			got = append(got, fmt.Sprintf("%v/%v %s", progress, total, message))
		}})
		want := []string{"1/3 step 1", "2/3 step 2", "3/3 step 3"}
		if era.Version == v2024 {
			want = []string{"1/3 ", "2/3 ", "3/3 "}
		}
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%v %s", err, d)
		}
	})
}

// Merging is an option: then the first, the newest in each time, and the last
// are sent. Proves: FLOW-PROGRESS.
func TestProgressMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.ProgressEvery = time.Second
		s := newServer(o, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
			for i := range 25 { // ten in a second
				if err := server.Progress(ctx, float64(i+1), 0, ""); err != nil {
					return "", err
				}
				time.Sleep(100 * time.Millisecond)
			}
			return "done", nil
		}))
		l := join(t, s, v2607)
		l.meta = `"progressToken":1`
		if got := l.text(l.tool("t", emptyBody)); got != "done" {
			t.Fatal(got)
		}
		var got []string
		for _, note := range l.notes {
			_, rest, _ := strings.Cut(note.raw, `"progress":`)
			got = append(got, strings.Trim(rest, "}"))
		}
		if d := cmp.Diff([]string{"1", "11", "21", "25"}, got); d != "" {
			t.Error(d)
		}
	})
}

// Progress fails with the cause once the call has ended, whether the client
// asked for progress or not. Proves: FLOW-PROGRESS, FLOW-CANCEL.
func TestProgressAfterCancel(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		for _, meta := range []string{"", `"progressToken":1`} {
			running, got := make(chan struct{}), make(chan error, 1)
			s := newServer(nil, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
				close(running)
				<-ctx.Done()
				err := server.Progress(ctx, 1, 2, "")
				got <- err
				return "", err
			}))
			l := join(t, s, v)
			l.meta = meta
			id := l.start("tools/call", toolParams("t", emptyBody))
			<-running // a call that is cancelled before it begins is not run
			l.WriteLine(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			if err := <-got; !errors.Is(err, server.ErrCancelled) {
				t.Errorf("with %q: %v", meta, err)
			}
		}
	})
}

// leaver is a client over HTTP that has left: what is written fails.
type leaver struct{ alone }

var errPipe = errors.New("write: broken pipe")

func (*leaver) Send(context.Context, *jsonrpc.Outgoing) error {
	return fmt.Errorf("writing a response: %w: %w", transport.ErrClosed, errPipe)
}

// A client that has left is no error of the handler: the log has it at debug.
// Proves: FLOW-CANCEL.
func TestProgressClientLeft(t *testing.T) {
	var got error
	var outcome server.Outcome
	text := new(logtest.Log)
	s := newServer(&server.Options{Logger: text.Logger()}, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		got = server.Progress(ctx, 1, 2, "")
		return "", fmt.Errorf("copying: %w", got)
	}))
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			res, err := next(c)
			outcome = server.OutcomeOf(c, res, err)
			return res, err
		}
	})
	in, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",`+
		strings.Replace(newestMeta, `{`, `{"progressToken":1,`, 1)+`}}`), jsonrpc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(t.Context(), &transport.Exchange{In: in, Principal: principal.Local, Out: new(leaver)})
	if !errors.Is(got, server.ErrCancelled) || !errors.Is(got, errPipe) {
		t.Errorf("Progress gave %v", got)
	}
	if outcome != server.OutcomeCancelled {
		t.Errorf("the outcome is %v", outcome)
	}
	if strings.Contains(text.String(), "ERROR") || strings.Contains(text.String(), "WARN") {
		t.Errorf("the log has %s", text)
	}
}
