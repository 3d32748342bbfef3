package interop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"testing"

	"github.com/parley-mcp/parley/oauth"
)

// badRegistrations are members of registrations that differ from a good one,
// and what comes of them; nil removes a member.
func badRegistrations() map[string]struct {
	changes map[string]any
	want    string
} {
	type bad = struct {
		changes map[string]any
		want    string
	}
	redirect := func(uris ...string) map[string]any { return map[string]any{"redirect_uris": uris} }
	const refused = "400 invalid_redirect_uri"
	return map[string]bad{
		"good":                        {nil, "201 "},
		"redirect to a script":        {redirect("javascript:alert(1)"), refused},
		"redirect to data":            {redirect("data:text/html,x"), refused},
		"redirect to a file":          {redirect("file:///etc/passwd"), refused},
		"redirect by http":            {redirect("http://client.example/callback"), refused},
		"redirect with a fragment":    {redirect("https://client.example/callback#x"), refused},
		"redirect to no URL":          {redirect("callback"), refused},
		"redirect one of two bad":     {redirect(peerRedirect, "javascript:alert(1)"), refused},
		"redirect with a user":        {redirect("https://ada@client.example/callback"), refused},
		"redirect to a scheme":        {redirect("com.example.app:/callback"), "201 "},
		"redirect to a short scheme":  {redirect("app:/callback"), refused},
		"redirect by https":           {redirect("https://client.example/callback"), "201 "},
		"no redirect":                 {map[string]any{"redirect_uris": nil}, refused},
		"empty redirects":             {redirect(), refused},
		"redirects that are a text":   {map[string]any{"redirect_uris": peerRedirect}, refused},
		"web client on this machine":  {map[string]any{"application_type": "web"}, "201 "},
		"unknown application type":    {map[string]any{"application_type": "toaster"}, "400 invalid_client_metadata"},
		"implicit":                    {map[string]any{"grant_types": []string{"implicit"}, "response_types": []string{"token"}}, "400 invalid_client_metadata"},
		"unknown grant type":          {map[string]any{"grant_types": []string{"urn:example:grant"}}, "400 invalid_client_metadata"},
		"unknown way to authenticate": {map[string]any{"token_endpoint_auth_method": "shout"}, "400 invalid_client_metadata"},
		"secret with refresh":         {map[string]any{"token_endpoint_auth_method": oauth.AuthSecretBasic}, "201 "},
		"site that is no URL":         {map[string]any{"client_uri": "javascript:alert(1)"}, "400 invalid_client_metadata"},
		"keys twice":                  {map[string]any{"jwks": map[string]any{"keys": []any{}}, "jwks_uri": "https://client.example/keys"}, "400 invalid_client_metadata"},
	}
}

// differingRegistrations are those whose outcomes are not the same.
func differingRegistrations() map[string]difference {
	const general = "theirs is the general code; RFC 7591, section 3.2.2, has codes of its own"
	return map[string]difference{
		"register: no JSON":  {"400 invalid_client_metadata", "400 invalid_request", general},
		"register: an array": {"400 invalid_client_metadata", "400 invalid_request", general},
		"register: redirects that are a text": {
			"400 invalid_client_metadata", "400 invalid_redirect_uri",
			"for ours the document has another form than RFC 7591 gives it",
		},
		"register: redirect with a user": {
			"400 invalid_redirect_uri", "201 ",
			"ours takes no URI whose host can be mistaken on the consent page",
		},
		"register: redirect to a short scheme": {
			"400 invalid_redirect_uri", "201 ",
			"ours wants the reversed domain name of RFC 8252, section 7.1, which nobody else claims by accident",
		},
		"register: keys twice": {
			"201 ", "400 invalid_client_metadata", "ours looks at the keys of clients that use them, which this one does not",
		},
	}
}

func (p *probe) registrations(ctx context.Context, t *testing.T) {
	t.Helper()
	good := map[string]any{
		"client_name": "Interop", "redirect_uris": []string{peerRedirect}, "application_type": "native",
		"grant_types":    []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken},
		"response_types": []string{"code"}, "token_endpoint_auth_method": oauth.AuthNone,
	}
	for name, bad := range badRegistrations() {
		m := maps.Clone(good)
		for k, v := range bad.changes {
			if v == nil {
				delete(m, k)
			} else {
				m[k] = v
			}
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		p.out["register: "+name] = p.register(ctx, t, data)
	}
	p.out["register: no JSON"] = p.register(ctx, t, []byte("redirect_uris="+peerRedirect))
	p.out["register: an array"] = p.register(ctx, t, []byte("[]"))
}

// register goes to the registration endpoint.
func (p *probe) register(ctx context.Context, t *testing.T, body []byte) string {
	t.Helper()
	path := map[string]string{"ours": "/register", "oidc-provider": "/reg"}[p.as.name]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.issuer.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answered, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(answered, &got)
	return fmt.Sprintf("%d %s", resp.StatusCode, got.Error)
}

// revocations: who gives a token back has none any more, and nobody gives back
// that of another.
func (p *probe) revocations(ctx context.Context, t *testing.T) {
	t.Helper()
	path := map[string]string{"ours": "/revoke", "oidc-provider": "/token/revocation"}[p.as.name]
	revoke := func(client, token string) string {
		form := url.Values{"client_id": {client}, "token": {token}}
		resp, err := http.PostForm(p.issuer.url+path, form)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		var got struct {
			Error string `json:"error"`
		}
		_ = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&got)
		return fmt.Sprintf("%d %s", resp.StatusCode, got.Error)
	}
	first := p.redeem(ctx, t, p.fresh(ctx, t))
	p.out["revoke: another's"] = revoke("other", first.refresh)
	second := p.refresh(ctx, t, first.refresh)
	p.out["revoke: another's, then refresh"] = second.outcome
	p.out["revoke: own"] = revoke("desk", second.refresh)
	p.out["revoke: own, then refresh"] = p.refresh(ctx, t, second.refresh).outcome
	p.out["revoke: unknown token"] = revoke("desk", oauth.NewSecret())
	p.out["revoke: unknown client"] = revoke("nobody", second.refresh)
}
