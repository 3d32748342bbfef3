package client_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// seenSessions keeps what an observer is told, in words.
type seenSessions struct{ logtest.List }

func (s *seenSessions) observer() client.Observer {
	return client.Observer{
		SessionOpened: func(i client.SessionInfo) { s.Addf("opened %s", i.Version) },
		SessionEnded: func(i client.SessionInfo, cause error) {
			s.Addf("ended %s by this client %v after %v", i.Version, errors.Is(cause, client.ErrClosed), time.Since(i.Opened).Round(time.Minute))
		},
	}
}

func (s *seenSessions) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := s.All(); !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// An observer is told of a session over every transport, and not of requests that
// belong to none.
func TestObserver(t *testing.T) {
	for _, transportName := range []string{"mem", "stdio", "streamable", "sse", "websocket"} {
		for _, v := range []string{"2024-11-05", "2025-11-25", "2026-07-28"} {
			if transportName == "sse" && v != "2024-11-05" {
				continue
			}
			t.Run(transportName+" "+v, func(t *testing.T) {
				var seen seenSessions
				s := server.New("test", "1", nil)
				o := &client.Options{Versions: []string{v}, Observers: []client.Observer{
					{SessionOpened: func(client.SessionInfo) { panic("oh") }}, seen.observer(),
				}}
				c, err := client.Connect(t.Context(), mcptest.Dialer(t, s, transportName), o)
				if err != nil {
					t.Fatal(err)
				}
				if transportName == "streamable" && v == "2026-07-28" {
					_ = c.Close()
					seen.expect(t)
					return
				}
				seen.expect(t, "opened "+v)
				_ = c.Close()
				seen.expect(t, "opened "+v, "ended "+v+" by this client true after 0s")
			})
		}
	}
}

// A connection that is lost, and the one after it, are two sessions.
func TestObserverReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen seenSessions
		first := server.New("test", "1", nil)
		d := &flaky{Dialer: mem.New(first, nil)}
		c, err := client.Connect(t.Context(), d, &client.Options{Versions: []string{"2025-11-25"}, Observers: []client.Observer{seen.observer()}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		time.Sleep(time.Hour) // of the test's own clock
		d.Dialer = mem.New(server.New("test", "2", nil), nil)
		if err := first.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if err := c.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		seen.expect(t, "opened 2025-11-25", "ended 2025-11-25 by this client false after 1h0m0s", "opened 2025-11-25")
	})
}
