package server_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

var stateKey = []byte("a key of sixteen bytes or more")

// keyed are options whose states outlive a server value.
func keyed(keys ...[]byte) *server.Options {
	o := unlimited()
	o.StateKeys = keys
	return o
}

// retry calls a tool again with answers and state.
func (l *line) retry(name, arguments string, res toolResult, answer string) message {
	l.t.Helper()
	return l.call("tools/call", with(toolParams(name, arguments), res.answers(answer)))
}

const stale = "requestState is not valid for this request"

// A state is sealed: changed by one bit it is refused with one plain error,
// and it shows nothing. Proves: FLOW-ELICIT-P.
func TestStateTampered(t *testing.T) {
	s := newServer(keyed(stateKey), asker("drop", "Drop?"))
	l := join(t, s, v2607)
	res := l.asked(l.tool("drop", emptyBody))
	raw, err := base64.RawURLEncoding.DecodeString(*res.RequestState)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "Drop") || strings.Contains(string(raw), `"f"`) {
		t.Error("the state can be read")
	}
	bad := []string{"", "x", "e30", `{"f":"x"}`, *res.RequestState + "AAAA", (*res.RequestState)[4:]}
	for i := range raw {
		forged := slices.Clone(raw)
		forged[i] ^= 0x40
		bad = append(bad, base64.RawURLEncoding.EncodeToString(forged))
	}
	for _, state := range bad {
		forged := res
		forged.RequestState = &state
		if got := l.fails(l.retry("drop", emptyBody, forged, accepted), mcp.CodeInvalidParams); !strings.HasPrefix(got, stale) {
			t.Fatalf("%q: %q", state, got)
		}
	}
	if got := l.text(l.retry("drop", emptyBody, res, accepted)); got != "accept true" {
		t.Errorf("the good one: %q", got)
	}
}

// A state is good for one server, caller, method and arguments, on any
// connection and replica, however the arguments are spelled; `_meta` does not
// count.
func TestStateBinding(t *testing.T) {
	o := keyed(stateKey)
	features := func() []server.Feature {
		return []server.Feature{
			server.Tool("drop", "", func(ctx context.Context, in struct {
				Table string `json:"table"`
				N     int    `json:"n,omitzero"`
			},
			) (string, error) {
				a, err := server.Elicit[sure](ctx, "Drop?")
				return fmt.Sprintf("%s %v", in.Table, a.Value.Sure), err
			}),
			server.Prompt("drop", "", func(ctx context.Context, _ struct {
				Table string `json:"table"`
			},
			) (string, error) {
				_, err := server.Elicit[sure](ctx, "Drop?")
				return "", err
			}),
		}
	}
	s := newServer(o, features()...)
	s.Add(asker("other", "Drop?"))
	a := joinAs(t, s, v2607, ada)
	res := a.asked(a.tool("drop", `{"table":"t","n":1}`))
	for name, m := range map[string]message{
		"other arguments": a.retry("drop", `{"table":"u","n":1}`, res, accepted),
		"fewer arguments": a.retry("drop", `{"table":"t"}`, res, accepted),
		"other tool":      a.retry("other", `{"table":"t","n":1}`, res, accepted),
		"other method":    a.call("prompts/get", with(`{"name":"drop","arguments":{"table":"t","n":"1"}}`, res.answers(accepted))),
	} {
		if got := a.fails(m, mcp.CodeInvalidParams); !strings.HasPrefix(got, stale) {
			t.Errorf("%s: %q", name, got)
		}
	}
	b := joinAs(t, s, v2607, bob)
	b.fails(b.retry("drop", `{"table":"t","n":1}`, res, accepted), mcp.CodeInvalidParams)

	foreign := server.New("another", "1", o)
	foreign.Add(features()...)
	f := joinAs(t, foreign, v2607, ada)
	f.fails(f.retry("drop", `{"table":"t","n":1}`, res, accepted), mcp.CodeInvalidParams)

	replica := joinAs(t, newServer(o, features()...), v2607, ada)
	replica.meta = `"com.example/x":1,"progressToken":5`
	for _, arguments := range []string{`{"table":"t","n":1}`, `{ "n" : 1.0, "table" : "\u0074" }`} {
		if got := replica.text(replica.retry("drop", arguments, res, accepted)); got != "t true" {
			t.Errorf("%s: %q", arguments, got)
		}
	}
}

// Keys rotate: the first seals, all open; without keys each process has its own.
func TestStateKeys(t *testing.T) {
	old, fresh := []byte("the old key of a server"), []byte("the new key of a server")
	ask := func(o *server.Options) (*line, toolResult) {
		l := join(t, newServer(o, asker("drop", "Drop?")), v2607)
		return l, l.asked(l.tool("drop", emptyBody))
	}
	before, res := ask(keyed(old))
	rotating, newer := ask(keyed(fresh, old))
	after, _ := ask(keyed(fresh))
	rotating.text(rotating.retry("drop", emptyBody, res, accepted))
	after.text(after.retry("drop", emptyBody, newer, accepted))
	after.fails(after.retry("drop", emptyBody, res, accepted), mcp.CodeInvalidParams)
	before.fails(before.retry("drop", emptyBody, newer, accepted), mcp.CodeInvalidParams)
	_, random := ask(unlimited())
	other, _ := ask(unlimited())
	other.fails(other.retry("drop", emptyBody, random, accepted), mcp.CodeInvalidParams)
	panics(t, "state key", func() { server.New("x", "1", &server.Options{StateKeys: [][]byte{[]byte("short")}}) })
}

// A state expires.
func TestStateExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(unlimited(), asker("drop", "Drop?"))
		l := join(t, s, v2607)
		res := l.asked(l.tool("drop", emptyBody))
		time.Sleep(10 * time.Minute)
		l.text(l.retry("drop", emptyBody, res, accepted))
		time.Sleep(time.Second)
		if got := l.fails(l.retry("drop", emptyBody, res, accepted), mcp.CodeInvalidParams); !strings.HasPrefix(got, stale) {
			t.Errorf("got %q", got)
		}
	})
}

// A state that would be too large is an internal error; one that a client
// sends is refused before it is looked at. Proves: SEC-DOS-1.
func TestStateSize(t *testing.T) {
	s := newServer(unlimited(), server.Tool("big", "", func(ctx context.Context, in struct {
		N int `json:"n"`
	},
	) (string, error) {
		if _, err := server.Once(ctx, "k", func() (string, error) { return strings.Repeat("x", in.N), nil }); err != nil {
			return "", err
		}
		_, err := server.Elicit[sure](ctx, "?")
		return "done", err
	}))
	l := join(t, s, v2607)
	res := l.asked(l.tool("big", `{"n":15000}`))
	l.text(l.retry("big", `{"n":15000}`, res, accepted))
	l.fails(l.tool("big", `{"n":17000}`), mcp.CodeInternalError)
	huge := strings.Repeat("A", 100_000)
	res.RequestState = &huge
	l.fails(l.retry("big", `{"n":15000}`, res, accepted), mcp.CodeInvalidParams)
}

// Answers to what was not asked are ignored, missing ones asked again, wrong
// ones an error; answers without a state are none. Proves: FLOW-ELICIT-P.
func TestStateAnswers(t *testing.T) {
	s := newServer(unlimited(), server.Tool("two", "", func(ctx context.Context, _ none) (string, error) {
		a, errA := server.Elicit[sure](ctx, "A?", &server.AskOptions{Key: "a"})
		b, errB := server.Elicit[sure](ctx, "B?", &server.AskOptions{Key: "b"})
		if err := errors.Join(errA, errB); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %s", a.Action, b.Action), nil
	}))
	l := join(t, s, v2607)
	again := func(res toolResult, responses string) message {
		t.Helper()
		return l.call("tools/call", with(toolParams("two", emptyBody), fmt.Sprintf(`"inputResponses":%s,"requestState":%q`, responses, *res.RequestState)))
	}
	first := l.asked(l.tool("two", emptyBody))
	if len(first.InputRequests) != 2 {
		t.Fatalf("asked %v", first.InputRequests)
	}
	none := l.asked(again(first, `{}`))
	if len(none.InputRequests) != 2 {
		t.Errorf("asked again %v", none.InputRequests)
	}
	half := l.asked(again(first, `{"a":`+accepted+`,"nosuch":{"action":"accept"}}`))
	if len(half.InputRequests) != 1 || half.InputRequests["b"] == nil {
		t.Errorf("asked again %v", half.InputRequests)
	}
	if got := l.text(again(half, `{"b":{"action":"decline"}}`)); got != "accept decline" {
		t.Errorf("got %q", got)
	}
	// The answer of an earlier round stands.
	if got := l.text(again(half, `{"a":{"action":"cancel"},"b":{"action":"cancel"}}`)); got != "accept cancel" {
		t.Errorf("got %q", got)
	}
	for _, bad := range []string{`{"action":"accept","content":{"sure":"maybe"}}`, `{"action":"accept"}`, `{"action":"maybe"}`, `{}`, `5`, `{"action":"accept","content":{"sure":true},"Action":"decline"}`} {
		m := again(half, `{"b":`+bad+`}`)
		if m.Error == nil || m.Error.Code != mcp.CodeInvalidParams {
			t.Errorf("%s gives %s", bad, m.raw)
		}
	}
	// Who knows what will be asked may answer at once: no state is needed for
	// what the request says itself. What nobody asks is ignored.
	if got := l.text(l.call("tools/call", with(toolParams("two", emptyBody), `"inputResponses":{"a":`+accepted+`,"b":`+accepted+`,"nosuch":{}}`))); got != "accept accept" {
		t.Errorf("got %q", got)
	}
	part := l.asked(l.call("tools/call", with(toolParams("two", emptyBody), `"inputResponses":{"b":`+accepted+`}`)))
	if len(part.InputRequests) != 1 || part.InputRequests["a"] == nil {
		t.Errorf("asked %v", part.InputRequests)
	}
	if got := l.text(again(part, `{"a":{"action":"decline"}}`)); got != "decline accept" {
		t.Errorf("got %q", got)
	}
}

// A handler that asks something else on replay is an internal error.
func TestStateNotDeterministic(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context, round int) error{
		"other question under the key": func(ctx context.Context, round int) error {
			_, err := server.Elicit[sure](ctx, fmt.Sprintf("question %d", round), &server.AskOptions{Key: "k"})
			return err
		},
		"other question": func(ctx context.Context, round int) error {
			_, err := server.Elicit[sure](ctx, fmt.Sprintf("question %d", round))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(unlimited(), server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
				return "done", ask(ctx, server.CallFrom(ctx).Round())
			}))
			l := join(t, s, v2607)
			res := l.asked(l.tool("t", emptyBody))
			if got := l.fails(l.retry("t", emptyBody, res, accepted), mcp.CodeInternalError); !strings.Contains(got, "not deterministic") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// The same question twice needs keys, and has two answers with them; in every era.
func TestSameQuestionTwice(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("eras", "1", o)
		s.Add(server.Tool("t", "", func(ctx context.Context, in struct {
			Keys bool `json:"keys"`
		},
		) (string, error) {
			out := ""
			for i := range 2 {
				var o []*server.AskOptions
				if in.Keys {
					o = append(o, &server.AskOptions{Key: fmt.Sprint(i)})
				}
				a, err := server.Elicit[sure](ctx, "Again?", o...)
				if err != nil {
					if !errors.Is(err, server.ErrInputPending) && !errors.Is(err, server.ErrNotCapable) {
						err = mcp.Errorf("%w", err)
					}
					return "", err
				}
				out += fmt.Sprint(a.Value.Sure)
			}
			return out, nil
		}))
		return s
	}
	o := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(sure{true})
	}}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		if era.Version < v2506 {
			return
		}
		got, err := client.Call[string](t.Context(), c, "t", map[string]bool{"keys": true})
		if err != nil || got != "truetrue" {
			t.Errorf("with keys: %q, %v", got, err)
		}
		_, err = client.Call[string](t.Context(), c, "t", map[string]bool{"keys": false})
		if err == nil || !strings.Contains(err.Error(), "give each a Key") {
			t.Errorf("without keys: %v", err)
		}
	})
}

// Questions of several goroutines become one round, and the handler's context
// lives until it returns.
func TestConcurrentAsks(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("eras", "1", o)
		s.Add(server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
			var wg sync.WaitGroup
			errs := make([]error, 5)
			for i := range errs {
				wg.Go(func() { _, errs[i] = server.Elicit[sure](ctx, fmt.Sprintf("question %d", i)) })
			}
			wg.Wait()
			if err := ctx.Err(); err != nil {
				return "", mcp.Errorf("the context ended: %v", err)
			}
			return fmt.Sprintf("round %d", server.CallFrom(ctx).Round()), errors.Join(errs...)
		}))
		return s
	}
	o := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(sure{true})
	}}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		if era.Version < v2506 {
			return
		}
		want := "round 0"
		if era.Version == v2607 {
			want = "round 1"
		}
		if got, err := client.Call[string](t.Context(), c, "t", nil); err != nil || got != want {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// Goroutines that ask side by side may end each other, as those of errgroup do:
// what a run did not ask for that reason is no change of the handler.
func TestAsksEndEachOther(t *testing.T) {
	tool := server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		round := server.CallFrom(ctx).Round()
		_, first := server.Elicit[sure](ctx, "first")
		if round == 0 {
			_, second := server.Elicit[sure](ctx, "second")
			return "", errors.Join(first, second)
		}
		_, third := server.Elicit[sure](ctx, "third")
		if third != nil {
			cancel()
		}
		_, second := server.Elicit[sure](ctx, "second")
		return fmt.Sprint("round ", round), errors.Join(first, second, third)
	})
	l := join(t, newServer(unlimited(), tool), v2607)
	res := l.asked(l.tool("t", emptyBody))
	res = l.asked(l.call("tools/call", with(toolParams("t", emptyBody), res.answers(accepted))))
	if got := l.text(l.call("tools/call", with(toolParams("t", emptyBody), res.answers(accepted)))); got != "round 2" {
		t.Errorf("got %q", got)
	}
}

// A pending question beats whatever the handler returns; a panic beats it.
func TestPendingBeats(t *testing.T) {
	end := func() (string, error) { return "swallowed", nil }
	s := newServer(unlimited(), server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		a, err := server.Elicit[sure](ctx, "Sure?")
		if err == nil {
			return fmt.Sprint(a.Value.Sure), nil
		}
		return end()
	}))
	for name, e := range map[string]func() (string, error){
		"result":  end,
		"error":   func() (string, error) { return "", errors.New("other") },
		"coded":   func() (string, error) { return "", mcp.NewError(-31999, "other") },
		"wrapped": func() (string, error) { return "", fmt.Errorf("outer: %w", server.ErrInputPending) },
	} {
		t.Run(name, func(t *testing.T) {
			end = e
			l := join(t, s, v2607)
			res := l.asked(l.tool("t", emptyBody))
			if res.Content != nil || res.IsError {
				t.Errorf("the result shows: %+v", res)
			}
			if got := l.text(l.retry("t", emptyBody, res, accepted)); got != "true" {
				t.Errorf("got %q", got)
			}
		})
	}
	end = func() (string, error) { panic("beats it") }
	l := join(t, s, v2607)
	if got := l.fails(l.tool("t", emptyBody), mcp.CodeInternalError); !reference.MatchString(got) {
		t.Errorf("got %q", got)
	}
}

// Once runs what it is given once in all rounds; an error is not kept; keys
// are apart. The first run of a request that is sent twice runs twice.
func TestOnce(t *testing.T) {
	ran := map[string]int{}
	fails := 1
	s := newServer(unlimited(), server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		out := ""
		for _, key := range []string{"a", "b"} {
			n, err := server.Once(ctx, key, func() (map[string]int, error) {
				ran[key]++
				return map[string]int{key: ran[key]}, nil
			})
			if err != nil {
				return "", err
			}
			out += fmt.Sprint(n)
		}
		_, err := server.Once(ctx, "fails", func() (int, error) {
			if fails > 0 {
				fails--
				return 0, mcp.Errorf("no luck")
			}
			return 1, nil
		})
		if err != nil {
			return "", err
		}
		for i := range 3 {
			if _, err := server.Elicit[sure](ctx, fmt.Sprintf("question %d", i)); err != nil {
				return "", err
			}
		}
		return out, nil
	}))
	l := join(t, s, v2607)
	if got := l.isError(l.tool("t", emptyBody)); got != "no luck" {
		t.Errorf("got %q", got)
	}
	clear(ran)
	m := l.tool("t", emptyBody)
	for range 3 {
		m = l.retry("t", emptyBody, l.asked(m), accepted)
	}
	if got := l.text(m); got != "map[a:1]map[b:1]" || ran["a"] != 1 || ran["b"] != 1 {
		t.Errorf("%q, ran %v", got, ran)
	}
	l.asked(l.tool("t", emptyBody))
	if ran["a"] != 2 {
		t.Errorf("a new request ran it %d times in all", ran["a"])
	}
}

// A handler that always asks is ended. Middleware sees each round of one flow.
// Proves: SEC-TOOL-7.
func TestMaxRounds(t *testing.T) {
	var rounds []int
	flows := map[string]bool{}
	s := newServer(unlimited(), server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		for i := 0; ; i++ {
			if _, err := server.Elicit[sure](ctx, fmt.Sprintf("question %d", i)); err != nil {
				return "", err
			}
		}
	}))
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			rounds = append(rounds, c.Round())
			flows[c.RoundsID()] = true
			return next(c)
		}
	})
	l := join(t, s, v2607)
	m := l.tool("t", emptyBody)
	for range 8 {
		m = l.retry("t", emptyBody, l.asked(m), accepted)
	}
	if got := l.fails(m, mcp.CodeInternalError); !strings.Contains(got, "8 rounds") {
		t.Errorf("got %q", got)
	}
	if fmt.Sprint(rounds) != "[0 1 2 3 4 5 6 7 8]" || len(flows) != 2 || !flows[""] {
		t.Errorf("rounds %v of flows %v", rounds, flows)
	}
}

// The kinds of questions travel as the revision says, and their answers back.
// Proves: FLOW-SAMPLE-P, FLOW-ROOTS, FLOW-ELICIT-P. Ruling 17.
func TestAskKinds(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("eras", "1", o)
		s.Add(server.Tool("sample", "", func(ctx context.Context, _ none) (string, error) {
			res, err := server.Sample(ctx, &mcp.CreateMessageParams{MaxTokens: 5, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("hi")}}}})
			if errors.Is(err, server.ErrRefused) {
				return "refused", nil
			}
			if err != nil {
				return "", err
			}
			return res.Model, nil
		}), server.Tool("roots", "", func(ctx context.Context, _ none) (string, error) {
			roots, err := server.Roots(ctx)
			if err != nil {
				return "", err
			}
			return roots[0].URI, nil
		}))
		return s
	}
	refuse := false
	o := &client.Options{
		OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			if refuse {
				return nil, client.ErrRefused
			}
			return &mcp.CreateMessageResult{Model: "m1", Role: mcp.RoleAssistant, Content: mcp.Contents{mcp.Text("x")}}, nil
		},
		OnRoots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///w"}}, nil },
	}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		refuse = false
		for name, want := range map[string]string{"sample": "m1", "roots": "file:///w"} {
			if got, err := client.Call[string](t.Context(), c, name, nil); err != nil || got != want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		refuse = true
		got, err := client.Call[string](t.Context(), c, "sample", nil)
		if era.Version == v2607 {
			if !errors.Is(err, client.ErrInputRefused) {
				t.Errorf("refused: %q, %v", got, err)
			}
			return
		}
		if err != nil || got != "refused" {
			t.Errorf("refused: %q, %v", got, err)
		}
	})
}

// What a client answers that is no answer is its own error, not a crash; an
// error of its own is told to the handler. Proves: FLOW-ELICIT-P.
func TestBadAnswersLegacy(t *testing.T) {
	var got error
	s := newServer(unlimited(), server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		_, got = server.Elicit[sure](ctx, "?")
		return "", got
	}))
	l := join(t, s, v2511)
	for _, c := range []struct {
		answer string
		want   error
	}{
		{`"result":{"action":"accept","content":{"sure":1}}`, nil},
		{`"error":{"code":-32603,"message":"broken"}`, server.ErrAskFailed},
		{`"error":{"code":-1,"message":"User rejected"}`, server.ErrRefused},
	} {
		id := l.start("tools/call", toolParams("t", emptyBody))
		q := l.next()
		l.WriteLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID, c.answer))
		l.wait(id)
		if got == nil || c.want != nil && !errors.Is(got, c.want) {
			t.Errorf("%s: the handler got %v", c.answer, got)
		}
	}
}

// A call that is cancelled withdraws its question. Proves: FLOW-CANCEL.
func TestAskWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil, asker("drop", "Drop?"))
		l := join(t, s, v2511)
		id := l.start("tools/call", toolParams("drop", emptyBody))
		q := l.next()
		l.cancel(id)
		if m := l.note("notifications/cancelled"); !strings.Contains(m.raw, `"requestId":`+string(q.ID)) {
			t.Errorf("got %s", m.raw)
		}
		l.Silent()
	})
}

// A state that was issued is taken back, up to the last byte of Limits.MaxState.
func TestStateAtLimit(t *testing.T) {
	s := newServer(unlimited(), server.Tool("big", "", func(ctx context.Context, in struct {
		N int `json:"n"`
	},
	) (string, error) {
		if _, err := server.Once(ctx, "k", func() (string, error) { return strings.Repeat("x", in.N), nil }); err != nil {
			return "", err
		}
		_, err := server.Elicit[sure](ctx, "?")
		return "done", err
	}))
	l := join(t, s, v2607)
	largest := 0
	for n := 16384 - 400; n < 16384; n++ {
		arguments := fmt.Sprintf(`{"n":%d}`, n)
		m := l.tool("big", arguments)
		if m.Error != nil {
			break
		}
		largest = n
		l.text(l.retry("big", arguments, l.asked(m), accepted))
	}
	if largest == 0 || largest > 16384-100 {
		t.Errorf("the largest value has %d bytes", largest)
	}
}

// Limits of states that are switched off refuse none.
func TestStateUnlimited(t *testing.T) {
	for name, limits := range map[string]server.Limits{"size": {MaxState: server.Unlimited}, "expiry": {StateExpiry: server.Unlimited}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := quiet()
				o.Limits = limits
				s := newServer(o, asker("drop", "Drop?"))
				l := join(t, s, v2607)
				res := l.asked(l.tool("drop", emptyBody))
				time.Sleep(time.Minute)
				l.text(l.retry("drop", emptyBody, res, accepted))
			})
		})
	}
}
