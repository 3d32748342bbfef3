package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

const shelfMoved = "notifications/shelf/moved"

// hearsShelf is an extension whose notifications are told to heard.
func hearsShelf(heard func(n *client.Notification)) client.Extension {
	return client.Extension{
		ID: shelfID, Revisions: client.AllRevisions,
		Methods:        []client.ExtensionMethod{{Name: "shelf/follow", Revisions: client.Handshake}},
		Notifications:  []client.ExtensionNotification{{Name: shelfMoved, Filter: "shelves", Revisions: client.AllRevisions}},
		OnNotification: func(_ context.Context, n *client.Notification) { heard(n) },
	}
}

// Notifications of an extension come to its handler from our server, in both eras and
// over each transport.
func TestSubscribeExtension(t *testing.T) {
	var mu sync.Mutex
	var servers []*server.Server
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("shelf", "1", o)
		s.Extend(server.Extension{
			ID: shelfID, Revisions: server.AllRevisions,
			Methods: []*server.ExtensionMethod{server.Method("shelf/follow", func(c *server.Call, _ mcp.None) (mcp.None, error) {
				_, err := c.Follow(shelfID, "a")
				return mcp.None{}, err
			}).With(server.MethodOptions{Revisions: server.Handshake})},
			Filters: map[string]server.Filter{"shelves": func(_ *server.Call, value mcp.RawValue) (mcp.RawValue, []string, error) {
				if string(value) != `["a","b"]` {
					return nil, nil, nil
				}
				return mcp.RawValue(`["a"]`), []string{"a"}, nil
			}},
		})
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, s)
		return s
	}
	heard := make(chan *client.Notification, 8)
	o := &client.Options{
		Extensions: []client.Extension{hearsShelf(func(n *client.Notification) { heard <- n })},
		OnNotification: func(_ context.Context, method string, _ mcp.RawValue) {
			t.Errorf("%s came to the client's handler", method)
		},
	}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		var s *client.Subscription
		if era.Stateless {
			if _, err := c.SubscribeExtension(t.Context(), shelfID, map[string]any{"shelves": []string{"c"}}); err == nil || !strings.Contains(err.Error(), "agreed to none") {
				t.Errorf("what the server does not agree to: %v", err)
			}
			var err error
			if s, err = c.SubscribeExtension(t.Context(), shelfID, map[string]any{"shelves": []string{"a", "b"}}); err != nil {
				t.Fatal(err)
			}
			if got := string(s.Acknowledged("shelves")); got != `["a"]` {
				t.Errorf("acknowledged: %s", got)
			}
			if n := <-heard; n.Method != mcp.NotifySubscriptionsAcknowledged || n.Subscription != s || n.Client != c {
				t.Errorf("heard %+v", n)
			}
		} else {
			if _, err := client.CallMethod[mcp.None](t.Context(), c, "shelf/follow", nil); err != nil {
				t.Fatal(err)
			}
			if _, err := c.SubscribeExtension(t.Context(), shelfID, map[string]any{"shelves": 1}); !errors.Is(err, client.ErrNotCapable) {
				t.Errorf("a subscription in a session: %v", err)
			}
		}
		mu.Lock()
		all := slices.Clone(servers)
		mu.Unlock()
		for _, each := range all {
			if err := each.Notify(shelfID, "a", shelfMoved, map[string]string{"shelf": "a"}); err != nil {
				t.Fatal(err)
			}
		}
		if n := <-heard; n.Method != shelfMoved || n.Subscription != s || n.Client != c || !strings.Contains(string(n.Params), `"shelf":"a"`) {
			t.Errorf("heard %+v", n)
		}
		if s != nil {
			if err := s.Close(); err != nil || s.Acknowledged("shelves") != nil {
				t.Errorf("acknowledged after the end: %s, %v", s.Acknowledged("shelves"), err)
			}
		}
	}, func(era mcptest.Era) bool { return !era.Fresh })
}

// What no acknowledged subscription asked for reaches no handler.
func TestForeignNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{caps: `{"extensions":{"com.example/shelf":{},"com.example/b":{}}}`}
		s.on = map[string]func(*req) (any, error){mcp.MethodListen: func(r *req) (any, error) {
			own := `"_meta":{"io.modelcontextprotocol/subscriptionId":` + r.in.ID.String() + `}`
			_ = r.tell(shelfMoved, `{"early":1,`+own+`}`)
			_ = r.tell(mcp.NotifySubscriptionsAcknowledged, `{"notifications":{"shelves":["a"],"boxes":null,"other":1},`+own+`}`)
			for _, params := range []string{
				`{"shelf":"a",` + own + `}`, `{"shelf":"b"}`, `{"shelf":"c","_meta":{"io.modelcontextprotocol/subscriptionId":99}}`,
				`{"shelf":"d","_meta":{"io.modelcontextprotocol/subscriptionId":{}}}`, `{"shelf":"e","_meta":7}`,
			} {
				_ = r.tell(shelfMoved, params)
			}
			_ = r.tell("notifications/boxes", `{"not":"acknowledged",`+own+`}`)
			_ = r.tell("notifications/tasks", `{"of":"no extension",`+own+`}`)
			_ = r.tell(shelfMoved, `{"shelf":"f",`+own+`}`)
			return nil, errSilent
		}}
		var d diary
		shelf := hearsShelf(func(n *client.Notification) {
			text, _, _ := strings.Cut(string(n.Params), `,"_meta"`)
			d.Add(n.Method + " " + text)
			panic("a handler") // must not end the process
		})
		shelf.Notifications = append(shelf.Notifications, client.ExtensionNotification{Name: "notifications/boxes", Filter: "boxes"})
		other := client.Extension{ID: "com.example/b", OnNotification: shelf.OnNotification}
		c := connect(t, s, &client.Options{Extensions: []client.Extension{shelf, other}})
		sub, err := c.SubscribeExtension(t.Context(), shelfID, map[string]any{"shelves": []string{"a"}, "boxes": []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(sub.Acknowledged("shelves")) + string(sub.Acknowledged("boxes")) + string(sub.Acknowledged("other")); got != `["a"]` {
			t.Errorf("acknowledged: %s", got)
		}
		if got := text(s.await(mcp.MethodListen, 1), "notifications"); got != `{"boxes":["a"],"shelves":["a"]}` && got != `{"shelves":["a"],"boxes":["a"]}` {
			t.Errorf("the filter is %s", got)
		}
		want := []string{
			mcp.NotifySubscriptionsAcknowledged + ` {"notifications":{"shelves":["a"],"boxes":null,"other":1}`,
			shelfMoved + ` {"shelf":"a"`, shelfMoved + ` {"shelf":"f"`,
		}
		if got := d.read(); !slices.Equal(got, want) {
			t.Errorf("heard %q, want %q", got, want)
		}
	})
}

// What Options.OnNotification is for: what is of no extension, as it comes. Without it
// a line of the log remains.
func TestUnknownNotification(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			var d diary
			var log strings.Builder
			s := &script{versions: versions}
			o := &client.Options{
				Extensions: []client.Extension{hearsShelf(func(n *client.Notification) { d.Add(n.Method) })},
				Logger:     slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			connect(t, s, o)
			_ = s.last().tell(t.Context(), "notifications/x", `{}`)
			_ = s.last().tell(t.Context(), shelfMoved, `{}`) // of a server that does not offer it
			if got := d.read(); len(got) != 0 {
				t.Errorf("heard %q", got)
			}
			if n := strings.Count(log.String(), "a notification was ignored"); n != 2 {
				t.Errorf("%d lines in the log, want 2: %s", n, log.String())
			}
			o.OnNotification = func(_ context.Context, method string, _ mcp.RawValue) { d.Add(method) }
			connect(t, s, o)
			_ = s.last().tell(t.Context(), "notifications/x", `{}`)
			_ = s.last().tell(t.Context(), shelfMoved, `{}`)
			if got := d.read(); !slices.Equal(got, []string{"notifications/x"}) {
				t.Errorf("heard %q", got)
			}
		})
	})
}

// A subscription of an extension outlives its connection, and the extension is told
// that it was renewed. A refusal ends it.
func TestSubscribeExtensionAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		s := &script{caps: `{"extensions":{"com.example/shelf":{}}}`, on: map[string]func(*req) (any, error){mcp.MethodListen: listen}}
		e := hearsShelf(func(n *client.Notification) { d.Add(n.Method) })
		c := connect(t, s, &client.Options{Retries: 1, Extensions: []client.Extension{e}})
		sub, err := c.SubscribeExtension(t.Context(), shelfID, map[string]any{"shelves": 1})
		if err != nil {
			t.Fatal(err)
		}
		s.last().end()
		time.Sleep(time.Minute)
		if got := d.read(); !slices.Equal(got, []string{mcp.NotifySubscriptionsAcknowledged, mcp.NotifySubscriptionsAcknowledged}) || sub.Acknowledged("shelves") == nil {
			t.Errorf("heard %q", got)
		}
		on := func(_ context.Context, n *client.Notification) { d.Add("own " + n.Method) }
		own, err := c.SubscribeExtension(t.Context(), shelfID, map[string]any{"shelves": 2}, on)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.read(); !slices.Equal(got, []string{"own " + mcp.NotifySubscriptionsAcknowledged}) {
			t.Errorf("a subscription with a handler: heard %q", got)
		}
		if err := own.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.SubscribeExtension(t.Context(), shelfID, map[string]any{"shelves": 3}, on, on); err == nil {
			t.Error("two handlers of one subscription")
		}
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
		for _, code := range []int64{mcp.CodeInvalidParams, mcp.CodeRateLimited} {
			s.on[mcp.MethodListen] = func(*req) (any, error) { return nil, jsonrpc.NewError(code, "no") }
			_, err := c.SubscribeExtension(t.Context(), shelfID, map[string]any{"shelves": 1})
			if refused, ok := errors.AsType[*jsonrpc.Error](err); !ok || refused.Code != code {
				t.Errorf("%d: %v", code, err)
			}
		}
	})
}

// Subscriptions that cannot be are not asked for.
func TestSubscribeExtensionRefused(t *testing.T) {
	s := &script{on: map[string]func(*req) (any, error){mcp.MethodListen: listen}}
	c := connect(t, s, &client.Options{Extensions: []client.Extension{hearsShelf(func(*client.Notification) {})}})
	for want, members := range map[string]map[string]any{
		"no member":        nil,
		`filter "tasks"`:   {"tasks": 1},
		"does not offer":   {"shelves": 1},
		`filter "shelves"`: {"shelves": func() {}},
	} {
		if _, err := c.SubscribeExtension(t.Context(), shelfID, members); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "subscribe to "+shelfID) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
	_, err := c.SubscribeExtension(t.Context(), shelfID, map[string]any{"shelves": 1})
	if _, ok := errors.AsType[*client.NoExtensionError](err); !ok {
		t.Errorf("error is %v", err)
	}
	if n := len(s.got(mcp.MethodListen)); n != 0 {
		t.Errorf("%d subscriptions were sent", n)
	}
}

// Notifications of extensions that cannot be.
func TestNotificationOptions(t *testing.T) {
	first := client.ExtensionNotification{Name: shelfMoved, Filter: "shelves"}
	for i, list := range [][]client.ExtensionNotification{
		{{Filter: "shelves"}},
		{{Name: mcp.NotifyProgress, Filter: "shelves"}},
		{{Name: shelfMoved}},
		{first, first},
		{{Name: shelfMoved, Filter: "resourceSubscriptions"}},
		{{Name: shelfMoved, Revisions: client.AllRevisions}},
	} {
		e := client.Extension{ID: shelfID, Notifications: list}
		if _, err := newExtended(t, e); err == nil {
			t.Errorf("%d: no error", i)
		}
	}
	other := client.Extension{ID: "com.example/b", Notifications: []client.ExtensionNotification{{Name: "notifications/b", Filter: "shelves"}}}
	if _, err := newExtended(t, client.Extension{ID: shelfID, Notifications: []client.ExtensionNotification{first}}, other); err == nil || !strings.Contains(err.Error(), "Filter shelves exists already") {
		t.Errorf("one filter of two extensions: %v", err)
	}
	c, err := newExtended(t, client.Extension{ID: shelfID, Notifications: []client.ExtensionNotification{{Name: shelfMoved, Revisions: client.Handshake}}})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

func newExtended(t *testing.T, list ...client.Extension) (*client.Client, error) {
	t.Helper()
	c, err := client.Connect(t.Context(), mcptest.Dialer(t, server.New("s", "1", nil), "mem"), &client.Options{Extensions: list})
	if err != nil {
		return nil, fmt.Errorf("with extensions: %w", err)
	}
	return c, nil
}
