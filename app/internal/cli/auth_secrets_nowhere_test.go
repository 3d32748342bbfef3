package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/oidctest"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/app/internal/store/seal"
	"github.com/parley-mcp/parley/app/internal/telemetry/otlptest"
	"github.com/parley-mcp/parley/oauth"
)

// A secretRun is a run of an authorization server in which many secrets are seen, by what they are.
type secretRun struct {
	*place
	dsn     string
	key     string // the source of the key; "" for none
	secrets map[string]string
}

// found has, of the secrets, those that are in a text.
func (r *secretRun) found(text string) (names []string) {
	for secret, name := range r.secrets {
		if strings.Contains(text, secret) {
			names = append(names, name)
		}
	}
	return names
}

func (r *secretRun) saw(name, secret string) string {
	r.t.Helper()
	if len(secret) < 8 {
		r.t.Fatalf("%s is %q, which is no secret", name, secret)
	}
	r.secrets[secret] = name
	return secret
}

// file writes a secret into a file.
func (r *secretRun) file(name, secret string) string {
	r.t.Helper()
	return kept(r.t, r.saw(name, secret))
}

// serve starts a server on the database, and returns its address.
func (r *secretRun) serve(flags ...string) string {
	r.t.Helper()
	args := append([]string{"auth", "serve", "--http", "127.0.0.1:0", "--database", r.dsn, "--resource", killResource + "=read", "-v"}, flags...)
	if r.key != "" {
		args = append(args, "--secrets-key", r.key)
	}
	return r.start(`authorization server is (\S+);`, args...)
}

// tokens asks for tokens, and keeps them as secrets.
func (r *secretRun) tokens(what, at string, form url.Values, header http.Header) (refresh string) {
	r.t.Helper()
	form.Set("resource", killResource)
	var answer struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	raw := post(r.t, at+"/token", "application/x-www-form-urlencoded", form.Encode(), header)
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Access == "" {
		r.t.Fatalf("%s: %s, error %v", what, raw, err)
	}
	r.saw("access token of "+what, answer.Access)
	if answer.Refresh != "" {
		r.saw("refresh token of "+what, answer.Refresh)
	}
	return answer.Refresh
}

// authorizeAs is an authorization request whose state is a secret.
func (r *secretRun) authorizeAs(what, at, verifier string) string {
	u, err := url.Parse(authorizeURL(at, verifier))
	if err != nil {
		r.t.Fatal(err)
	}
	q := u.Query()
	q.Set("state", r.saw("state of "+what, oauth.NewSecret()))
	u.RawQuery = q.Encode()
	return u.String()
}

// people signs a person in with a password, refreshes, and leaves requests that wait.
func (r *secretRun) people(at, password string) {
	r.t.Helper()
	v := newVisitor(r.t, at)
	verifier := r.saw("PKCE verifier", oauth.NewVerifier())
	form := url.Values{"name": {"ada"}, "password": {password}, "answer": {"approve"}}
	p, err := v.FillIn(r.t.Context(), r.authorizeAs("a sign-in", at, verifier), form)
	if err != nil || p.Away == nil {
		r.t.Fatalf("signing in: %+v, error %v", p, err)
	}
	code := r.saw("code", p.Away.Query().Get("code"))
	grant := url.Values{"grant_type": {oauth.GrantAuthorizationCode}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {killRedirect}, "client_id": {killClient}}
	refresh := r.tokens("a sign-in", at, grant, nil)
	r.tokens("a refresh", at, url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {refresh}, "client_id": {killClient}}, nil)
	address, err := url.Parse(at)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, cookie := range v.Client.Jar.Cookies(address) {
		r.saw("cookie "+cookie.Name, cookie.Value)
	}

	// A page that waits for an answer, and a code that nobody redeems.
	other := newVisitor(r.t, at)
	if p, err := other.Open(r.t.Context(), r.authorizeAs("a page that waits", at, verifier)); err != nil || !p.HasForm() {
		r.t.Fatalf("a page that waits: %+v, error %v", p, err)
	}
	p, err = v.FillIn(r.t.Context(), r.authorizeAs("a code that waits", at, verifier), form)
	if err != nil || p.Away == nil {
		r.t.Fatalf("a code that waits: %+v, error %v", p, err)
	}
	r.saw("code that waits", p.Away.Query().Get("code"))
}

// device gets tokens by the device flow, and leaves a device that waits.
func (r *secretRun) device(at string) {
	r.t.Helper()
	for _, answered := range []bool{true, false} {
		var answer oauth.DeviceAuthorization
		form := url.Values{"client_id": {"tv"}, "resource": {killResource}}
		if err := json.Unmarshal(post(r.t, at+"/device_authorization", "application/x-www-form-urlencoded", form.Encode(), nil), &answer); err != nil {
			r.t.Fatal(err)
		}
		r.saw("device code", answer.DeviceCode)
		r.saw("user code", answer.UserCode)
		r.saw("user code as it is stored", strings.ReplaceAll(answer.UserCode, "-", ""))
		if !answered {
			return
		}
		if err := fillIn(answer.VerificationURIComplete, "name=ada&password=correct-horse&answer=approve"); err != nil {
			r.t.Fatal(err)
		}
		r.tokens("a device", at, url.Values{"client_id": {"tv"}, "grant_type": {oauth.GrantDeviceCode}, "device_code": {answer.DeviceCode}}, nil)
	}
}

// upstream signs a person in at another provider, and leaves another one there.
func (r *secretRun) upstream(at string, there *oidctest.Provider) {
	r.t.Helper()
	v := newVisitor(r.t, at)
	verifier := oauth.NewVerifier()
	p, err := v.FillIn(r.t.Context(), r.authorizeAs("an upstream sign-in", at, verifier), url.Values{"answer": {"approve"}})
	if err != nil || p.Away == nil {
		r.t.Fatalf("signing in upstream: %+v, error %v", p, err)
	}
	r.tokens("an upstream sign-in", at, url.Values{
		"grant_type": {oauth.GrantAuthorizationCode}, "code": {p.Away.Query().Get("code")}, "code_verifier": {verifier},
		"redirect_uri": {killRedirect}, "client_id": {killClient},
	}, nil)
	away := newVisitor(r.t, at)
	away.Follows = func(u *url.URL) bool { return !strings.HasPrefix(u.String(), there.URL) }
	p, err = away.FillIn(r.t.Context(), r.authorizeAs("a trip", at, verifier), url.Values{"answer": {"approve"}})
	if err != nil || p.Away == nil {
		r.t.Fatalf("a trip: %+v, error %v", p, err)
	}
	r.saw("nonce of a trip", p.Away.Query().Get("nonce"))
	r.saw("state of a trip at the provider", p.Away.Query().Get("state"))
	for _, asked := range there.Asked() {
		r.saw("nonce at the provider", asked.Get("nonce"))
	}
}

// all is the whole run; it returns what the server told its operator: log, audit, metrics and traces.
func (r *secretRun) all() (told map[string]string) {
	r.t.Helper()
	collector, there := otlptest.New(r.t), oidctest.New(r.t)
	audit := filepath.Join(r.t.TempDir(), "audit")
	port, err := pickPort()
	if err != nil {
		r.t.Fatal(err)
	}
	password := "correct-horse"
	if code, _, said := command(r.t, "auth", "user", "add", "ada", "--database", r.dsn, "--password-file", r.file("password", password)); code != 0 {
		r.t.Fatal(said)
	}
	code, out, said := command(r.t, "auth", "client", "add", "nightly", "--database", r.dsn, "--confidential", "--json")
	var added struct {
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(out), &added); err != nil || code != 0 {
		r.t.Fatalf("%d %s%s", code, out, said)
	}
	r.saw("secret of a client", added.Secret)

	at := r.serve("--client", killClient+"="+killRedirect, "--client", "tv=", "--allow-device",
		"--audit-file", audit, "--metrics", "127.0.0.1:"+port, "--otlp", collector.URL)
	stop := r.stop
	r.people(at, password)
	r.device(at)
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("nightly:"+added.Secret))
	r.tokens("a client with a secret", at, url.Values{"grant_type": {oauth.GrantClientCredentials}}, http.Header{"Authorization": {basic}})
	other := r.serve("--client", killClient+"="+killRedirect, "--audit-file", audit+"2",
		"--upstream", there.URL, "--upstream-client", oidctest.ClientID, "--upstream-secret-file", r.file("upstream secret", there.Secret))
	r.upstream(other, there)

	_, metrics := get(r.t, "http://127.0.0.1:"+port+"/metrics", "")
	r.stop()
	stop()
	told = map[string]string{"the log": r.said.String(), "the metrics": metrics, "the traces": fmt.Sprint(collector.Spans())}
	for _, file := range []string{audit, audit + "2"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		told["the audit"] += string(raw)
	}
	for name, text := range told {
		if len(text) < 100 {
			r.t.Errorf("%s has nothing in it: %s", name, text)
		}
	}
	return told
}

// private keeps the private keys of the database as secrets.
func (r *secretRun) private(key seal.Wrapper) {
	r.t.Helper()
	db, err := records.Open(r.t.Context(), r.dsn, &records.Options{SecretsKey: key})
	if err != nil {
		r.t.Fatal(err)
	}
	keys, err := db.Keys(r.t.Context(), time.Now())
	if closing := db.Close(); err != nil || closing != nil || len(keys) < 2 {
		r.t.Fatalf("%d keys, errors %v and %v", len(keys), err, closing)
	}
	for _, k := range keys {
		var jwk struct{ D string }
		if json.Unmarshal(k.Private, &jwk) == nil {
			r.saw("private key "+k.ID, jwk.D)
		} else {
			r.saw("secret of the keyring", string(k.Private))
		}
	}
}

// No private key, secret, token, code or password of a whole run is in clear in a dump of the
// database, in its files, or in what the operator is told. Without the key the same look finds
// those that are read back, and them alone.
func TestSecretsNowhere(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	for name, database := range databasetest.All {
		for _, sealed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " sealed ", sealed), func(t *testing.T) {
				r := &secretRun{place: newEmptyPlace(t), dsn: database(t), secrets: map[string]string{}}
				var key seal.Wrapper
				if sealed {
					k, text := seal.GenerateKey()
					key, r.key = k, "file:"+r.file("key of the secrets", text)
				}
				told := r.all()
				r.private(key)
				for what, text := range told {
					if found := r.found(text); len(found) > 0 {
						t.Errorf("in %s: %q", what, found)
					}
				}
				dump, err := databasetest.Dump(t.Context(), r.dsn)
				if err != nil {
					t.Fatal(err)
				}
				found := strings.Join(r.found(string(dump)), ", ")
				if sealed {
					if found != "" {
						t.Errorf("in the database: %s", found)
					}
					return
				}
				for _, want := range []string{"private key ", "secret of the keyring", "nonce of a trip", "state of a page that waits"} {
					if !strings.Contains(found, want) {
						t.Errorf("%s in clear is not found, but: %s", want, found)
					}
				}
				for _, never := range []string{"token", "code", "password", "secret of a client", "upstream secret", "cookie"} {
					if strings.Contains(found, never) {
						t.Errorf("in the database: %s", found)
					}
				}
			})
		}
	}
}
