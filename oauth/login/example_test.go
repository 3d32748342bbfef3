package login_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// exampleServers stand for a resource and its authorization server elsewhere.
func exampleServers() (resource string, stop func()) {
	as := &authServer{path: "", expires: 3600}
	as.prepare()
	as.Server = httptest.NewServer(as)
	rs := &resourceServer{as: []*authServer{as}, prmPath: "/.well-known/oauth-protected-resource/mcp"}
	rs.prepare()
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets.", func(_ context.Context, in struct{ Name string }) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))
	mcp := streamable.NewHandler(s, nil)
	rs.next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // of examples without MCP
			_, _ = io.WriteString(w, "welcome")
			return
		}
		mcp.ServeHTTP(w, r)
	})
	rs.Server = httptest.NewServer(rs)
	return rs.url(), func() {
		rs.Close()
		as.Close()
	}
}

// A client of MCP that signs in when the server wants it: what a program writes.
func Example() {
	resource, stop := exampleServers()
	defer stop()
	ctx := context.Background()

	// In a program the Authorizer is left out: the default opens the browser.
	signIn := login.New(&login.Options{ClientName: "My app", Authorizer: &browser{}})
	defer signIn.Close()
	d := streamable.URL(resource)
	d.Client = signIn.HTTPClient(nil)
	c, err := client.Connect(ctx, d, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "greet", map[string]string{"Name": "Ada"}))
	// Output: Hello, Ada! <nil>
}

// A client of HTTP that signs in when it is told 401. In a program the
// Authorizer can be left out: the default opens the person's browser.
func ExampleClient_HTTPClient() {
	resource, stop := exampleServers()
	defer stop()

	signIn := login.New(&login.Options{ClientName: "My app", Authorizer: &browser{}})
	defer signIn.Close()
	web := signIn.HTTPClient(nil)

	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, resource, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := web.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

// Tokens for use without HTTPClient, and what is stored of them.
func ExampleClient_Source() {
	resource, stop := exampleServers()
	defer stop()

	signIn := login.New(&login.Options{ClientName: "My app", Authorizer: &browser{}})
	defer signIn.Close()
	ctx := context.Background()

	token, err := signIn.Source(resource).Token(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	stored, err := signIn.Status(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(token, len(stored), stored[0].Resource == resource, signIn.SignOut(ctx, resource))
	// Output: Bearer token 1 true <nil>
}

// A doctor for people who cannot sign in.
func ExampleClient_Diagnose() {
	resource, stop := exampleServers()
	defer stop()

	signIn := login.New(&login.Options{Authorizer: &browser{}})
	defer signIn.Close()
	for f := range signIn.Diagnose(context.Background(), resource) {
		fmt.Printf("%s: %s\n", f.Verdict, f.Step)
	}
	// Output:
	// ok: request
	// ok: resource metadata
	// ok: authorization server metadata
	// ok: PKCE
	// ok: registration
}
