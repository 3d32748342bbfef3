package issuer_test

import (
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// An authorization server for one MCP server and one client, whose person
// agrees to everything, as tests want it.
func ExampleNew() {
	server, err := issuer.New("http://localhost:8080", issuer.NewMemory(), issuer.AutoApprove("ada"), &issuer.Options{
		Resources: []issuer.Resource{{
			URI:    "http://localhost:9090/mcp",
			Scopes: []issuer.Scope{{Name: "notes:read", Description: "Read your notes"}},
		}},
		Clients: []issuer.StaticClient{{
			ID:       "cli",
			Metadata: oauth.ClientMetadata{RedirectURIs: []string{"http://127.0.0.1/callback"}},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := url.Values{
		"response_type": {"code"}, "client_id": {"cli"}, "redirect_uri": {"http://127.0.0.1:51234/callback"},
		"code_challenge": {oauth.ChallengeS256(oauth.NewVerifier())}, "code_challenge_method": {"S256"},
		"scope": {"notes:read"}, "state": {"af0ifjsldkj"},
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost:8080/authorize?"+request.Encode(), nil))

	answer, err := url.Parse(w.Header().Get("Location"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Code, answer.Host+answer.Path)
	fmt.Println(answer.Query().Get("iss"), answer.Query().Get("state"), answer.Query().Has("code"))
	// Output:
	// 303 127.0.0.1:51234/callback
	// http://localhost:8080 af0ifjsldkj true
}

// A Login that asks for a password.
func ExampleLogin() {
	server, err := issuer.New("https://as.example", issuer.NewMemory(), passwords{"ada": "secret"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(server.Metadata().AuthorizationEndpoint)
	// Output: https://as.example/authorize
}

type passwords map[string]string

func (passwords) External() bool { return false }

func (p passwords) ServeLogin(w http.ResponseWriter, r *http.Request, v *issuer.Visit) {
	user, password := r.PostFormValue("user"), r.PostFormValue("password")
	if want, ok := p[user]; ok && password == want { // a real one compares hashes
		v.Done(w, r, issuer.Person{Subject: user})
		return
	}
	v.Page(w, http.StatusOK, "Sign in", passwordForm(v.Action("/"), v.CSRF()))
}

// passwordForm is a form of the page; html/template escapes what is in it.
func passwordForm(action, csrf string) template.HTML {
	var form strings.Builder
	if err := passwordPage.Execute(&form, map[string]string{"Action": action, "CSRF": csrf}); err != nil {
		return ""
	}
	return template.HTML(form.String())
}

var passwordPage = template.Must(template.New("form").Parse(`<form method="post" action="{{.Action}}">
<input type="hidden" name="csrf" value="{{.CSRF}}">
<label for="user">Name</label><input id="user" name="user" autocomplete="username" required>
<label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" required>
<div class="row"><button class="key">Sign in</button></div>
</form>`))
