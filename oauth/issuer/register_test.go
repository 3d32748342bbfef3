package issuer_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

func registering(o *issuer.Options) { o.Registration.On = true }

// Proves: S5: what is asked, inferred, dropped and refused.
func TestRegister(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, registering)
	code, refresh := []string{"authorization_code"}, []string{"authorization_code", "refresh_token"}
	for _, test := range []struct {
		name, body string
		want       oauth.ClientMetadata
	}{
		{
			"native is inferred",
			`{"client_name":"CLI","redirect_uris":["http://127.0.0.1:3000/cb","http://localhost:3000/cb"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"]}`,
			oauth.ClientMetadata{
				ClientName: "CLI", RedirectURIs: []string{"http://127.0.0.1:3000/cb", "http://localhost:3000/cb"}, ApplicationType: "native",
				TokenEndpointAuthMethod: "none", GrantTypes: refresh, ResponseTypes: []string{"code"},
			},
		},
		{
			"web is inferred", `{"redirect_uris":["https://c.example/cb","http://localhost/cb"],"token_endpoint_auth_method":"none"}`,
			oauth.ClientMetadata{
				RedirectURIs: []string{"https://c.example/cb", "http://localhost/cb"}, ApplicationType: "web",
				TokenEndpointAuthMethod: "none", GrantTypes: code, ResponseTypes: []string{"code"},
			},
		},
		{
			"too much is dropped",
			`{"redirect_uris":["com.example.app:/cb"],"client_id":"mine","client_secret":"s","logo_uri":"https://x.example/l.png","scope":"admin","token_endpoint_auth_method":"none",` +
				`"grant_types":["authorization_code","client_credentials","implicit"],"response_types":["code","token"],"unknown":[1]}`,
			oauth.ClientMetadata{
				RedirectURIs: []string{"com.example.app:/cb"}, ApplicationType: "native",
				TokenEndpointAuthMethod: "none", GrantTypes: code, ResponseTypes: []string{"code"},
			},
		},
		{
			"a secret is the default", `{"redirect_uris":["https://c.example/cb"]}`,
			oauth.ClientMetadata{
				RedirectURIs: []string{"https://c.example/cb"}, ApplicationType: "web",
				TokenEndpointAuthMethod: "client_secret_basic", GrantTypes: code, ResponseTypes: []string{"code"},
			},
		},
	} {
		status, body := s.post("/register", "application/json", test.body)
		if status != http.StatusCreated {
			t.Errorf("%s: %d %s", test.name, status, body)
			continue
		}
		info, err := oauth.ParseClientInformation([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		test.want.ClientID = info.ClientID
		if diff := cmp.Diff(test.want, info.ClientMetadata); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if strings.Contains(body, `"client_secret_expires_at":0`) != (info.ClientSecret != "") {
			t.Errorf("%s: RFC 7591, section 3.2.1: %s", test.name, body)
		}
		if confidential := test.want.TokenEndpointAuthMethod != "none"; confidential != (info.ClientSecret != "") {
			t.Errorf("%s: secret %q", test.name, info.ClientSecret)
		}
		stored, err := s.store.Client(t.Context(), info.ClientID, s.clock.Now())
		if err != nil || !stored.Dynamic || info.ClientSecret != "" && stored.SecretHash != issuer.Hash(info.ClientSecret) {
			t.Errorf("%s: stored %+v, %v", test.name, stored, err)
		}
	}
	for name, test := range map[string]struct {
		body, code string
		status     int
	}{
		"http":          {`{"redirect_uris":["http://c.example/cb"]}`, oauth.InvalidRedirectURI, 400},
		"javascript":    {`{"redirect_uris":["javascript:alert(1)"],"application_type":"native"}`, oauth.InvalidRedirectURI, 400},
		"private, web":  {`{"redirect_uris":["com.example.app:/cb"],"application_type":"web"}`, oauth.InvalidRedirectURI, 400},
		"one of two":    {`{"redirect_uris":["https://c.example/cb","data:text/html,x"]}`, oauth.InvalidRedirectURI, 400},
		"wide letters":  {`{"redirect_uris":["https://cl\u0456ent.example/cb"]}`, oauth.InvalidRedirectURI, 400},
		"answer in it":  {`{"redirect_uris":["https://c.example/cb?code=x"]}`, oauth.InvalidRedirectURI, 400},
		"none":          {`{}`, oauth.InvalidRedirectURI, 400},
		"many":          {`{"redirect_uris":[` + strings.Repeat(`"https://c.example/cb",`, 30) + `"https://c.example/cb"]}`, oauth.InvalidRedirectURI, 400},
		"type":          {`{"redirect_uris":["https://c.example/cb"],"application_type":"tv"}`, oauth.InvalidClientMetadata, 400},
		"method":        {`{"redirect_uris":["https://c.example/cb"],"token_endpoint_auth_method":"tls_client_auth"}`, oauth.InvalidClientMetadata, 400},
		"no keys":       {`{"redirect_uris":["https://c.example/cb"],"token_endpoint_auth_method":"private_key_jwt"}`, oauth.InvalidClientMetadata, 400},
		"keys at http":  {`{"redirect_uris":["https://c.example/cb"],"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"http://k.example"}`, oauth.InvalidClientMetadata, 400},
		"no keys in it": {`{"redirect_uris":["https://c.example/cb"],"token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[]}}`, oauth.InvalidClientMetadata, 400},
		"secret key":    {`{"redirect_uris":["https://c.example/cb"],"token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}}`, oauth.InvalidClientMetadata, 400},
		"keys at data":  {`{"redirect_uris":["https://c.example/cb"],"token_endpoint_auth_method":"none","jwks_uri":"data:,x"}`, oauth.InvalidClientMetadata, 400},
		"client page":   {`{"redirect_uris":["https://c.example/cb"],"client_uri":"javascript:alert(1)"}`, oauth.InvalidClientMetadata, 400},
		"logo":          {`{"redirect_uris":["https://c.example/cb"],"logo_uri":"data:image/svg+xml,x"}`, oauth.InvalidClientMetadata, 400},
		"policy":        {`{"redirect_uris":["https://c.example/cb"],"policy_uri":"/policy"}`, oauth.InvalidClientMetadata, 400},
		"terms":         {`{"redirect_uris":["https://c.example/cb"],"tos_uri":"https://good.example@evil.example/"}`, oauth.InvalidClientMetadata, 400},
		"tabs in it":    {`{"redirect_uris":["https://c.example/cb"],"client_uri":"java\tscript:alert(1)"}`, oauth.InvalidClientMetadata, 400},
		"algorithm":     {`{"redirect_uris":["https://c.example/cb"],"token_endpoint_auth_signing_alg":"none"}`, oauth.InvalidClientMetadata, 400},
		"no dot":        {`{"redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback"]}`, oauth.InvalidRedirectURI, 400},
		"grant":         {`{"redirect_uris":["https://c.example/cb"],"grant_types":["client_credentials"]}`, oauth.InvalidClientMetadata, 400},
		"response":      {`{"redirect_uris":["https://c.example/cb"],"response_types":["token"]}`, oauth.InvalidClientMetadata, 400},
		"twice":         {`{"redirect_uris":["https://c.example/cb"],"redirect_uris":["https://evil.example/cb"]}`, oauth.InvalidClientMetadata, 400},
		"no JSON":       {`redirect`, oauth.InvalidClientMetadata, 400},
		"large":         {`{"client_name":"` + strings.Repeat("x", 20<<10) + `"}`, oauth.InvalidClientMetadata, 413},
	} {
		status, body := s.post("/register", "application/json", test.body)
		if e := oauth.ParseError(status, []byte(body)); e.Code != test.code || status != test.status {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, _ := s.post("/register", "text/plain", `{"redirect_uris":["https://c.example/cb"]}`); status != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain: %d", status)
	}
}

// Attack: DCR flood and name spoof.
func TestAttackDCRFlood(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
		o.Registration = issuer.RegistrationPolicy{On: true, MaxClients: 3, Unused: time.Hour, Used: 24 * time.Hour}
	})
	metadata := func(n int) string {
		return fmt.Sprintf(`{"client_name":"Web Client","redirect_uris":["https://c%d.example/cb"],"token_endpoint_auth_method":"none"}`, n)
	}
	first := s.registerClient(metadata(0))
	for range 10 {
		if again := s.registerClient(metadata(0)); again != first {
			t.Fatal("the same registration twice made two clients")
		}
	}
	unused := s.registerClient(metadata(1))
	s.registerClient(metadata(2))
	s.clock.Add(time.Second) // of those that expire at once any may go first

	// The name is that of a known client; the page says that nobody checked it.
	p := s.person()
	question := p.signIn(s.request("client_id", first, "redirect_uri", "https://c0.example/cb"), "ada")
	if !strings.Contains(question.body, "unverified") || !strings.Contains(question.body, "c0.example") {
		t.Errorf("consent page does not say who this is:\n%s", question.body)
	}
	p.code(p.submit(question, "answer", "approve"))

	// Those that were never used make room; the one that was used stays.
	granted := []string{s.registerClient(metadata(3)), s.registerClient(metadata(4))}
	if _, err := s.store.Client(t.Context(), unused, s.clock.Now()); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("a client that was never used makes no room: %v", err)
	}
	if _, err := s.store.Client(t.Context(), first, s.clock.Now()); err != nil {
		t.Errorf("the client that was used is gone: %v", err)
	}
	for _, id := range granted {
		g := &issuer.Grant{ID: "grant of " + id, ClientID: id, Created: s.clock.Now(), Expires: s.clock.Now().Add(time.Hour)}
		if err := s.store.AddGrant(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	status, body := s.post("/register", "application/json", metadata(5))
	if status != http.StatusServiceUnavailable || oauth.ParseError(status, []byte(body)).Code != oauth.TemporarilyUnavailable {
		t.Errorf("a client too many: %d %s", status, body)
	}
	s.clock.Add(25 * time.Hour)
	if _, err := s.store.Client(t.Context(), first, s.clock.Now()); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("the client that was used once stays for ever: %v", err)
	}

	off := newSite(t, "", formLogin{}, nil)
	if status, _ := off.post("/register", "application/json", metadata(0)); status != http.StatusNotFound {
		t.Errorf("registration is on by default: %d", status)
	}
	if off.server.Metadata().RegistrationEndpoint != "" {
		t.Error("registration is off and advertised")
	}
}

// A repeated registration of a confidential client is another one, since its
// secret cannot be told twice.
func TestRegisterSecretTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, registering)
	const body = `{"redirect_uris":["https://c.example/cb"]}`
	if a, b := s.registerClient(body), s.registerClient(body); a == b {
		t.Error("two registrations share a client")
	}
}

// Requests are counted by address; who asks too often is told when to come
// back.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	var remote string
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
		o.RateLimit = 3
		o.Registration.On = true
		o.Remote = func(*http.Request) string { return remote }
	})
	p := s.person()
	expect := func(from string, want int) {
		t.Helper()
		remote = from
		got := p.do(http.MethodGet, s.url+"/consent", nil, "none")
		if got.status != want {
			t.Errorf("from %s: %d, want %d", from, got.status, want)
		}
		if want == http.StatusTooManyRequests && got.header.Get("Retry-After") != "20" {
			t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
		}
	}
	for range 3 {
		expect("192.0.2.1", http.StatusBadRequest)
	}
	expect("192.0.2.1", http.StatusTooManyRequests)
	expect("192.0.2.2", http.StatusBadRequest)
	s.clock.Add(20 * time.Second)
	expect("192.0.2.1", http.StatusBadRequest)
	expect("192.0.2.1", http.StatusTooManyRequests)
	for _, from := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::ffff"} {
		expect(from, http.StatusBadRequest)
	}
	expect("2001:db8::3", http.StatusTooManyRequests) // one network, one caller
	remote = "192.0.2.9"
	for range 3 {
		s.post("/register", "application/json", "{}")
	}
	if status, body := s.post("/register", "application/json", "{}"); status != http.StatusTooManyRequests {
		t.Errorf("registration: %d %s", status, body)
	}
}

// Whatever is registered, no redirect URI is stored that must not be, and what
// is stored can be used.
func FuzzRegister(f *testing.F) {
	server, err := issuer.New("https://as.example", issuer.NewMemory(), formLogin{}, &issuer.Options{
		Registration: issuer.RegistrationPolicy{On: true}, RateLimit: -1,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(evilMetadata))
	f.Add([]byte(`{"redirect_uris":["com.example.app:/cb","http://[::1]:1/"],"grant_types":["refresh_token","authorization_code"]}`))
	f.Add([]byte(`{"redirect_uris":["https://c.example/cb"],"token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/register", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != http.StatusCreated {
			if e := oauth.ParseError(w.Code, w.Body.Bytes()); e.Code == "" || w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			return
		}
		info, err := oauth.ParseClientInformation(w.Body.Bytes())
		if err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		for _, uri := range info.RedirectURIs {
			if err := oauth.CheckRedirectURI(uri, info.ApplicationType == "native"); err != nil {
				t.Fatalf("%q was registered: %v", uri, err)
			}
		}
	})
}
