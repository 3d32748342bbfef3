package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

// With OnDisconnect the end of a connection is told once, calls under way and
// later ones fail at once, also those that would be repeated, and there is no
// other connection.
func TestOnDisconnect(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c *client.Client) error{
		"tool": func(ctx context.Context, c *client.Client) error {
			_, err := c.CallTool(ctx, "t", nil, nil)
			return err
		},
		"read": func(ctx context.Context, c *client.Client) error {
			_, err := c.ReadResource(ctx, "a:b", nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			eras(t, func(t *testing.T, versions []string) {
				synctest.Test(t, func(t *testing.T) {
					dies := func(r *req) (any, error) {
						r.conn.end()
						return nil, errSilent
					}
					s := &script{versions: versions, on: map[string]func(*req) (any, error){
						mcp.MethodToolsCall: dies, mcp.MethodResourcesRead: dies,
					}}
					d := &counted{flaky: flaky{Dialer: mem.New(s, nil)}}
					var told []error
					c := dial(t, d, &client.Options{
						OnDisconnect:   func(err error) { told = append(told, err) },
						OnToolsChanged: func(context.Context) {},
					})
					start := time.Now()
					if err := call(t.Context(), c); err == nil {
						t.Error("the call on the connection that ended has no error")
					}
					if err := call(t.Context(), c); !errors.Is(err, client.ErrDisconnected) {
						t.Errorf("the next call: %v, want ErrDisconnected", err)
					}
					if took := time.Since(start); took > time.Second {
						t.Errorf("the calls took %v", took)
					}
					time.Sleep(time.Hour) // fake time: nothing is tried later either
					synctest.Wait()
					if len(told) != 1 || told[0] == nil || d.dials != 1 || c.Connected() {
						t.Errorf("told %v, dialled %d times, connected %t", told, d.dials, c.Connected())
					}
				})
			})
		})
	}
}

// A client that is closed is told nothing.
func TestOnDisconnectNotOfClose(t *testing.T) {
	s := server.New("test", "1", nil)
	told := false
	c, err := client.Connect(t.Context(), mem.New(s, nil), &client.Options{OnDisconnect: func(error) { told = true }})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil || told {
		t.Errorf("closed with %v, told %t", err, told)
	}
}

// A session over HTTP that the server has forgotten is opened again all the same.
func TestOnDisconnectOverHTTP(t *testing.T) {
	var current atomic.Pointer[streamable.Handler]
	serve := func() {
		s := server.New("test", "1", nil)
		s.Add(server.Tool("hi", "Greets.", func(context.Context, mcp.None) (string, error) { return "hello", nil }))
		current.Store(streamable.NewHandler(s, nil))
	}
	serve()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.Load().ServeHTTP(w, r) }))
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	c := dial(t, streamable.URL(ts.URL), &client.Options{
		Versions:     []string{newest},
		OnDisconnect: func(err error) { t.Errorf("told %v", err) },
	})
	serve() // it knows no session
	if _, err := c.CallTool(t.Context(), "hi", nil, nil); err != nil {
		t.Error(err)
	}
}

// The requests with which a connection begins have a limit of their own.
func TestConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{versions: []string{"2025-11-25"}, on: map[string]func(*req) (any, error){
			mcp.MethodInitialize: func(*req) (any, error) { return nil, errSilent },
		}}
		start := time.Now()
		_, err := client.Connect(t.Context(), mem.New(s, nil), &client.Options{
			Versions: []string{"2025-11-25"}, CallTimeout: time.Second, ConnectTimeout: 3 * time.Minute,
		})
		if took := time.Since(start); !errors.Is(err, client.ErrTimeout) || took < 3*time.Minute || took > 4*time.Minute {
			t.Errorf("error %v after %v, want ErrTimeout after 3 min", err, took)
		}
	})
}

// counted counts how often it dials.
type counted struct {
	flaky
	dials int
}

func (d *counted) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	d.dials++
	return d.flaky.Dial(ctx, in)
}

// A call on a connection that ended says so, also when the client is closed because
// of that before the call returns.
func TestOnDisconnectThenClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodToolsCall: func(r *req) (any, error) {
			r.conn.end()
			return nil, errSilent
		}}}
		closes, closed := make(chan struct{}, 1), make(chan struct{})
		c := dial(t, mem.New(s, nil), &client.Options{OnDisconnect: func(error) { closes <- struct{}{} }})
		go func() {
			defer close(closed)
			<-closes
			_ = c.Close()
		}()
		if _, err := c.CallTool(t.Context(), "t", nil, nil); !errors.Is(err, transport.ErrInterrupted) {
			t.Errorf("error %v, want ErrInterrupted", err)
		}
		<-closed
	})
}
