package interop_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
)

// peerRedirect is the redirect URI of the clients in TypeScript, where nobody
// listens.
const peerRedirect = "http://127.0.0.1:41765/callback"

// A signedIn is what a client in TypeScript saw.
type signedIn struct {
	Who       caller `json:"who"`
	Write     caller `json:"write"`
	Refused   string `json:"refused"`
	Again     caller `json:"again"`
	Refreshed bool   `json:"refreshed"`
}

// serveBrowser serves the person to another program: the URL that comes in is
// walked from, and the one where that ends is answered.
func serveBrowser(t *testing.T) string {
	t.Helper()
	b := newBrowser(t, nil)
	b.stay = true
	return listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<10))
		if err != nil {
			return
		}
		u, err := url.Parse(string(text))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		end, err := b.walk(r.Context(), u)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		_, _ = io.WriteString(w, end.String())
	}))
}

// runSignIn runs a client's script that signs in.
func runSignIn(t *testing.T, file string, options map[string]any) signedIn {
	t.Helper()
	argument, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	cmd := node(t, file, string(argument))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", file, err, out, stderr.Bytes())
	}
	var report signedIn
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%s printed %q: %v", file, out, err)
	}
	return report
}

// The clients of the TypeScript SDK with our guard and our authorization server.
// Version 1 answers a 403 with a refresh, if it can, which brings no scopes: it
// gives up. Version 2 asks the person.
func TestAuthTypeScript(t *testing.T) {
	peersDir(t)
	for name, peer := range map[string]struct {
		file string
		mode any
		// stepsUp: the client asks for more scopes when it is told to.
		stepsUp bool
	}{
		"v1":        {"v1-auth.mjs", nil, false},
		"v2 legacy": {"v2-auth.mjs", "legacy", true},
		"v2 auto":   {"v2-auth.mjs", "auto", true},
		"v2 pinned": {"v2-auth.mjs", map[string]string{"pin": modern}, true},
	} {
		for _, registration := range []string{"dynamic", "document"} {
			t.Run(name+" "+registration, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				id, _, fetch := serveDocument(t, peerRedirect)
				ourIssuer(t, s, fetch)
				s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
				options := map[string]any{"url": s.uri(), "browser": serveBrowser(t), "mode": peer.mode}
				way := []string{"authorize", "token authorization_code OK"}
				if registration == "document" {
					options["document"] = id
				} else {
					id, way = "", append([]string{"register Created"}, way...)
				}
				got := runSignIn(t, peer.file, options)
				s.checkPeer(t, got, id, way, peer.stepsUp)
			})
		}
	}
}

// Version 1 without a refresh token asks the person for the scopes of the 403.
func TestAuthTypeScriptNoRefresh(t *testing.T) {
	t.Parallel()
	peersDir(t)
	s := newScene(t)
	s.noRefresh = true
	ourIssuer(t, s, nil)
	s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
	got := runSignIn(t, "v1-auth.mjs", map[string]any{"url": s.uri(), "browser": serveBrowser(t)})
	write := got.Who
	write.Scopes = []string{scopeRead, scopeWrite}
	if diff := cmp.Diff(write, got.Write); diff != "" || got.Refused != "" {
		t.Errorf("who writes differs (-want +got):\n%s%s", diff, got.Refused)
	}
	want := []string{"authorize", "token authorization_code OK"}
	if diff := cmp.Diff(slices.Concat([]string{"register Created"}, want, want, want), steps(s.issuer.visits(), false)); diff != "" {
		t.Errorf("what the client did differs (-want +got):\n%s", diff)
	}
}

// checkPeer compares what a client in TypeScript saw, and did at the
// authorization server, with what it should. It has any id if id is empty.
func (s *scene) checkPeer(t *testing.T, got signedIn, id string, way []string, stepsUp bool) {
	t.Helper()
	read := caller{Issuer: s.issuer.url, Subject: person, Client: id, Scopes: []string{scopeRead}}
	if id == "" {
		read.Client = got.Who.Client
	}
	want := signedIn{Who: read, Again: read, Refreshed: true}
	if stepsUp {
		want.Write = read
		want.Write.Scopes = []string{scopeRead, scopeWrite}
		want.Again = want.Write
		way = append(way, "authorize", "token authorization_code OK", "token refresh_token OK")
	} else {
		want.Refused = "Streamable HTTP error: Server returned 403 after trying upscoping"
		way = append(way, "token refresh_token OK", "token refresh_token OK")
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Who.Client == "" {
		t.Errorf("what the client saw differs (-want +got):\n%s", diff)
	}
	visits := s.issuer.visits()
	if diff := cmp.Diff(way, steps(visits, false)); diff != "" {
		t.Errorf("what the client did differs (-want +got):\n%s", diff)
	}
	for _, v := range visits {
		if step := v.step(); (step == "authorize" || strings.HasPrefix(step, "token")) && v.Form.Get("resource") != s.uri() {
			t.Errorf("%s for the resource %q", step, v.Form.Get("resource"))
		}
	}
	for _, v := range find(visits, "authorize") {
		if v.Form.Get("code_challenge_method") != oauth.MethodS256 {
			t.Errorf("PKCE by %q", v.Form.Get("code_challenge_method"))
		}
	}
}
