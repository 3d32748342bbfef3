package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/providertest"
	"github.com/parley-mcp/parley/app/internal/serve/servers/everything"
	"github.com/parley-mcp/parley/transport/streamable"
)

// The command login signs in to servers with the habits of those that exist; then a token is refreshed,
// and a scope that is missing is asked for. Package interop does the same in a real browser.
// Proves: rulings 36, 37; C3, C7, C11, C19, C20.
func TestProviders(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	t.Setenv("FORM", "answer=approve")
	for _, h := range providertest.Habits(t) {
		t.Run(h.Name, func(t *testing.T) {
			newEmptyPlace(t)
			handler := streamable.NewHandler(everything.New("1.0.0", nil), nil)
			t.Cleanup(func() {
				if err := handler.Shutdown(context.Background()); err != nil {
					t.Errorf("shutdown: %v", err)
				}
			})
			providertest.New(t, &h, handler).SignIn(t, func(args ...string) (int, string, string) { return command(t, args...) })
		})
	}
}

// Advice to users of the program names its flags and commands, not options of the library.
func TestAdviceForPeople(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	newEmptyPlace(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://elsewhere.example/metadata"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	for _, args := range [][]string{{"auth", "doctor", server.URL + "/mcp"}, {"tools", "--server", server.URL + "/mcp"}} {
		_, out, said := command(t, args...)
		if text := out + said; !strings.Contains(text, "elsewhere.example") || !strings.Contains(text, "tell the server's operator") || strings.Contains(text, "Options.") {
			t.Errorf("%q says:\n%s", args, text)
		}
	}
}

// An authorization server that is listed with and without the slash of an empty path is one server, and the
// user does not have to choose. Proves: ruling 36.
func TestIssuerInBothSpellings(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	newEmptyPlace(t)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/oauth-protected-resource/mcp" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"resource":"%[1]s/mcp","authorization_servers":["%[1]s","%[1]s/"]}`, server.URL)
	}))
	t.Cleanup(server.Close)
	code, _, said := command(t, "login", server.URL+"/mcp", "--client-id", "me", "--no-browser")
	if code == 0 || strings.Contains(said, "--issuer") {
		t.Errorf("exit code %d\n%s", code, said)
	}
}
