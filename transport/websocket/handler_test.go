package websocket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
	"github.com/parley-mcp/parley/transport/websocket"
)

// patience ends a test that hangs; nothing else lasts so long, on a busy machine either.
const patience = 5 * time.Minute

// Proves: FLOW-INIT, FLOW-TOOL, FLOW-ELICIT. A real server and a real client
// meet over WebSocket, and the server asks while it works.
func TestEveryRevision(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			mcptest.NoLeaks(t)
			ask := version >= "2025-06-18" // older revisions have no elicitation
			s := server.New("shop", "1.0.0", nil)
			s.Add(server.Tool("buy", "Buys fruit.", func(ctx context.Context, in struct {
				Fruit string `json:"fruit"`
			},
			) (string, error) {
				if !ask {
					return "bought " + in.Fruit, nil
				}
				type sure struct {
					Sure bool `json:"sure" desc:"Really?"`
				}
				answer, err := server.Elicit[sure](ctx, "Buy "+in.Fruit+"?")
				if err != nil || !answer.Accepted() {
					return "not bought", err
				}
				return "bought " + in.Fruit, nil
			}))
			_, d := serve(t, s, nil)
			o := &client.Options{Versions: []string{version}}
			if ask {
				o.OnElicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
					return client.Accept(map[string]bool{"sure": true})
				}
			}
			c, err := client.Connect(t.Context(), d, o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := client.Call[string](t.Context(), c, "buy", map[string]string{"fruit": "apples"})
			if err != nil || got != "bought apples" {
				t.Errorf("the tool said %q, error %v", got, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// handshake is a request that becomes a WebSocket.
func handshake(tb testing.TB, url string) *http.Request {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http"+strings.TrimPrefix(url, "ws"), http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": "mcp",
	} {
		r.Header.Set(name, value)
	}
	return r
}

// Proves: SEC-HTTP-1. Who may not come is told before there is a WebSocket.
func TestHandshake(t *testing.T) {
	mcptest.NoLeaks(t)
	_, d := serve(t, mcptest.TransportPeer(), &websocket.Options{Access: web.Access{Origins: []string{"https://app.example"}}})
	own := "http" + strings.TrimSuffix(strings.TrimPrefix(d.URL, "ws"), "/ws")
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	tests := []struct {
		name   string
		change func(*http.Request)
		status int
		body   string
	}{
		{"as it should be", func(*http.Request) {}, 101, ""},
		{"own page", set("Origin", own), 101, ""},
		{"listed page", set("Origin", "https://app.example"), 101, ""},
		{"foreign page", set("Origin", "https://evil.example"), 403, `Origin \"https://evil.example\" is not allowed here`},
		{"page of no origin", set("Origin", "null"), 403, `Origin \"null\" is not allowed here`},
		{"rebound name", func(r *http.Request) {
			r.Host = "evil.example"
			r.Header.Set("Origin", "http://evil.example")
		}, 403, `Host \"evil.example\" is not allowed here`},
		{"no subprotocol", func(r *http.Request) { r.Header.Del("Sec-WebSocket-Protocol") }, 400, `offer the subprotocol \"mcp\"`},
		{"another subprotocol", set("Sec-WebSocket-Protocol", "chat, mcp2"), 400, `offer the subprotocol \"mcp\"`},
		{"one of several subprotocols", set("Sec-WebSocket-Protocol", "chat, mcp"), 101, ""},
		{"no WebSocket", func(r *http.Request) { r.Header = http.Header{} }, 426, "ws:// or wss:// URL"},
		{"another version", set("Sec-WebSocket-Version", "12"), 400, ""},
		{"POST", func(r *http.Request) { r.Method = http.MethodPost }, 405, ""},
	}
	tr := new(http.Transport)
	defer tr.CloseIdleConnections()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := handshake(t, d.URL)
			test.change(r)
			answer, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != test.status {
				t.Fatalf("status %d, want %d", answer.StatusCode, test.status)
			}
			if test.status == http.StatusSwitchingProtocols {
				if got := answer.Header.Get("Sec-WebSocket-Extensions"); got != "" {
					t.Errorf("extensions %q were agreed on, want none", got)
				}
				return
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil || !strings.Contains(string(body), test.body) {
				t.Errorf("body %s, error %v, want %q in it", body, err, test.body)
			}
		})
	}
}

// A ResponseWriter that cannot be taken over must not be told that it was.
func TestHandshakeWithoutHijacker(t *testing.T) {
	w := httptest.NewRecorder()
	r := handshake(t, "ws://localhost/ws")
	websocket.NewHandler(mcptest.TransportPeer(), nil).ServeHTTP(w, r)
	if w.Code != http.StatusNotImplemented {
		t.Errorf("status %d, want 501", w.Code)
	}
}

// open dials without the checks of our own client.
func open(tb testing.TB, d *websocket.Dialer, header http.Header) (*coder.Conn, *http.Response, error) {
	tb.Helper()
	c, answer, err := coder.Dial(tb.Context(), d.URL, &coder.DialOptions{
		HTTPClient: d.Client, HTTPHeader: header, Subprotocols: []string{websocket.Subprotocol},
	})
	if err == nil {
		tb.Cleanup(func() { _ = c.CloseNow() })
	}
	return c, answer, err
}

// must is open for what has to work.
func must(tb testing.TB, d *websocket.Dialer) *coder.Conn {
	tb.Helper()
	c, _, err := open(tb, d, nil) //nolint:bodyclose // it is the connection
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// within is a context for one step of a test.
func within(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// say sends a text message.
func say(tb testing.TB, c *coder.Conn, text string) {
	tb.Helper()
	if err := c.Write(within(tb), coder.MessageText, []byte(text)); err != nil {
		tb.Fatal(err)
	}
}

// hear reads a text message.
func hear(tb testing.TB, c *coder.Conn) string {
	tb.Helper()
	kind, data, err := c.Read(within(tb))
	if err != nil || kind != coder.MessageText {
		tb.Fatalf("reading: kind %v, error %v", kind, err)
	}
	return string(data)
}

// echo sees whether the connection lives.
func echo(tb testing.TB, c *coder.Conn, id int) {
	tb.Helper()
	say(tb, c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"kit/echo","params":{}}`, id))
	if got, want := hear(tb, c), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id); got != want {
		tb.Fatalf("the answer is %s, want %s", got, want)
	}
}

// Proves: SEC-DOS-1.
func TestMaxConns(t *testing.T) {
	mcptest.NoLeaks(t)
	who := func(r *http.Request) *principal.Principal {
		return &principal.Principal{Subject: r.Header.Get("X-Who")}
	}
	_, d := serve(t, mcptest.TransportPeer(), &websocket.Options{
		Access: web.Access{Principal: who}, MaxConns: 5, MaxConnsPerPrincipal: 2, MaxConnsPerAddress: 1,
	})
	as := func(name string) http.Header { return http.Header{"X-Who": {name}} }
	refused := func(name, want string) {
		t.Helper()
		_, answer, err := open(t, d, as(name))
		if err == nil {
			t.Fatal("a connection over the limit was let in")
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), want) {
			t.Errorf("status %d, body %s, want 429 and %q", answer.StatusCode, body, want)
		}
		if got := answer.Header.Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After is %q, want 1", got)
		}
	}
	var conns []*coder.Conn
	for _, name := range []string{"ada", "ada", "bob", "", "eve"} {
		if name == "bob" {
			refused("ada", "you have 2 connections, which is the most of one caller (MaxConnsPerPrincipal); close one first")
		}
		if name == "eve" {
			refused("", "MaxConnsPerAddress")
		}
		c, _, err := open(t, d, as(name)) //nolint:bodyclose // it is the connection
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	refused("eve", "this server has 5 connections, which is the most it takes (MaxConns); try again later")
	if err := conns[0].Close(coder.StatusNormalClosure, ""); err != nil {
		t.Fatal(err)
	}
	// The server counts a connection out a moment after it has agreed to its end.
	for ctx := within(t); ; {
		c, _, err := open(t, d, as("ada")) //nolint:bodyclose // it is the connection
		if err == nil {
			echo(t, c, 1)
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("there is no room after a connection has ended: %v", err)
		}
	}
}

// Anonymous callers leave a tenth of the connections to those with a name, and
// a connection that is open goes on.
//
// Proves: SEC-DOS-1.
func TestAttackFullOfConns(t *testing.T) {
	mcptest.NoLeaks(t)
	who := func(r *http.Request) *principal.Principal {
		return &principal.Principal{Subject: r.Header.Get("X-Who")}
	}
	_, d := serve(t, mcptest.TransportPeer(), &websocket.Options{Access: web.Access{Principal: who}, MaxConns: 10})
	try := func(name, refusal string) *coder.Conn {
		t.Helper()
		c, answer, err := open(t, d, http.Header{"X-Who": {name}})
		if err == nil {
			return c
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		if refusal == "" || answer.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), refusal) {
			t.Fatalf("status %d, body %s, want 429 and %q", answer.StatusCode, body, refusal)
		}
		return nil
	}
	for i := range 9 {
		echo(t, try("", ""), i)
	}
	first := try("", "9 connections, which is the most of them together (nine tenths of MaxConns)")
	ada := try("ada", "")
	if first != nil || try("bob", "10 connections, which is the most it takes (MaxConns)") != nil {
		t.Error("a connection over the limit was let in")
	}
	echo(t, ada, 1)
}

// The numbers are those of the one table. Proves: Ruling 26.
func TestCodes(t *testing.T) {
	mcptest.NoLeaks(t)
	h, d := serve(t, mcptest.TransportPeer(), &websocket.Options{MaxConns: 1})
	must(t, d)
	code := func() int64 {
		_, answer, err := open(t, d, nil)
		if err == nil {
			t.Fatal("the connection was let in")
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		m, err := jsonrpc.Parse(body, jsonrpc.Limits{})
		if err != nil {
			t.Fatalf("body %s: %v", body, err)
		}
		return m.Error.Code
	}
	if got := code(); got != mcp.CodeTooManyInFlight {
		t.Errorf("code %d for too many, want %d", got, mcp.CodeTooManyInFlight)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := code(); got != mcp.CodeShuttingDown {
		t.Errorf("code %d after Shutdown, want %d", got, mcp.CodeShuttingDown)
	}
}

// status reads until the server closes and returns how.
func status(tb testing.TB, c *coder.Conn) coder.CloseError {
	tb.Helper()
	for {
		_, _, err := c.Read(within(tb))
		if err == nil {
			continue
		}
		closed, ok := errors.AsType[coder.CloseError](err)
		if !ok {
			tb.Fatalf("the connection ended with %v, want a close frame", err)
		}
		return closed
	}
}

// Proves: SEC-DOS-1. Each close says why.
func TestCloses(t *testing.T) {
	mcptest.NoLeaks(t)
	_, d := serve(t, mcptest.TransportPeer(), &websocket.Options{MaxMessage: 1000})
	tests := []struct {
		name   string
		kind   coder.MessageType
		length int
		want   coder.StatusCode
	}{
		{"binary", coder.MessageBinary, 10, coder.StatusUnsupportedData},
		{"far too long", coder.MessageText, 1_000_000, coder.StatusMessageTooBig},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := must(t, d)
			echo(t, c, 1)
			wrote := make(chan error, 1)
			go func() { wrote <- c.Write(within(t), test.kind, bytes.Repeat([]byte{' '}, test.length)) }()
			if got := status(t, c); got.Code != test.want {
				t.Errorf("the server closed with %v, want %v", got, test.want)
			}
			<-wrote //nolint:errcheck // the server may have gone before it had all
		})
	}
}

// Proves: SEC-DOS-1. One long message is an error like others: it can be
// answered, and what follows is served.
func TestTooLong(t *testing.T) {
	mcptest.NoLeaks(t)
	_, d := serve(t, mcptest.TransportPeer(), &websocket.Options{MaxMessage: 1000})
	c := must(t, d)
	for _, length := range []int{1001, 2000, 15_000} {
		head := `{"jsonrpc":"2.0","id":7,"method":"kit/echo","params":{"pad":"`
		say(t, c, head+strings.Repeat("x", length-len(head)-3)+`"}}`)
		want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32700,"message":"message exceeds the limit of 1000 bytes; send less at a time"}}`
		if got := hear(t, c); got != want {
			t.Errorf("%d bytes are answered with %s, want %s", length, got, want)
		}
	}
	echo(t, c, 8)
	exact := `{"jsonrpc":"2.0","id":9,"method":"kit/echo","params":{}}`
	say(t, c, exact+strings.Repeat(" ", 1000-len(exact)))
	if got, want := hear(t, c), `{"jsonrpc":"2.0","id":9,"result":{}}`; got != want {
		t.Errorf("a message of exactly the limit is answered with %s, want %s", got, want)
	}
}

// What is negative is no limit, and no time at all is the default.
func TestNoLimits(t *testing.T) {
	mcptest.NoLeaks(t)
	_, d := serve(t, mcptest.TransportPeer(), &websocket.Options{MaxMessage: -1, WriteStall: -1})
	d.MaxResponse, d.WriteStall = -1, -1
	link, err := d.Dial(t.Context(), linktest.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close(context.Background())
	params := jsonrpc.JSON(map[string]string{"pad": strings.Repeat("x", 5<<20)})
	answer, err := link.Do(within(t), &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "kit/echo", Params: params}, transport.Route{})
	if err != nil || answer.Error != nil {
		t.Errorf("a long message is answered %v, error %v", answer, err)
	}
}

// Proves: FLOW-SHUTDOWN.
func TestShutdown(t *testing.T) {
	mcptest.NoLeaks(t)
	h, d := serve(t, mcptest.TransportPeer(), nil)
	idle, busy := must(t, d), must(t, d)
	echo(t, idle, 1)
	say(t, busy, `{"jsonrpc":"2.0","id":1,"method":"kit/wait"}`)
	if got, want := hear(t, busy), `{"jsonrpc":"2.0","method":"kit/waiting"}`; got != want {
		t.Fatalf("%s arrived, want %s", got, want)
	}
	done := make(chan error, 1)
	go func() { done <- h.Shutdown(within(t)) }()
	for name, c := range map[string]*coder.Conn{"idle": idle, "busy": busy} {
		want := coder.CloseError{Code: coder.StatusGoingAway, Reason: "the server is shutting down"}
		if got := status(t, c); got != want {
			t.Errorf("the %s connection was closed with %v, want %v", name, got, want)
		}
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// Proves: FLOW-SHUTDOWN. A client that does not agree to the end gets no say.
func TestShutdownCutsOff(t *testing.T) {
	mcptest.NoLeaks(t)
	h, d := serve(t, mcptest.TransportPeer(), nil)
	must(t, d) // nobody reads here
	late := errors.New("no time left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := h.Shutdown(ctx); err != nil && !errors.Is(err, late) {
		t.Errorf("Shutdown: %v, want its context's cause", err)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Errorf("the second Shutdown: %v", err)
	}
}

func TestOpenRefused(t *testing.T) {
	mcptest.NoLeaks(t)
	for name, test := range map[string]struct {
		err  error
		want coder.CloseError
	}{
		"for all to know": {
			fmt.Errorf("opening: %w", jsonrpc.NewError(1, "closed on %s", strings.Repeat("ä", 100))),
			coder.CloseError{Code: coder.StatusPolicyViolation, Reason: "closed on " + strings.Repeat("ä", 56)},
		},
		"an internal reason": {errors.New("secret"), coder.CloseError{Code: coder.StatusNormalClosure}},
	} {
		t.Run(name, func(t *testing.T) {
			_, d := serve(t, &linktest.Handler{OnOpen: func(transport.Conn) error { return test.err }}, nil)
			if got := status(t, must(t, d)); got != test.want {
				t.Errorf("the connection was closed with %v, want %v", got, test.want)
			}
		})
	}
}

// A handler that panics takes its connection with it, and nothing else.
func TestOpenPanics(t *testing.T) {
	mcptest.NoLeaks(t)
	endpoint := websocket.NewHandler(&linktest.Handler{OnOpen: func(transport.Conn) error { panic("no reason") }}, nil)
	s := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() == nil {
				t.Error("the panic was hidden")
			}
		}()
		endpoint.ServeHTTP(w, r)
	}))
	c := must(t, websocket.URL("ws"+strings.TrimPrefix(s.URL, "http")))
	if got := status(t, c); got.Code != coder.StatusNormalClosure {
		t.Errorf("the connection was closed with %v", got)
	}
	if err := endpoint.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPrincipal(t *testing.T) {
	mcptest.NoLeaks(t)
	who := make(chan *principal.Principal, 1)
	_, d := serve(t, &linktest.Handler{Handler: mcptest.TransportPeer(), OnOpen: func(c transport.Conn) error {
		who <- c.Principal()
		return nil
	}}, nil)
	must(t, d)
	if got := <-who; got.Identity() != "" || got.Remote != "127.0.0.1" {
		t.Errorf("the caller is %+v, want the anonymous one at 127.0.0.1", got)
	}
}

// Proves: MSG-1, SEC-DOS-1. Whatever text a stranger sends, the server answers
// it or not, and lives.
func FuzzText(f *testing.F) {
	for _, text := range []string{
		"", "{}", "[]", " \n", "\xff", `{"jsonrpc":"2.0","method":"x"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		strings.Repeat("[", 200), `[{"jsonrpc":"2.0","id":1,"method":"kit/echo"}]`, strings.Repeat("x", 300),
	} {
		f.Add([]byte(text))
	}
	endpoint := websocket.NewHandler(mcptest.TransportPeer(), &websocket.Options{MaxMessage: 256})
	s := webtest.Serve(f, endpoint)
	webtest.ShutDown(f, endpoint.Shutdown)
	d := websocket.URL("ws" + strings.TrimPrefix(s.URL, "http"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4000 || bytes.Contains(text, []byte("kit/")) {
			t.Skip("beyond 16 times the limit, or an order to the peer of the kit")
		}
		c := must(t, d)
		if err := c.Write(within(t), coder.MessageText, text); err != nil {
			t.Fatal(err)
		}
		const alive = `{"jsonrpc":"2.0","id":"alive","method":"kit/echo","params":{}}`
		say(t, c, alive)
		for {
			m := hear(t, c)
			if _, err := jsonrpc.Parse([]byte(m), jsonrpc.Limits{}); err != nil {
				t.Fatalf("%q is answered with %q, which is no message: %v", text, m, err)
			}
			if strings.Contains(m, `"alive"`) && strings.Contains(m, "result") {
				return
			}
		}
	})
}
