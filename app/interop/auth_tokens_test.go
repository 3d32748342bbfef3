package interop_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
)

// An authServer is one of two that are asked the same.
type authServer struct {
	name      string
	serve     func(t *testing.T, s *scene)
	authorize string // path of the authorization endpoint
}

// authServers are ours and the one that it is compared with.
func authServers() []authServer {
	return []authServer{
		{"ours", func(t *testing.T, s *scene) { ourIssuer(t, s, nil) }, "/authorize"},
		{"oidc-provider", func(t *testing.T, s *scene) { oidcProvider(t, s, nil) }, "/auth"},
	}
}

// codeRequest is a good authorization request of a client that is known.
func (s *scene) codeRequest(verifier, resource string) url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {"desk"}, "redirect_uri": {peerRedirect},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {oauth.MethodS256},
		"scope": {scopeRead}, "state": {"a state"}, "resource": {resource},
	}
}

// codeToken is a good token request for its code.
func codeToken(code, verifier, resource string) url.Values {
	return url.Values{
		"grant_type": {oauth.GrantAuthorizationCode}, "client_id": {"desk"}, "redirect_uri": {peerRedirect},
		"code": {code}, "code_verifier": {verifier}, "resource": {resource},
	}
}

// token signs the person in at an authorization server and returns an access
// token for a resource.
func (s *scene) token(ctx context.Context, t *testing.T, as authServer, resource string) string {
	t.Helper()
	verifier := oauth.NewVerifier()
	asked := s.ask(ctx, t, as, s.codeRequest(verifier, resource))
	got := s.redeem(ctx, t, codeToken(asked.code, verifier, resource))
	if got.access == "" {
		t.Fatalf("no token for %s: %v, %v", resource, asked.outcome, got.outcome)
	}
	return got.access
}

// Our guard takes tokens of both servers, but none that was issued for another
// resource, by another issuer, or that has expired. Proves: R4, R6. Attack: wrong audience.
func TestAuthTokens(t *testing.T) {
	peersDir(t)
	for _, as := range authServers() {
		t.Run(as.name, func(t *testing.T) {
			t.Parallel()
			ctx := bounded(t)
			s, other := newScene(t), newScene(t)
			as.serve(t, s)
			as.serve(t, other)
			s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
			good := s.token(ctx, t, as, s.uri())
			for name, token := range map[string]string{
				"wrong audience": s.token(ctx, t, as, elsewhere),
				"wrong issuer":   other.token(ctx, t, as, other.uri()),
				"changed":        good[:len(good)-8] + strings.Map(swap, good[len(good)-8:]),
			} {
				if status, code := s.present(ctx, t, token); status != http.StatusUnauthorized || code != oauth.InvalidToken {
					t.Errorf("%s: %d %s", name, status, code)
				}
			}
			if status, _ := s.present(ctx, t, good); status != http.StatusOK {
				t.Fatalf("a good token: %d", status)
			}
			s.guardAhead.Store(int64(time.Hour))
			if status, code := s.present(ctx, t, good); status != http.StatusUnauthorized || code != oauth.InvalidToken {
				t.Errorf("expired: %d %s", status, code)
			}
		})
	}
}

// swap changes each character of base64url for another.
func swap(r rune) rune {
	if r == 'A' {
		return 'B'
	}
	return 'A'
}

// present sends a request with a token to the protected server, and returns the
// status and the error of the challenge.
func (s *scene) present(ctx context.Context, t *testing.T, token string) (status int, code string) {
	t.Helper()
	const discover = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"interop","version":"1.0.0"}}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.uri(), strings.NewReader(discover))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": modern, "Mcp-Method": "server/discover",
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	c, _ := oauth.FindChallenge(oauth.ParseChallenges(resp.Header.Values("Www-Authenticate")), "Bearer")
	return resp.StatusCode, c.Params["error"]
}
