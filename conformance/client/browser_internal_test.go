package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcptest"
)

// The response is read out of the redirect, which is not followed; anything
// else ends the visit. No error shows the code.
func TestBrowser(t *testing.T) {
	mcptest.NoLeaks(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}
	}))
	defer site.Close()
	for name, test := range map[string]struct{ to, want string }{
		"a response":            {redirectURI + "?code=secret&state=ours", ""},
		"an error is one":       {redirectURI + "?error=access_denied&state=ours", ""},
		"that of another":       {redirectURI + "?code=secret&state=theirs", "of another request"},
		"in another place":      {"http://localhost:3000/other?code=secret&state=ours", "not with a redirect to"},
		"at another origin":     {"http://localhost:3000.example/callback?code=secret&state=ours", "not with a redirect to"},
		"without parameters":    {redirectURI, "not with a redirect to"},
		"that cannot be read":   {redirectURI + "?code=secret%zz&state=ours", "cannot be read"},
		"no redirect but pages": {"", "answered 200 OK"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := newBrowser().Begin(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			target, err := url.Parse(site.URL + "/authorize?" + url.Values{"to": {test.to}}.Encode())
			if err != nil {
				t.Fatal(err)
			}
			answer, err := v.Wait(t.Context(), target, func(q url.Values) bool { return q.Get("state") == "ours" })
			if test.want == "" {
				if err != nil || answer.Get("state") != "ours" {
					t.Errorf("the answer is %v, %v", answer, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
	site.Close()
	gone, err := url.Parse(site.URL + "/authorize?state=secret")
	if err != nil {
		t.Fatal(err)
	}
	v := &visit{newBrowser()}
	if _, err := v.Wait(context.Background(), gone, nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v, want one that shows no state", err)
	}
}
