package issuer_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// fixedTexts are all that the endpoints for clients ever say of what went
// wrong.
var fixedTexts = map[string]bool{
	"a DPoP proof is required":                                           true,
	"a parameter is there more than once":                                true,
	"a scope is unknown here, or not for this client":                    true,
	"a token is for one resource":                                        true,
	"actor tokens are not supported":                                     true,
	"assertion is required":                                              true,
	"client authentication was refused":                                  true,
	"code and code_verifier are required":                                true,
	"grant_type is missing":                                              true,
	"introspection is for clients that authenticate":                     true,
	"more scopes than were granted":                                      true,
	"no tokens are issued for this resource":                             true,
	"none of the scopes may be had":                                      true,
	"only access tokens are issued":                                      true,
	"refresh_token is required":                                          true,
	"several DPoP proofs":                                                true,
	"subject_token and subject_token_type are required":                  true,
	"the Authorization header cannot be used":                            true,
	"the DPoP proof is not of the key that this is bound to":             true,
	"the DPoP proof is not valid":                                        true,
	"the DPoP proof needs the nonce of this answer":                      true,
	"the DPoP proof was used before":                                     true,
	"the assertion is for another resource":                              true,
	"the assertion is not valid":                                         true,
	"the authorization code is not valid":                                true,
	"the body cannot be read":                                            true,
	"the body is no form":                                                true,
	"the body must be application/x-www-form-urlencoded":                 true,
	"the client ID metadata document cannot be used":                     true,
	"the client is not registered for this grant type":                   true,
	"the client is registered with another method of authentication":     true,
	"the grant is for another resource":                                  true,
	"the keys of the client cannot be used":                              true,
	"the refresh token is not valid":                                     true,
	"the request must name one resource":                                 true,
	"the request names no client":                                        true,
	"the request names no resource":                                      true,
	"the request names two clients":                                      true,
	"the request uses several methods of client authentication":          true,
	"the resource is not an absolute URL without fragment":               true,
	"the scope parameter cannot be read":                                 true,
	"the subject token cannot be exchanged":                              true,
	"there is no resource for this client":                               true,
	"this assertion is for clients that authenticate":                    true,
	"this grant type is for clients that are registered by the operator": true,
	"this grant type is not supported":                                   true,
	"this type of client assertion is not supported":                     true,
	"this type of subject token is not supported":                        true,
	"token is required":                                                  true,
	"tokens are not exchanged for this resource":                         true,
	"too many requests":                                                  true,
	"try again later":                                                    true,
	"unknown client":                                                     true,
	"use GET":                                                            true,
}

// Attack: error text leaks. Whatever goes wrong, the caller is told one of a
// few fixed texts, and neither he nor the log learns a secret: not what was
// sent, and not what would have been right.
func TestAttackErrorTextLeaksToken(t *testing.T) {
	t.Parallel()
	d, idp := newEnterprise(t)
	code, stolen := d.code("web"), d.code("web")
	tokens := d.signIn("public")
	signed := d.assertion(newKey(t), "JWT", nil)
	wrong := d.assertion(d.signer, "JWT", func(c *jwt.Claims) { c.Audience = []string{"https://evil.example"} })
	jag := idp.grant(func(c *jwt.Claims) { c.ClientID = "web" })
	const guess = "guessed-secret-0123456789"
	for _, a := range []*answer{
		d.token(redeem("web", code), basic("web", guess)),
		d.token(change(redeem("web", code), "client_secret", guess)),
		d.token(redeem("thief", stolen)),
		d.token(redeem("web", code+"x"), basic("web", secret)),
		d.token(change(redeem("web", code), "code_verifier", strings.Repeat("w", 50)), basic("web", secret)),
		d.token(refreshWith("thief", tokens.text("refresh_token"))),
		d.token(refreshWith("public", tokens.text("access_token"))),
		d.token(signed), d.token(wrong), d.token(wrong),
		d.token(jag, basic("agent", secret)),
		d.token(change(jag, "assertion", jag.Get("assertion")+"x"), basic("agent", secret)),
		d.token(params("grant_type", "<script>"+guess)),
		d.token(params("grant_type", oauth.GrantClientCredentials, "scope", guess+`"\`, "client_id", "post", "client_secret", secret)),
		d.token(params("grant_type", oauth.GrantClientCredentials, "resource", "https://"+guess+".example", "client_id", "post", "client_secret", secret)),
		d.token(params("grant_type", oauth.GrantClientCredentials), header("Authorization", "Basic "+guess)),
		d.token(redeem("public", d.code("public")), header("DPoP", guess)),
		d.token(params("grant_type", oauth.GrantTokenExchange, "subject_token", tokens.text("access_token"),
			"subject_token_type", oauth.TokenTypeAccessToken, "resource", otherServer), basic("rs2", secret)),
		send(d.server, "introspect", params("token", tokens.text("access_token")), basic("rs", guess)),
		send(d.server, "revoke", params("token", tokens.text("access_token"), "client_id", guess)),
	} {
		if a.Status < 400 || a.Status > 499 || !fixedTexts[a.text("error_description")] {
			t.Errorf("answer %d %s", a.Status, a.Raw)
		}
		keys := slices.Sorted(maps.Keys(a.Body))
		if !slices.Equal(keys, []string{"error", "error_description"}) {
			t.Errorf("members %q", keys)
		}
		if a.Header.Get("WWW-Authenticate") != "" && a.Status != http.StatusUnauthorized {
			t.Errorf("WWW-Authenticate with %d", a.Status)
		}
	}
	d.token(refreshWith("public", tokens.text("refresh_token")))
	d.token(refreshWith("public", tokens.text("refresh_token")))
	d.events.mu.Lock()
	defer d.events.mu.Unlock()
	log := d.events.String()
	for _, event := range d.events.list {
		log += "\n" + strings.Join([]string{event.Outcome, event.Reason, event.Client, event.Grant, event.Subject}, " ")
	}
	for name, value := range map[string]string{
		"code": code, "another code": stolen, "secret": secret, "verifier": verifier,
		"access token": tokens.text("access_token"), "refresh token": tokens.text("refresh_token"),
		"client assertion": signed.Get("client_assertion"), "assertion": jag.Get("assertion"),
	} {
		for _, form := range []string{value, value[len(value)/2:]} {
			if strings.Contains(log, form) {
				t.Errorf("the log holds the %s", name)
			}
		}
	}
}
