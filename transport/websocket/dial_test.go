package websocket_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	coder "github.com/coder/websocket"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
	"github.com/parley-mcp/parley/transport/websocket"
)

// to serves f and returns a dialer for it.
func to(t *testing.T, f http.HandlerFunc) *websocket.Dialer {
	t.Helper()
	s := webtest.Serve(t, f)
	tr := new(http.Transport)
	t.Cleanup(tr.CloseIdleConnections)
	d := websocket.URL("ws" + strings.TrimPrefix(s.URL, "http") + "/ws?token=secret")
	d.Client = &http.Client{Transport: tr}
	return d
}

// dialError dials what has to fail.
func dialError(t *testing.T, d *websocket.Dialer) error {
	t.Helper()
	link, err := d.Dial(within(t), linktest.NewInbox())
	if err == nil {
		_ = link.Close(t.Context())
		t.Fatal("the link was made")
	}
	return err
}

func TestKey(t *testing.T) {
	for url, want := range map[string]string{
		"wss://mcp.example/a%2Fb#y": "wss://mcp.example/a%2Fb",
		"ws://localhost:8080":       "ws://localhost:8080",
		"https://mcp.example/":      "",
		"":                          "",
	} {
		if got := websocket.URL(url).Key(); got != want {
			t.Errorf("the key of %s is %q, want %q", url, got, want)
		}
	}
	// A query may say which server is meant, or be a secret.
	one, two := websocket.URL("ws://localhost/ws?server=secret1").Key(), websocket.URL("ws://localhost/ws?server=secret2").Key()
	if one == two || strings.Contains(one, "secret") {
		t.Errorf("the keys of two servers are %q and %q, want two without what the query says", one, two)
	}
}

func TestURL(t *testing.T) {
	for url, want := range map[string]string{
		"http://mcp.example/":             `begins with "http", not with ws:// or wss://`,
		"mcp.example":                     "not with ws:// or wss://",
		"ws:///ws":                        "names no host",
		"wss://ada:secret@mcp.example/ws": "holds a user or password",
		"ws://mcp.example/%zz?secret":     "cannot be read",
	} {
		err := dialError(t, websocket.URL(url))
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q and no secret", url, err, want)
		}
	}
}

// Proves: SEC-AUTH-1. Neither a status nor a redirect makes a link.
func TestDialStatus(t *testing.T) {
	mcptest.NoLeaks(t)
	tests := []struct {
		name   string
		status int
		want   string
	}{
		{"redirect", 307, "the server answered 307 to https://evil.example/ws, which is another origin; use that URL if you trust it"},
		{"unauthorized", 401, "the server answered 401 Unauthorized; it wants authorization (it said: who are you?)"},
		{"no WebSocket", 200, "the server answered 200 OK; that is no answer of this protocol; check the URL (it said: who are you?)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := to(t, func(w http.ResponseWriter, _ *http.Request) {
				if test.status == http.StatusTemporaryRedirect {
					w.Header().Set("Location", "https://evil.example/ws?token=secret")
				}
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte("who are you?"))
			})
			err := dialError(t, d)
			if e, ok := errors.AsType[*web.StatusError](err); !ok || e.Status != test.status {
				t.Errorf("the error is %v, want a *web.StatusError with %d", err, test.status)
			}
			if !strings.HasSuffix(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error is\n%v, want\n%s", err, test.want)
			}
		})
	}
}

func TestDialErrors(t *testing.T) {
	mcptest.NoLeaks(t)
	gone := to(t, func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") })
	broken := errors.New("no token")
	gone.Header = func(context.Context) (http.Header, error) { return nil, broken }
	if err := dialError(t, gone); !errors.Is(err, broken) {
		t.Errorf("the error is %v, want that of Header", err)
	}
	gone.Header = nil
	gone.URL = "ws://127.0.0.1:1/?token=secret"
	if err := dialError(t, gone); strings.Contains(err.Error(), "secret") {
		t.Errorf("the error tells a secret: %v", err)
	}
}

// A server that speaks something else over WebSocket is found out.
func TestDialWithoutSubprotocol(t *testing.T) {
	mcptest.NoLeaks(t)
	closed := make(chan error, 1)
	d := to(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := coder.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_, _, err = c.Read(r.Context())
		closed <- err
	})
	if err := dialError(t, d); !strings.Contains(err.Error(), `did not choose the subprotocol "mcp"`) {
		t.Errorf("the error is %v", err)
	}
	if err := <-closed; coder.CloseStatus(err) != coder.StatusProtocolError {
		t.Errorf("the server was told %v, want a protocol error", err)
	}
}

func TestDialHeader(t *testing.T) {
	mcptest.NoLeaks(t)
	got := make(chan http.Header, 1)
	_, d := serve(t, mcptest.TransportPeer(), &websocket.Options{})
	d.Client.Transport = seen{d.Client.Transport, got}
	d.Header = func(context.Context) (http.Header, error) {
		return http.Header{
			"authorization":            {"Bearer x"},
			"Sec-WebSocket-Protocol":   {"chat"},
			"Sec-WebSocket-Extensions": {"permessage-deflate"},
		}, nil
	}
	link, err := d.Dial(t.Context(), linktest.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	if err := link.Close(t.Context()); err != nil {
		t.Error(err)
	}
	h := <-got
	for name, want := range map[string]string{
		"Authorization": "Bearer x", "Sec-WebSocket-Protocol": "mcp", "Sec-WebSocket-Extensions": "",
	} {
		if value := h.Get(name); value != want {
			t.Errorf("%s was sent as %q, want %q", name, value, want)
		}
	}
}

// seen keeps the headers of a request.
type seen struct {
	http.RoundTripper
	header chan http.Header
}

func (s seen) RoundTrip(r *http.Request) (*http.Response, error) {
	s.header <- r.Header
	return s.RoundTripper.RoundTrip(r)
}

// What the server says at the end reaches the person, harmless.
func TestClosedByServer(t *testing.T) {
	mcptest.NoLeaks(t)
	for name, test := range map[string]struct {
		code   coder.StatusCode
		reason string
		want   string
	}{
		"in good order": {coder.StatusNormalClosure, "bye", "connection closed by the peer"},
		"with a reason": {coder.StatusPolicyViolation, "no \x1b[2J", `connection closed: the peer closed the WebSocket with status 1008: "no \x1b[2J"`},
		"without":       {4000, "", "connection closed: the peer closed the WebSocket with status 4000"},
	} {
		t.Run(name, func(t *testing.T) {
			d := to(t, func(w http.ResponseWriter, r *http.Request) {
				c, err := coder.Accept(w, r, &coder.AcceptOptions{Subprotocols: []string{"mcp"}})
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.Close(test.code, test.reason)
			})
			in := linktest.NewInbox()
			link, err := d.Dial(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) || err.Error() != test.want {
				t.Errorf("the inbox was told\n%v, want\n%s", err, test.want)
			}
			if err := link.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
