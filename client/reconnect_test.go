package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// Ruling 16: after a broken connection only what is harmless is repeated, on
// another connection, once.
func TestInterrupted(t *testing.T) {
	const list = `{"resultType":"complete","tools":[{"name":"reads","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"writes","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`
	for name, test := range map[string]struct {
		call   func(ctx context.Context, c *client.Client) error
		trust  bool
		deaths int
		want   error
	}{
		"read": {func(ctx context.Context, c *client.Client) error {
			_, err := c.ReadResource(ctx, "a:b", nil)
			return err
		}, false, 1, nil},
		"read, twice": {func(ctx context.Context, c *client.Client) error {
			_, err := c.ReadResource(ctx, "a:b", nil)
			return err
		}, false, 2, transport.ErrInterrupted},
		"tool": {func(ctx context.Context, c *client.Client) error {
			_, err := c.CallTool(ctx, "writes", nil, nil)
			return err
		}, true, 1, transport.ErrInterrupted},
		"harmless, trusted": {func(ctx context.Context, c *client.Client) error {
			_, err := c.CallTool(ctx, "reads", nil, nil)
			return err
		}, true, 1, nil},
		"harmless, not trusted": {func(ctx context.Context, c *client.Client) error {
			_, err := c.CallTool(ctx, "reads", nil, nil)
			return err
		}, false, 1, transport.ErrInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			eras(t, func(t *testing.T, versions []string) {
				synctest.Test(t, func(t *testing.T) {
					left := test.deaths
					fragile := func(result string) func(r *req) (any, error) {
						return func(r *req) (any, error) {
							if left > 0 {
								left--
								r.conn.end()
								return nil, errSilent
							}
							return raw(result), nil
						}
					}
					s := &script{versions: versions, on: map[string]func(*req) (any, error){
						mcp.MethodToolsCall:     fragile(done),
						mcp.MethodResourcesRead: fragile(`{"contents":[{"uri":"a:b","text":"x"}]}`),
						mcp.MethodToolsList:     func(*req) (any, error) { return raw(list), nil },
					}}
					c := connect(t, s, &client.Options{TrustAnnotations: test.trust})
					for _, err := range c.Tools(t.Context()) {
						if err != nil {
							t.Fatal(err)
						}
					}
					err := test.call(t.Context(), c)
					if !errors.Is(err, test.want) {
						t.Errorf("error %v, want %v", err, test.want)
					}
					if err := test.call(t.Context(), c); err != nil {
						t.Errorf("the next call: %v", err)
					}
				})
			})
		})
	}
}

// A server that is gone is dialled again with growing pauses, and the reason
// is told.
func TestReconnectBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: tool(func(*req) (any, error) { return raw(done), nil })}
		d := &flaky{Dialer: mem.New(s, nil)}
		c := dial(t, d, nil)
		d.broken = errors.New("no such host")
		s.last().end()
		synctest.Wait()
		if c.Connected() {
			t.Error("still connected")
		}
		var pauses []time.Duration
		for range 4 {
			start := time.Now()
			if _, err := c.CallTool(t.Context(), "t", nil, nil); !errors.Is(err, d.broken) {
				t.Errorf("error %v", err)
			}
			pauses = append(pauses, time.Since(start))
		}
		for i, p := range pauses {
			if low := 100 * time.Millisecond << i; p < low || p > low*5/4 {
				t.Errorf("pauses %v", pauses)
				break
			}
		}
		d.broken = nil
		if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil || !c.Connected() {
			t.Errorf("error %v", err)
		}
	})
}

type flaky struct {
	transport.Dialer
	broken error
}

func (d *flaky) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	if d.broken != nil {
		return nil, d.broken
	}
	return d.Dialer.Dial(ctx, in)
}

// A request that cannot have been sent is sent again, whatever it is.
func TestNeverSent(t *testing.T) {
	for deaths, want := range map[int]error{1: nil, 2: transport.ErrClosed} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{on: tool(func(*req) (any, error) { return raw(done), nil })}
			d := &deaf{Dialer: mem.New(s, nil), left: deaths}
			c := dial(t, d, nil)
			if _, err := c.CallTool(t.Context(), "t", nil, nil); !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
			if n := len(s.got(mcp.MethodToolsCall)); n != 2-deaths {
				t.Errorf("arrived %d times", n)
			}
		})
	}
}

// deaf dials links that turn out to be closed at a call of a tool.
type deaf struct {
	transport.Dialer
	left int
}

func (d *deaf) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	l, err := d.Dialer.Dial(ctx, in)
	return &deafLink{l, d}, err
}

type deafLink struct {
	transport.Link
	d *deaf
}

func (l *deafLink) Do(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route) (*jsonrpc.Incoming, error) {
	if m.Method == mcp.MethodToolsCall && l.d.left > 0 {
		l.d.left--
		return nil, fmt.Errorf("sending: %w", transport.ErrClosed)
	}
	return l.Link.Do(ctx, m, r)
}
