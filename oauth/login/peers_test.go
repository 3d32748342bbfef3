package login_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
)

// body answers with a text of a type.
func body(status int, contentType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// document answers with JSON of a text type, after a byte order mark.
func document(v any) http.HandlerFunc {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is ours
	}
	return body(200, "text/plain", "\uFEFF"+string(text))
}

const (
	prmPath  = "/.well-known/oauth-protected-resource/mcp"
	prmRoot  = "/.well-known/oauth-protected-resource"
	asPath   = "/.well-known/oauth-authorization-server"
	oidcPath = "/.well-known/openid-configuration"
	page     = "<!DOCTYPE html><title>Welcome</title>"
)

// Servers that are a little wrong, or right in an unusual way, are signed in to all the same; what was
// passed over is logged. Then tokens are refreshed, and scopes added. The names are those of public
// reports. Proves: rulings 36, 37; C3, C7, C11, C19, C20.
func TestServersAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		prepare func(as *authServer, rs *resourceServer)
		logged  string // by the sign-in; empty: nothing was passed over
	}{
		{"modelcontextprotocol/python-sdk#1919: issuer with the slash of an empty path", func(as *authServer, _ *resourceServer) {
			as.override["issuer"] = as.URL + "/"
			as.iss = as.URL + "/"
		}, ""},
		{"anomalyco/opencode#50036: the resource names it with a slash", func(_ *authServer, rs *resourceServer) {
			rs.prm["authorization_servers"] = []string{rs.as[0].URL + "/"}
		}, ""},
		{"modelcontextprotocol/python-sdk#1502: 201 for tokens", func(as *authServer, _ *resourceServer) { as.status = 201 }, ""},
		{"outline/outline#11572: a page at the first place of the resource", func(_ *authServer, rs *resourceServer) {
			rs.silent, rs.prmPath, rs.resource = true, prmRoot, rs.URL
			rs.handlers[prmPath] = body(200, "text/html", page)
		}, ""},
		{"an empty object there", func(_ *authServer, rs *resourceServer) {
			rs.silent, rs.prmPath, rs.resource = true, prmRoot, rs.URL
			rs.handlers[prmPath] = body(200, "application/json", "{}")
		}, "no resource"},
		{"a page that says it is JSON there", func(_ *authServer, rs *resourceServer) {
			rs.silent, rs.prmPath, rs.resource = true, prmRoot, rs.URL
			rs.handlers[prmPath] = body(200, "application/json", page)
		}, "resource metadata"},
		{"a failure there", func(_ *authServer, rs *resourceServer) {
			rs.silent, rs.prmPath, rs.resource = true, prmRoot, rs.URL
			rs.handlers[prmPath] = body(500, "text/plain", "oops")
		}, "the server answered 500"},
		{"a redirect to a page for people there", func(_ *authServer, rs *resourceServer) {
			rs.silent, rs.prmPath, rs.resource = true, prmRoot, rs.URL
			rs.handlers[prmPath] = http.RedirectHandler("https://login.example/", http.StatusFound).ServeHTTP
		}, "another origin"},
		{"a page there that is too large", func(_ *authServer, rs *resourceServer) {
			rs.silent, rs.prmPath, rs.resource = true, prmRoot, rs.URL
			rs.handlers[prmPath] = body(200, "text/html", page+strings.Repeat(" ", 2<<20))
		}, "answer is larger"},
		{"redirects without end there", func(_ *authServer, rs *resourceServer) {
			rs.silent, rs.prmPath, rs.resource = true, prmRoot, rs.URL
			rs.handlers[prmPath] = http.RedirectHandler(prmPath+"?again", http.StatusFound).ServeHTTP
		}, "more than 3 redirects"},
		{"an answer there that breaks off", func(_ *authServer, rs *resourceServer) {
			rs.silent, rs.prmPath, rs.resource = true, prmRoot, rs.URL
			rs.handlers[prmPath] = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, "{")
			}
		}, "reading the answer"},
		{"a page that is too large at the first place of the server", func(as *authServer, _ *resourceServer) {
			as.places = []string{oidcPath}
			as.handlers[asPath] = body(200, "text/html", page+strings.Repeat(" ", 2<<20))
		}, "answer is larger"},
		{"a page at the first place of the server", func(as *authServer, _ *resourceServer) {
			as.places = []string{oidcPath}
			as.handlers[asPath] = body(200, "text/html", page)
		}, ""},
		{"an empty object there too", func(as *authServer, _ *resourceServer) {
			as.places = []string{oidcPath}
			as.handlers[asPath] = body(200, "application/json", "{}")
		}, "no issuer"},
		{"anthropics/claude-code#72673: a challenge for people there", func(as *authServer, _ *resourceServer) {
			as.places = []string{oidcPath}
			as.handlers[asPath] = body(403, "text/html", page)
		}, ""},
		{"InsForge/insforge-mcp#69: 401 without a challenge", func(_ *authServer, rs *resourceServer) { rs.header = "-" }, ""},
		{"a challenge with a relative place", func(_ *authServer, rs *resourceServer) {
			rs.prmPath, rs.header = "/odd/place", `Bearer resource_metadata="/odd/place"`
		}, ""},
		{"a challenge with other quotes", func(_ *authServer, rs *resourceServer) {
			rs.header = "Bearer resource_metadata='" + rs.URL + prmPath + "'"
		}, ""},
		{"a challenge with blanks within quotes", func(_ *authServer, rs *resourceServer) {
			rs.prmPath, rs.header = "/odd/place", `Bearer resource_metadata=" `+rs.URL+`/odd/place "`
		}, ""},
		{"a challenge without quotes", func(_ *authServer, rs *resourceServer) {
			rs.header = "Bearer resource_metadata=" + rs.URL + prmPath
		}, ""},
		{"a challenge with semicolons", func(_ *authServer, rs *resourceServer) {
			rs.header = `Bearer realm="x"; resource_metadata="` + rs.URL + prmPath + `"`
		}, ""},
		{"a challenge that does not end", func(_ *authServer, rs *resourceServer) {
			rs.header = `Bearer resource_metadata="` + rs.URL + prmPath
		}, ""},
		{"a challenge that leads to nothing", func(_ *authServer, rs *resourceServer) {
			rs.header = `Bearer resource_metadata="` + rs.URL + `/gone"`
		}, "no document there (status 404)"},
		{"a challenge that leads to a page", func(_ *authServer, rs *resourceServer) {
			rs.header = `Bearer resource_metadata="` + rs.URL + `/page"`
			rs.handlers["/page"] = body(200, "text/html", page)
		}, "no document there (status 200)"},
		{"a challenge that leads to other JSON", func(_ *authServer, rs *resourceServer) {
			rs.header = `Bearer resource_metadata="` + rs.URL + `/json"`
			rs.handlers["/json"] = body(200, "application/json", `{"jsonrpc":"2.0","error":{"code":-32601,"message":"x"}}`)
		}, "no resource"},
		{"agentgateway/agentgateway#545: a challenge with the scheme behind a proxy", func(_ *authServer, rs *resourceServer) {
			rs.header = `Bearer resource_metadata="` + strings.Replace(rs.URL, "http:", "https:", 1) + prmPath + `"`
		}, "another origin"},
		{"msrbuilds/elementor-mcp#130: a challenge that leads to the document of somebody else", func(_ *authServer, rs *resourceServer) {
			rs.header = `Bearer resource_metadata="` + rs.URL + prmRoot + `"`
			rs.handlers[prmRoot] = document(map[string]any{"resource": rs.URL + "/other", "authorization_servers": []string{"https://other.example"}})
		}, "resource metadata is about"},
		{"modelcontextprotocol/inspector#1288: the metadata beneath the resource", func(_ *authServer, rs *resourceServer) {
			rs.prmPath = "/mcp" + prmRoot
			rs.handlers[rs.prmPath] = func(w http.ResponseWriter, _ *http.Request) { rs.serveMetadata(w) }
		}, ""},
		{"PrimeIntellect-ai/prime-agent#2357: the resource is the origin", func(_ *authServer, rs *resourceServer) {
			rs.silent, rs.prmPath, rs.resource = true, prmRoot, rs.URL
		}, ""},
		{"kirodotdev/Kiro#10169: at both places", func(as *authServer, rs *resourceServer) {
			rs.silent = true
			about := document(map[string]any{"resource": rs.URL, "authorization_servers": []string{as.URL}})
			rs.handlers[prmPath], rs.handlers[prmRoot] = about, about
		}, "resource metadata is about"},
		{"microsoft/vscode#259251: the resource has a slash that the URL has not", func(_ *authServer, rs *resourceServer) {
			rs.resource = rs.url() + "/"
		}, ""},
		{"neotoma: the place of the metadata wants a token", func(_ *authServer, rs *resourceServer) {
			rs.silent, rs.prmPath, rs.resource = true, prmRoot, rs.URL
			rs.handlers[prmPath] = body(401, "application/json", `{"error":"unauthorized"}`)
		}, ""},
		{"BerriAI/litellm#21150: null for lists", func(as *authServer, rs *resourceServer) {
			rs.prm["scopes_supported"], rs.prm["bearer_methods_supported"] = nil, nil
			as.handlers[asPath] = func(w http.ResponseWriter, _ *http.Request) {
				m := as.metadata()
				m["scopes_supported"], m["registration_endpoint"], m["jwks_uri"] = nil, as.URL+"/register", nil
				m["grant_types_supported"], m["revocation_endpoint"] = nil, nil
				reply(w, 200, m)
			}
		}, ""},
		{"punkpeye/mcp-remote#216: no scopes", func(as *authServer, rs *resourceServer) {
			rs.prm["scopes_supported"], as.override["scopes_supported"] = []string{}, []string{}
		}, ""},
		{"members of other types", func(as *authServer, rs *resourceServer) {
			rs.prm["resource_name"], rs.prm["scopes_supported"] = 7, "read"
			as.override["service_documentation"], as.override["revocation_endpoint"] = true, "http://plain.example/revoke"
		}, "service_documentation, revocation_endpoint"},
		{"a byte order mark and another type for documents", func(as *authServer, rs *resourceServer) {
			as.handlers[asPath] = func(w http.ResponseWriter, r *http.Request) { document(as.metadata())(w, r) }
			rs.handlers[prmPath] = document(map[string]any{"resource": rs.url(), "authorization_servers": []string{as.URL}})
		}, ""},
		{"patvice/ruby_llm-mcp#137: a secret without a method", func(as *authServer, _ *resourceServer) {
			as.secret = "s3cret"
			as.override["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
		}, ""},
		{"novuhq/novu#11323: a method that needs a secret, without one", func(as *authServer, _ *resourceServer) {
			as.method = "client_secret_post"
		}, "token_endpoint_auth_method"},
		{"a method that is not ours", func(as *authServer, _ *resourceServer) { as.method = "tls_client_auth" }, "token_endpoint_auth_method"},
		{"LibreChat-AI/librechat.ai#420: expires_in is a text", func(as *authServer, _ *resourceServer) {
			as.answer = map[string]any{"expires_in": "3599", "ext_expires_in": "3599", "not_before": "1759489561"}
		}, ""},
		{"QwenLM/qwen-code#5355: expires_in is 0", func(as *authServer, _ *resourceServer) { as.expires = 0 }, ""},
		{"BerriAI/litellm#20788: expires_in is null", func(as *authServer, _ *resourceServer) {
			as.answer = map[string]any{"expires_in": nil, "id_token": nil}
		}, ""},
		{"expires_in is a word", func(as *authServer, _ *resourceServer) { as.answer = map[string]any{"expires_in": "1h"} }, "expires_in"},
		{"dust-tt/dust#22773: no token_type", func(as *authServer, _ *resourceServer) { as.answer = map[string]any{"token_type": nil} }, "token_type"},
		{"coder/coder#23516: bearer in lower case", func(as *authServer, _ *resourceServer) { as.answer = map[string]any{"token_type": "bearer"} }, ""},
		{"redhat-data-and-ai/template-agent#265: scopes with commas", func(as *authServer, _ *resourceServer) {
			as.answer = map[string]any{"scope": "read,write"}
		}, "scope"},
		{"scopes in a list", func(as *authServer, _ *resourceServer) {
			as.answer = map[string]any{"scope": []string{"read", "write"}}
		}, "scope"},
		{"modelcontextprotocol/rust-sdk#921: no new refresh token", func(as *authServer, _ *resourceServer) { as.norotate = true }, ""},
		{"dust-tt/dust#22773: resource refused in a refresh", func(as *authServer, _ *resourceServer) { as.noResource = oauth.InvalidRequest }, "refreshing once more, without resource"},
		{"LanternOps/breeze#2363: it is no target there", func(as *authServer, _ *resourceServer) { as.noResource = oauth.InvalidTarget }, "refreshing once more, without resource"},
		{"no iss, and none promised", func(as *authServer, _ *resourceServer) {
			as.iss = "omit"
			as.override["authorization_response_iss_parameter_supported"] = nil
		}, ""},
		{"another client_id than asked for, and redirect_uris in another form", func(as *authServer, _ *resourceServer) {
			as.clientID = "urn:client:é"
			as.handlers["/register"] = func(w http.ResponseWriter, _ *http.Request) {
				as.clients[as.clientID] = url.Values{}
				body(200, "text/html", `{"client_id":"urn:client:7","redirect_uris":["http://127.0.0.1/callback"],"client_id_issued_at":"now","client_secret_expires_at":"0","grant_types":null}`)(w, nil)
			}
		}, "client_id_issued_at"},
		{"jitsucom/jitsu#1430: a secret without an end", func(as *authServer, _ *resourceServer) {
			as.handlers["/register"] = body(201, "application/json", `{"client_id":"1","client_secret":"s3cret"}`)
			as.override["token_endpoint_auth_methods_supported"] = nil
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			as, rs := newServers(t)
			as.override["scopes_supported"] = []string{"read", "write"}
			rs.needs["deep"] = "deep"
			test.prepare(as, rs)
			var log bytes.Buffer
			c, b := newClient(t, login.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			h := c.HTTPClient(nil)
			welcome(t, h, rs.url())
			as.expire(false)
			welcome(t, h, rs.url())
			if b.visits() != 1 {
				t.Errorf("%d visits after a refresh, want 1", b.visits())
			}
			welcome(t, h, rs.url(), "Mcp-Name", "deep")
			if b.visits() != 2 {
				t.Errorf("%d visits after asking for more, want 2", b.visits())
			}
			said := log.String()
			if test.logged == "" && strings.Contains(said, "passed over") || !strings.Contains(said, test.logged) {
				t.Errorf("the log is %s\nwant %q", said, test.logged)
			}
			_, tokens, _, _ := as.seen()
			for _, secret := range []string{"s3cret", tokens[0].Get("code"), tokens[0].Get("code_verifier")} {
				if strings.Contains(said, secret) {
					t.Errorf("the log shows %q: %s", secret, said)
				}
			}
		})
	}
}

// A secret that a registration gave is used, by a method that the server has.
// Proves: C7; RFC 7591, section 2.
func TestSecretWithoutMethod(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		listed []string
		given  string
		want   string
	}{
		{nil, "", "basic"},
		{[]string{"client_secret_post", "client_secret_basic"}, "", "basic"},
		{[]string{"client_secret_post"}, "", "post"},
		{[]string{"none", "client_secret_post"}, "", "post"},
		{[]string{"none"}, "", "none"},
		{[]string{"client_secret_basic"}, "client_secret_post", "post"},
		{[]string{"client_secret_post"}, "private_key_jwt", "post"},
		{[]string{"client_secret_basic"}, "none", "none"},
	} {
		as := newAuthServer(t, "")
		as.secret, as.clientID, as.method = "s3cret", "me", test.given
		as.override["token_endpoint_auth_methods_supported"] = test.listed
		if test.listed == nil {
			as.override["token_endpoint_auth_methods_supported"] = nil
		}
		c, _ := newClient(t, login.Options{})
		rs := newResource(t, as)
		welcome(t, c.HTTPClient(nil), rs.url())
		as.expire(false)
		welcome(t, c.HTTPClient(nil), rs.url())
		_, tokens, _, _ := as.seen()
		for _, form := range tokens {
			got := "none"
			switch {
			case form.Get("basic") == "me:s3cret" && !form.Has("client_secret"):
				got = "basic"
			case form.Get("client_secret") == "s3cret":
				got = "post"
			}
			if got != test.want {
				t.Errorf("listed %q, given %q: %s by %s, want %s", test.listed, test.given, form.Get("grant_type"), got, test.want)
			}
		}
	}
}

// What protects stays strict: the sign-in ends before a token is asked for.
// Proves: ruling 36, C9, C11, C19; RFC 9207, RFC 9728, section 3.3.
func TestServersRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		path    string // of the issuer
		prepare func(as *authServer, rs *resourceServer)
		says    string
	}{
		{"an issuer with a path and a slash", "/tenant", func(as *authServer, _ *resourceServer) { as.override["issuer"] = as.issuer() + "/" }, "trailing slash"},
		{"named with a slash after a path", "/tenant", func(as *authServer, rs *resourceServer) {
			rs.prm["authorization_servers"] = []string{as.issuer() + "/"}
		}, "trailing slash"},
		{"iss with another slash than the document", "", func(as *authServer, _ *resourceServer) { as.iss = as.URL + "/" }, "RFC 9207"},
		{"cloudflare/mcp-server-cloudflare#449: iss is promised and absent", "", func(as *authServer, _ *resourceServer) { as.iss = "omit" }, "RFC 9207"},
		{"anthropics/claude-ai-mcp#786: no word of PKCE", "", func(as *authServer, _ *resourceServer) {
			as.override["code_challenge_methods_supported"] = nil
		}, "code_challenge_methods_supported"},
		{"Mnexa-AI/e2a#635: the resource with another scheme", "", func(_ *authServer, rs *resourceServer) {
			rs.resource = strings.Replace(rs.url(), "http:", "https:", 1)
		}, "resource metadata is about"},
		{"a duplicate member", "", func(as *authServer, rs *resourceServer) {
			rs.handlers[prmPath] = body(200, "application/json", `{"resource":"`+rs.url()+`","authorization_servers":["https://evil.example"],"authorization_servers":["`+as.URL+`"]}`)
		}, "resource metadata"},
		{"a duplicate member of the server", "", func(as *authServer, _ *resourceServer) {
			as.handlers[asPath] = body(200, "application/json", `{"issuer":"`+as.URL+`","token_endpoint":"https://evil.example","token_endpoint":"`+as.URL+`/token"}`)
		}, "server metadata"},
		{"mesh/mesh-mcp#20: a server without TLS", "", func(_ *authServer, rs *resourceServer) {
			rs.prm["authorization_servers"] = []string{"http://as.example"}
		}, "https"},
		{"no place has a document", "", func(_ *authServer, rs *resourceServer) {
			rs.header = `Bearer resource_metadata="` + rs.URL + `/gone"`
			rs.prmPath = "/nowhere"
		}, "/gone: no document there (status 404); "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			as := newAuthServer(t, test.path)
			rs := newResource(t, as)
			test.prepare(as, rs)
			c, _ := newClient(t, login.Options{})
			_, _, err := get(t, c.HTTPClient(nil), rs.url())
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
			if _, tokens, _, _ := as.seen(); len(tokens) != 0 {
				t.Error("a token was asked for")
			}
		})
	}
}

// The error of a search in vain names every place, and why it is of no use. Proves: C20.
func TestSearchInVain(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	rs.silent = true
	rs.handlers[prmPath] = body(200, "application/json", "{}")
	rs.handlers[prmRoot] = body(200, "text/html", page)
	c, b := newClient(t, login.Options{})
	d := stopped(t, c, rs, b, login.StepMetadata)
	for _, want := range []string{rs.URL + prmPath + ": resource metadata: no resource", rs.URL + prmRoot + ": no document there (status 200)"} {
		if !strings.Contains(d.Error(), want) {
			t.Errorf("error %v, want one that says %q", d, want)
		}
	}
	change(rs, func() { delete(rs.handlers, prmPath) })
	change(as, func() {
		as.handlers[asPath] = body(200, "text/plain", "{}")
		as.handlers[oidcPath] = body(503, "text/plain", "")
	})
	c, b = newClient(t, login.Options{})
	d = stopped(t, c, rs, b, login.StepServer)
	for _, want := range []string{as.URL + asPath + ": server metadata: no issuer", as.URL + oidcPath + ": the server answered 503"} {
		if !strings.Contains(d.Error(), want) {
			t.Errorf("error %v, want one that says %q", d, want)
		}
	}
}

// A refresh token that is no good any more leads to a sign-in, however the server says so.
// Proves: C21; RFC 6749, section 5.2.
func TestDeadRefreshToken(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"as specified":            body(400, "application/json", `{"error":"invalid_grant"}`),
		"metabase/metabase#80389": body(400, "application/json", `{"error":"invalid_request","error_description":"The token request is invalid."}`),
		"dust-tt/dust#22773":      body(400, "application/json", `{"error":"invalid_refresh_token"}`),
		"supabase/auth#2829":      body(400, "application/json", `{"code":400,"error_code":"refresh_token_not_found","msg":"Invalid Refresh Token"}`),
		"a text":                  body(401, "text/plain", "Unauthorized"),
		"a page":                  body(400, "text/html", page),
		"with 200":                body(200, "application/json", `{"ok":false,"error":"token_expired"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as, rs := newServers(t)
			c, b := newClient(t, login.Options{})
			h := c.HTTPClient(nil)
			welcome(t, h, rs.url())
			as.expire(false)
			change(as, func() { as.refused = answer })
			welcome(t, h, rs.url())
			if b.visits() != 2 {
				t.Errorf("%d visits, want 2", b.visits())
			}
		})
	}
}

// An error with status 200 is one for registrations and devices, too, with its code and words.
// Proves: C21.
func TestErrorsWithSuccess(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	as.override["device_authorization_endpoint"] = as.URL + "/device"
	as.clients["me"] = url.Values{}
	refused := body(200, "application/json", `{"error":"unauthorized_client","error_description":"for partners"}`)
	as.handlers["/register"], as.handlers["/device"] = refused, refused
	registering, _ := newClient(t, login.Options{})
	device, _ := newClient(t, login.Options{
		Credentials: []login.Credentials{{Issuer: as.URL, ClientID: "me"}},
		Device:      func(context.Context, login.DevicePrompt) error { return errors.New("there is a code") },
	})
	for name, c := range map[string]*login.Client{"registration": registering, "device": device} {
		_, err := c.SignIn(t.Context(), rs.url(), nil)
		if !errors.Is(err, &oauth.Error{Code: oauth.UnauthorizedClient}) || !strings.Contains(err.Error(), "for partners") {
			t.Errorf("%s: error %v, want the code and the words", name, err)
		}
	}
}

// An answer of success that is neither tokens nor an error is not called an error that is none; the words in
// it are kept.
func TestNeitherTokensNorError(t *testing.T) {
	t.Parallel()
	for answer, words := range map[string]string{`{"token_type":"Bearer"}`: "", page: "", `{"error":{"message":"try harder"}}`: "it says: try harder"} {
		as, rs := newServers(t)
		as.handlers["/token"] = body(200, "application/json", answer)
		c, _ := newClient(t, login.Options{})
		_, _, err := get(t, c.HTTPClient(nil), rs.url())
		if err == nil || !strings.HasSuffix(err.Error(), words) || strings.Contains(err.Error(), "OAuth error") {
			t.Errorf("%s: error %v, want %q at its end", answer, err, words)
		}
	}
}

// A server that wants a key, and has a page for every address, is not taken for one whose registration is
// broken: the error says how to give a key.
func TestPagesEverywhere(t *testing.T) {
	t.Parallel()
	_, rs := newServers(t)
	rs.header, rs.prmPath = "-", "none"
	for _, place := range []string{prmPath, prmRoot, asPath, oidcPath, "/register"} {
		rs.handlers[place] = body(200, "text/html", page)
	}
	c, b := newClient(t, login.Options{})
	_, _, err := get(t, c.HTTPClient(nil), rs.url())
	if err == nil || !strings.Contains(err.Error(), "if it takes a key") || b.visits() != 0 {
		t.Errorf("error %v after %d visits, want one that tells about keys", err, b.visits())
	}
}

// A server may write what it repeats in another way than it was sent. Attack: secrets in errors.
func TestErrorsWithSecretsInOtherWriting(t *testing.T) {
	t.Parallel()
	const run = "0gAbCdEfGhIjKlMn"
	for _, written := range []string{"1%2f%2f" + run, `1\/\/` + run, "1&#47;&#47;" + run, `1\u002f\u002f` + run, "1=2F=2F" + run} {
		as, rs := newServers(t)
		as.answer = map[string]any{"refresh_token": "1//" + run}
		var log bytes.Buffer
		c, _ := newClient(t, login.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		welcome(t, c.HTTPClient(nil), rs.url())
		as.expire(false)
		change(as, func() {
			as.refused = body(400, "application/json", `{"error":"bad_refresh","message":"not known: `+written+`"}`)
		})
		welcome(t, c.HTTPClient(nil), rs.url())
		if said := log.String(); strings.Contains(said, run) || !strings.Contains(said, "not known: ") {
			t.Errorf("%s: the log is %s", written, said)
		}
	}
}

// Errors keep their words through a sign-in, without what was sent. Proves: C21. Attack: secrets in
// errors.
func TestErrorsWithSecrets(t *testing.T) {
	t.Parallel()
	for i, form := range []string{
		`{"error":{"message":"bad request: %s"}}`, `{"error":"invalid_request","error_description":"bad request: %s"}`, `{"detail":[{"msg":"bad request: %s"}]}`,
		`bad request: %s`, `<title>bad request: %s</title>`, `{"error":"bad request: %s"}`,
	} {
		as, rs := newServers(t)
		as.secret, as.method = "s3cret&more", []string{"client_secret_post", "client_secret_basic"}[i%2]
		as.handlers["/token"] = func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			as.tokens = append(as.tokens, r.PostForm)
			body(400, "text/plain", strings.Replace(form, "%s", r.PostForm.Encode()+" "+r.PostForm.Get("client_secret")+r.Header.Get("Authorization"), 1))(w, r)
		}
		c, _ := newClient(t, login.Options{})
		_, _, err := get(t, c.HTTPClient(nil), rs.url())
		if err == nil || !strings.Contains(err.Error(), "bad request: ") || !strings.Contains(err.Error(), "[hidden]") {
			t.Errorf("%s: error %v, want the server's words", form, err)
			continue
		}
		_, tokens, _, _ := as.seen()
		for name, secret := range map[string]string{
			"code": tokens[0].Get("code"), "code_verifier": tokens[0].Get("code_verifier"),
			"client_secret": as.secret, "Authorization": base64.StdEncoding.EncodeToString([]byte("client-1:s3cret%26more")),
		} {
			if secret == "" || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), url.QueryEscape(secret)) {
				t.Errorf("%s: the error shows %s: %v", form, name, err)
			}
		}
	}
}
