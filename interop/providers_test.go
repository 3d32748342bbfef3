package interop_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-mcp/parley/app/servers/everything"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A habit is how an authorization server, and a resource that names it, differ from what the
// specifications say: a row of testdata/providers.json. In its texts {as} and {rs} stand for their
// addresses. Members that are null are null in the documents.
type habit struct {
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

// The scopes of the protected server: each request needs one, and the tool add another.
const addScope = "sums:write"

// A fakeProvider is an authorization server with a habit, and a resource that it guards.
type fakeProvider struct {
	habit
	as, rs *site
	inner  http.Handler // the MCP server

	mu     sync.Mutex
	codes  map[string]url.Values // authorization requests
	access map[string]string     // scopes by token
	tokens []url.Values          // token requests
	faults []string
}

func newProvider(t *testing.T, h habit) *fakeProvider {
	t.Helper()
	p := &fakeProvider{habit: h, as: newSite(t), rs: newSite(t), codes: map[string]url.Values{}, access: map[string]string{}}
	handler := streamable.NewHandler(everything.New("1.0.0", nil), nil)
	p.inner = handler
	p.as.serve(http.HandlerFunc(p.serveServer))
	p.rs.serve(http.HandlerFunc(p.serveResource))
	t.Cleanup(func() {
		if err := handler.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return p
}

// fill puts the members of a habit into a document.
func (p *fakeProvider) fill(document map[string]any, members map[string]any) map[string]any {
	for name, value := range members {
		if text, ok := value.(string); ok {
			value = strings.NewReplacer("{as}", p.as.url, "{rs}", p.rs.url).Replace(text)
		}
		document[name] = value
	}
	return document
}

func (p *fakeProvider) reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", cmp.Or(p.DocumentType, "application/json"))
	w.WriteHeader(status)
	if p.Mark {
		_, _ = io.WriteString(w, "\uFEFF")
	}
	_ = json.NewEncoder(w).Encode(v)
}

// answered reports whether a path has an answer of its own.
func (p *fakeProvider) answered(w http.ResponseWriter, r *http.Request) bool {
	a, ok := p.Answers[r.URL.Path]
	if ok {
		w.Header().Set("Content-Type", a.Type)
		w.WriteHeader(a.Status)
		_, _ = io.WriteString(w, a.Body)
	}
	return ok
}

func (p *fakeProvider) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

func (p *fakeProvider) serveServer(w http.ResponseWriter, r *http.Request) {
	base := p.as.url + p.Path
	switch r.URL.Path {
	case cmp.Or(p.ServerPlace, "/.well-known/oauth-authorization-server"+p.Path):
		p.reply(w, 200, p.fill(map[string]any{
			"issuer": base + p.Issuer, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
			"registration_endpoint": base + "/register", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported":      []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"}, "scopes_supported": []string{addScope},
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
func (p *fakeProvider) consent(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!DOCTYPE html><title>Sign in</title><form method="post"><button id="allow" name="answer" value="approve">Allow</button></form>`)
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
		answer.Set("iss", p.as.url+p.Path+p.Issuer)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

func (p *fakeProvider) register(w http.ResponseWriter, r *http.Request) {
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

func (p *fakeProvider) token(w http.ResponseWriter, r *http.Request) {
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

func (p *fakeProvider) serveResource(w http.ResponseWriter, r *http.Request) {
	const known = "/.well-known/oauth-protected-resource/mcp"
	place := cmp.Or(p.ResourcePlace, known)
	switch r.URL.Path {
	case place:
		id := p.rs.url + "/mcp"
		if p.Slash {
			id += "/"
		}
		p.reply(w, 200, p.fill(map[string]any{"resource": id, "authorization_servers": []string{p.as.url + p.Path + p.Named}}, p.Resource))
		return
	case "/mcp":
	default:
		if !p.answered(w, r) {
			http.NotFound(w, r)
		}
		return
	}
	refuse := func(status int, params string) {
		challenge := `Bearer resource_metadata="` + p.rs.url + place + `"` + params
		if p.Challenge != nil && status == http.StatusUnauthorized {
			challenge = strings.ReplaceAll(*p.Challenge, "{rs}", p.rs.url)
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
		!slices.Contains(strings.Fields(scope), addScope) {
		refuse(http.StatusForbidden, `, error="insufficient_scope", scope="`+addScope+`"`)
		return
	}
	p.inner.ServeHTTP(w, r)
}

// expire ends all access tokens.
func (p *fakeProvider) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.access)
}

// grants are the kinds of the token requests so far.
func (p *fakeProvider) grants() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kinds []string
	for _, form := range p.tokens {
		kinds = append(kinds, form.Get("grant_type"))
	}
	return kinds
}

// authorizeURL is the address that the program shows.
var authorizeURL = regexp.MustCompile(`\n  (http://\S+/authorize\?\S+)\n`)

// A personAt runs commands of the program, and goes to the addresses that they show.
type personAt struct {
	t       *testing.T
	program string
	home    string
	open    func(ctx context.Context, u *url.URL) error
}

// run runs a command to its end.
func (w *personAt) run(args ...string) (out, said string, err error) {
	w.t.Helper()
	ctx := bounded(w.t)
	cmd := exec.CommandContext(ctx, w.program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "XDG_CONFIG_HOME=" + w.home}
	shown := &watched{look: func(text string) bool {
		found := authorizeURL.FindStringSubmatch(text)
		return found != nil
	}, found: make(chan struct{})}
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, shown
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-shown.found:
		u, err := url.Parse(authorizeURL.FindStringSubmatch(shown.String())[1])
		if err == nil {
			err = w.open(ctx, u)
		}
		if err != nil {
			w.t.Errorf("the browser: %v", err)
			_ = cmd.Process.Kill()
		}
		err = <-ended
		return stdout.String(), shown.String(), err
	case err := <-ended:
		return stdout.String(), shown.String(), err
	}
}

// watched is what a program says, until something is in it and on.
type watched struct {
	mu    sync.Mutex
	text  bytes.Buffer
	look  func(text string) bool
	found chan struct{}
	done  bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if !w.done && w.look(w.text.String()) {
		w.done = true
		close(w.found)
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// The program's own command signs in to servers with the habits of those that exist: in a real browser
// if there is one, else in one without a screen. Then an expired token is refreshed, and a scope that is
// missing is asked for. Proves: rulings 36, 37; C3, C7, C11, C19, C20.
func TestProviders(t *testing.T) {
	raw, err := os.ReadFile("testdata/providers.json")
	if err != nil {
		t.Fatal(err)
	}
	var habits []habit
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&habits); err != nil {
		t.Fatal(err)
	}
	parley, err := buildParley()
	if err != nil {
		t.Fatal(err)
	}
	open := func(ctx context.Context, u *url.URL) error { return newBrowser(t, nil).open(ctx, u) }
	if os.Getenv("PARLEY_TEST_CHROMIUM") != "" {
		do := chromium(t)
		open = func(_ context.Context, u *url.URL) error {
			return do(chromedp.Navigate(u.String()), chromedp.WaitVisible("#allow", chromedp.ByQuery),
				chromedp.Click("#allow", chromedp.ByQuery), chromedp.WaitNotPresent("#allow", chromedp.ByQuery))
		}
	}
	for _, h := range habits {
		t.Run(h.Name, func(t *testing.T) {
			p := newProvider(t, h)
			w := &personAt{t: t, program: parley, home: t.TempDir(), open: open}
			address := p.rs.url + "/mcp"
			login := []string{"login", address}
			if h.Client.ID != "" {
				login = append(login, "--client-id", h.Client.ID)
				if h.Client.Secret != "" {
					file := filepath.Join(w.home, "secret")
					if err := os.WriteFile(file, []byte(h.Client.Secret+"\n"), 0o600); err != nil {
						t.Fatal(err)
					}
					login = append(login, "--client-secret-file", file)
				}
			}
			must := func(want string, args ...string) {
				t.Helper()
				out, said, err := w.run(args...)
				if err != nil || !strings.Contains(out, want) {
					t.Fatalf("parley %s: %v\n%s%s\nfaults: %q", strings.Join(args, " "), err, out, said, p.faults)
				}
				if h.Client.Secret != "" && strings.Contains(out+said, h.Client.Secret) {
					t.Errorf("parley %s shows the secret:\n%s%s", args[0], out, said)
				}
			}
			must("signed in to", login...)
			must("hello", "call", "echo", "message=hello", "--server", address)
			p.expire()
			must("again", "call", "echo", "message=again", "--server", address)
			if got := p.grants(); !slices.Contains(got, oauth.GrantRefreshToken) || slices.Index(got, oauth.GrantAuthorizationCode) != 0 {
				t.Errorf("token requests %q, want a refresh", got)
			}
			_, said, err := w.run("call", "add", "a=2", "b=3", "--server", address)
			if err == nil || !strings.Contains(said, "parley login "+address+" --scope "+addScope) {
				t.Errorf("without the scope: %v, %s", err, said)
			}
			must("signed in to", "login", address, "--scope", addScope)
			must("5", "call", "add", "a=2", "b=3", "--server", address)
			if len(p.faults) > 0 {
				t.Errorf("the server saw %q", p.faults)
			}
		})
	}
}
