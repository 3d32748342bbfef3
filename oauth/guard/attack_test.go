package guard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// A site is an MCP server over HTTP behind a guard.
type site struct {
	*bench
	url    string
	client *http.Client // nil: the usual one
}

// sends is the client of the site.
func (x *site) sends() *http.Client {
	if x.client == nil {
		return http.DefaultClient
	}
	return x.client
}

// newSite serves s, behind a guard with these options, on this machine.
func newSite(t *testing.T, s *server.Server, o guard.Options, access web.Access) *site {
	t.Helper()
	x := &site{bench: &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}}
	webtest.ShutDown(t, s.Shutdown)
	endpoint := streamable.NewHandler(s, &streamable.Options{Access: access})
	x.url = webtest.ServeOwn(t, "/mcp", func(url string) http.Handler {
		x.guards(url, guard.JWT(issuerID, &guard.JWTOptions{JWKS: jwt.SetJSON(x.key), Now: x.clock.Now}), &o)
		return x.guard.Handler(endpoint)
	})
	webtest.Abort(t, endpoint.Shutdown)
	return x
}

// newMemorySite is newSite in memory, for a test in a bubble of synctest.
func newMemorySite(t *testing.T, s *server.Server) *site {
	t.Helper()
	x := &site{bench: &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}, url: "http://127.0.0.1/mcp"}
	webtest.ShutDown(t, s.Shutdown)
	endpoint := streamable.NewHandler(s, nil)
	x.guards(x.url, guard.JWT(issuerID, &guard.JWTOptions{JWKS: jwt.SetJSON(x.key), Now: x.clock.Now}), &guard.Options{})
	x.client = webtest.ServeMemory(t, x.guard.Handler(endpoint)).Client()
	webtest.Abort(t, endpoint.Shutdown)
	return x
}

// tokenOf is a token of a user.
func (x *site) tokenOf(user string) string { return x.token(claims{"sub": user, "aud": x.url}) }

// A reply is a whole response.
type reply struct {
	status int
	header http.Header
	body   string
}

// newRequest makes a request with a token, unless it is empty.
func (x *site) newRequest(ctx context.Context, method, token, body string, headers ...string) *http.Request {
	x.t.Helper()
	all := []string{"Accept", "application/json, text/event-stream"}
	if body != "" {
		all = append(all, "Content-Type", "application/json")
	}
	if token != "" {
		all = append(all, "Authorization", "Bearer "+token)
	}
	return webtest.NewRequest(x.t, ctx, method, x.url, body, append(all, headers...)...)
}

// send sends such a request.
func (x *site) send(method, token, body string, headers ...string) reply {
	x.t.Helper()
	r, err := webtest.Read(x.sends(), x.newRequest(x.t.Context(), method, token, body, headers...))
	if err != nil {
		x.t.Fatal(err)
	}
	return reply{r.Status, r.Header, r.Body}
}

const newest = "2026-07-28"

// call sends a request of the stateless revision.
func (x *site) call(token, method, name, params string) reply {
	x.t.Helper()
	if params != "" {
		params += ","
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newest + `","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
	headers := []string{"MCP-Protocol-Version", newest, "Mcp-Method", method}
	if name != "" {
		headers = append(headers, "Mcp-Name", name)
	}
	return x.send(http.MethodPost, token, body, headers...)
}

// find returns the first group of pattern in the body.
func (r reply) find(t *testing.T, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(r.body)
	if m == nil {
		t.Fatalf("%d %s: nothing like %s", r.status, r.body, pattern)
	}
	return m[1]
}

// newTools is a server with tools that tell who calls, that ask, and that need
// a scope.
func newTools(o *server.Options) *server.Server {
	s := server.New("tools", "1.0.0", o)
	s.Add(
		server.Tool("whoami", "Says who calls.", func(ctx context.Context, _ struct{}) (string, error) {
			return server.Caller(ctx).Subject + guard.TokenFromContext(ctx), nil
		}),
		server.Tool("drop", "Asks, then drops.", func(ctx context.Context, _ struct{}) (string, error) {
			answer, err := server.Elicit[struct {
				Yes bool `json:"yes"`
			}](ctx, "Really?")
			if err != nil || !answer.Accepted() {
				return "kept", err
			}
			return "dropped", nil
		}),
		server.Tool("write", "Needs a scope.", func(context.Context, struct{}) (string, error) {
			return "written", nil
		}).With(server.ToolOptions{Scopes: []string{"files:write", "files:read"}}),
	)
	return s
}

// A session is its user's alone: who has its id and another token finds no
// session, and none at all passes. Proves: R4, R11. Attack: session hijack.
func TestAttackSessionHijack(t *testing.T) {
	t.Parallel()
	x := newSite(t, newTools(nil), guard.Options{}, web.Access{})
	ada, bob := x.tokenOf("ada"), x.tokenOf("bob")
	open := x.send(http.MethodPost, ada, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	id := open.header.Get("Mcp-Session-Id")
	if open.status != 200 || id == "" {
		t.Fatalf("initialize: %d %s", open.status, open.body)
	}
	session := []string{"Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25"}
	x.send(http.MethodPost, ada, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
	const whoami = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`
	if got := x.send(http.MethodPost, ada, whoami, session...); got.status != 200 || !strings.Contains(got.body, `"ada"`) {
		t.Fatalf("own session: %d %s", got.status, got.body)
	}
	other := x.token(claims{"sub": "ada", "client_id": "another app", "aud": x.url})
	for name, token := range map[string]string{"another user": bob, "another client": other} {
		for _, method := range []string{http.MethodPost, http.MethodDelete} {
			body := whoami
			if method == http.MethodDelete {
				body = ""
			}
			if got := x.send(method, token, body, session...); got.status != 404 || strings.Contains(got.body, "ada") {
				t.Errorf("%s, %s: %d %s", name, method, got.status, got.body)
			}
		}
	}
	if got := x.send(http.MethodPost, "", whoami, session...); got.status != 401 {
		t.Errorf("no token: %d %s", got.status, got.body)
	}
	if got := x.send(http.MethodPost, ada, whoami, session...); got.status != 200 {
		t.Errorf("own session afterwards: %d %s", got.status, got.body)
	}
}

// What a server hands to one user for later is of no use to another. Proves:
// R11. Attack: state and cursor of somebody else.
func TestAttackStateOfAnother(t *testing.T) {
	t.Parallel()
	s := newTools(&server.Options{Limits: server.Limits{PageSize: 1}})
	s.Visible(func(ctx context.Context, it server.Item) bool { return guard.Allows(server.Caller(ctx), it.Scopes...) })
	x := newSite(t, s, guard.Options{}, web.Access{})
	ada, bob := x.tokenOf("ada"), x.tokenOf("bob")

	cursor := x.call(ada, "tools/list", "", "").find(t, `"nextCursor":("[^"]+")`)
	if got := x.call(bob, "tools/list", "", `"cursor":`+cursor); !strings.Contains(got.body, `-32602`) {
		t.Errorf("cursor of another: %d %s", got.status, got.body)
	}
	if got := x.call(ada, "tools/list", "", `"cursor":`+cursor); got.status != 200 || strings.Contains(got.body, `"error"`) {
		t.Errorf("own cursor: %d %s", got.status, got.body)
	}

	asked := x.call(ada, "tools/call", "drop", `"name":"drop","arguments":{}`)
	state := asked.find(t, `"requestState":("[^"]+")`)
	key := asked.find(t, `"inputRequests":\{("[^"]+")`)
	answer := `"name":"drop","arguments":{},"requestState":` + state + `,"inputResponses":{` + key + `:{"action":"accept","content":{"yes":true}}}`
	if got := x.call(bob, "tools/call", "drop", answer); strings.Contains(got.body, "dropped") || !strings.Contains(got.body, `"error"`) {
		t.Errorf("state of another: %d %s", got.status, got.body)
	}
	if got := x.call(ada, "tools/call", "drop", answer); !strings.Contains(got.body, "dropped") {
		t.Errorf("own state: %d %s", got.status, got.body)
	}
}

// A tool that needs scopes is answered 403 with one challenge for all of them,
// in both eras; whoever has a scope that implies them passes. Proves: R7, R8, R3.
func TestScopesOfTools(t *testing.T) {
	t.Parallel()
	x := newSite(t, newTools(nil), guard.Options{
		Scopes: []string{"mcp"}, Implies: map[string][]string{"files": {"files:read", "files:write"}},
	}, web.Access{})
	got := x.call(x.tokenOf("ada"), "tools/call", "write", `"name":"write","arguments":{}`)
	c, ok := oauth.FindChallenge(oauth.ParseChallenges(got.header["Www-Authenticate"]), "Bearer")
	if got.status != 403 || !ok || c.Params["error"] != "insufficient_scope" || c.Params["scope"] != "mcp files:write files:read" ||
		c.Params["resource_metadata"] != strings.Replace(x.url, "/mcp", "/.well-known/oauth-protected-resource/mcp", 1) {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	broad := x.token(claims{"aud": x.url, "scope": "mcp files"})
	if got := x.call(broad, "tools/call", "write", `"name":"write","arguments":{}`); got.status != 200 || !strings.Contains(got.body, "written") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A tool has the token in both eras if it was asked for by name, and not
// otherwise. Proves: R5.
func TestTokenOfTools(t *testing.T) {
	t.Parallel()
	for _, expose := range []bool{false, true} {
		x := newSite(t, newTools(nil), guard.Options{ExposeToken: expose}, web.Access{})
		token := x.tokenOf("ada")
		open := x.send(http.MethodPost, token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		session := []string{"Mcp-Session-Id", open.header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-11-25"}
		x.send(http.MethodPost, token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
		for era, got := range map[string]reply{
			"stateless": x.call(token, "tools/call", "whoami", `"name":"whoami","arguments":{}`),
			"session":   x.send(http.MethodPost, token, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`, session...),
		} {
			if got.status != 200 || strings.Contains(got.body, token) != expose || !strings.Contains(got.body, "ada") {
				t.Errorf("expose %v, %s: %d %s", expose, era, got.status, got.body)
			}
		}
	}
}

// A browser's page of a listed origin gets through guard and endpoint: the
// preflight without a token, and the call with one.
func TestBrowser(t *testing.T) {
	t.Parallel()
	const page = "https://app.example"
	x := newSite(t, newTools(nil), guard.Options{Origins: []string{page}}, web.Access{Origins: []string{page}})
	got := x.send(http.MethodOptions, "", "", "Origin", page, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, content-type")
	if got.status != 204 || got.header.Get("Access-Control-Allow-Origin") != page || !strings.Contains(got.header.Get("Access-Control-Allow-Headers"), "authorization") {
		t.Errorf("preflight: %d %v", got.status, got.header)
	}
	got = x.send(http.MethodPost, "", "{}", "Origin", page)
	if got.status != 401 || got.header.Get("Access-Control-Allow-Origin") != page {
		t.Errorf("no token: %d %v", got.status, got.header)
	}
	got = x.send(http.MethodPost, x.tokenOf("ada"), "{}", "Origin", "https://evil.example")
	if got.status != 403 || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another page: %d %v", got.status, got.header)
	}
}

// Refusals are fixed texts: nothing of a token, of its verification or of the
// server behind is in them. Attack: error text leaks.
func TestAttackErrorTextLeaks(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-part-of-a-token"
	for _, err := range []error{
		errors.New("database at 10.0.0.7 says no to " + secret),
		fmt.Errorf("%w: key store at 10.0.0.7 with %s", guard.ErrUnavailable, secret),
	} {
		v := newFixed()
		v.err = err
		b := (&bench{t: t, clock: clocktest.New(epoch)}).with(v, &guard.Options{Scopes: []string{"mcp"}})
		for _, header := range []string{"Bearer " + secret, "DPoP " + secret, "Bearer " + secret + " x", "Bearer \"" + secret, secret} {
			w := b.do("Authorization", header)
			var all bytes.Buffer
			_ = w.Result().Header.Write(&all)
			all.WriteString(w.Body.String())
			if strings.Contains(all.String(), secret) || strings.Contains(all.String(), "10.0.0.7") {
				t.Errorf("%s: %s", header, &all)
			}
		}
		if log := b.log.String(); strings.Contains(log, secret) || !strings.Contains(log, "10.0.0.7") {
			t.Errorf("log: %s", log)
		}
	}
}

// No token, proof or part of one is ever in the log, whatever happens to it.
// Proves: R13.
func TestNoSecretsInLog(t *testing.T) {
	t.Parallel()
	b := setUp(t, &guard.Options{Scopes: []string{"mcp"}, CacheAge: -1})
	client, stranger := newKey(t, "ES256"), newKey(t, "ES256")
	tokens := []string{
		b.token(nil), b.token(claims{"aud": "https://other.example"}), b.token(claims{"exp": 1}), b.token(claims{"scope": ""}),
		b.token(claims{"iss": "https://other.example"}), sign(t, stranger, "at+jwt", usual(nil)), sign(t, b.key, "JWT", usual(nil)),
		b.bound(client, nil), "opaque-token-of-somebody", "e30.e30.c2lnbmF0dXJl",
	}
	for _, token := range tokens {
		for _, scheme := range []string{"Bearer", "DPoP"} {
			for _, proof := range []string{"", b.proof(client, "", token), b.proof(stranger, "", token), "not-a-proof"} {
				headers := []string{"Authorization", scheme + " " + token}
				if proof != "" {
					headers = append(headers, "DPoP", proof)
				}
				b.do(headers...)
				for _, secret := range append(strings.Split(token, "."), strings.Split(proof, ".")...) {
					if len(secret) > 10 && strings.Contains(b.log.String(), secret) {
						t.Fatalf("%s is in the log: %s", secret, b.log)
					}
				}
			}
		}
	}
	if !strings.Contains(b.log.String(), "token refused") {
		t.Error("nothing was logged")
	}
}
