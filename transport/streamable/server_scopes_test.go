package streamable_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// asToken is authentication in front of the endpoint: who calls is in the
// context, and the token is whatever X-User says.
func asToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.Header.Get("X-User")
		who := &principal.Principal{Issuer: "https://as.example", Subject: "ada", Remote: "192.0.2.1"}
		if token != "silent" {
			who.Challenge = func(scopes []string) string {
				return `Bearer error="insufficient_scope", scope="` + strings.Join(scopes, " ") + `", token="` + token + `"`
			}
		}
		next.ServeHTTP(w, r.WithContext(principal.NewContext(r.Context(), who)))
	})
}

// newTokenSite is newPipes behind such authentication: in a bubble, so that an
// answer is there before its stream begins, also on a slow machine.
func newTokenSite(t *testing.T, p transport.Handler, o *streamable.Options) *site {
	t.Helper()
	h := streamable.NewHandler(p, o)
	return newMemorySite(t, h, asToken(h), "one")
}

func needs(data string) method {
	return func(context.Context, *transport.Exchange) (jsonrpc.Body, error) {
		return nil, scopeError(data)
	}
}

func scopeError(data string) error {
	e := jsonrpc.NewError(mcp.CodeInsufficientScope, "not granted")
	e.Data = jsonrpc.RawValue(data)
	return e
}

func scopePeer() *peer {
	return newPeer(map[string]method{
		"write":  needs(`{"scopes":["a","b"]}`),
		"delete": needs(`{"scopes":["c"]}`),
		"odd":    needs(`{"scopes":["a\"b","x y","","ok","\r\nX: 1","` + strings.Repeat("z", 10) + `"]}`),
		"none":   needs(``),
		"wrong":  needs(`{"scopes":7}`),
		"late": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			if err := notify(ctx, x.Out, 1); err != nil {
				return nil, err
			}
			return nil, scopeError(`{"scopes":["a"]}`)
		},
	})
}

func challenge(scopes, token string) string {
	return `Bearer error="insufficient_scope", scope="` + scopes + `", token="` + token + `"`
}

// What a caller lacks scopes for is answered with 403 and the challenge of who
// authenticated this very request, in each revision; the body stays the error.
// Proves: R6, R7. Ruling 12.
func TestInsufficientScope(t *testing.T) {
	for _, version := range []string{v2607, v2511, v2506, v2503, v2411} {
		for name, o := range map[string]*streamable.Options{"at once": nil, "polling": {PollAfter: time.Minute}} {
			synctest.Test(t, func(t *testing.T) {
				s := newTokenSite(t, scopePeer(), o)
				call := s.modern
				if version != v2607 {
					session := s.open(version)
					call = func(name, params string, header ...string) outcome {
						return s.send(http.MethodPost, rpc(1, name, params), append(header, "Mcp-Session-Id", session)...)
					}
				}
				for _, c := range []struct {
					method, user, want string
				}{
					{"write", "one", challenge("a b", "one")},
					{"write", "two", challenge("a b", "two")}, // another token of the same caller
					{"write", "silent", ""},
					{"odd", "one", challenge("ok zzzzzzzzzz", "one")},
					{"none", "one", challenge("", "one")},
					{"wrong", "one", challenge("", "one")},
				} {
					r := call(c.method, "", "X-User", c.user)
					s.check(version+" "+name+" "+c.method, r, http.StatusForbidden, `"id":1`, `"code":-31006`, "not granted")
					if got := r.header["Www-Authenticate"]; c.want == "" && got != nil || c.want != "" && (len(got) != 1 || got[0] != c.want) {
						t.Errorf("%s as %s: challenge %q, want %q", c.method, c.user, got, c.want)
					}
					if got := r.header.Get("Content-Type"); got != "application/json" {
						t.Errorf("%s: content type %s", c.method, got)
					}
				}
				r := call("late", "") // the stream has begun
				s.check("late", r, http.StatusOK, "-31006")
				if r.header.Get("Content-Type") != "text/event-stream" || r.header.Get("Www-Authenticate") != "" {
					t.Errorf("late: %v", r.header)
				}
				s.check("echo", call("echo", ""), http.StatusOK)
			})
		}
	}
}

// A batch is 403 if every request of it was refused for scopes; otherwise the
// errors in it tell. Proves: R7.
func TestInsufficientScopeInBatch(t *testing.T) { synctest.Test(t, testInsufficientScopeInBatch) }

func testInsufficientScopeInBatch(t *testing.T) {
	s := newTokenSite(t, scopePeer(), nil)
	session := s.open(v2503)
	for _, c := range []struct {
		methods []string
		status  int
	}{
		{[]string{"write", "delete"}, http.StatusForbidden},
		{[]string{"write", "echo"}, http.StatusOK},
		{[]string{"echo", "write"}, http.StatusOK},
		{[]string{"write", "unknown"}, http.StatusOK},
	} {
		var bodies []string
		for i, m := range c.methods {
			bodies = append(bodies, rpc(i+1, m, ""))
		}
		r := s.send(http.MethodPost, "["+strings.Join(bodies, ",")+"]", "Mcp-Session-Id", session)
		s.check(strings.Join(c.methods, " "), r, c.status, `"id":1`, `"id":2`, "-31006")
		if got := r.header.Get("Www-Authenticate"); (got != "") != (c.status == http.StatusForbidden) {
			t.Errorf("%v: challenge %q", c.methods, got)
		}
	}
}

// In a session whose client waits, the stream begins after a while; then the
// error comes on it.
func TestInsufficientScopeAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPipes(t, newPeer(map[string]method{"slow": func(context.Context, *transport.Exchange) (jsonrpc.Body, error) {
			time.Sleep(time.Second)
			return nil, scopeError(`{"scopes":["a"]}`)
		}}), nil)
		f := s.follow(http.MethodPost, rpc(1, "slow", ""), "Mcp-Session-Id", s.open(v2511))
		f.primed()
		f.wants("-31006")
		f.ends()
	})
}

// Who calls may be told by the context, as authentication in front leaves it,
// and the session is bound to it. Proves: R11, SEC-AUTH-1.
func TestCallerFromContext(t *testing.T) { synctest.Test(t, testCallerFromContext) }

func testCallerFromContext(t *testing.T) {
	who := make(chan *principal.Principal, 1)
	s := newTokenSite(t, newPeer(map[string]method{"who": func(_ context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		who <- x.Principal
		return jsonrpc.Empty(), nil
	}}), nil)
	s.check("modern", s.modern("who", ""), http.StatusOK)
	if p := within(t, "the call", who); p.Subject != "ada" || p.Challenge == nil {
		t.Errorf("called by %+v", p)
	}
	s.check("session", s.send(http.MethodPost, rpc(1, "who", ""), "Mcp-Session-Id", s.open(v2511), "X-User", "two"), http.StatusOK)
	if p := within(t, "the call", who); p.Challenge(nil) != challenge("", "two") {
		t.Errorf("in a session called by who sent an earlier request: %+v", p)
	}
}
