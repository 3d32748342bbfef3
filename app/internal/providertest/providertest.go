// Package providertest has authorization servers with the habits of those that exist, for tests of
// signing in.
package providertest

import (
	"bytes"
	"cmp"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/oauth"
)

//go:embed providers.json
var habits []byte

// Habits returns the rows of providers.json.
func Habits(tb testing.TB) []Habit {
	tb.Helper()
	var all []Habit
	d := json.NewDecoder(bytes.NewReader(habits))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		tb.Fatal(err)
	}
	return all
}

// A Habit is how an authorization server, and a resource that names it, differ from what the
// specifications say: a row of providers.json. In its texts {as} and {rs} stand for their
// addresses. Members that are null are null in the documents.
type Habit struct {
	Name    string   // of the provider that has it, or what it is
	About   string   // what it is
	Reports []string // where it was seen: owner/repository#number
	Path    string   // of the issuer
	Issuer  string   // what the issuer ends in, such as a slash
	Named   string   // what it ends in where the resource names it
	Slash   bool     // the resource has a slash that its URL has not

	ServerPlace, ResourcePlace            string // of the documents
	Server, Resource, Registration, Token map[string]any
	DocumentType                          string // Content-Type of documents
	Mark                                  bool   // documents and answers begin with a byte order mark
	Answers                               map[string]struct {
		Status     int
		Type, Body string
	} // by path
	Challenge *string // the whole one; empty: none

	// Client is registered by hand if it has an ID; else what a registration gives.
	Client struct{ ID, Secret, Method string }

	TokenStatus      int
	Scopes           string // of token responses: commas, list, or empty as specified
	NoIss            bool   // responses have none
	KeepsRefresh     bool   // a refresh gives no new refresh token
	RefusedInRefresh string // a parameter
}

// AddScope is the scope that the tool add needs.
const AddScope = "sums:write"

// A Provider is an authorization server with a habit, and a resource that it guards.
type Provider struct {
	Habit
	as, rs *httptest.Server
	inner  http.Handler // the MCP server

	mu     sync.Mutex
	codes  map[string]url.Values // authorization requests
	access map[string]string     // scopes by token
	tokens []url.Values          // token requests
	faults []string
}

// New serves a provider until the test ends. inner is the MCP server behind it.
func New(tb testing.TB, h *Habit, inner http.Handler) *Provider {
	tb.Helper()
	p := &Provider{Habit: *h, inner: inner, codes: map[string]url.Values{}, access: map[string]string{}}
	// Each knows the address of the other before the first request.
	p.as, p.rs = httptest.NewServer(http.HandlerFunc(p.serveServer)), httptest.NewServer(http.HandlerFunc(p.serveResource))
	for _, s := range []*httptest.Server{p.as, p.rs} {
		tb.Cleanup(func() {
			s.CloseClientConnections()
			s.Close()
		})
	}
	return p
}

// fill puts the members of a habit into a document.
func (p *Provider) fill(document map[string]any, members map[string]any) map[string]any {
	for name, value := range members {
		if text, ok := value.(string); ok {
			value = strings.NewReplacer("{as}", p.as.URL, "{rs}", p.rs.URL).Replace(text)
		}
		document[name] = value
	}
	return document
}

func (p *Provider) reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", cmp.Or(p.DocumentType, "application/json"))
	w.WriteHeader(status)
	if p.Mark {
		_, _ = io.WriteString(w, "\uFEFF")
	}
	_ = json.NewEncoder(w).Encode(v)
}

// answered reports whether a path has an answer of its own.
func (p *Provider) answered(w http.ResponseWriter, r *http.Request) bool {
	a, ok := p.Answers[r.URL.Path]
	if ok {
		w.Header().Set("Content-Type", a.Type)
		w.WriteHeader(a.Status)
		_, _ = io.WriteString(w, a.Body)
	}
	return ok
}

func (p *Provider) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

func (p *Provider) serveServer(w http.ResponseWriter, r *http.Request) {
	base := p.as.URL + p.Path
	switch r.URL.Path {
	case cmp.Or(p.ServerPlace, "/.well-known/oauth-authorization-server"+p.Path):
		p.reply(w, 200, p.fill(map[string]any{
			"issuer": base + p.Issuer, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
			"registration_endpoint": base + "/register", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported":      []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"}, "scopes_supported": []string{AddScope},
			"authorization_response_iss_parameter_supported": !p.NoIss,
		}, p.Server))
	case p.Path + "/authorize":
		p.consent(w, r)
	case p.Path + "/register":
		p.register(w, r)
	case p.Path + "/token":
		p.token(w, r)
	default:
		if !p.answered(w, r) {
			http.NotFound(w, r)
		}
	}
}

// consent shows a page with a button, which leads back to the client.
func (p *Provider) consent(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><title>Sign in</title><form method="post" action="%s"><button id="allow" name="answer" value="approve">Allow</button></form>`,
			html.EscapeString(r.URL.RequestURI()))
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = q
	p.mu.Unlock()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("code_challenge_method") != "S256" {
		p.fault("authorization request %v", q)
	}
	answer := url.Values{"code": {code}, "state": {q.Get("state")}}
	if !p.NoIss {
		answer.Set("iss", p.as.URL+p.Path+p.Issuer)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

func (p *Provider) register(w http.ResponseWriter, r *http.Request) {
	var asked map[string]any
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || p.Client.ID != "" {
		p.fault("a registration that was not wanted: %v", err)
	}
	answer := map[string]any{"client_id": "registered", "redirect_uris": asked["redirect_uris"]}
	if p.Client.Secret != "" {
		answer["client_secret"] = p.Client.Secret
	}
	p.reply(w, 201, p.fill(answer, p.Registration))
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	form := r.PostForm
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens = append(p.tokens, form)
	id, secret, basic := r.BasicAuth()
	method := "none"
	switch {
	case basic:
		method = "client_secret_basic"
	case form.Has("client_secret"):
		id, secret, method = form.Get("client_id"), form.Get("client_secret"), "client_secret_post"
	default:
		id = form.Get("client_id")
	}
	refuse := func(code, why string) { p.reply(w, 400, map[string]any{"error": code, "error_description": why}) }
	if id != cmp.Or(p.Client.ID, "registered") || secret != p.Client.Secret || method != cmp.Or(p.Client.Method, "none") {
		refuse(oauth.InvalidClient, "client "+id+" by "+method)
		return
	}
	var scope string
	switch form.Get("grant_type") {
	case oauth.GrantAuthorizationCode:
		q := p.codes[form.Get("code")]
		delete(p.codes, form.Get("code"))
		if q == nil || !oauth.VerifyS256(form.Get("code_verifier"), q.Get("code_challenge")) ||
			form.Get("redirect_uri") != q.Get("redirect_uri") || form.Get("resource") != q.Get("resource") || form.Get("resource") == "" {
			refuse(oauth.InvalidGrant, "no such code")
			return
		}
		scope = q.Get("scope")
	case oauth.GrantRefreshToken:
		if form.Has(p.RefusedInRefresh) {
			refuse(oauth.InvalidRequest, p.RefusedInRefresh+" is not known here")
			return
		}
		known, ok := strings.CutPrefix(form.Get("refresh_token"), "refresh:")
		if !ok {
			refuse(oauth.InvalidGrant, "no such refresh token")
			return
		}
		scope, _ = url.QueryUnescape(known)
	}
	token := rand.Text()
	p.access[token] = scope
	answer := map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600, "scope": scope}
	switch list := strings.Fields(scope); p.Scopes {
	case "commas":
		answer["scope"] = strings.Join(list, ",")
	case "list":
		answer["scope"] = list
	}
	if !p.KeepsRefresh || form.Get("grant_type") != oauth.GrantRefreshToken {
		answer["refresh_token"] = "refresh:" + url.QueryEscape(scope)
	}
	p.reply(w, cmp.Or(p.TokenStatus, 200), p.fill(answer, p.Token))
}

func (p *Provider) serveResource(w http.ResponseWriter, r *http.Request) {
	const known = "/.well-known/oauth-protected-resource/mcp"
	place := cmp.Or(p.ResourcePlace, known)
	switch r.URL.Path {
	case place:
		id := p.rs.URL + "/mcp"
		if p.Slash {
			id += "/"
		}
		p.reply(w, 200, p.fill(map[string]any{"resource": id, "authorization_servers": []string{p.as.URL + p.Path + p.Named}}, p.Resource))
		return
	case "/mcp":
	default:
		if !p.answered(w, r) {
			http.NotFound(w, r)
		}
		return
	}
	refuse := func(status int, params string) {
		challenge := `Bearer resource_metadata="` + p.rs.URL + place + `"` + params
		if p.Challenge != nil && status == http.StatusUnauthorized {
			challenge = strings.ReplaceAll(*p.Challenge, "{rs}", p.rs.URL)
		}
		if challenge != "" {
			w.Header().Set("WWW-Authenticate", challenge)
		}
		w.WriteHeader(status)
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	p.mu.Lock()
	scope, ok := p.access[token]
	p.mu.Unlock()
	if !ok {
		refuse(http.StatusUnauthorized, "")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var message struct {
		Method string
		Params struct{ Name string }
	}
	if err := json.Unmarshal(body, &message); err == nil && message.Method == "tools/call" && message.Params.Name == "add" &&
		!slices.Contains(strings.Fields(scope), AddScope) {
		refuse(http.StatusForbidden, `, error="insufficient_scope", scope="`+AddScope+`"`)
		return
	}
	p.inner.ServeHTTP(w, r)
}

// SignIn signs in by the command login, calls a tool, has the token refreshed, and asks for one more
// scope. run runs the program with a person at a browser who agrees to everything.
func (p *Provider) SignIn(tb testing.TB, run func(args ...string) (code int, out, said string)) {
	tb.Helper()
	address := p.rs.URL + "/mcp"
	must := func(want string, args ...string) {
		tb.Helper()
		code, out, said := run(args...)
		if code != 0 || !strings.Contains(out, want) {
			tb.Fatalf("parley %s ended with %d:\n%s%s\nthe server saw %q", strings.Join(args, " "), code, out, said, p.seen())
		}
		if p.Client.Secret != "" && strings.Contains(out+said, p.Client.Secret) {
			tb.Errorf("parley %s shows the secret:\n%s%s", args[0], out, said)
		}
	}
	login := []string{"login", address}
	if p.Client.ID != "" {
		login = append(login, "--client-id", p.Client.ID)
		if p.Client.Secret != "" {
			file := filepath.Join(tb.TempDir(), "secret")
			if err := os.WriteFile(file, []byte(p.Client.Secret+"\n"), 0o600); err != nil {
				tb.Fatal(err)
			}
			login = append(login, "--client-secret-file", file)
		}
	}
	must("signed in to", login...)
	must("hello", "call", "echo", "message=hello", "--server", address)
	p.mu.Lock()
	clear(p.access) // all tokens are over
	p.mu.Unlock()
	must("again", "call", "echo", "message=again", "--server", address)
	if kinds := p.grants(); kinds[0] != oauth.GrantAuthorizationCode || !slices.Contains(kinds, oauth.GrantRefreshToken) {
		tb.Errorf("token requests %q, want a refresh", kinds)
	}
	code, _, said := run("call", "add", "a=2", "b=3", "--server", address)
	if code == 0 || !strings.Contains(said, "parley login "+address+" --scope "+AddScope) {
		tb.Errorf("without the scope: %d, %s", code, said)
	}
	must("signed in to", "login", address, "--scope", AddScope)
	must("5", "call", "add", "a=2", "b=3", "--server", address)
	if faults := p.seen(); len(faults) > 0 {
		tb.Errorf("the server saw %q", faults)
	}
}

// grants are the kinds of the token requests so far.
func (p *Provider) grants() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kinds []string
	for _, form := range p.tokens {
		kinds = append(kinds, form.Get("grant_type"))
	}
	return kinds
}

// seen are the requests that were wrong.
func (p *Provider) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}
