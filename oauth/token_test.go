package oauth_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
)

// Proves: ruling 37: what is wrong and optional is passed over and named.
func TestParseTokenResponse(t *testing.T) {
	t.Parallel()
	base := oauth.TokenResponse{AccessToken: "secret", TokenType: "Bearer"}
	expiring := func(seconds int64) *oauth.TokenResponse {
		r := base
		r.ExpiresIn = seconds
		return &r
	}
	read := func(kind, scope string, ignored ...string) *oauth.TokenResponse {
		return &oauth.TokenResponse{AccessToken: "secret", TokenType: kind, Scope: scope, Ignored: ignored}
	}
	long := strings.Repeat("s", 64<<10)
	for _, c := range []struct {
		data string
		want *oauth.TokenResponse
	}{
		{`{"access_token":"secret","token_type":"Bearer"}`, &base},
		{
			`{"access_token":"secret","token_type":"N_A","issued_token_type":"urn:x","expires_in":60,"refresh_token":"r","scope":"a b","id_token":"i","resources":["x"]}`,
			&oauth.TokenResponse{
				AccessToken: "secret", TokenType: "N_A", IssuedTokenType: "urn:x", ExpiresIn: 60, RefreshToken: "r", Scope: "a b", IDToken: "i",
			},
		},
		{`{"access_token":"` + long + `","token_type":"Bearer"}`, &oauth.TokenResponse{AccessToken: long, TokenType: "Bearer"}},
		{`{"access_token":"secret","token_type":"Bearer","expires_in":"3600"}`, expiring(3600)},
		{`{"access_token":"secret","token_type":"Bearer","expires_in":3600.0}`, expiring(3600)},
		{`{"access_token":"secret","token_type":"Bearer","expires_in":3.6e3}`, expiring(3600)},
		{`{"access_token":"secret","token_type":"Bearer","expires_in":1e400}`, expiring(1<<31 - 1)},
		{`{"access_token":"secret","token_type":"Bearer","expires_in":99999999999999999999}`, expiring(1<<31 - 1)},
		{`{"access_token":"secret","token_type":"Bearer","expires_in":-1e99}`, &base},
		{`{"access_token":"secret","token_type":"Bearer","expires_in":-1}`, &base},
		{`{"access_token":"secret","token_type":"Bearer","expires_in":"1h"}`, read("Bearer", "", "expires_in")},
		{`{"access_token":"secret","token_type":"Bearer","expires_in":""}`, read("Bearer", "", "expires_in")},
		{`{"access_token":"secret","token_type":"Bearer","expires_in":1.5}`, read("Bearer", "", "expires_in")},
		{`{"access_token":"secret","token_type":"Bearer","expires_in":null,"refresh_token":null,"scope":null}`, &base},
		{`{"access_token":"secret","token_type":"Bearer","scope":["a","b"]}`, read("Bearer", "a b", "scope")},
		{`{"access_token":"secret","token_type":"Bearer","scope":"repo,gist, user"}`, read("Bearer", "repo gist user", "scope")},
		{`{"access_token":"secret","token_type":"Bearer","scope":7}`, read("Bearer", "", "scope")},
		{`{"access_token":"secret","token_type":"bearer"}`, read("bearer", "")},
		{`{"access_token":"secret"}`, read("Bearer", "", "token_type")},
		{`{"access_token":"secret","token_type":null}`, read("Bearer", "", "token_type")},
		{`{"access_token":"secret","token_type":"Bearer","refresh_token":1}`, read("Bearer", "", "refresh_token")},
		{`{"access_token":"secret","token_type":"Bearer","refresh_token":"secret\n"}`, read("Bearer", "", "refresh_token")},

		{`{"token_type":"Bearer"}`, nil},
		{`{"access_token":"","token_type":"Bearer"}`, nil},
		{`{"access_token":1,"token_type":"Bearer"}`, nil},
		{`{"access_token":"secret","token_type":["Bearer"]}`, nil},
		{`{"access_token":"secret\r\nX: y","token_type":"Bearer"}`, nil},
		{`{"access_token":"secret x","token_type":"Bearer"}`, nil},
		{`{"access_token":"secretä","token_type":"Bearer"}`, nil},
		{`{"access_token":"secret","token_type":"Bearer\n"}`, nil},
		{`{"access_token":"s` + long + `","token_type":"Bearer"}`, nil},
		{`{"access_token":"secret","access_token":"secret","token_type":"Bearer"}`, nil},
		{`{"access_token":"secret","token_type":"Bearer"} {}`, nil},
		{`access_token=secret&token_type=Bearer`, nil},
		{``, nil},
	} {
		got, err := oauth.ParseTokenResponse([]byte(c.data))
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.want == nil) {
			t.Errorf("%.100s: error %v (-want +got):\n%s", c.data, err, diff)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("error shows the token: %v", err)
		}
	}
}
