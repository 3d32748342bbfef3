package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/parley-mcp/parley/oauth"
)

// A client that was refused finds the metadata of the server.
func ExampleParseChallenges() {
	refusal := http.Header{}
	refusal.Add("WWW-Authenticate", `Basic realm="old"`)
	refusal.Add("WWW-Authenticate", `Bearer scope="files:read", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource"`)

	c, ok := oauth.FindChallenge(oauth.ParseChallenges(refusal.Values("WWW-Authenticate")), "Bearer")
	fmt.Println(ok, c.Params["scope"], c.Params["resource_metadata"])
	// Output: true files:read https://mcp.example/.well-known/oauth-protected-resource
}

func ExampleChallenge_String() {
	fmt.Println(oauth.Challenge{Scheme: "Bearer", Params: map[string]string{
		"scope": "files:write", "error": oauth.InsufficientScope, "error_description": "two\r\nlines",
	}})
	// Output: Bearer error="insufficient_scope", error_description="two??lines", scope="files:write"
}

func ExampleCanonicalResource() {
	resource, err := oauth.CanonicalResource("HTTPS://MCP.example:443/mcp/")
	fmt.Println(resource, err)
	// Output: https://mcp.example/mcp <nil>
}

func ExampleServerMetadataURLs() {
	urls, err := oauth.ServerMetadataURLs("https://as.example/tenant1")
	if err != nil {
		fmt.Println(err)
	}
	for _, u := range urls {
		fmt.Println(u)
	}
	// Output:
	// https://as.example/.well-known/oauth-authorization-server/tenant1
	// https://as.example/.well-known/openid-configuration/tenant1
	// https://as.example/tenant1/.well-known/openid-configuration
}

func ExampleResourceMetadata_Check() {
	m, err := oauth.ParseResourceMetadata([]byte(`{"resource": "https://mcp.example/mcp", "authorization_servers": ["https://as.example"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Check("https://mcp.example/mcp/", false))
	fmt.Println(m.Check("https://evil.example/mcp", false))
	// Output:
	// <nil>
	// resource metadata is about https://mcp.example/mcp, not about https://evil.example/mcp
}

func ExampleVerifyS256() {
	verifier := oauth.NewVerifier()                    // the client keeps it
	challenge := oauth.ChallengeS256(verifier)         // and sends this in the authorization request
	fmt.Println(oauth.VerifyS256(verifier, challenge)) // which the server checks in the token request
	// Output: true
}

// A server on this machine is fetched from only by a fetcher that may do so.
func ExampleFetcher() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"resource":"https://mcp.example"}`)
	}))
	defer server.Close()

	f := oauth.NewFetcher(nil)
	defer f.Close()
	_, err := f.Get(context.Background(), server.URL, nil)
	_, blocked := errors.AsType[*oauth.BlockedError](err)
	fmt.Println("blocked:", blocked)

	r, err := f.Loopback().Get(context.Background(), server.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Status, r.JSON(), string(r.Body))
	// Output:
	// blocked: true
	// 200 true {"resource":"https://mcp.example"}
}

func ExampleParseError() {
	err := error(oauth.ParseError(http.StatusBadRequest, []byte(`{"error":"invalid_grant","error_description":"expired"}`)))
	fmt.Println(err, errors.Is(err, &oauth.Error{Code: oauth.InvalidGrant}))
	// Output: invalid_grant: expired true
}
