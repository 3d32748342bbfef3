package flows_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
	"github.com/parley-mcp/parley/transport/websocket"
)

// scopeHeader names what was granted, in place of a token.
const scopeHeader = "X-Test-Scopes"

// lifeHeader names one of lives, contexts by name: with it ends what a GET has opened.
const lifeHeader = "X-Test-Life"

var lives sync.Map

// authenticated is authentication in front of an endpoint: who calls, as
// "subject" or "subject/client", and with which scopes, is in headers.
func authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject, app, _ := strings.Cut(r.Header.Get(userHeader), "/")
		if subject == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		who := &principal.Principal{
			Issuer: "https://as.example", Subject: subject, Client: app, Scopes: strings.Fields(r.Header.Get(scopeHeader)),
			Challenge: func(scopes []string) string {
				return fmt.Sprintf("Bearer error=%q, scope=%q", "insufficient_scope", strings.Join(scopes, " "))
			},
		}
		ctx := principal.NewContext(r.Context(), who)
		if life, ok := lives.Load(r.Header.Get(lifeHeader)); ok && r.Method == http.MethodGet {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(life.(context.Context), cancel)()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// newGuarded is newSite behind such authentication.
func newGuarded(t *testing.T, o *server.Options, features ...server.Feature) *site {
	t.Helper()
	mcptest.NoLeaks(t)
	app := server.New("guarded", "1", o)
	app.Add(features...)
	endpoint := streamable.NewHandler(app, nil)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	s := webtest.Serve(t, authenticated(endpoint))
	webtest.Abort(t, endpoint.Shutdown, app.Shutdown)
	return &site{t, s.URL, app}
}

// others are everybody but ada with client c1.
var others = []string{"eve/c1", "ada/c2", "ada", "https://as.example ada c1"}

// The session of one caller is none for another, whatever is tried with it:
// its requests, its streams, its subscriptions, its end. The same person with
// another client is another. Proves: R11, SEC-AUTH-1, SEC-HTTP-1.
func TestSessionOfAnother(t *testing.T) {
	s := newGuarded(t, quiet(), echoTool(), server.Text("x:a", "a", ""))
	const ada = "ada/c1"
	session := s.open(ada)
	for _, user := range others {
		s.call(user, session).has(http.StatusNotFound)
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x:a"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":"x:a"}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`,
			`{"jsonrpc":"2.0","id":1,"result":{}}`, // an answer to what the server asks ada
		} {
			s.do(http.MethodPost, body, userHeader, user, "Mcp-Session-Id", session).has(http.StatusNotFound)
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			s.do(method, "", userHeader, user, "Mcp-Session-Id", session).has(http.StatusNotFound)
		}
	}
	s.call("", session).has(http.StatusUnauthorized)
	s.call(ada, session).has(http.StatusOK)
}

// What the server gives a caller to bring back is worth nothing in the hands of
// another: the state of a request that asked, and the cursor of a list that
// depends on who asks. Proves: R11, SEC-AUTH-1, SEC-PAGE-1. Ruling 21.
func TestStateOfAnother(t *testing.T) {
	o := quiet()
	o.Limits.PageSize = 1
	s := newGuarded(t, o, echoTool(), asksFor[struct {
		N int `json:"n"`
	}]("ask"))
	s.app.Visible(func(ctx context.Context, it server.Item) bool { return server.Caller(ctx).Subject != "" })
	const ada = "ada/c1"
	caps := meta(`{"elicitation":{}}`)
	ask := func(user, more string) reply {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{},` + more + caps + `}}`
		return s.do(http.MethodPost, body, userHeader, user, "MCP-Protocol-Version", newest, "Mcp-Method", mcp.MethodToolsCall, "Mcp-Name", "ask")
	}
	first := ask(ada, "")
	again := fmt.Sprintf(`"requestState":%s,"inputResponses":{%q:{"action":"accept","content":{"n":5}}},`, first.at("result", "requestState"), keyOf(first.message))
	list := s.modern(mcp.MethodToolsList, "", "", userHeader, ada)
	cursor := `"cursor":` + list.at("result", "nextCursor") + ","
	for _, user := range others {
		ask(user, again).fails(mcp.CodeInvalidParams, "1")
		s.modern(mcp.MethodToolsList, "", cursor, userHeader, user).fails(mcp.CodeInvalidParams, "1")
	}
	if r := ask(ada, again); r.at("result", "resultType") != `"complete"` {
		t.Errorf("the caller itself gets %s", r.text)
	}
	if r := s.modern(mcp.MethodToolsList, "", cursor, userHeader, ada); !strings.Contains(r.text, `"echo"`) {
		t.Errorf("the caller itself gets %s", r.text)
	}
}

// transports are endpoints behind authentication, by the dialer that fits them.
func transports(t *testing.T, app *server.Server) map[string]func(header http.Header) transport.Dialer {
	t.Helper()
	begin := func(h http.Handler, shutdown func(context.Context) error) (url string) {
		s := webtest.Serve(t, authenticated(h))
		webtest.Abort(t, shutdown)
		return s.URL
	}
	one, two, three := streamable.NewHandler(app, nil), sse.NewHandler(app, nil), websocket.NewHandler(app, nil)
	http1, http2, ws := begin(one, one.Shutdown), begin(two, two.Shutdown), begin(three, three.Shutdown)
	with := func(h http.Header) func(context.Context) (http.Header, error) {
		return func(context.Context) (http.Header, error) { return h, nil }
	}
	return map[string]func(http.Header) transport.Dialer{
		"streamable": func(h http.Header) transport.Dialer { return &streamable.Dialer{URL: http1, Header: with(h)} },
		"sse":        func(h http.Header) transport.Dialer { return &sse.Dialer{URL: http2, Header: with(h)} },
		"websocket": func(h http.Header) transport.Dialer {
			return &websocket.Dialer{URL: "ws" + strings.TrimPrefix(ws, "http"), Header: with(h)}
		},
	}
}

// Over each transport and in each revision the handler sees who authentication in
// front found, a feature refuses who lacks its scopes, with an error that names
// them, and nobody without identity comes in. Proves: R6, R7, SEC-TOOL-2.
func TestScopesOverTransports(t *testing.T) {
	mcptest.NoLeaks(t)
	o := quiet()
	o.Limits.ToolRate, o.Limits.ListRate = server.Unlimited, server.Unlimited
	app := server.New("scoped", "1", o)
	app.Add(server.Tool("who", "Tells who calls.", func(ctx context.Context, _ mcp.None) (string, error) {
		return server.Caller(ctx).Identity(), nil
	}).With(server.ToolOptions{Scopes: []string{"who.ask", "who.know"}}))
	t.Cleanup(func() { _ = app.Shutdown(context.Background()) })
	for name, dialer := range transports(t, app) {
		for _, version := range versions {
			t.Run(name+" "+version, func(t *testing.T) {
				o := &client.Options{Versions: []string{version}}
				_, err := client.Connect(t.Context(), dialer(nil), o)
				if status, ok := errors.AsType[*web.StatusError](err); !ok || status.Status != http.StatusUnauthorized || !errors.Is(err, transport.ErrDenied) {
					t.Errorf("nobody: %v", err)
				}
				for _, scopes := range []string{"", "who.know", "who.know who.ask"} {
					c, err := client.Connect(t.Context(), dialer(http.Header{userHeader: {"ada/c1"}, scopeHeader: {scopes}}), o)
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					if tools := collect(t, c.Tools(t.Context())); len(tools) != 1 {
						t.Errorf("%d tools are listed", len(tools))
					}
					result, err := c.CallTool(t.Context(), "who", nil, nil)
					if scopes == "who.know who.ask" {
						if err != nil || text(t, result) != "https://as.example ada c1" {
							t.Errorf("with the scopes: %+v, %v", result, err)
						}
						continue
					}
					if code(err) != mcp.CodeInsufficientScope || !strings.Contains(err.Error(), "this call needs the scopes who.ask, who.know") {
						t.Errorf("with %q: %v", scopes, err)
					}
					status, ok := errors.AsType[*web.StatusError](err)
					if ok != (name == "streamable") {
						t.Errorf("with %q: %v, of HTTP %t", scopes, err, ok)
					}
					want := `Bearer error="insufficient_scope", scope="who.ask who.know"`
					if ok && (status.Status != http.StatusForbidden || !slices.Equal(status.Header.Values("WWW-Authenticate"), []string{want})) {
						t.Errorf("with %q: %d, %v", scopes, status.Status, status.Header)
					}
				}
			})
		}
	}
}

// A deadline that authentication in front sets ends a connection with the token
// that opened it. Proves: R4 (for connections that last).
func TestConnectionEndsWithToken(t *testing.T) {
	mcptest.NoLeaks(t)
	app := server.New("scoped", "1", quiet())
	t.Cleanup(func() { _ = app.Shutdown(context.Background()) })
	for name, dialer := range transports(t, app) {
		if name == "streamable" {
			continue // its requests are authenticated one by one
		}
		life, end := context.WithCancel(t.Context())
		lives.Store(name, life)
		over := make(ended)
		link, err := dialer(http.Header{userHeader: {"ada"}, lifeHeader: {name}}).Dial(t.Context(), over)
		end() // not before: a token that is over opens nothing
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		select {
		case <-over:
		case <-time.After(5 * time.Minute): // only a hang lasts so long
			t.Errorf("%s: the connection goes on", name)
		}
		_ = link.Close(t.Context())
	}
}

// ended is an inbox that waits for the end.
type ended chan struct{}

func (ended) Receive(*jsonrpc.Incoming) {}
func (e ended) Closed(error)            { close(e) }
