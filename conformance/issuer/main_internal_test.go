package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/oauth"
)

const resource = "http://127.0.0.1/mcp"

// start runs the fixture until the test ends, and returns its issuer identifier.
func start(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended, told := make(chan error, 1), make(chan string, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", "suite", resource, func(url string) { told <- url }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	select {
	case url := <-told:
		return url
	case err := <-ended:
		ended <- nil
		t.Fatalf("ended with %v before it listened", err)
		return ""
	}
}

// A browser with cookies comes back to the client with a code, asked nothing,
// whatever the port; and the metadata are those of the URL.
func TestIssuer(t *testing.T) {
	mcptest.NoLeaks(t)
	issuer := start(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(target string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", req.URL.Path, resp.Status)
		}
	}
	get(issuer + "/.well-known/oauth-authorization-server")

	answers := make(chan url.Values, 1)
	client := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { answers <- r.URL.Query() }))
	defer client.Close()
	get(issuer + "/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {"suite"}, "redirect_uri": {client.URL + "/callback"}, "resource": {resource},
		"code_challenge": {oauth.ChallengeS256(oauth.NewVerifier())}, "code_challenge_method": {"S256"}, "state": {"xyz"},
	}.Encode())
	answer := <-answers
	if answer.Get("code") == "" || answer.Get("state") != "xyz" || answer.Get("iss") != issuer {
		t.Errorf("the answer has the parameters %v, error %q, from %q", len(answer), answer.Get("error"), answer.Get("iss"))
	}
}

func TestRunRefuses(t *testing.T) {
	for name, test := range map[string]struct{ addr, resource string }{
		"an address that is none":       {"nowhere", resource},
		"an address of another machine": {"192.0.2.1:0", resource},
		"a resource that is none":       {"127.0.0.1:0", "mcp"},
	} {
		told := errors.New("it listens")
		if err := run(t.Context(), test.addr, "suite", test.resource, func(string) { panic(told) }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
