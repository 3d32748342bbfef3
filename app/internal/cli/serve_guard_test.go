package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/oauth"
)

// A peer is an authorization server that says of tokens what the test says, and has no keys.
type peer struct {
	*httptest.Server
	status atomic.Int64
	body   atomic.Pointer[string]
	asked  atomic.Int64
	hang   atomic.Bool
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	p := new(peer)
	p.says(200, `{"active":false}`)
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "introspection_endpoint": p.URL + "/introspect"})
	})
	mux.HandleFunc("/introspect", func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // before the end of the connection can be noticed
		if p.hang.Load() {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(p.status.Load()))
		_, _ = io.WriteString(w, *p.body.Load())
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(func() { p.CloseClientConnections(); p.Close() })
	return p
}

func (p *peer) says(status int, body string) {
	p.body.Store(&body)
	p.status.Store(int64(status))
}

const guardSecret = "secret-of-the-guard-0123456789"

// clientFile is a file with the client of a guard, for an issuer if it is not "".
func clientFile(t *testing.T, issuer string) string {
	t.Helper()
	client := map[string]string{"client_id": "guard", "client_secret": guardSecret}
	if issuer != "" {
		client["issuer"] = issuer
	}
	text, err := json.Marshal(client)
	if err != nil {
		t.Fatal(err)
	}
	return keyFile(t, string(text))
}

// A head is an answer without its body.
type head struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// present asks a guarded server with a token.
func present(t *testing.T, address, token string) head {
	t.Helper()
	response := request(t.Context(), t, address, token, "server/discover", "")
	defer response.Body.Close()
	return head{response.StatusCode, response.Status, response.Header}
}

// request sends a request of the newest revision with a token.
func request(ctx context.Context, t *testing.T, address, token, method, params string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+
		`","params":{`+params+`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method,
	} {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// accessToken signs ada in at an authorization server of newGuardedIssuer for a resource.
func accessToken(t *testing.T, issuer, resource string) string {
	t.Helper()
	verifier := oauth.NewVerifier()
	end, err := endOf(t.Context(), strings.Replace(authorizeURL(issuer, verifier), url.QueryEscape(killResource), url.QueryEscape(resource), 1))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(end)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Access string `json:"access_token"`
	}
	body := post(t, issuer+"/token", "application/x-www-form-urlencoded", url.Values{
		"grant_type": {oauth.GrantAuthorizationCode}, "code": {u.Query().Get("code")}, "code_verifier": {verifier},
		"redirect_uri": {killRedirect}, "client_id": {killClient}, "resource": {resource},
	}.Encode(), nil)
	if err := json.Unmarshal(body, &answer); err != nil || answer.Access == "" {
		t.Fatalf("no token: %s", body)
	}
	return answer.Access
}

// A server whose issuer is asked takes opaque tokens, and says 503 with Retry-After, not 401, for as
// long as it cannot ask. Attack: an issuer that errs, lies, is slow or away.
// Proves: RFC 7662, section 2.2 and 2.3, through the command.
func TestServeIntrospect(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	p, issuer := newEmptyPlace(t), newPeer(t)
	address := p.start(`serving "everything" at (\S+);`, "serve", "everything", "--http", "127.0.0.1:0", "-v",
		"--auth", issuer.URL, "--introspect", clientFile(t, ""), "--require-fresh", "3s")
	good := `{"active":true,"sub":"ada","client_id":"app","aud":"` + address + `","scope":"x"`
	for i, test := range []struct {
		what   string
		status int
		body   string
		want   int
	}{
		{"inactive", 200, `{"active":false}`, 401},
		{"active", 200, good + `}`, 200},
		{"of another issuer", 200, good + `,"iss":"` + issuer.URL + `/"}`, 401},
		{"for another resource", 200, `{"active":true,"sub":"ada","aud":"https://mcp.example/mcp"}`, 401},
		{"nonsense", 200, `<html>`, 503},
		{"another type", 200, `{"active":"yes"}`, 503},
		{"the client is refused", 401, `{"error":"invalid_client"}`, 503},
		{"an error", 500, ``, 503},
		{"too many", 429, ``, 503},
		{"a redirect", 302, ``, 503},
	} {
		issuer.says(test.status, test.body)
		got := present(t, address, fmt.Sprintf("opaque-token-%d", i))
		if got.StatusCode != test.want || (got.Header.Get("Retry-After") != "") != (test.want == 503) {
			t.Errorf("%s: %s, Retry-After %q, want %d", test.what, got.Status, got.Header.Get("Retry-After"), test.want)
		}
		if challenged := got.Header.Get("Www-Authenticate") != ""; challenged != (test.want == 401) {
			t.Errorf("%s: a challenge: %v", test.what, challenged)
		}
	}
	issuer.says(200, good+`}`)
	issuer.hang.Store(true)
	if got := present(t, address, "opaque-token-slow"); got.StatusCode != 503 {
		t.Errorf("slow: %s", got.Status)
	}
	issuer.hang.Store(false)
	// What a client sees of a token that was revoked, on a stream that is open.
	response := request(t.Context(), t, address, "opaque-token-stream", "subscriptions/listen", `"notifications":{"toolsListChanged":true},`)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("%s: %q, %v", response.Status, line, err)
	}
	issuer.says(200, `{"active":false}`)
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Error(err)
	}
	if got := present(t, address, "opaque-token-stream"); got.StatusCode != 401 {
		t.Errorf("after the stream ended: %s", got.Status)
	}
	issuer.CloseClientConnections()
	issuer.Close()
	if got := present(t, address, "opaque-token-away"); got.StatusCode != 503 || got.Header.Get("Retry-After") == "" {
		t.Errorf("away: %s", got.Status)
	}
	if said := p.said.String(); strings.Contains(said, "opaque-token") || strings.Contains(said, guardSecret) {
		t.Errorf("a secret was shown:\n%s", said)
	}
}

// Our server behind our guard: what an operator ends is refused within the bound, on a stream too.
func TestServeRequireFresh(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	p := newEmptyPlace(t)
	port, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	address, file, database := "http://127.0.0.1:"+port+"/mcp", clientFile(t, ""), filepath.Join(p.dir, "issuer.db")
	issuer := p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--database", database,
		"--auto-approve", "ada", "--client", killClient+"="+killRedirect, "--resource", address+"=read", "--introspector", file)
	p.start(`serving "everything" at (\S+);`, "serve", "everything", "--http", "127.0.0.1:"+port,
		"--auth", issuer, "--introspect", file, "--require-fresh", "3s")
	token := accessToken(t, issuer, address)
	if got := present(t, address, token); got.StatusCode != 200 {
		t.Fatalf("a good token: %s", got.Status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	response := request(ctx, t, address, token, "subscriptions/listen", `"notifications":{"toolsListChanged":true},`)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("%s: %q, %v", response.Status, line, err)
	}
	if code, out, said := command(t, "auth", "grant", "revoke", "--client", killClient, "--database", database); code != 0 || out != "revoked: 1\n" {
		t.Fatalf("%d %s%s", code, out, said)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Errorf("the stream did not end: %v", err)
	}
	if got := present(t, address, token); got.StatusCode != 401 {
		t.Errorf("after the grant was revoked: %s", got.Status)
	}
	// A client that may introspect gets no tokens.
	body := post(t, issuer+"/token", "application/x-www-form-urlencoded", url.Values{
		"grant_type": {oauth.GrantClientCredentials}, "resource": {address}, "client_id": {"guard"}, "client_secret": {guardSecret},
	}.Encode(), nil)
	if strings.Contains(string(body), "access_token") {
		t.Error("a client that introspects got a token")
	}
}

// Two authorization servers: each token is good by the server that it names, the same person of both
// is two, and one that is away does not matter to the tokens of the other.
// Proves: RFC 9728, section 2 (authorization_servers). Attack: mix-up of issuers.
func TestServeSeveralIssuers(t *testing.T) {
	p := newEmptyPlace(t)
	port, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	address := "http://127.0.0.1:" + port + "/mcp"
	serve := func() string {
		return p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--database",
			filepath.Join(t.TempDir(), "issuer.db"), "--auto-approve", "ada", "--client", killClient+"="+killRedirect, "--resource", address+"=read")
	}
	third := serve()
	one := serve()
	two := serve()
	stopTwo := p.stop
	asked := newPeer(t)
	p.start(`serving "everything" at (\S+);`, "serve", "everything", "--http", "127.0.0.1:"+port,
		"--auth", one, "--auth", two, "--auth", asked.URL, "--introspect", clientFile(t, asked.URL), "-v")
	var metadata oauth.ResourceMetadata
	response, err := http.Get("http://127.0.0.1:" + port + "/.well-known/oauth-protected-resource/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&metadata); err != nil || strings.Join(metadata.AuthorizationServers, " ") != one+" "+two+" "+asked.URL {
		t.Errorf("authorization servers %v, %v", metadata.AuthorizationServers, err)
	}
	first, second, foreign := accessToken(t, one, address), accessToken(t, two, address), accessToken(t, third, address)
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	old := func(token, session, body string) head {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return head{response.StatusCode, response.Status, response.Header}
	}
	session := old(first, "", hello).Header.Get("Mcp-Session-Id")
	ping := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	if mine, theirs := old(first, session, ping).StatusCode, old(second, session, ping).StatusCode; mine != 200 || theirs != 404 {
		t.Errorf("a session of ada of one server: %d for her, %d for ada of the other", mine, theirs)
	}
	for what, test := range map[string]struct {
		token string
		want  int
	}{
		"one": {first, 200}, "two": {second, 200}, "a server that is not trusted": {foreign, 401},
		"the claims of one, the signature of the other": {first[:strings.LastIndexByte(first, '.')] + second[strings.LastIndexByte(second, '.'):], 401},
	} {
		if got := present(t, address, test.token); got.StatusCode != test.want {
			t.Errorf("%s: %s, want %d", what, got.Status, test.want)
		}
	}
	if n := asked.asked.Load(); n != 1 { // at the start
		t.Errorf("the server that is asked saw %d tokens of others", n-1)
	}
	if got := present(t, address, "opaque"); got.StatusCode != 401 || asked.asked.Load() != 2 {
		t.Errorf("opaque: %s, asked %d times", got.Status, asked.asked.Load())
	}
	stopTwo()
	if got := present(t, address, accessToken(t, one, address)); got.StatusCode != 200 {
		t.Errorf("a token of one while two is away: %s", got.Status)
	}
}

// Keys that cannot be had are no reason to call a token bad: 503 until the server is there.
func TestServeIssuerComesLater(t *testing.T) {
	p := newEmptyPlace(t)
	away, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	port, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	issuer, address, file := "http://127.0.0.1:"+away, "http://127.0.0.1:"+port+"/mcp", clientFile(t, "")
	p.start(`serving "everything" at (\S+);`, "serve", "everything", "--http", "127.0.0.1:"+port, "--auth", issuer, "--introspect", file)
	if said := p.said.String(); !strings.Contains(said, "cannot check tokens now; requests get 503 until this works") {
		t.Errorf("said\n%s", said)
	}
	if got := present(t, address, "opaque"); got.StatusCode != 503 || got.Header.Get("Retry-After") == "" {
		t.Errorf("before: %s", got.Status)
	}
	p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:"+away, "--database", filepath.Join(p.dir, "issuer.db"),
		"--auto-approve", "ada", "--client", killClient+"="+killRedirect, "--resource", address+"=read", "--introspector", file)
	if got := present(t, address, accessToken(t, issuer, address)); got.StatusCode != 200 {
		t.Errorf("after: %s", got.Status)
	}
}

// A good token is not called bad while the keys of its issuer cannot be had, whichever way it is
// checked; what no issuer could have signed is.
func TestServeKeysInDoubt(t *testing.T) {
	p := newEmptyPlace(t)
	port, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	resource, file := "https://mcp.example/mcp", clientFile(t, "")
	issuer := p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:"+port, "--database", filepath.Join(p.dir, "issuer.db"),
		"--auto-approve", "ada", "--client", killClient+"="+killRedirect, "--resource", resource+"=read", "--introspector", file)
	stop := p.stop
	there := newPeer(t)
	ways := map[string]string{}
	token := accessToken(t, issuer, resource)
	forged := token[:strings.LastIndexByte(token, '.')+1] + strings.Repeat("A", 86)
	stop()
	for what, args := range map[string][]string{
		"signature":     {"--auth", issuer},
		"several":       {"--auth", issuer, "--auth", there.URL, "--introspect", clientFile(t, there.URL)},
		"introspection": {"--auth", issuer, "--introspect", file},
		"bound":         {"--auth", issuer, "--introspect", file, "--require-fresh", "2s"},
	} {
		ways[what] = p.start(`serving "everything" at (\S+);`, append([]string{"serve", "everything", "--http", "127.0.0.1:0", "--resource", resource}, args...)...)
	}
	for what, address := range ways {
		for _, token := range []string{token, forged} {
			if got := present(t, address, token); got.StatusCode != 503 || got.Header.Get("Retry-After") == "" || got.Header.Get("Www-Authenticate") != "" {
				t.Errorf("%s: %s with %v", what, got.Status, got.Header)
			}
		}
	}
	if got := present(t, ways["signature"], "opaque"); got.StatusCode != 401 {
		t.Errorf("what is no JWT: %s", got.Status)
	}
}

// What is wrong is said at once, with the flag or the file that is to be changed, and without secrets.
func TestServeGuardMistakes(t *testing.T) {
	newEmptyPlace(t)
	good, refused, nothing := newPeer(t), newPeer(t), httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(nothing.Close)
	refused.says(401, `{"error":"invalid_client"}`)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": "http://" + r.Host})
	}))
	t.Cleanup(plain.Close)
	file := func(text string) string { return keyFile(t, text) }
	at := func(issuer string, args ...string) []string {
		return append([]string{"serve", "everything", "--http", "127.0.0.1:0", "--auth", issuer}, args...)
	}
	as := func(text string) []string {
		return []string{"auth", "serve", "--http", "127.0.0.1:0", "--database", filepath.Join(t.TempDir(), "x.db"), "--client", "app=http://127.0.0.1/", "--introspector", file(text)}
	}
	for what, test := range map[string]struct {
		args []string
		want string
	}{
		"no metadata":         {at(nothing.URL), "status 404"},
		"another issuer":      {at(strings.Replace(good.URL, "127.0.0.1", "localhost", 1)), "is of issuer"},
		"no endpoint":         {at(plain.URL, "--introspect", clientFile(t, "")), "names no introspection endpoint"},
		"client refused":      {at(refused.URL, "--introspect", clientFile(t, "")), `refuses the client "guard"`},
		"no file":             {at(good.URL, "--introspect", "/nowhere/guard.json"), "--introspect: open /nowhere/guard.json"},
		"no JSON":             {at(good.URL, "--introspect", file("guard:hush-hush")), "must hold a JSON object such as"},
		"no id":               {at(good.URL, "--introspect", file(`{"client_secret":"hush-hush"}`)), "has no client_id"},
		"unknown member":      {at(good.URL, "--introspect", file(`{"client_id":"guard","secret":"hush-hush"}`)), `"secret"`},
		"twice a member":      {at(good.URL, "--introspect", file(`{"client_id":"guard","client_id":"x","client_secret":"hush-hush"}`)), "must hold a JSON object"},
		"no secret":           {at(good.URL, "--introspect", file(`{"client_id":"guard"}`)), "either a client_secret or a private_key_file"},
		"no key":              {at(good.URL, "--introspect", file(`{"client_id":"guard","private_key_file":"none.pem"}`)), "none.pem"},
		"public keys":         {at(good.URL, "--introspect", file(`{"client_id":"guard","jwks":{"keys":[]}}`)), "belong to the authorization server"},
		"too large":           {at(good.URL, "--introspect", file(strings.Repeat(" ", 70<<10))), "larger than"},
		"of another issuer":   {at(good.URL, "--introspect", clientFile(t, "https://x.example")), "not an --auth server"},
		"of which":            {at(good.URL, "--auth", refused.URL, "--introspect", clientFile(t, "")), `must name with "issuer"`},
		"two clients":         {at(good.URL, "--introspect", clientFile(t, ""), "--introspect", clientFile(t, good.URL)), "a second client"},
		"an issuer twice":     {at(good.URL, "--auth", good.URL), "duplicate issuer"},
		"fresh by signature":  {at(good.URL, "--require-fresh", "30s"), "--require-fresh requires --introspect for"},
		"fresh in part":       {at(good.URL, "--auth", refused.URL, "--introspect", clientFile(t, good.URL), "--require-fresh", "30s"), "--require-fresh requires --introspect for"},
		"too fresh":           {at(good.URL, "--introspect", clientFile(t, ""), "--require-fresh", "10ms"), "at least one second"},
		"keys of no use":      {at(good.URL, "--introspect", clientFile(t, ""), "--keys-max-age", "5s"), "--keys-max-age cannot be used"},
		"no network":          {at(good.URL, "--auth-allow-private", "10.0.0.1"), `--auth-allow-private "10.0.0.1": must be a network`},
		"bits of a host":      {at(good.URL, "--auth-allow-private", "10.0.0.1/8"), "the network is 10.0.0.0/8"},
		"everything":          {at(good.URL, "--auth-allow-private", "0.0.0.0/0"), "not a private network"},
		"metadata of clouds":  {at(good.URL, "--auth-allow-private", "169.254.169.254/32"), "not a private network"},
		"private, not opened": {at("https://10.255.255.1"), "--auth-allow-private can allow it"},
		"without --auth":      {[]string{"serve", "everything", "--http", "127.0.0.1:0", "--introspect", "x"}, "require --auth"},
		"a short secret":      {as(`{"client_id":"guard","client_secret":"hush-hush"}`), "must have at least 16 bytes"},
		"a private key":       {as(`{"client_id":"guard","private_key_file":"k.pem"}`), "which only the asking server must have"},
		"neither":             {as(`{"client_id":"guard"}`), "either a client_secret or jwks"},
		"a client twice":      {as(`{"client_id":"app","client_secret":"` + guardSecret + `"}`), "already"},
		"bad keys":            {as(`{"client_id":"guard","jwks":{"keys":7}}`), "jwks"},
	} {
		code, _, said := command(t, test.args...)
		if code != 1 || !strings.Contains(said, test.want) {
			t.Errorf("%s: exit code %d, want 1 and %q\n%s", what, code, test.want, said)
		}
		if strings.Contains(said, "hush-hush") || strings.Contains(said, guardSecret) {
			t.Errorf("%s: the secret is shown\n%s", what, said)
		}
	}
	if _, err := os.Stat("issuer.db"); err == nil {
		t.Error("a database was made")
	}
}
