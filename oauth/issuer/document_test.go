package issuer_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// A publisher serves client ID metadata documents and counts who asks.
type publisher struct {
	*httptest.Server
	webtest.Switch
}

func publish(t *testing.T, reply http.HandlerFunc) *publisher {
	p := new(publisher)
	p.Set(reply)
	p.Server = webtest.Serve(t, &p.Switch)
	return p
}

// document writes a good document, changed by pairs of names and values.
func document(w http.ResponseWriter, r *http.Request, pairs ...any) {
	m := map[string]any{
		"client_id": "http://" + r.Host + r.URL.RequestURI(), "client_name": "Documented",
		"redirect_uris": []string{webRedirect, "http://127.0.0.1/cb"}, "logo_uri": "https://tracker.example/logo.png",
		"grant_types": []string{"authorization_code", "refresh_token"},
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	_ = json.NewEncoder(w).Encode(m)
}

// localRedirect fits a redirect URI of each document.
const localRedirect = "http://127.0.0.1:4711/cb"

// Proves: S4, S10: a client that nobody registered, by its document.
func TestDocument(t *testing.T) {
	t.Parallel()
	host := publish(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		document(w, r)
	})
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	id := host.URL + "/client.json"
	question := p.signIn(s.request("client_id", id), "ada")
	for _, want := range []string{"Documented", "unverified", strings.TrimPrefix(host.URL, "http://"), "client.example", "two different places"} {
		if !strings.Contains(question.body, want) {
			t.Errorf("consent page lacks %q:\n%s", want, question.body)
		}
	}
	if strings.Contains(question.body, "tracker") {
		t.Errorf("consent page has the logo:\n%s", question.body)
	}
	p.code(p.submit(question, "answer", "approve"))
	p.code(p.open(s.request("client_id", id))) // remembered, since the answer leaves the device
	local := p.open(s.request("client_id", id, "redirect_uri", "http://127.0.0.1:5555/cb"))
	if !strings.Contains(local.body, "program on this computer") || strings.Contains(local.body, "two different places") {
		t.Errorf("no warning about loopback:\n%s", local.body)
	}
	if n := host.Hits(); n != 1 {
		t.Errorf("fetched %d times within max-age", n)
	}
	s.clock.Add(11 * time.Minute)
	p.open(s.request("client_id", id))
	if n := host.Hits(); n != 2 {
		t.Errorf("fetched %d times after max-age", n)
	}
}

// A redirect URI that the client no longer has when the person agrees gets no code.
func TestRedirectIsGone(t *testing.T) {
	t.Parallel()
	redirects := []string{webRedirect, "https://client.example/other"}
	host := publish(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		document(w, r, "redirect_uris", redirects)
	})
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	question := p.signIn(s.request("client_id", host.URL+"/client.json"), "ada")
	redirects = redirects[1:]
	s.clock.Add(11 * time.Minute)
	if got := p.submit(question, "answer", "approve"); got.away != nil || got.status != http.StatusBadRequest {
		t.Errorf("consent: %d %v", got.status, got.away)
	}
}

// Attack: CIMD abuse: SSRF, redirects, wrong id, impersonation of localhost,
// logos, secrets, floods. Proves: S4.
func TestAttackCIMDAbuse(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, s *site, id string) {
		t.Helper()
		got := s.person().open(s.request("client_id", id, "redirect_uri", localRedirect))
		if got.away != nil || got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", id, got.status, got.away)
		}
	}

	t.Run("documents", func(t *testing.T) {
		t.Parallel()
		elsewhere := publish(t, func(w http.ResponseWriter, r *http.Request) { document(w, r) })
		s := newSite(t, "", issuer.AutoApprove("ada"), nil)
		for name, reply := range map[string]http.HandlerFunc{
			"other id": func(w http.ResponseWriter, r *http.Request) {
				document(w, r, "client_id", "https://good.example/client.json")
			},
			"almost that id": func(w http.ResponseWriter, r *http.Request) {
				document(w, r, "client_id", "http://"+r.Host+r.URL.Path+"/")
			},
			"redirect": func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL+"/c", http.StatusFound)
			},
			"own redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/final", http.StatusFound) },
			"not JSON": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				document(w, r)
			},
			"status": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotFound); document(w, r) },
			"large":  func(w http.ResponseWriter, r *http.Request) { document(w, r, "x", strings.Repeat("x", 20<<10)) },
			"twice": func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write([]byte(`{"client_id":"a","client_id":"b"}`))
			},
			"a secret": func(w http.ResponseWriter, r *http.Request) { document(w, r, "client_secret", "s") },
			"secret method": func(w http.ResponseWriter, r *http.Request) {
				document(w, r, "token_endpoint_auth_method", "client_secret_post")
			},
			"key without keys": func(w http.ResponseWriter, r *http.Request) {
				document(w, r, "token_endpoint_auth_method", "private_key_jwt")
			},
			"page":         func(w http.ResponseWriter, r *http.Request) { document(w, r, "client_uri", "javascript:alert(1)") },
			"no name":      func(w http.ResponseWriter, r *http.Request) { document(w, r, "client_name", "") },
			"no redirects": func(w http.ResponseWriter, r *http.Request) { document(w, r, "redirect_uris", []string{}) },
			"bad redirects": func(w http.ResponseWriter, r *http.Request) {
				document(w, r, "redirect_uris", []string{"javascript:alert(1)", "http://evil.example/cb"})
			},
		} {
			host := publish(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/final" {
					document(w, r, "client_id", "http://"+r.Host+"/client.json")
					return
				}
				reply(w, r)
			})
			got := s.person().open(s.request("client_id", host.URL+"/client.json", "redirect_uri", localRedirect))
			if got.away != nil || got.status != http.StatusBadRequest {
				t.Errorf("%s: %d %v", name, got.status, got.away)
			}
			if host.Hits() != 1 {
				t.Errorf("%s: %d requests", name, host.Hits())
			}
		}
		if elsewhere.Hits() != 0 {
			t.Error("a redirect was followed")
		}
	})
	t.Run("URLs", func(t *testing.T) {
		t.Parallel()
		host := publish(t, func(w http.ResponseWriter, r *http.Request) { document(w, r) })
		s := newSite(t, "", issuer.AutoApprove("ada"), nil)
		user := strings.Replace(host.URL, "http://", "http://user@", 1)
		for _, id := range []string{
			host.URL, host.URL + "/", host.URL + "/a/../client.json", host.URL + "/./client.json", host.URL + "/client.json#x",
			user + "/client.json", strings.ToUpper(host.URL) + "/client.json", host.URL + "/" + strings.Repeat("x", 3000),
			"http://169.254.169.254/latest/meta-data", "https://169.254.169.254/latest", "https://10.0.0.1/c", "https://[::ffff:10.0.0.1]/c",
			"https://metadata.invalid/c", "http://evil.example/client.json", "file:///etc/passwd", "gopher://localhost/x",
		} {
			refused(t, s, id)
		}
		if n := host.Hits(); n != 0 {
			t.Errorf("fetched %d times", n)
		}
	})
	t.Run("an issuer on the internet fetches nothing from its own machine", func(t *testing.T) {
		t.Parallel()
		host := publish(t, func(w http.ResponseWriter, r *http.Request) { document(w, r) })
		secure := httptest.NewTLSServer(&host.Switch)
		t.Cleanup(secure.Close)
		for _, loopback := range []bool{false, true} {
			server, err := issuer.New("https://as.example", issuer.NewMemory(), formLogin{}, &issuer.Options{Loopback: loopback})
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{host.URL + "/client.json", secure.URL + "/client.json"} {
				w := serve(t, server, (&site{url: "https://as.example"}).request("client_id", id))
				if w.Code != http.StatusBadRequest {
					t.Errorf("%s: %d", id, w.Code)
				}
			}
		}
		if n := host.Hits(); n != 0 {
			t.Errorf("%d requests reached this machine", n)
		}
	})
	t.Run("whatever the fetcher does", func(t *testing.T) {
		t.Parallel()
		host := publish(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/final" {
				http.Redirect(w, r, "/final", http.StatusFound)
				return
			}
			document(w, r, "client_id", "http://"+r.Host+"/client.json")
		})
		careless := func(o *issuer.Options) { o.Documents.Fetch = oauth.NewFetcher(nil).Loopback() }
		refused(t, newSite(t, "", issuer.AutoApprove("ada"), careless), host.URL+"/client.json")
		if n := host.Hits(); n != 2 {
			t.Errorf("%d requests, want 2: the redirect was not followed", n)
		}
		o := new(issuer.Options)
		careless(o)
		server, err := issuer.New("https://as.example", issuer.NewMemory(), formLogin{}, o)
		if err != nil {
			t.Fatal(err)
		}
		w := serve(t, server, (&site{url: "https://as.example"}).request("client_id", host.URL+"/client.json"))
		if n := host.Hits(); n != 2 || w.Code != http.StatusBadRequest {
			t.Errorf("%d after %d requests", w.Code, n)
		}
	})
	t.Run("redirect URIs are those of the document", func(t *testing.T) {
		t.Parallel()
		host := publish(t, func(w http.ResponseWriter, r *http.Request) { document(w, r) })
		s := newSite(t, "", issuer.AutoApprove("ada"), nil)
		for uri, ok := range map[string]bool{
			webRedirect: true, "http://127.0.0.1:4711/cb": true, "http://localhost:4711/cb": false, "https://evil.example/cb": false,
		} {
			got := s.person().open(s.request("client_id", host.URL+"/client.json", "redirect_uri", uri))
			if (got.status != http.StatusBadRequest) != ok {
				t.Errorf("%s: %d %v", uri, got.status, got.away)
			}
		}
	})
	t.Run("policy", func(t *testing.T) {
		t.Parallel()
		host := publish(t, func(w http.ResponseWriter, r *http.Request) { document(w, r) })
		off := newSite(t, "", issuer.AutoApprove("ada"), func(o *issuer.Options) { o.Documents.Off = true })
		refused(t, off, host.URL+"/client.json")
		if off.server.Metadata().ClientIDMetadataDocumentSupported {
			t.Error("documents are off and advertised")
		}
		some := newSite(t, "", issuer.AutoApprove("ada"), func(o *issuer.Options) {
			o.Documents.Allow = func(url string) bool { return strings.HasSuffix(url, "/good.json") }
		})
		refused(t, some, host.URL+"/client.json")
		if n := host.Hits(); n != 0 {
			t.Errorf("fetched %d times against the policy", n)
		}
		p := some.person()
		p.code(p.open(some.request("client_id", host.URL+"/good.json", "redirect_uri", localRedirect)))
	})
}

// Failures are remembered for a while, not for ever; the cache is bounded.
func TestDocumentCache(t *testing.T) {
	t.Parallel()
	good := func(w http.ResponseWriter, r *http.Request) { document(w, r) }
	host := publish(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	s := newSite(t, "", issuer.AutoApprove("ada"), func(o *issuer.Options) { o.Documents.MaxCached = 2 })
	p := s.person()
	open := func(path string) *page {
		return p.open(s.request("client_id", host.URL+path, "redirect_uri", localRedirect))
	}
	open("/a")
	host.Set(good)
	if got := open("/a"); got.away != nil || host.Hits() != 1 {
		t.Errorf("a failure was not remembered: %d requests", host.Hits())
	}
	s.clock.Add(time.Minute)
	p.code(open("/a"))
	p.code(open("/b"))
	p.code(open("/c")) // a or b goes
	p.code(open("/c"))
	if n := host.Hits(); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
	p.code(open("/a"))
	p.code(open("/b"))
	before := host.Hits()
	if before < 5 {
		t.Error("three documents are remembered, want two")
	}
	host.Set(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		document(w, r)
	})
	s.clock.Add(25 * time.Hour)
	p.code(open("/d"))
	s.clock.Add(time.Minute)
	p.code(open("/d"))
	if n := host.Hits() - before; n != 2 {
		t.Errorf("%d requests, want 2: no-store was kept", n)
	}
}

// However many ask, one fetches.
func TestDocumentSingleFlight(t *testing.T) {
	t.Parallel()
	release, asked := make(chan struct{}), make(chan struct{}, 100)
	host := publish(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-release
		document(w, r)
	})
	s := newSite(t, "", issuer.AutoApprove("ada"), nil)
	var wg sync.WaitGroup
	var codes atomic.Int32
	open := func() {
		if got := s.person().open(s.request("client_id", host.URL+"/client.json", "redirect_uri", localRedirect)); got.away != nil {
			codes.Add(1)
		}
	}
	wg.Go(open)
	<-asked
	for range 20 {
		wg.Go(open)
	}
	// One that gives up leaves the others alone.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, s.request("client_id", host.URL+"/client.json"), nil)
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest {
		t.Errorf("who gave up got %d", w.Code)
	}
	close(release)
	wg.Wait()
	if codes.Load() != 21 || host.Hits() != 1 {
		t.Errorf("%d codes after %d requests", codes.Load(), host.Hits())
	}
}

// While the site of a client is down, what it said before holds, for a day; what
// it says holds at once.
func TestDocumentOutage(t *testing.T) {
	t.Parallel()
	good := func(w http.ResponseWriter, r *http.Request) { document(w, r) }
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	gone := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	fleeting := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		document(w, r)
	}
	for name, tt := range map[string]struct {
		first, then http.HandlerFunc
		after       time.Duration
		ok          bool
	}{
		"down":             {good, down, time.Hour, true},
		"down for long":    {good, down, 25 * time.Hour, false},
		"gone":             {good, gone, time.Hour, false},
		"not to be stored": {fleeting, down, time.Hour, false},
		"never there":      {down, down, time.Hour, false},
	} {
		host := publish(t, tt.first)
		s := newSite(t, "", issuer.AutoApprove("ada"), nil)
		request := s.request("client_id", host.URL+"/client.json", "redirect_uri", localRedirect)
		s.person().open(request)
		host.Set(tt.then)
		for range 2 { // the second time nobody is asked for a minute
			s.clock.Add(tt.after / 2)
			if got := s.person().open(request); (got.away != nil) != tt.ok && tt.after < 2*time.Hour {
				t.Errorf("%s: %d %v", name, got.status, got.away)
			}
		}
		if got := s.person().open(request); (got.away != nil) != tt.ok {
			t.Errorf("%s, in the end: %d %v", name, got.status, got.away)
		}
	}
}

// A client of the configuration may have the URL of a document as its id: then
// the operator's word counts and nobody is asked. What the store holds under
// such an id counts for nothing.
func TestAttackClientIDConfusion(t *testing.T) {
	t.Parallel()
	host := publish(t, func(w http.ResponseWriter, r *http.Request) {
		document(w, r, "redirect_uris", []string{"https://evil.example/cb"})
	})
	id := host.URL + "/client.json"
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
		o.Clients = append(o.Clients, issuer.StaticClient{ID: id, Metadata: oauth.ClientMetadata{
			ClientName: "Static", RedirectURIs: []string{webRedirect},
		}})
	})
	p := s.person()
	question := p.signIn(s.request("client_id", id), "ada")
	if !strings.Contains(question.body, "Static") || strings.Contains(question.body, "unverified") || strings.Contains(question.body, "two different") || host.Hits() != 0 {
		t.Errorf("%d requests for the document, page:\n%s", host.Hits(), question.body)
	}
	if got := p.open(s.request("client_id", id, "redirect_uri", "https://evil.example/cb")); got.away != nil || got.status != http.StatusBadRequest {
		t.Errorf("the redirect URI of the document: %d %v", got.status, got.away)
	}
	for _, other := range []string{host.URL + "/other.json", "web"} {
		if _, err := s.store.AddClient(t.Context(), &issuer.Client{
			ID: other, Dynamic: true, Digest: other, Created: s.clock.Now(), Expires: s.clock.Now().Add(time.Hour),
			Metadata: oauth.ClientMetadata{RedirectURIs: []string{"https://stored.example/cb"}},
		}, 0); err != nil {
			t.Fatal(err)
		}
		if got := p.open(s.request("client_id", other, "redirect_uri", "https://stored.example/cb")); got.away != nil || got.status != http.StatusBadRequest {
			t.Errorf("%s by the store: %d %v", other, got.status, got.away)
		}
	}
}
