package host_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// What begins while a person signs in waits for the server as long as what has begun
// before: a run's first turn, with and without another server that is ready, Settle, and
// a limit of the caller of Client.
func TestBeginsDuringSignIn(t *testing.T) {
	ran := 0
	firstTurn := func(t *testing.T, h *host.Host) int {
		m := &scripted{}
		if _, _, err := begin(t, h, m).Ask(t.Context(), "please"); err != nil {
			t.Error(err)
			return -1
		}
		return len(m.requests()[0].Tools)
	}
	for name, test := range map[string]struct {
		ready bool // another server is
		tools func(t *testing.T, h *host.Host) int
		want  int
	}{
		"first turn":         {true, firstTurn, 2},
		"first turn, no one": {false, firstTurn, 1},
		"settle": {true, func(t *testing.T, h *host.Host) int {
			return len(h.Settle(t.Context(), time.Second).Tools)
		}, 2},
		"client": {false, func(t *testing.T, h *host.Host) int {
			ctx, cancel := transport.WithTimeout(t.Context(), time.Second, errors.New("waited too long"))
			defer cancel()
			c, err := h.Client(ctx, "one")
			if err != nil {
				t.Error(err)
				return -1
			}
			tools := 0
			for _, err := range c.Tools(ctx) {
				if err != nil {
					t.Error(err)
					return -1
				}
				tools++
			}
			return tools
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, &host.Options{MaxTime: time.Minute}, nil)
				if test.ready {
					add(t, h, host.Server{Name: "two"}, serverOf(t, echo("echo", &ran)), nil)
				}
				if err := h.Add(host.Server{Name: "one", Dialer: signIn{mem.New(serverOf(t, echo("echo", &ran)), nil)}}); err != nil {
					t.Fatal(err)
				}
				h.Catalog()
				time.Sleep(10 * time.Minute) // the person is asked, for an hour
				if got := test.tools(t, h); got != test.want {
					t.Errorf("there were %d tools, want %d", got, test.want)
				}
			})
		})
	}
}

// The time of a run that begins while the person is asked in another session counts from
// the answer on.
func TestRunBeginsDuringQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		h := newHost(t, &host.Options{Attended: true, MaxTime: 30 * time.Second}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
		asking := begin(t, h, &scripted{turns: []turn{use("one__echo", `{"text":""}`)}})
		attend(t, asking, func(*host.Question) host.Answer {
			time.Sleep(time.Hour)
			return host.Answer{Action: host.Approve}
		})
		if err := asking.Send(t.Context(), host.Input{Text: "please"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		start := time.Now()
		for begins, test := range []struct {
			thinks time.Duration // the model of the run
			want   bool
		}{
			{58*time.Minute + 50*time.Second, true}, // ends before the answer
			{30 * time.Second, true},                // 20 s after it
			{40 * time.Second, false},
		} {
			m := &scripted{turns: []turn{func(*host.Request) []host.Piece {
				time.Sleep(test.thinks)
				return say("thought")
			}}}
			_, _, err := begin(t, h, m).Ask(t.Context(), "please")
			var spent *host.BudgetError
			if (err == nil) != test.want || err != nil && (!errors.As(err, &spent) || spent.What != "time") {
				t.Errorf("run %d ended after %v with %v", begins, time.Since(start), err)
			}
		}
	})
}

// A server that is used to make the connection to another: the wait for the one, in the
// context of the other's start, ends though that context is what asks people.
func TestClientWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil, nil)
		key := server.Tool("key", "Gives a key.", func(context.Context, struct{}) (string, error) { return "k", nil })
		add(t, h, host.Server{Name: "keys"}, serverOf(t, key), nil)
		add(t, h, host.Server{Name: "one"}, serverOf(t, key), func(ctx context.Context, _ int) error {
			defer transport.PauseTimeouts(ctx)()
			c, err := h.Client(ctx, "keys")
			if err != nil {
				return err
			}
			_, err = c.CallTool(ctx, "key", nil, nil)
			return err
		})
		if n := len(h.Settle(t.Context(), time.Second).Tools); n != 2 {
			t.Errorf("%d tools, want 2", n)
		}
	})
}
