package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/oauth"
)

// An answer is what came of a request to an authorization server.
type answer struct {
	// outcome is what is compared: "code", "token", an error of OAuth with the
	// way it came by, or the status of a page.
	outcome               string
	code, access, refresh string
	params                url.Values
}

// ask goes to the authorization endpoint with a browser that has no past.
func (s *scene) ask(ctx context.Context, t *testing.T, as authServer, request url.Values) answer {
	t.Helper()
	u, err := url.Parse(s.issuer.url + as.authorize + "?" + request.Encode())
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, nil)
	b.stay = true
	end, err := b.walk(ctx, u)
	if dead := (*deadEnd)(nil); errors.As(err, &dead) {
		return answer{outcome: fmt.Sprintf("page %d", dead.status)}
	}
	if err != nil {
		t.Fatal(err)
	}
	way, q := "redirect ", end.Query()
	if end.Fragment != "" { // where tokens would be, had they been asked for
		way = "fragment "
		if q, err = url.ParseQuery(end.Fragment); err != nil {
			t.Fatal(err)
		}
	}
	a := answer{outcome: way + q.Get("error"), code: q.Get("code"), params: q}
	if a.code != "" {
		a.outcome = "code"
	}
	return a
}

// redeem goes to the token endpoint.
func (s *scene) redeem(ctx context.Context, t *testing.T, request url.Values) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.issuer.url+"/token", strings.NewReader(request.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Error   string `json:"error"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return answer{outcome: fmt.Sprintf("%d, no JSON", resp.StatusCode)}
	}
	if got.Access != "" {
		return answer{outcome: "token", access: got.Access, refresh: got.Refresh}
	}
	return answer{outcome: fmt.Sprintf("%d %s", resp.StatusCode, got.Error)}
}

// altered is a copy of a request with some parameters changed; an empty value
// removes one.
func altered(request url.Values, changes ...string) url.Values {
	out := maps.Clone(request)
	for i := 0; i+1 < len(changes); i += 2 {
		out.Del(changes[i])
		if changes[i+1] != "" {
			out.Set(changes[i], changes[i+1])
		}
	}
	return out
}

// A difference is a request whose outcome is not the same at both, and why.
type difference struct{ ours, theirs, reason string }

// differences are all there are. Everything else must come out the same at both,
// and as the lists of requests say.
func differences() map[string]difference {
	all := differingRegistrations()
	maps.Copy(all, map[string]difference{
		"authorize: implicit": {
			"redirect unsupported_response_type", "fragment unsupported_response_type",
			"theirs answers where the implicit grant would (RFC 6749, section 4.2.2.1); ours does not know that grant, which OAuth 2.1 left out",
		},
		"authorize: response mode nobody knows": {
			"redirect invalid_request", "redirect unsupported_response_mode",
			"theirs is a code of its own; no specification registers one",
		},
		"authorize: unknown scope": {
			"redirect invalid_scope", "redirect access_denied",
			"theirs ignores scopes that it does not know, and then has nothing to grant; ours says so (RFC 6749, section 4.1.2.1)",
		},
		"code: no client": {
			"401 invalid_client", "400 invalid_request",
			"RFC 6749, section 5.2, has both: no client authentication included, and a missing parameter",
		},
		"refresh: no client": {"401 invalid_client", "400 invalid_request", "as with a code"},
		"code: no verifier": {
			"400 invalid_request", "400 invalid_grant",
			"for ours a missing parameter (RFC 6749, section 5.2), for theirs a proof that fails (RFC 7636, section 4.6)",
		},
		"code: no redirect URI": {
			"token", "400 invalid_grant",
			"OAuth 2.1, section 4.1.3, has no such parameter, so ours compares it only if it is there; PKCE binds the code",
		},
		"code: verifier too short": {
			"400 invalid_grant", "400 invalid_request",
			"for ours a proof that fails (RFC 7636, section 4.6), for theirs a malformed parameter",
		},
	})
	return all
}

// badAuthorizations are authorization requests that must come to nothing, and
// what comes of them.
func badAuthorizations() map[string]struct {
	changes []string
	want    string
} {
	type bad = struct {
		changes []string
		want    string
	}
	return map[string]bad{
		"good":                       {nil, "code"},
		"no PKCE":                    {[]string{"code_challenge", "", "code_challenge_method", ""}, "redirect invalid_request"},
		"PKCE plain":                 {[]string{"code_challenge_method", "plain"}, "redirect invalid_request"},
		"PKCE without method":        {[]string{"code_challenge_method", ""}, "redirect invalid_request"},
		"challenge too short":        {[]string{"code_challenge", "short"}, "redirect invalid_request"},
		"unknown client":             {[]string{"client_id", "nobody"}, "page 400"},
		"no client":                  {[]string{"client_id", ""}, "page 400"},
		"redirect of another path":   {[]string{"redirect_uri", "http://127.0.0.1:41765/other"}, "page 400"},
		"redirect to another host":   {[]string{"redirect_uri", "https://attacker.example/callback"}, "page 400"},
		"redirect with a query":      {[]string{"redirect_uri", peerRedirect + "?x=1"}, "page 400"},
		"redirect to localhost":      {[]string{"redirect_uri", "http://localhost:41765/callback"}, "page 400"},
		"no redirect, of one":        {[]string{"redirect_uri", ""}, "code"},
		"implicit":                   {[]string{"response_type", "token"}, "redirect unsupported_response_type"},
		"no response type":           {[]string{"response_type", ""}, "redirect invalid_request"},
		"unknown resource":           {[]string{"resource", "https://unknown.example/mcp"}, "redirect invalid_target"},
		"resource that is no URL":    {[]string{"resource", "no url"}, "redirect invalid_target"},
		"resource with a fragment":   {[]string{"resource", elsewhere + "#x"}, "redirect invalid_target"},
		"unknown scope":              {[]string{"scope", "files:delete"}, "redirect invalid_scope"},
		"request object":             {[]string{"request", "e30.e30."}, "redirect request_not_supported"},
		"request object by URL":      {[]string{"request_uri", "https://client.example/request"}, "redirect request_uri_not_supported"},
		"nobody may be asked":        {[]string{"prompt", "none"}, "redirect login_required"},
		"prompt none and more":       {[]string{"prompt", "none login"}, "redirect invalid_request"},
		"response mode nobody knows": {[]string{"response_mode", "shout"}, "redirect unsupported_response_mode"},
	}
}

// The same bad requests, to our authorization server and to oidc-provider.
// Attack: code or refresh replay, races; client id not checked at redemption;
// open redirect.
func TestAuthDifferential(t *testing.T) {
	peersDir(t)
	outcomes := make([]map[string]string, len(authServers()))
	t.Run("ask", func(t *testing.T) {
		for i, as := range authServers() {
			t.Run(as.name, func(t *testing.T) {
				t.Parallel()
				ctx := bounded(t)
				s := newScene(t)
				as.serve(t, s)
				p := &probe{scene: s, as: as, out: map[string]string{}}
				p.authorizations(ctx, t)
				p.codes(ctx, t)
				p.refreshes(ctx, t)
				p.registrations(ctx, t)
				p.revocations(ctx, t)
				outcomes[i] = p.out
			})
		}
	})
	if t.Failed() {
		return
	}
	known := differences()
	for name, want := range wanted() {
		good, ok := known[name]
		if !ok {
			good = difference{want, want, ""}
		}
		if got := (difference{outcomes[0][name], outcomes[1][name], good.reason}); got != good {
			t.Errorf("%s: ours %q, oidc-provider %q; want %q and %q", name, got.ours, got.theirs, good.ours, good.theirs)
		}
		delete(known, name)
	}
	if len(known) > 0 || len(outcomes[0]) != len(wanted()) {
		t.Errorf("%d requests and %d wanted outcomes; differences of none: %v", len(outcomes[0]), len(wanted()), known)
	}
}

// wanted is what comes of each request where nothing else is said.
func wanted() map[string]string {
	const refused = "400 invalid_grant"
	want := map[string]string{
		"code: good": "token", "code: again": refused,
		"code: the refresh token of a code used twice": refused,
		"code: verifier wrong":                         refused, "code: no verifier": refused, "code: verifier too short": refused,
		"code: redirect URI wrong": refused, "code: no redirect URI": refused, "code: another client": refused,
		"code: unknown client": "401 invalid_client", "code: no client": "401 invalid_client",
		"code: another resource": "400 invalid_target", "code: no resource": "token", "code: unknown code": refused,
		"code: eight at once": "1 of 8", "code: secret of a client without": "401 invalid_client",
		"grant type unknown": "400 unsupported_grant_type", "no grant type": "400 invalid_request",
		"grant type password": "400 unsupported_grant_type",
		"refresh: good":       "token", "refresh: again": refused, "refresh: the successor of one used twice": refused,
		"refresh: another client": refused, "refresh: no client": "401 invalid_client", "refresh: unknown": refused,
		"refresh: more scopes": "400 invalid_scope", "refresh: another resource": "400 invalid_target",
		"refresh: no resource": "token", "refresh: eight at once": "1 of 8",
		"register: no JSON": "400 invalid_client_metadata", "register: an array": "400 invalid_client_metadata",
		"revoke: another's": "200 ", "revoke: another's, then refresh": "token", "revoke: own": "200 ",
		"revoke: own, then refresh": refused, "revoke: unknown token": "200 ", "revoke: unknown client": "401 invalid_client",
	}
	for name, bad := range badAuthorizations() {
		want["authorize: "+name] = bad.want
	}
	for name, bad := range badRegistrations() {
		want["register: "+name] = bad.want
	}
	return want
}

// A probe asks one authorization server, and notes what comes of it.
type probe struct {
	*scene
	as  authServer
	out map[string]string
}

func (p *probe) authorizations(ctx context.Context, t *testing.T) {
	t.Helper()
	for name, bad := range badAuthorizations() {
		a := p.ask(ctx, t, p.as, altered(p.codeRequest(oauth.NewVerifier(), p.uri()), bad.changes...))
		p.out["authorize: "+name] = a.outcome
		if a.params != nil && (a.params.Get("state") != "a state" || a.params.Get("iss") != p.issuer.url) {
			t.Errorf("authorize: %s: without state or issuer: %v", name, a.params)
		}
	}
}

// fresh is a code that was just issued, and the good request for its token.
func (p *probe) fresh(ctx context.Context, t *testing.T) url.Values {
	t.Helper()
	verifier := oauth.NewVerifier()
	a := p.ask(ctx, t, p.as, p.codeRequest(verifier, p.uri()))
	if a.code == "" {
		t.Fatalf("no code: %s", a.outcome)
	}
	return codeToken(a.code, verifier, p.uri())
}

func (p *probe) codes(ctx context.Context, t *testing.T) {
	t.Helper()
	good := p.fresh(ctx, t)
	first := p.redeem(ctx, t, good)
	p.out["code: good"] = first.outcome
	p.out["code: again"] = p.redeem(ctx, t, good).outcome
	p.out["code: the refresh token of a code used twice"] = p.refresh(ctx, t, first.refresh).outcome
	for name, changes := range map[string][]string{
		"verifier wrong":             {"code_verifier", oauth.NewVerifier()},
		"no verifier":                {"code_verifier", ""},
		"verifier too short":         {"code_verifier", "short"},
		"redirect URI wrong":         {"redirect_uri", "http://127.0.0.1:41765/other"},
		"no redirect URI":            {"redirect_uri", ""},
		"another client":             {"client_id", "other"},
		"unknown client":             {"client_id", "nobody"},
		"no client":                  {"client_id", ""},
		"another resource":           {"resource", elsewhere},
		"no resource":                {"resource", ""},
		"unknown code":               {"code", oauth.NewSecret()},
		"secret of a client without": {"client_secret", "guessed"},
	} {
		p.out["code: "+name] = p.redeem(ctx, t, altered(p.fresh(ctx, t), changes...)).outcome
	}
	p.out["code: eight at once"] = p.race(ctx, t, p.fresh(ctx, t))
	for name, changes := range map[string][]string{
		"grant type unknown":  {"grant_type", "urn:example:grant"},
		"grant type password": {"grant_type", "password", "username", person, "password", password},
		"no grant type":       {"grant_type", ""},
	} {
		p.out[name] = p.redeem(ctx, t, altered(p.fresh(ctx, t), changes...)).outcome
	}
}

// refresh refreshes with a token.
func (p *probe) refresh(ctx context.Context, t *testing.T, token string, changes ...string) answer {
	t.Helper()
	return p.redeem(ctx, t, altered(p.refreshRequest(token), changes...))
}

func (p *probe) refreshRequest(token string) url.Values {
	return url.Values{
		"grant_type": {oauth.GrantRefreshToken}, "client_id": {"desk"}, "refresh_token": {token}, "resource": {p.uri()},
	}
}

func (p *probe) refreshes(ctx context.Context, t *testing.T) {
	t.Helper()
	first := p.redeem(ctx, t, p.fresh(ctx, t))
	second := p.refresh(ctx, t, first.refresh)
	p.out["refresh: good"] = second.outcome
	if second.refresh == "" || second.refresh == first.refresh {
		t.Error("the refresh token of a public client was not rotated")
	}
	p.out["refresh: again"] = p.refresh(ctx, t, first.refresh).outcome
	p.out["refresh: the successor of one used twice"] = p.refresh(ctx, t, second.refresh).outcome
	for name, changes := range map[string][]string{
		"another client":   {"client_id", "other"},
		"no client":        {"client_id", ""},
		"unknown":          {"refresh_token", oauth.NewSecret()},
		"more scopes":      {"scope", scopeRead + " " + scopeWrite},
		"another resource": {"resource", elsewhere},
		"no resource":      {"resource", ""},
	} {
		p.out["refresh: "+name] = p.refresh(ctx, t, p.redeem(ctx, t, p.fresh(ctx, t)).refresh, changes...).outcome
	}
	p.out["refresh: eight at once"] = p.race(ctx, t, p.refreshRequest(p.redeem(ctx, t, p.fresh(ctx, t)).refresh))
}

// race makes a request eight times at once, and says how many brought a token.
func (p *probe) race(ctx context.Context, t *testing.T, request url.Values) string {
	t.Helper()
	const runners = 8
	start := make(chan struct{})
	won := make(chan bool, runners)
	var wg sync.WaitGroup
	for range runners {
		wg.Go(func() {
			<-start
			won <- p.redeem(ctx, t, request).access != ""
		})
	}
	close(start)
	wg.Wait()
	close(won)
	n := 0
	for w := range won {
		if w {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, runners)
}
