package client_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A subscription goes on in the session that takes the place of a lost one, although the server
// says so by an error of the protocol, and the log has one line about it.
//
// Proves: ruling 40.
func TestSubscriptionOfALostSession(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-06-18", newest} {
		t.Run(version, func(t *testing.T) {
			url, restart := restarting(t)
			var log logtest.Log
			updates := make(chan struct{}, 16)
			c := dial(t, streamable.URL(url), &client.Options{
				Versions: []string{version}, Logger: log.Logger(),
				OnResourceUpdated: func(context.Context, string) { updates <- struct{}{} },
			})
			s, err := c.Subscribe(t.Context(), "memo://now")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			restart()
			for range 2 { // a change may have been missed; then there is one
				if _, err := c.CallTool(t.Context(), "touch", nil, nil); err != nil {
					t.Fatal(err)
				}
				<-updates
			}
			if n := strings.Count(log.String(), "the connection to the server has ended"); n != 1 {
				t.Errorf("the log says so %d times:\n%s", n, log.String())
			}
		})
	}
}

// restarting serves a resource, and a tool that changes it; restart loses the sessions.
func restarting(t *testing.T) (url string, restart func()) {
	t.Helper()
	var current atomic.Pointer[streamable.Handler]
	restart = func() {
		s := server.New("test", "1", nil)
		s.Add(
			server.Text("memo://now", "now", "text"),
			server.Tool("touch", "Changes it.", func(context.Context, mcp.None) (string, error) {
				s.ResourceUpdated("memo://now")
				return "touched", nil
			}),
		)
		if former := current.Swap(streamable.NewHandler(s, nil)); former != nil {
			_ = former.Shutdown(context.Background()) // nothing is under way but streams
		}
	}
	restart()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.Load().ServeHTTP(w, r) }))
	t.Cleanup(func() {
		_ = current.Load().Shutdown(context.Background())
		ts.CloseClientConnections()
		ts.Close()
	})
	return ts.URL, restart
}

// A subscription that begins while observers are told of the end of a lost session is made in the next one.
//
// Proves: ruling 40.
func TestSubscriptionWhileASessionIsLost(t *testing.T) {
	url, restart := restarting(t)
	watches := make(watchLog, 16)
	subscribed := make(chan error, 1)
	var c *client.Client
	c = dial(t, streamable.URL(url), &client.Options{
		Versions: []string{newest}, Logger: slog.New(watches),
		Observers: []client.Observer{{SessionEnded: func(client.SessionInfo, error) {
			if len(subscribed) > 0 { // it is the end of the test
				return
			}
			go func() {
				s, err := c.Subscribe(context.Background(), "memo://now")
				if err == nil {
					err = s.Close()
				}
				subscribed <- err
			}()
			<-watches // it has met the link that is over
		}}},
	})
	restart()
	if _, err := c.CallTool(t.Context(), "touch", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-subscribed; err != nil {
		t.Error(err)
	}
	subscribed <- nil
}

// A watchLog is told of watches that ended or will be renewed.
type watchLog chan struct{}

func (w watchLog) Enabled(context.Context, slog.Level) bool { return true }

func (w watchLog) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "a watch ") {
		w <- struct{}{}
	}
	return nil
}

func (w watchLog) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w watchLog) WithGroup(string) slog.Handler      { return w }
