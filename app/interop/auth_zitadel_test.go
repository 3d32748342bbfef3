package interop_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/parley-mcp/parley/oauth/guard"
)

// zitadelUsers is a user store with one person.
type zitadelUsers struct{}

func (zitadelUsers) GetUserByID(id string) *storage.User {
	if id != person {
		return nil
	}
	return &storage.User{ID: person, Username: person, Password: password}
}

func (u zitadelUsers) GetUserByUsername(name string) *storage.User { return u.GetUserByID(name) }
func (zitadelUsers) ExampleClientID() string                       { return "service" }

// zitadelStorage is the storage of the module's example, with our scopes, and
// with what a resource server is told of a token: the example tells that to the
// client alone that the token was given to.
type zitadelStorage struct{ *storage.Storage }

func (s *zitadelStorage) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return zitadelClient{c}, nil
}

func (s *zitadelStorage) SetIntrospectionFromToken(ctx context.Context, to *oidc.IntrospectionResponse, token, subject, asker string) error {
	if asker != "guard" {
		return oidc.ErrAccessDenied()
	}
	// Told as if the client asked; the audience of each token is its client.
	if err := s.Storage.SetIntrospectionFromToken(ctx, to, token, subject, "desk"); err != nil {
		return err
	}
	to.Subject, to.Audience = subject, oidc.Audience{to.ClientID}
	return nil
}

// zitadelClient is a client that may have our scopes.
type zitadelClient struct{ op.Client }

func (zitadelClient) IsScopeAllowed(scope string) bool {
	return slices.Contains([]string{scopeRead, scopeWrite}, scope)
}

// zitadel serves an authorization server of zitadel/oidc for the scene.
func zitadel(t *testing.T, s *scene) {
	t.Helper()
	store := &zitadelStorage{storage.NewStorageWithClients(zitadelUsers{}, zitadelClients())}
	provider, err := op.NewProvider(&op.Config{
		CryptoKey: sha256.Sum256([]byte("interop")), CryptoKeyId: "one",
		CodeMethodS256: true, GrantTypeRefreshToken: true,
	}, store, op.StaticIssuer(s.issuer.url), op.WithAllowInsecure())
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", provider)
	mux.HandleFunc("GET /login/username", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<form method="post"><input type="hidden" name="id" value=%q><input name="username">`+
			`<input name="password" type="password"><button>Sign in</button></form>`, r.FormValue("authRequestID"))
	})
	back := op.AuthCallbackURL(provider)
	issuer := op.NewIssuerInterceptor(provider.IssuerFromRequest)
	mux.Handle("POST /login/username", issuer.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.PostFormValue("id")
		if err := store.CheckUsernamePassword(r.PostFormValue("username"), r.PostFormValue("password"), id); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		http.Redirect(w, r, back(r.Context(), id), http.StatusFound)
	}))
	s.issuer.serve(mux)
}

func zitadelClients() map[string]*storage.Client {
	return map[string]*storage.Client{
		"desk":  storage.NativeClient("desk", redirectURI),
		"guard": storage.WebClient("guard", "guard secret", "https://guard.example/callback"),
	}
}

// Our client and our guard with zitadel/oidc: opaque tokens, without a resource.
func TestAuthZitadel(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	zitadel(t, s)
	verifier := guard.Introspection(s.issuer.url, &guard.IntrospectionOptions{ClientID: "guard", ClientSecret: "guard secret"})
	s.protect(t, verifier, guard.Options{Audiences: []string{"desk"}})
	s.flow(t, preRegistered(s.issuer.url),
		caller{Issuer: s.issuer.url, Subject: person, Client: "desk"}, lacks{rfc8414: true, iss: true, offline: true})
}
