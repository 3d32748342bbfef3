package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/browsertest"
	"github.com/parley-mcp/parley/oauth"
)

// endsFresh is --require-fresh of the guards. A guard ends a stream, too, whose token it cannot verify within
// half of it, which a busy machine must not lead to.
const endsFresh = 20 * time.Second

// An endsSite is four processes: two authorization servers of one database, of which one is administered
// and the other one serves people, clients and guards; and two guarded MCP servers.
type endsSite struct {
	t        *testing.T
	database string
	admin    string // the address of the administered one
	first    string // the same one, for browsers
	*endsFront
	mcp, doomed string // MCP servers
	// password and otherFile are files with passwords, and guard is one with the client of the guards.
	password, otherFile, guard string
}

// endsScopes are those of the MCP servers. Of the first one, "grouped" is for the group editors.
const endsScopes = "read grouped dropped"

func newEndsSite(t *testing.T, database string) *endsSite {
	t.Helper()
	s := &endsSite{t: t, database: database, admin: "unix:" + filepath.Join(shortDir(t), "s"), endsFront: newEndsFront(t)}
	s.password, s.otherFile, s.guard = kept(t, "correct-horse"), kept(t, "battery-staple"), clientFile(t, "")
	s.first = s.serve(database, "--admin", s.admin)
	var listens []string
	for _, address := range []*string{&s.mcp, &s.doomed} {
		port, err := pickPort()
		if err != nil {
			t.Fatal(err)
		}
		listens = append(listens, "127.0.0.1:"+port)
		*address = "http://127.0.0.1:" + port + "/mcp"
		add := []string{"resource", "add", *address}
		for scope := range strings.FieldsSeq(endsScopes) {
			add = append(add, "--scope", scope)
		}
		s.operate(add...)
	}
	s.operate("resource", "scope", s.mcp, "grouped", "--group", "editors")
	// A server that runs knows of a resource a second after it was added at another one; this one
	// begins with all.
	s.to(s.serve(database))
	for _, listen := range listens {
		within := startChild(t, `token end within (\S+)`, "serve", "everything", "--http", listen, "--auth", s.issuer,
			"--introspect", s.guard, "--require-fresh", endsFresh.String())
		if within != endsFresh.String() {
			t.Errorf("access ends within %s, want %v", within, endsFresh)
		}
	}
	return s
}

// serve starts an authorization server, and returns its address.
func (s *endsSite) serve(database string, flags ...string) string {
	s.t.Helper()
	return "http://" + startChild(s.t, `listening on ([^)]+)\)`, append([]string{
		"auth", "serve", "--http", "127.0.0.1:0", "--database", database, "--issuer", s.issuer, "--introspector", s.guard,
	}, flags...)...)
}

// operate does an act at the server that is administered, and returns what it prints.
func (s *endsSite) operate(args ...string) string {
	s.t.Helper()
	return s.run(append(args, "--admin", s.admin))
}

// onDatabase does an act on the database, beside the servers.
func (s *endsSite) onDatabase(args ...string) string {
	s.t.Helper()
	return s.run(append(args, "--database", s.database))
}

func (s *endsSite) run(args []string) string {
	s.t.Helper()
	code, out, said := command(s.t, append([]string{"auth"}, args...)...)
	if code != 0 {
		s.t.Fatalf("auth %v ended with %d\n%s%s", args, code, out, said)
	}
	return out
}

// An endsFront is the public address of the authorization servers. All that comes goes to one of
// them; it counts the questions about tokens.
type endsFront struct {
	issuer string

	mu     sync.Mutex
	target *url.URL
	asked  map[string]int // by token
	more   chan struct{}  // closed at the next question
}

func newEndsFront(t *testing.T) *endsFront {
	t.Helper()
	f := &endsFront{asked: map[string]int{}, more: make(chan struct{})}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		f.mu.Lock()
		r.SetURL(f.target)
		f.mu.Unlock()
		r.Out.Host = r.In.Host
	}}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/introspect" {
			body, err := io.ReadAll(r.Body)
			form, malformed := url.ParseQuery(string(body))
			if err != nil || malformed != nil {
				t.Errorf("a question that cannot be read: %v, %v", err, malformed)
			}
			f.note(form.Get("token"))
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(ts.Close)
	f.issuer = ts.URL
	return f
}

// to names the server that is behind it from now on.
func (f *endsFront) to(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.target, _ = url.Parse(address) // the program said it
}

func (f *endsFront) note(token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[token]++
	close(f.more)
	f.more = make(chan struct{})
}

// count is how often a token was asked about, and a channel that is closed at the next question.
func (f *endsFront) count(token string) (int, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[token], f.more
}

// A holder is a user with all that an act may end: a browser, a code that waits, and tokens of which one
// has a stream open. The client is the user's own.
type holder struct {
	*browsertest.Browser
	site                  *endsSite
	name, scope, mcp      string
	verifier              string
	code, access, refresh string
	stream                <-chan struct{} // closed when the stream ends
	acted                 time.Time       // when the act was over
	asked                 int             // how often the issuer was asked about the access token until then
}

func (s *endsSite) newHolder(name, scope, mcp string) *holder {
	s.t.Helper()
	s.operate("user", "add", name, "--password-file", s.password)
	s.operate("client", "add", name, "--redirect-uri", killRedirect)
	if strings.Contains(scope, "grouped") {
		s.operate("group", "add", "editors", name)
	}
	h := &holder{site: s, name: name, scope: scope, mcp: mcp, verifier: oauth.NewVerifier(), Browser: browserOf()}
	h.code = h.signIn(h.Browser)
	answer := h.token(h.byCode())
	if answer.Access == "" || answer.Refresh == "" || answer.Scope != scope {
		s.t.Fatalf("%s gets %+v", name, answer)
	}
	h.access, h.refresh = answer.Access, answer.Refresh
	h.stream = h.listen()
	return h
}

// waitingCode gets a code, which is valid for a minute.
func (h *holder) waitingCode() {
	h.site.t.Helper()
	page := h.ask(h.site.first, h.scope) // the other server has the session too
	if h.code = codeOf(page); h.code == "" {
		h.site.t.Fatalf("%s is not signed in: %s", h.name, page.Body)
	}
}

// browserOf is a browser that is not sent on to the client.
func browserOf() *browsertest.Browser {
	b := browsertest.New()
	b.Follows = func(u *url.URL) bool { return !strings.HasPrefix(u.String(), killRedirect) }
	return b
}

func codeOf(p *browsertest.Page) string {
	if p.Away == nil {
		return ""
	}
	return p.Away.Query().Get("code")
}

func (h *holder) request(server, scope string) string {
	return server + "/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {h.name}, "redirect_uri": {killRedirect}, "scope": {scope},
		"code_challenge": {oauth.ChallengeS256(h.verifier)}, "code_challenge_method": {"S256"}, "resource": {h.mcp},
	}.Encode()
}

// signIn signs in with a password and agrees, and returns the code.
func (h *holder) signIn(b *browsertest.Browser) string {
	t := h.site.t
	t.Helper()
	p, err := b.FillIn(t.Context(), h.request(h.site.issuer, h.scope), url.Values{"name": {h.name}, "password": {"correct-horse"}, "answer": {"approve"}})
	if err != nil {
		t.Fatal(err)
	}
	code := codeOf(p)
	if code == "" {
		t.Fatalf("%s cannot sign in: %d %v %s", h.name, p.Status, p.Away, p.Body)
	}
	return code
}

// ask asks a server for a code, and answers no question.
func (h *holder) ask(server, scope string) *browsertest.Page {
	return h.page(h.Open(h.site.t.Context(), h.request(server, scope)))
}

func (h *holder) page(p *browsertest.Page, err error) *browsertest.Page {
	h.site.t.Helper()
	if err != nil {
		h.site.t.Fatal(err)
	}
	return p
}

func (h *holder) byCode() url.Values {
	return url.Values{
		"grant_type": {oauth.GrantAuthorizationCode}, "code": {h.code}, "code_verifier": {h.verifier}, "redirect_uri": {killRedirect},
	}
}

// A tokenAnswer is what the token endpoint answers.
type tokenAnswer struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope"`
	Error   string `json:"error"`
}

func (h *holder) token(form url.Values) (answer tokenAnswer) {
	h.site.t.Helper()
	form.Set("client_id", h.name)
	form.Set("resource", h.mcp)
	raw := post(h.site.t, h.site.issuer+"/token", "application/x-www-form-urlencoded", form.Encode(), nil)
	if err := json.Unmarshal(raw, &answer); err != nil || (answer.Access == "") == (answer.Error == "") {
		h.site.t.Errorf("%s gets %s, error %v", h.name, raw, err)
	}
	return answer
}

// listen opens a stream with the access token.
func (h *holder) listen() <-chan struct{} {
	t := h.site.t
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	response := request(ctx, t, h.mcp, h.access, "subscriptions/listen", `"notifications":{"toolsListChanged":true},`) //nolint:bodyclose // the goroutine below does
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: no stream: %s %q %v", h.name, response.Status, line, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, lines) // ends with the stream
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return ended
}

// session is the ID of the user's one session.
func (h *holder) session() string {
	h.site.t.Helper()
	var list struct{ Sessions []struct{ ID string } }
	out := h.site.operate("session", "list", "--user", h.name, "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Sessions) != 1 {
		h.site.t.Fatalf("sessions of %s: %s, error %v", h.name, out, err)
	}
	return list.Sessions[0].ID
}

// key is the ID of the key that signed the access token.
func (h *holder) key() string {
	h.site.t.Helper()
	head, _, _ := strings.Cut(h.access, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	var header struct {
		Key string `json:"kid"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &header)
	}
	if err != nil || header.Key == "" {
		h.site.t.Fatalf("the key of a token: %q, error %v", raw, err)
	}
	return header.Key
}

// within tries until it is true. The last try is the first that begins after the bound.
func within(from time.Time, bound time.Duration, try func() bool) bool {
	for {
		late := time.Since(from) > bound
		if try() {
			return true
		}
		if late {
			return false
		}
		<-time.After(20 * time.Millisecond)
	}
}
