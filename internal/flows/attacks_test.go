package flows_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// A site is a server over HTTP that attacks are tried on.
type site struct {
	t   *testing.T
	url string
	app *server.Server
}

// userHeader names who calls, in place of authentication.
const userHeader = "X-Test-User"

func newSite(t *testing.T, o *streamable.Options, features ...server.Feature) *site {
	t.Helper()
	mcptest.NoLeaks(t)
	app := server.New("site", "1", quiet())
	app.Add(features...)
	opts := streamable.Options{}
	if o != nil {
		opts = *o
	}
	opts.Access.Principal = func(r *http.Request) *principal.Principal {
		if user := r.Header.Get(userHeader); user != "" {
			return &principal.Principal{Issuer: "test", Subject: user}
		}
		return &principal.Principal{Remote: "127.0.0.1"}
	}
	endpoint := streamable.NewHandler(app, &opts)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	s := webtest.Serve(t, endpoint)
	webtest.Abort(t, endpoint.Shutdown, app.Shutdown)
	return &site{t, s.URL, app}
}

// A reply is what came back for one HTTP request.
type reply struct {
	message
	status int
	header http.Header
}

// do sends a request; pairs are headers.
func (s *site) do(method, body string, pairs ...string) reply {
	s.t.Helper()
	headers := append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, pairs...)
	r := webtest.Send(s.t, http.DefaultClient, method, s.url, body, headers...)
	return reply{message{s.t, r.Body}, r.Status, r.Header}
}

// modern sends a request of the stateless revision with fitting headers;
// pairs are headers on top.
func (s *site) modern(method, name, params string, pairs ...string) reply {
	s.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + meta("{}") + `}}`
	headers := []string{"MCP-Protocol-Version", newest, "Mcp-Method", method}
	if name != "" {
		headers = append(headers, "Mcp-Name", name)
	}
	return s.do(http.MethodPost, body, append(headers, pairs...)...)
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + autumn +
	`","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}`

// open makes a session for a user.
func (s *site) open(user string) string {
	s.t.Helper()
	r := s.do(http.MethodPost, initialize, userHeader, user)
	id := r.header.Get("Mcp-Session-Id")
	if r.status != http.StatusOK || id == "" {
		s.t.Fatalf("no session: %d %s", r.status, r.text)
	}
	return id
}

// call calls the tool echo in a session.
func (s *site) call(user, session string) reply {
	s.t.Helper()
	return s.do(http.MethodPost, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}`,
		userHeader, user, "Mcp-Session-Id", session)
}

func (r reply) has(status int) {
	r.t.Helper()
	if r.status != status {
		r.t.Errorf("status %d, want %d: %s", r.status, status, r.text)
	}
}

func echoTool() server.Feature {
	return server.Tool("echo", "Echoes a text.", func(_ context.Context, in struct {
		Text string `json:"text,omitzero"`
	},
	) (string, error) {
		return in.Text, nil
	})
}

// What a page of another site or a rebound name sends is refused, in both
// families of revisions, for every method. Proves: SEC-HTTP-1.
func TestForeignPages(t *testing.T) {
	s := newSite(t, nil, echoTool())
	own := strings.TrimPrefix(s.url, "http://")
	for _, attack := range [][]string{
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Origin", "http://localhost.evil.example"},
		{"Origin", "http://" + own + ".evil.example"},
		{"Host", "evil.example"},
		{"Host", "evil.example:80", "Origin", "http://evil.example:80"},
		{"Host", own, "Origin", "http://127.0.0.1:1"},
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions} {
			r := s.do(method, initialize, attack...)
			r.has(http.StatusForbidden)
			for name := range r.header {
				if strings.HasPrefix(name, "Access-Control") || name == "Mcp-Session-Id" {
					t.Errorf("%s %v: the refusal has %s", method, attack, name)
				}
			}
		}
		s.modern(mcp.MethodToolsList, "", "", attack...).has(http.StatusForbidden)
	}
	s.modern(mcp.MethodToolsList, "", "", "Origin", s.url).has(http.StatusOK)
	s.modern(mcp.MethodToolsList, "", "", "Host", "localhost").has(http.StatusOK)
}

// A session belongs to who opened it: for others it does not exist.
// Proves: SEC-HTTP-1 (bound to the user).
func TestForeignSession(t *testing.T) {
	s := newSite(t, nil, echoTool())
	session := s.open("ada")
	for _, user := range []string{"eve", ""} {
		s.call(user, session).has(http.StatusNotFound)
		s.do(http.MethodGet, "", userHeader, user, "Mcp-Session-Id", session).has(http.StatusNotFound)
		s.do(http.MethodGet, "", userHeader, user, "Mcp-Session-Id", session, "Last-Event-ID", "1-1").has(http.StatusNotFound)
		s.do(http.MethodDelete, "", userHeader, user, "Mcp-Session-Id", session).has(http.StatusNotFound)
		foreign, unknownOne := s.call(user, session), s.call(user, "NOSUCHSESSION")
		if foreign.text != unknownOne.text {
			t.Errorf("another's session is told from none: %s and %s", foreign.text, unknownOne.text)
		}
	}
	s.call("ada", session).has(http.StatusOK)
}

// A session id that the client chose opens nothing. Proves: SEC-HTTP-1
// (unguessable).
func TestSessionFixation(t *testing.T) {
	s := newSite(t, nil, echoTool())
	r := s.do(http.MethodPost, initialize, "Mcp-Session-Id", "CHOSEN")
	if r.status == http.StatusOK || r.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("initialize with a chosen id: %d, session %q", r.status, r.header.Get("Mcp-Session-Id"))
	}
	s.call("", "CHOSEN").has(http.StatusNotFound)
	seen := map[string]bool{}
	for range 50 {
		id := s.open("ada")
		if len(id) < 22 || seen[id] {
			t.Errorf("session id %q is short or was there before", id)
		}
		seen[id] = true
	}
}

// Header and body must agree. Proves: SEC-HTTP-1. Rulings 12 and 15.
func TestHeadersAndBodyDisagree(t *testing.T) {
	s := newSite(t, nil, echoTool(), server.Tool("route", "Has a header.", func(_ context.Context, in struct {
		Region string `json:"region,omitzero" header:"Region"`
	},
	) (string, error) {
		return in.Region, nil
	}))
	route := `"name":"route","arguments":{"region":"Zürich"},`
	s.modern(mcp.MethodToolsCall, "route", route, "Mcp-Param-Region", "=?base64?WsO8cmljaA==?=").has(http.StatusOK)
	s.modern(mcp.MethodToolsCall, "=?base64?cm91dGU=?=", route, "mcp-param-region", "=?base64?WsO8cmljaA==?=").has(http.StatusOK)
	for _, wrong := range [][]string{
		{"Mcp-Method", mcp.MethodToolsList},
		{"Mcp-Method", ""},
		{"Mcp-Name", "echo"},
		{"Mcp-Name", "=?base64?cm91dGU?="},
		{"Mcp-Name", "=?base64?!?="},
		{"MCP-Protocol-Version", autumn},
		{"MCP-Protocol-Version", ""},
		{"Mcp-Param-Region", "Bern"},
		{"Mcp-Param-Region", "=?BASE64?WsO8cmljaA==?="},
	} {
		headers := append([]string{"Mcp-Param-Region", "=?base64?WsO8cmljaA==?="}, wrong...)
		r := s.modern(mcp.MethodToolsCall, "route", route, headers...)
		r.has(http.StatusBadRequest)
		r.fails(mcp.CodeHeaderMismatch, "1")
	}
	r := s.modern(mcp.MethodToolsCall, "route", route)
	r.has(http.StatusBadRequest)
	r.fails(mcp.CodeHeaderMismatch, "1")
}

// Bodies that are too large or pretend to be small are refused unread.
// Proves: SEC-DOS-1, SEC-HTTP-1 (body limits).
func TestLargeBodies(t *testing.T) {
	s := newSite(t, &streamable.Options{MaxMessage: 64 << 10}, echoTool())
	big := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("a", 70<<10) + `"}}}`
	s.do(http.MethodPost, big).has(http.StatusRequestEntityTooLarge)

	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, strings.Repeat("a", 50<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.do(http.MethodPost, packed.String(), "Content-Encoding", "gzip").has(http.StatusUnsupportedMediaType)
	s.do(http.MethodPost, initialize, "Content-Encoding", "br").has(http.StatusUnsupportedMediaType)

	deep := `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}}`
	r := s.do(http.MethodPost, deep)
	r.has(http.StatusBadRequest)
	r.want("-32700", "error", "code")
}

// raw speaks HTTP by hand and returns the status line of the answer.
func (s *site) raw(text string) (conn net.Conn, status func() string) {
	s.t.Helper()
	conn, in := webtest.Raw(s.t, strings.TrimPrefix(s.url, "http://"), text)
	return conn, func() string {
		line, err := in.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(line)
	}
}

// A body that never comes does not hold a request for ever, and one whose
// length lies is not waited for. Proves: SEC-DOS-1.
func TestSlowBody(t *testing.T) {
	s := newSite(t, &streamable.Options{ReadTimeout: 50 * time.Millisecond, MaxMessage: 1 << 10}, echoTool())
	head := "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for name, tt := range map[string]struct{ text, want string }{
		"drip":            {head + "Content-Length: 100\r\n\r\n{\"json", "408"},
		"no end":          {head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"jso\r\n", "408"},
		"announced":       {head + "Content-Length: 999999999\r\n\r\n{", "413"},
		"chunks":          {head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("200\r\n"+strings.Repeat("a", 512)+"\r\n", 4), "413"},
		"two sizes":       {head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}   ", "400"},
		"bare line feed":  {head + "Mcp-Name: a\x00b\r\nContent-Length: 2\r\n\r\n{}", "400"},
		"huge header":     {head + "Mcp-Name: " + strings.Repeat("a", 2<<20) + "\r\n\r\n", "431"},
		"header in value": {head + "MCP-Protocol-Version: " + newest + "\r\nMcp-Method: x\rEvil: y\r\nContent-Length: 2\r\n\r\n{}", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			_, status := s.raw(tt.text)
			if line := status(); !strings.Contains(line, tt.want) {
				t.Errorf("answer is %q, want %s", line, tt.want)
			}
		})
	}
}

// One caller cannot fill the house. Proves: SEC-DOS-1 (sessions).
func TestSessionFlood(t *testing.T) {
	s := newSite(t, nil, echoTool())
	made, refused := 0, 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 100 {
				r := s.do(http.MethodPost, initialize, userHeader, "eve")
				mu.Lock()
				switch r.status {
				case http.StatusOK:
					made++
				case http.StatusTooManyRequests:
					refused++
					if r.header.Get("Retry-After") == "" || r.at("error", "message") == "" {
						t.Errorf("the refusal does not say when to come back: %s", r.text)
					}
				default:
					t.Errorf("status %d: %s", r.status, r.text)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if made != 100 || refused != 900 {
		t.Errorf("%d sessions made and %d refused, want 100 and 900", made, refused)
	}
	s.call("ada", s.open("ada")).has(http.StatusOK) // others are not hurt
}

// A cancellation reaches requests of its own session alone, and none of the
// stateless revision. Proves: SEC-CANCEL-1.
func TestForeignCancellation(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 2)
	s := newSite(t, nil, server.Tool("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		started <- struct{}{}
		select {
		case <-release:
			ended <- nil
		case <-ctx.Done():
			ended <- ctx.Err()
		}
		return "done", nil
	}))
	ada, eve := s.open("ada"), s.open("eve")
	const wait = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait"}}`
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	var wg sync.WaitGroup
	wg.Go(func() { s.do(http.MethodPost, wait, userHeader, "ada", "Mcp-Session-Id", ada).has(http.StatusOK) })
	<-started
	wg.Go(func() {
		s.do(http.MethodPost, strings.Replace(wait, `{"name":"wait"}`, `{"name":"wait",`+meta("{}")+`}`, 1),
			"MCP-Protocol-Version", newest, "Mcp-Method", mcp.MethodToolsCall, "Mcp-Name", "wait").has(http.StatusOK)
	})
	<-started
	s.do(http.MethodPost, cancel, userHeader, "eve", "Mcp-Session-Id", eve).has(http.StatusAccepted)
	s.do(http.MethodPost, cancel, "MCP-Protocol-Version", newest).has(http.StatusAccepted)
	close(release)
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("a request was cancelled by somebody else: %v", err)
		}
	}
	wg.Wait()
}

// What a handler sends after its request has ended goes nowhere: least of all
// into the response of another request on the same connection. Defect M2.
func TestLateProgress(t *testing.T) {
	var mu sync.Mutex
	var late []func() error
	s := newSite(t, nil,
		server.Tool("early", "Ends before it is done.", func(ctx context.Context, _ struct{}) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			late = append(late, func() error { return server.Progress(ctx, 1, 2, "too late") })
			return "done", nil
		}),
		server.Tool("next", "Runs while others are late.", func(ctx context.Context, _ struct{}) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, send := range late {
				_ = send() // it may fail or do nothing, but not arrive
			}
			return "next", nil
		}))
	session := s.open("ada")
	token := func(name, more string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"_meta":{"progressToken":%q%s}}}`, name, name, name, more)
	}
	modern := `,` + strings.TrimSuffix(strings.TrimPrefix(meta("{}"), `"_meta":{`), `}`)
	for range 3 { // on connections that are used again
		s.do(http.MethodPost, token("early", ""), userHeader, "ada", "Mcp-Session-Id", session).has(http.StatusOK)
		s.do(http.MethodPost, token("early", modern), "MCP-Protocol-Version", newest, "Mcp-Method", mcp.MethodToolsCall, "Mcp-Name", "early").has(http.StatusOK)
		for _, r := range []reply{
			s.do(http.MethodPost, token("next", ""), userHeader, "ada", "Mcp-Session-Id", session),
			s.do(http.MethodPost, token("next", modern), "MCP-Protocol-Version", newest, "Mcp-Method", mcp.MethodToolsCall, "Mcp-Name", "next"),
		} {
			r.has(http.StatusOK)
			if strings.Contains(r.text, "too late") || r.header.Get("Content-Type") != "application/json" {
				t.Errorf("another request's progress is in the answer: %s", r.text)
			}
		}
	}
}

// Pages of a listed origin may call, and are told what they may see.
func TestListedPages(t *testing.T) {
	s := newSite(t, &streamable.Options{Access: web.Access{Origins: []string{"https://app.example"}}}, echoTool())
	r := s.modern(mcp.MethodToolsList, "", "", "Origin", "https://app.example")
	r.has(http.StatusOK)
	if got := r.header.Get("Access-Control-Allow-Origin"); got != "https://app.example" {
		t.Errorf("Access-Control-Allow-Origin is %q", got)
	}
	if !strings.Contains(strings.ToLower(r.header.Get("Access-Control-Expose-Headers")), "mcp-session-id") {
		t.Errorf("exposed: %q", r.header.Get("Access-Control-Expose-Headers"))
	}
	r = s.do(http.MethodOptions, "", "Origin", "https://app.example", "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "content-type,mcp-protocol-version,mcp-method,mcp-name,mcp-param-region,mcp-session-id,last-event-id,authorization,x-evil")
	r.has(http.StatusNoContent)
	allowed := strings.ToLower(r.header.Get("Access-Control-Allow-Headers"))
	for _, name := range []string{"content-type", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region", "mcp-session-id", "last-event-id", "authorization"} {
		if !strings.Contains(allowed, name) {
			t.Errorf("%s is not allowed: %q", name, allowed)
		}
	}
	if strings.Contains(allowed, "x-evil") {
		t.Errorf("x-evil is allowed: %q", allowed)
	}
	s.modern(mcp.MethodToolsList, "", "", "Origin", "https://other.example").has(http.StatusForbidden)
}
