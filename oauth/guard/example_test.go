package guard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A server over HTTP that takes the tokens of an authorization server. Tools
// are listed for those who may use them; without Visible they would be listed
// for all, and a call without scopes would be told which it needs.
func Example() {
	s := server.New("files", "1.0.0", nil)
	s.Add(
		server.Tool("read", "Reads a file.", func(context.Context, struct{}) (string, error) { return "text", nil }),
		server.Tool("write", "Writes a file.", func(ctx context.Context, _ struct{}) (string, error) {
			return "written by " + server.Caller(ctx).Subject, nil
		}).With(server.ToolOptions{Scopes: []string{"files:write"}}),
	)
	s.Visible(func(ctx context.Context, it server.Item) bool {
		return guard.Allows(server.Caller(ctx), it.Scopes...)
	})

	key, _ := jwt.NewKey("ES256") // the authorization server's
	far := httptest.NewUnstartedServer(nil)
	url := "http://" + far.Listener.Addr().String() + "/mcp"

	g, err := guard.New(url, guard.JWT("https://issuer.example", &guard.JWTOptions{JWKS: jwt.SetJSON(key)}), &guard.Options{
		Scopes:  []string{"mcp"},
		Implies: map[string][]string{"files:admin": {"files:write", "mcp"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	far.Config.Handler = g.Handler(streamable.NewHandler(s, nil)) // the endpoint at /mcp, and the metadata
	far.Start()
	defer far.Close()

	ctx := context.Background()
	for _, scope := range []string{"mcp", "files:admin"} {
		token, _ := key.Sign("at+jwt", map[string]any{
			"iss": "https://issuer.example", "aud": url, "sub": "ada", "scope": scope, "exp": time.Now().Add(time.Minute).Unix(),
		})
		dialer := streamable.URL(url)
		dialer.Header = func(context.Context) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer " + token}}, nil
		}
		c, err := client.Connect(ctx, dialer, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		for tool, err := range c.Tools(ctx) {
			if err != nil {
				fmt.Println(err)
				return
			}
			text, err := client.Call[string](ctx, c, tool.Name, nil)
			fmt.Println(scope, "may", tool.Name+":", text, err)
		}
		_ = c.Close()
	}
	_, err = client.Connect(ctx, streamable.URL(url), nil)
	fmt.Println("no token:", err != nil)
	// Output:
	// mcp may read: text <nil>
	// files:admin may read: text <nil>
	// files:admin may write: written by ada <nil>
	// no token: true
}

// The guard as middleware, with routes of one's own.
func ExampleGuard_Protect() {
	opaque := guard.Func("https://issuer.example", func(_ context.Context, token string) (*guard.Token, error) {
		if token != "valid" {
			return nil, fmt.Errorf("unknown token")
		}
		return &guard.Token{Subject: "ada", Audience: []string{"https://api.example/mcp"}}, nil
	})
	g, err := guard.New("https://api.example/mcp", opaque, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", g.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, "passed")
	})))
	for _, path := range g.MetadataPaths() {
		mux.Handle(path, g.Metadata())
	}

	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	r.Header.Set("Authorization", "Bearer valid")
	mux.ServeHTTP(httptest.NewRecorder(), r)
	// Output:
	// 401 Bearer resource_metadata="https://api.example/.well-known/oauth-protected-resource/mcp"
	// POST passed
}
