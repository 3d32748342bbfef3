package oauth_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
)

func TestClientMetadataRoundTrip(t *testing.T) {
	t.Parallel()
	roundTrip(t, oauth.ParseClientMetadata)
	roundTrip(t, oauth.ParseClientInformation)
}

func TestParseClientMetadata(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, data string
		want       *oauth.ClientMetadata
	}{
		{"nothing", `{}`, &oauth.ClientMetadata{}},
		{
			"usual", `{"client_name":"A\u202e\nB","redirect_uris":["http://localhost/"],"client_uri":null,"contacts":"x","grant_types":null}`,
			&oauth.ClientMetadata{ClientName: "A B", RedirectURIs: []string{"http://localhost/"}},
		},
		{"a secret asked for", `{"client_secret":"x"}`, &oauth.ClientMetadata{}},
		{"an earlier answer", `{"client_id":"c","client_secret":"x"}`, &oauth.ClientMetadata{ClientID: "c"}},
		{"a secret of another type", `{"client_secret":1}`, &oauth.ClientMetadata{}},
		{"redirect URI of another type", `{"redirect_uris":"http://localhost/"}`, nil},
		{"redirect URI within", `{"redirect_uris":[{"x":1}]}`, nil},
		{"redirect URI beside", `{"redirect_uris":["http://localhost/",1]}`, nil},
		{"twice", `{"redirect_uris":[],"redirect_uris":["http://localhost/"]}`, nil},
		{"long", `{"logo_uri":"` + strings.Repeat("x", 2049) + `"}`, nil},
		{"no object", `null`, nil},
	} {
		got, err := oauth.ParseClientMetadata([]byte(c.data))
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.want == nil) {
			t.Errorf("%s: error %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}

// Proves: S4: documents are public.
func TestParseClientDocument(t *testing.T) {
	t.Parallel()
	const url = "https://a.example/c"
	const rest = `"client_id":"` + url + `","client_name":"A\nB","redirect_uris":["https://a.example/cb"]}`
	got, err := oauth.ParseClientDocument([]byte(`{`+rest), url, false)
	want := &oauth.ClientMetadata{ClientID: url, ClientName: "A B", RedirectURIs: []string{"https://a.example/cb"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{`{"client_secret":"x",` + rest, `{"client_secret":{},` + rest, `{"client_id":"` + url + `"}`, `[]`} {
		if got, err := oauth.ParseClientDocument([]byte(text), url, false); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if got, err := oauth.ParseClientDocument([]byte(`{`+rest), url+"/", false); err == nil {
		t.Errorf("from elsewhere: %+v", got)
	}
}

func TestParseClientInformation(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("i", 8000)
	for _, c := range []struct {
		name, data string
		want       *oauth.ClientInformation
	}{
		{"least", `{"client_id":"1"}`, &oauth.ClientInformation{ClientMetadata: oauth.ClientMetadata{ClientID: "1"}}},
		{"all in the id", `{"client_id":"` + long + `"}`, &oauth.ClientInformation{ClientMetadata: oauth.ClientMetadata{ClientID: long}}},
		{
			"careless", `{"client_id":"1","client_secret":"s","client_secret_expires_at":"0","client_id_issued_at":1.7e9,"client_uri":null,
				"logo_uri":{},"redirect_uris":"x","jwks":"none","contacts":[null],"grant_types":null}`,
			&oauth.ClientInformation{
				ClientMetadata: oauth.ClientMetadata{ClientID: "1", JWKS: wire.RawValue(`"none"`)}, ClientSecret: "s", ClientIDIssuedAt: 1700000000,
				Ignored: []string{"logo_uri", "redirect_uris", "contacts"},
			},
		},
		{
			"null lists, sigbit/mcp-auth-proxy#173", `{"client_id":"1","redirect_uris":null,"grant_types":null,"response_types":null,"contacts":null,"client_secret":null}`,
			&oauth.ClientInformation{ClientMetadata: oauth.ClientMetadata{ClientID: "1"}},
		},
		{
			"a date, and a method of another type", `{"client_id":"1","client_secret":"s","client_secret_expires_at":"2027-01-01T00:00:00Z","token_endpoint_auth_method":["none"]}`,
			&oauth.ClientInformation{
				ClientMetadata: oauth.ClientMetadata{ClientID: "1"}, ClientSecret: "s",
				Ignored: []string{"token_endpoint_auth_method", "client_secret_expires_at"},
			},
		},
		{"no id", `{"client_secret":"s"}`, nil},
		{"empty id", `{"client_id":""}`, nil},
		{"id of another type", `{"client_id":1}`, nil},
		{"secret of another type", `{"client_id":"1","client_secret":1}`, nil},
		{"two ids", `{"client_id":"1","client_id":"2"}`, nil},
		{"too long", `{"client_id":"` + long + long + `"}`, nil},
	} {
		got, err := oauth.ParseClientInformation([]byte(c.data))
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.want == nil) {
			t.Errorf("%s: error %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}

// Proves: C15, S4. Attack: CIMD abuse.
func TestCheckDocument(t *testing.T) {
	t.Parallel()
	const url = "https://app.example/client.json"
	for _, c := range []struct {
		name     string
		url      string
		change   func(*oauth.ClientMetadata)
		loopback bool
		ok       bool
	}{
		{"good", url, nil, false, true},
		{"good with keys", url, func(m *oauth.ClientMetadata) {
			m.TokenEndpointAuthMethod = oauth.AuthPrivateKeyJWT
			m.JWKS = wire.RawValue(`{"keys":[{"kty":"EC","crv":"P-256","x":"a","y":"b"}]}`)
		}, false, true},
		{"loopback", "http://127.0.0.1:9/c", func(m *oauth.ClientMetadata) { m.ClientID = "http://127.0.0.1:9/c" }, true, true},
		{"loopback where it is not allowed", "http://127.0.0.1:9/c", func(m *oauth.ClientMetadata) { m.ClientID = "http://127.0.0.1:9/c" }, false, false},
		{"plain", "http://app.example/c", func(m *oauth.ClientMetadata) { m.ClientID = "http://app.example/c" }, true, false},
		{"no path", "https://app.example/", func(m *oauth.ClientMetadata) { m.ClientID = "https://app.example/" }, false, false},
		{"nothing after the host", "https://app.example", func(m *oauth.ClientMetadata) { m.ClientID = "https://app.example" }, false, false},
		{"dots", "https://app.example/a/../c", func(m *oauth.ClientMetadata) { m.ClientID = "https://app.example/a/../c" }, false, false},
		{"another id", url, func(m *oauth.ClientMetadata) { m.ClientID = "https://app.example/other.json" }, false, false},
		{"nearly the id", url, func(m *oauth.ClientMetadata) { m.ClientID = "https://APP.example/client.json" }, false, false},
		{"no name", url, func(m *oauth.ClientMetadata) { m.ClientName = "" }, false, false},
		{"no redirect URI", url, func(m *oauth.ClientMetadata) { m.RedirectURIs = []string{} }, false, false},
		{"basic", url, func(m *oauth.ClientMetadata) { m.TokenEndpointAuthMethod = oauth.AuthSecretBasic }, false, false},
		{"post", url, func(m *oauth.ClientMetadata) { m.TokenEndpointAuthMethod = oauth.AuthSecretPost }, false, false},
		{"jwt", url, func(m *oauth.ClientMetadata) { m.TokenEndpointAuthMethod = "client_secret_jwt" }, false, false},
		{"symmetric key", url, func(m *oauth.ClientMetadata) { m.JWKS = wire.RawValue(`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`) }, false, false},
		{"private key", url, func(m *oauth.ClientMetadata) { m.JWKS = wire.RawValue(`{"keys":[{"kty":"EC"},{"kty":"EC","d":"x"}]}`) }, false, false},
		{"no keys", url, func(m *oauth.ClientMetadata) { m.JWKS = wire.RawValue(`{}`) }, false, false},
		{"keys of another type", url, func(m *oauth.ClientMetadata) { m.JWKS = wire.RawValue(`{"keys":[1]}`) }, false, false},
		{"no set", url, func(m *oauth.ClientMetadata) { m.JWKS = wire.RawValue(`1`) }, false, false},
	} {
		m := &oauth.ClientMetadata{
			ClientID: url, ClientName: "App", RedirectURIs: []string{"https://app.example/cb"}, TokenEndpointAuthMethod: oauth.AuthNone,
		}
		if c.change != nil {
			c.change(m)
		}
		if err := m.CheckDocument(c.url, c.loopback); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want ok=%v", c.name, err, c.ok)
		}
	}
}
