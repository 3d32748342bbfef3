package oauth_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
)

// fill sets every field of a struct, so that none is forgotten by a reader.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") == "-" {
			continue
		}
		switch f := v.Field(i); f.Interface().(type) {
		case string:
			f.SetString("https://a.example/" + v.Type().Field(i).Name)
		case []string:
			f.Set(reflect.ValueOf([]string{v.Type().Field(i).Name, "y"}))
		case bool:
			f.SetBool(true)
		case int64:
			f.SetInt(1700000000 + int64(i))
		case wire.RawValue:
			f.Set(reflect.ValueOf(wire.RawValue(`{"keys":[]}`)))
		default:
			fill(f)
		}
	}
}

// roundTrip says whether what is written is read again, whole.
func roundTrip[T any](t *testing.T, parse func([]byte) (*T, error)) {
	t.Helper()
	var want T
	fill(reflect.ValueOf(&want).Elem())
	data, err := wire.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// With null, and with another type, in the place of every member.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		for _, other := range []string{`null`, `{"other":[1]}`, `[{}]`} {
			members[name] = json.RawMessage(other)
			data, err := json.Marshal(members)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := parse(data); err == nil && reflect.DeepEqual(got, &want) {
				t.Errorf("%s as %s is read as if it were %s", name, other, value)
			}
		}
		members[name] = value
	}
}

func TestServerMetadataRoundTrip(t *testing.T) {
	t.Parallel()
	roundTrip(t, func(data []byte) (*oauth.ServerMetadata, error) {
		return oauth.ParseServerMetadata(data, "https://a.example/Issuer")
	})
	data, err := wire.Marshal(&oauth.ServerMetadata{})
	if err != nil || string(data) != "{}" {
		t.Errorf("an empty one is written as %s, %v, want {}", data, err)
	}
	data, err = wire.Marshal(&oauth.ServerMetadata{Issuer: "https://a.example", ScopesSupported: []string{}})
	if want := `{"issuer":"https://a.example","scopes_supported":[]}`; err != nil || string(data) != want {
		t.Errorf("got %s, %v, want %s", data, err, want)
	}
}

// Proves: C9. Attack: metadata poisoning.
func TestParseServerMetadata(t *testing.T) {
	t.Parallel()
	const issuer = "https://as.example/tenant"
	without := func(members ...string) *oauth.ServerMetadata {
		return &oauth.ServerMetadata{Issuer: issuer, Ignored: members}
	}
	for _, c := range []struct {
		name, data string
		want       *oauth.ServerMetadata
	}{
		{"least", `{"issuer":"https://as.example/tenant"}`, &oauth.ServerMetadata{Issuer: issuer}},
		{
			"nulls", `{"issuer":"https://as.example/tenant","scopes_supported":null,"code_challenge_methods_supported":null,
				"registration_endpoint":null,"client_id_metadata_document_supported":null}`,
			&oauth.ServerMetadata{Issuer: issuer},
		},
		{
			"unneeded of the wrong type",
			`{"issuer":"https://as.example/tenant","service_documentation":{},"ui_locales_supported":"en","registration_endpoint":false,
				"scopes_supported":[1],"client_id_metadata_document_supported":"yes","unknown":[{"a":1}]}`,
			&oauth.ServerMetadata{Issuer: issuer, Ignored: []string{
				"registration_endpoint", "scopes_supported", "client_id_metadata_document_supported", "service_documentation", "ui_locales_supported",
			}},
		},
		{
			"wrong items", `{"issuer":"https://as.example/tenant","scopes_supported":["a",1,null,"b"]}`,
			&oauth.ServerMetadata{Issuer: issuer, ScopesSupported: []string{"a", "b"}, Ignored: []string{"scopes_supported"}},
		},
		{
			"empty list", `{"issuer":"https://as.example/tenant","scopes_supported":[]}`,
			&oauth.ServerMetadata{Issuer: issuer, ScopesSupported: []string{}},
		},
		{
			"http on loopback", `{"issuer":"https://as.example/tenant","token_endpoint":"http://localhost:1/t"}`,
			&oauth.ServerMetadata{Issuer: issuer, TokenEndpoint: "http://localhost:1/t"},
		},
		{"no issuer", `{"token_endpoint":"https://as.example/t"}`, nil},
		{"empty issuer", `{"issuer":""}`, nil},
		{"issuer of another type", `{"issuer":["https://as.example/tenant"]}`, nil},
		{"two issuers", `{"issuer":"https://evil.example","issuer":"https://as.example/tenant"}`, nil},
		{"two issuers in disguise", `{"issuer":"https://evil.example","issue\u0072":"https://as.example/tenant"}`, nil},
		{"weaker iss", `{"issuer":"https://as.example/tenant","authorization_response_iss_parameter_supported":"true"}`, nil},
		{"weaker PKCE", `{"issuer":"https://as.example/tenant","code_challenge_methods_supported":"S256"}`, nil},
		{"plain endpoint", `{"issuer":"https://as.example/tenant","token_endpoint":"http://as.example/t"}`, nil},
		{"script", `{"issuer":"https://as.example/tenant","authorization_endpoint":"javascript:alert(1)"}`, nil},
		{"keys at a user", `{"issuer":"https://as.example/tenant","jwks_uri":"https://as.example@evil.example/"}`, without("jwks_uri")},
		{"plain registration", `{"issuer":"https://as.example/tenant","registration_endpoint":"http://as.example/r"}`, without("registration_endpoint")},
		{"plain revocation", `{"issuer":"https://as.example/tenant","revocation_endpoint":"http://as.example/r"}`, without("revocation_endpoint")},
		{"plain introspection", `{"issuer":"https://as.example/tenant","introspection_endpoint":"http://as.example/r"}`, without("introspection_endpoint")},
		{"relative device endpoint", `{"issuer":"https://as.example/tenant","device_authorization_endpoint":"/device"}`, without("device_authorization_endpoint")},
		{"long text", `{"issuer":"https://as.example/tenant","service_documentation":"` + strings.Repeat("x", 2049) + `"}`, without("service_documentation")},
		{"long list", `{"issuer":"https://as.example/tenant","scopes_supported":[` + strings.Repeat(`"x",`, 1000) + `"x"]}`, without("scopes_supported")},
		{"long issuer", `{"issuer":"https://as.example/` + strings.Repeat("x", 2049) + `"}`, nil},
		{"large", `{"issuer":"https://as.example/tenant","x":"` + strings.Repeat("x", 256<<10) + `"}`, nil},
		{"deep", `{"issuer":"https://as.example/tenant","x":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`, nil},
		{"no object", `[]`, nil},
		{"no JSON", `<html>`, nil},
	} {
		got, err := oauth.ParseServerMetadata([]byte(c.data), issuer)
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.want == nil) {
			t.Errorf("%s: error %v (-want +got):\n%s", c.name, err, diff)
		}
	}
	if _, err := oauth.ParseServerMetadata([]byte(`{"issuer":""}`), ""); err == nil {
		t.Error("the empty issuer is taken")
	}
}

// Proves: ruling 36: issuers that differ by the slash of an empty path are one, and the document's
// spelling counts; no other difference is forgiven.
func TestSameIssuer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"https://as.example", "https://as.example/", true},
		{"https://as.example/", "https://as.example/", true},
		{"https://as.example:8443", "https://as.example:8443/", true},
		{"http://127.0.0.1:9/", "http://127.0.0.1:9", true},
		{"https://as.example/tenant", "https://as.example/tenant", true},
		{"https://as.example/tenant", "https://as.example/tenant/", false},
		{"https://as.example/tenant/", "https://as.example/tenant", false},
		{"https://as.example", "https://as.example//", false},
		{"https://as.example/", "https://as.example//", false},
		{"https://as.example", "https://AS.example/", false},
		{"https://as.example", "https://as.example:443/", false},
		{"https://as.example", "http://as.example/", false},
		{"https://as.example?x=/", "https://as.example?x=", false},
		{"https://as.example#/", "https://as.example#", false},
		{"as.example/", "as.example", false},
		{"https:///", "https://", false},
		{"/", "", false},
	} {
		if got := oauth.SameIssuer(c.a, c.b); got != c.want || oauth.SameIssuer(c.b, c.a) != got {
			t.Errorf("%q and %q: got %v, want %v", c.a, c.b, got, c.want)
		}
	}
	for asked, spelt := range map[string]string{"https://as.example": "https://as.example/", "https://as.example/": "https://as.example"} {
		m, err := oauth.ParseServerMetadata([]byte(`{"issuer":"`+spelt+`"}`), asked)
		if err != nil || m.Issuer != spelt {
			t.Errorf("%q as %q: got %+v, %v, want the document's spelling", asked, spelt, m, err)
		}
	}
}

// Proves: C9. A foreign issuer is told apart from a bad document; case and
// ports are not forgiven, nor are slashes after a path.
func TestParseServerMetadataIssuer(t *testing.T) {
	t.Parallel()
	for _, got := range []string{
		"https://evil.example", "https://as.example//", "https://AS.example", "https://as.example:443", "http://as.example",
		"https://as.example?x", "not a URL\u001b",
	} {
		data, err := wire.Marshal(map[string]string{"issuer": got})
		if err != nil {
			t.Fatal(err)
		}
		_, err = oauth.ParseServerMetadata(data, "https://as.example")
		e, ok := errors.AsType[*oauth.IssuerError](err)
		if !ok || e.Got != got || e.Want != "https://as.example" || strings.Contains(err.Error(), "\u001b") {
			t.Errorf("%q: got error %v, want an *IssuerError", got, err)
		}
	}
}

// Proves: C7, C8.
func TestServerMetadataURLs(t *testing.T) {
	t.Parallel()
	for issuer, want := range map[string][]string{
		"https://as.example/tenant1": {
			"https://as.example/.well-known/oauth-authorization-server/tenant1",
			"https://as.example/.well-known/openid-configuration/tenant1",
			"https://as.example/tenant1/.well-known/openid-configuration",
		},
		"https://as.example:8443/a%2Fb/c/": {
			"https://as.example:8443/.well-known/oauth-authorization-server/a%2Fb/c",
			"https://as.example:8443/.well-known/openid-configuration/a%2Fb/c",
			"https://as.example:8443/a%2Fb/c/.well-known/openid-configuration",
		},
		"https://as.example": {
			"https://as.example/.well-known/oauth-authorization-server",
			"https://as.example/.well-known/openid-configuration",
		},
		"http://127.0.0.1:9/": {
			"http://127.0.0.1:9/.well-known/oauth-authorization-server",
			"http://127.0.0.1:9/.well-known/openid-configuration",
		},
		"http://as.example":      nil,
		"https://as.example?x=1": nil,
		"":                       nil,
	} {
		got, err := oauth.ServerMetadataURLs(issuer)
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("%s: error %v (-want +got):\n%s", issuer, err, diff)
		}
	}
}
