package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// rawTool makes a tool that takes any arguments.
func rawTool(name string, fn func(ctx context.Context, args mcp.RawValue) (*mcp.CallToolResult, error)) *server.ToolFeature {
	return server.RawTool(mcp.Tool{Name: name, InputSchema: mcp.RawValue(`{"type":"object"}`)}, fn)
}

// kept is how many bytes the records of a session have.
func kept(t *testing.T, s *host.Session) int {
	t.Helper()
	n := 0
	for _, r := range s.Snapshot().Records {
		raw, err := host.EncodeBody(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		n += len(raw)
	}
	return n
}

// Attack: whatever a server sends as a result, a resource, a prompt or an error, the log, and
// with it what the model reads, keeps a bounded part of it.
//
// Proves: SEC-TOOL-3, SEC-RES-3, SEC-RES-5, SEC-DOS-1.
func TestHostileSizes(t *testing.T) {
	racetest.SkipSerial(t)
	const size, most = 10 << 20, 1 << 20
	long := strings.Repeat("x", size)
	many := make(mcp.Contents, 50_000)
	for i := range many {
		many[i] = mcp.Text("a block of content")
	}
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, size)...)
	for name, result := range map[string]*mcp.CallToolResult{
		"text":       {Content: mcp.Contents{mcp.Text(long)}},
		"blocks":     {Content: many},
		"image":      {Content: mcp.Contents{&mcp.ImageContent{Data: png, MIMEType: "image/png"}}},
		"audio":      {Content: mcp.Contents{&mcp.AudioContent{Data: png, MIMEType: "audio/wav"}}},
		"no image":   {Content: mcp.Contents{&mcp.ImageContent{Data: []byte("<html>"), MIMEType: "image/png"}}},
		"blob":       {Content: mcp.Contents{&mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "x://a", Blob: png}}}},
		"structured": {StructuredContent: mcp.RawValue(`{"a":"` + long + `"}`), Content: mcp.Contents{mcp.Text("short")}},
		"nothing":    {StructuredContent: mcp.RawValue(`{"a":"` + long + `"}`)},
		"error":      {IsError: true, Content: mcp.Contents{mcp.Text(long)}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]transport.Handler{"one": serverOf(t,
				rawTool("get", func(context.Context, mcp.RawValue) (*mcp.CallToolResult, error) { return result, nil }))})
			m := &scripted{info: host.ModelInfo{MaxImage: 1 << 10}, turns: []turn{use("one__get", "{}", "one__get", "{}")}}
			s := begin(t, h, m)
			if _, _, err := s.Ask(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			if n := kept(t, s); n > most {
				t.Errorf("the log has %d bytes", n)
			}
			for _, r := range bodies[*host.ResultRecord](s) {
				for _, c := range r.Content {
					if _, text := c.(*mcp.TextContent); !text {
						t.Errorf("the model gets %T", c)
					}
				}
			}
		})
	}
	h := newHost(t, nil, map[string]transport.Handler{"one": serverOf(t,
		server.Resource("x://a", "a", func(context.Context) (string, error) { return long, nil }),
		server.Prompt("p", "P.", func(context.Context, mcp.None) (string, error) { return long, nil }))})
	s := begin(t, h, &scripted{})
	for _, in := range []host.Input{
		{Resources: []host.ResourceInput{{Server: "one", URI: "x://a"}}}, {Prompt: &host.PromptInput{Server: "one", Name: "p"}},
	} {
		err := s.Send(t.Context(), in) // an error is a bound, too
		if err == nil {
			_, err = s.Wait(t.Context())
		}
		if n := kept(t, s); n > most {
			t.Errorf("the log has %d bytes: %v", n, err)
		}
	}
}

// What runs is what was shown, byte for byte, whatever the model writes as arguments.
//
// Proves: SEC-TOOL-5, FLOW-TOOL-H.
func TestShownIsSent(t *testing.T) {
	t.Run("together", func(t *testing.T) { shownIsSent(t, approve, 1) })
	t.Run("one by one", func(t *testing.T) {
		shownIsSent(t, func(q *host.Question) host.Answer {
			if q.Kind == host.QuestionCalls {
				return host.Answer{Action: host.Each}
			}
			return host.Answer{Action: host.Approve}
		}, 8)
	})
}

func shownIsSent(t *testing.T, answer func(*host.Question) host.Answer, questions int) {
	t.Helper()
	var mu sync.Mutex
	var got []string
	h := newHost(t, &host.Options{Attended: true}, map[string]transport.Handler{"one": serverOf(t,
		rawTool("run", func(_ context.Context, args mcp.RawValue) (*mcp.CallToolResult, error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(args))
			return &mcp.CallToolResult{}, nil
		}))})
	written := []string{
		`{"path":"a\u002f..\u002fb"}`, `{ "n" : 12345678901234567890 , "m":1e400,"z":-0.0 }`, `{"b":1,"a":2}`,
		`{"t":"\ud83d\ude00 \u0000 \u202e \u001b[2J"}`, `{"":""}`, `{"deep":[[[[{"x":[]}]]]]}`, "{\"t\":\"\u202e\u200b\"}",
	}
	var calls []string
	for _, args := range written {
		calls = append(calls, "one__run", args)
	}
	s := begin(t, h, &scripted{turns: []turn{use(calls...)}})
	who := attend(t, s, answer)
	if _, _, err := s.Ask(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]int)
	for _, q := range who.questions() {
		if questions == 1 {
			for _, c := range q.Batch {
				shown[string(c.Arguments)]++
			}
		} else {
			shown[string(q.Arguments)]++
		}
	}
	for _, args := range got {
		if shown[args]--; shown[args] < 0 {
			t.Errorf("%s was sent and not shown", args)
		}
	}
	if len(got) != len(written) || len(who.questions()) != questions {
		t.Errorf("%d calls were sent after %d questions, want %d after %d", len(got), len(who.questions()), len(written), questions)
	}
	for _, r := range bodies[*host.StartRecord](s) {
		if !bytes.Contains([]byte(strings.Join(got, "\n")), r.Arguments) {
			t.Errorf("the log says that %s was sent", r.Arguments)
		}
	}
}

// Attack: a model that calls a thousand tools at once. None of them runs.
//
// Proves: SEC-TOOL-7.
func TestThousandCalls(t *testing.T) {
	ran := 0
	var calls []string
	for i := range 1000 {
		calls = append(calls, "one__echo", fmt.Sprintf(`{"text":"%d"}`, i))
	}
	h := newHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
	s := begin(t, h, &scripted{turns: []turn{use(calls...)}})
	_, end, err := s.Ask(t.Context(), "go")
	var spent *host.BudgetError
	if !errors.As(err, &spent) || spent.What != "calls" || ran != 0 || end.Calls != 0 {
		t.Errorf("%v; ran %d times, the end is %+v", err, ran, end)
	}
	if n, settled := len(bodies[*host.CallRecord](s)), len(bodies[*host.ResultRecord](s)); n > 32 || settled != n {
		t.Errorf("%d calls are in the log, %d have an end", n, settled)
	}
	if _, _, err := s.Ask(t.Context(), "go on"); err != nil {
		t.Errorf("the session does not go on: %v", err)
	}
}

// A failing model breaks off with an error after some pieces.
type failing struct {
	*scripted
	after []host.Piece
	fails bool
}

func (m *failing) Generate(ctx context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	if !m.fails {
		return m.scripted.Generate(ctx, r)
	}
	m.fails = false
	return func(yield func(host.Piece, error) bool) {
		for _, p := range m.after {
			if !yield(p, nil) {
				return
			}
		}
		yield(host.Piece{}, errors.New("the line is dead"))
	}
}

// A model that stops in the middle of its turn: what it called until then is not done, and the
// session goes on.
//
// Proves: SEC-TOOL-7.
func TestModelBreaksOff(t *testing.T) {
	ran := 0
	call := host.Piece{Call: &mcp.ToolUseContent{ID: "a", Name: "one__echo", Input: mcp.RawValue(`{"text":"x"}`)}}
	h := newHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
	m := &failing{scripted: &scripted{}, after: []host.Piece{{Text: "I will "}, call}, fails: true}
	s := begin(t, h, m)
	_, end, err := s.Ask(t.Context(), "go")
	if err == nil || !strings.Contains(err.Error(), "the line is dead") || ran != 0 || end.Outcome != host.OutcomeFailed {
		t.Errorf("%v; ran %d times, the end is %+v", err, ran, end)
	}
	if r := bodies[*host.ResultRecord](s); len(r) != 1 || r[0].Outcome != host.OutcomeFailed && r[0].Outcome != host.OutcomeNotRun {
		t.Errorf("the call ended as %+v", r)
	}
	if text, _, err := s.Ask(t.Context(), "again"); err != nil || text != "end" || ran != 0 {
		t.Errorf("afterwards: %q, %v, ran %d times", text, err, ran)
	}
}

// What a server says may be kept for a time is asked for once in that time, and anew after it
// or when the server says that it has changed.
//
// Proves: FLOW-CACHE-H.
func TestListsFollowTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := make(map[string]int)
		count := func(method string) int {
			mu.Lock()
			defer mu.Unlock()
			return asked[method]
		}
		s := server.New("test", "1", &server.Options{Cache: server.Cache{TTL: time.Minute}})
		s.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				mu.Lock()
				asked[c.Method()]++
				mu.Unlock()
				return next(c)
			}
		})
		s.Add(give("one", "1"), server.Prompt("p", "P.", func(context.Context, mcp.None) (string, error) { return "prompt", nil }),
			server.Resource("x://a", "a", func(context.Context) (string, error) { return "text", nil }))
		h := newHost(t, nil, nil)
		if err := h.Add(host.Server{Name: "one", Dialer: mem.New(s, nil)}); err != nil {
			t.Fatal(err)
		}
		session := begin(t, h, &scripted{})
		use := func() {
			t.Helper()
			c, err := h.Client(t.Context(), "one")
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range c.Prompts(t.Context()) {
				if err != nil {
					t.Error(err)
				}
			}
			if err := session.Send(t.Context(), host.Input{Resources: []host.ResourceInput{{Server: "one", URI: "x://a"}}}); err != nil {
				t.Error(err)
			}
			if _, err := session.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		for i, step := range []struct {
			pause time.Duration
			want  int
		}{{0, 1}, {30 * time.Second, 1}, {31 * time.Second, 2}} {
			time.Sleep(step.pause)
			use()
			if prompts, reads := count(mcp.MethodPromptsList), count(mcp.MethodResourcesRead); prompts != step.want || reads != step.want {
				t.Errorf("step %d: %d lists and %d reads, want %d", i+1, prompts, reads, step.want)
			}
		}
		before := count(mcp.MethodToolsList)
		s.Add(give("two", "2"))
		time.Sleep(5 * time.Second) // within the minute
		if c, lists := h.Catalog(), count(mcp.MethodToolsList); lists != before+1 || len(c.Tools) != 2 {
			t.Errorf("after a change the host knows %d tools after %d lists", len(c.Tools), lists)
		}
		closing(t, h)
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// A server that answers a call after it was cancelled, and one that asks for what was not
// declared, change nothing.
//
// Proves: SEC-CANCEL-1, SEC-CAP-1, FLOW-CANCEL-H.
func TestLateAndUndeclared(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	h := newHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]transport.Handler{"one": serverOf(t,
		rawTool("late", func(context.Context, mcp.RawValue) (*mcp.CallToolResult, error) {
			close(started)
			<-release
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("too late")}}, nil
		}),
		rawTool("ask", func(ctx context.Context, _ mcp.RawValue) (*mcp.CallToolResult, error) {
			_, err := server.ElicitForm(ctx, "Who?", &mcp.ElicitSchema{})
			if errors.Is(err, server.ErrNotCapable) || errors.Is(err, client.ErrNotCapable) {
				return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("it cannot be asked")}}, nil
			}
			return nil, err
		}))})
	m := &scripted{turns: []turn{use("one__late", "{}")}}
	s := begin(t, h, m)
	go func() {
		<-started
		s.Cancel()
	}()
	if _, _, err := s.Ask(t.Context(), "go"); !errors.Is(err, host.ErrCancelled) {
		t.Error(err)
	}
	close(release)
	m.then(use("one__ask", "{}"))
	if _, _, err := s.Ask(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if got := m.results(); len(got) != 1 || got[0] != "it cannot be asked" {
		t.Errorf("the server said %q", got)
	}
	for _, r := range bodies[*host.ResultRecord](s) {
		for _, c := range r.Content {
			if strings.Contains(host.ContentText(c), "too late") {
				t.Error("the answer to a cancelled call is in the log")
			}
		}
	}
}
