package oauth_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
)

func TestResourceMetadataRoundTrip(t *testing.T) {
	t.Parallel()
	roundTrip(t, oauth.ParseResourceMetadata)
}

func TestParseResourceMetadata(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, data string
		want       *oauth.ResourceMetadata
	}{
		{"least", `{"resource":"https://a.example"}`, &oauth.ResourceMetadata{Resource: "https://a.example"}},
		{
			"unneeded of the wrong type", `{"resource":"https://a.example","scopes_supported":"a b","jwks_uri":null,"resource_name":["x"]}`,
			&oauth.ResourceMetadata{Resource: "https://a.example", Ignored: []string{"scopes_supported", "resource_name"}},
		},
		{
			"servers with another type", `{"resource":"https://a.example","authorization_servers":[1,"https://as.example",null]}`,
			&oauth.ResourceMetadata{Resource: "https://a.example", AuthorizationServers: []string{"https://as.example"}, Ignored: []string{"authorization_servers"}},
		},
		{
			"long text in a list", `{"resource":"https://a.example","scopes_supported":["` + strings.Repeat("x", 2049) + `","a"]}`,
			&oauth.ResourceMetadata{Resource: "https://a.example", ScopesSupported: []string{"a"}, Ignored: []string{"scopes_supported"}},
		},
		{
			"name for people", `{"resource":"https://a.example","resource_name":"a\u001b[1m\u202eb\nc"}`,
			&oauth.ResourceMetadata{Resource: "https://a.example", ResourceName: "a[1mb c"},
		},
		{"no resource", `{"authorization_servers":["https://as.example"]}`, nil},
		{"null resource", `{"resource":null}`, nil},
		{"resource of another type", `{"resource":["https://a.example"]}`, nil},
		{"servers of another type", `{"resource":"https://a.example","authorization_servers":"https://as.example"}`, nil},
		{"servers of other types alone", `{"resource":"https://a.example","authorization_servers":[1]}`, nil},
		{"weaker DPoP", `{"resource":"https://a.example","dpop_bound_access_tokens_required":"true"}`, nil},
		{"two resources", `{"resource":"https://a.example","resource":"https://b.example"}`, nil},
		{"long text", `{"resource":"https://a.example/` + strings.Repeat("x", 2048) + `"}`, nil},
		{"long list", `{"resource":"https://a.example","authorization_servers":[` + strings.Repeat(`"x",`, 1000) + `"x"]}`, nil},
		{"no object", `"x"`, nil},
		{"nothing", ``, nil},
	} {
		got, err := oauth.ParseResourceMetadata([]byte(c.data))
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.want == nil) {
			t.Errorf("%s: error %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}

// Proves: C5. Attack: PRM resource spoof.
func TestResourceMetadataCheck(t *testing.T) {
	t.Parallel()
	const no, same, parent = 0, 1, 2
	for _, c := range []struct {
		resource, requested string
		want                int
	}{
		{"https://a.example/mcp", "https://a.example/mcp", same},
		{"https://A.example:443/mcp/", "https://a.example/mcp", same},
		{"https://a.example", "https://a.example/", same},
		{"https://a.example/mcp?t=1", "https://a.example/mcp?t=1", same},
		{"https://a.example", "https://a.example/mcp", parent},
		{"https://a.example/", "https://a.example/a/b", parent},
		{"https://a.example/a", "https://a.example/a/b", parent},
		{"https://a.example/mcp", "https://a.example/mcp?t=1", parent},
		{"https://a.example/a", "https://a.example/ab", no},
		{"https://a.example/a/b", "https://a.example/a", no},
		{"https://a.example/A", "https://a.example/a", no},
		{"https://a.example/a%2Fb", "https://a.example/a/b", no},
		{"https://a.example?t=1", "https://a.example/mcp", no},
		{"https://a.example/mcp?t=1", "https://a.example/mcp?t=2", no},
		{"https://evil.example/mcp", "https://a.example/mcp", no},
		{"http://a.example/mcp", "https://a.example/mcp", no},
		{"https://a.example:8443/mcp", "https://a.example/mcp", no},
		{"https://a.example.evil.example", "https://a.example/mcp", no},
		{"https://a.example/x", "https://a.example/x/../y", no},
		{"https://a.example/#x", "https://a.example/", no},
		{"", "https://a.example/", no},
		{"https://a.example/", "", no},
	} {
		m := &oauth.ResourceMetadata{Resource: c.resource}
		if err := m.Check(c.requested, false); (err == nil) != (c.want == same) {
			t.Errorf("%s for %s: got %v", c.resource, c.requested, err)
		}
		if err := m.Check(c.requested, true); (err == nil) != (c.want != no) {
			t.Errorf("%s for %s with parents: got %v", c.resource, c.requested, err)
		}
	}
}

// Proves: C4.
func TestResourceMetadataURLs(t *testing.T) {
	t.Parallel()
	const known = "/.well-known/oauth-protected-resource"
	for resource, want := range map[string][]string{
		"https://a.example/public/mcp":  {"https://a.example" + known + "/public/mcp", "https://a.example" + known},
		"https://A.example:8443/mcp/":   {"https://a.example:8443" + known + "/mcp", "https://a.example:8443" + known},
		"https://a.example/mcp?t=1":     {"https://a.example" + known + "/mcp?t=1", "https://a.example" + known},
		"https://a.example/a%2Fb":       {"https://a.example" + known + "/a%2Fb", "https://a.example" + known},
		"https://a.example/":            {"https://a.example" + known},
		"http://127.0.0.1:8080":         {"http://127.0.0.1:8080" + known},
		"a.example":                     nil,
		"https://a.example/#":           nil,
		"https://user@a.example/secret": nil,
	} {
		got, err := oauth.ResourceMetadataURLs(resource)
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("%s: error %v (-want +got):\n%s", resource, err, diff)
		}
	}
}
