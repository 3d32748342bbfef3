package cli_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/telemetry/otlptest"
	"github.com/parley-mcp/parley/oauth"
)

// What an operator of an authorization server needs is on the page of metrics,
// at an address of its own, and no name or secret of anybody; requests are traced
// without their queries.
func TestAuthServeObserved(t *testing.T) {
	racetest.SkipSerial(t)
	p := newEmptyPlace(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	collector := otlptest.New(t)
	port, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(p.dir, "password")
	if err := os.WriteFile(secret, []byte("correct-horse"), 0o600); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(p.dir, "issuer.db")
	if code, out, said := command(t, "auth", "user", "--database", db, "add", "swordfish", "--password-file", secret); code != 0 {
		t.Fatalf("adding a user: %d\n%s%s", code, out, said)
	}
	at := p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--database", db,
		"--client", killClient+"="+killRedirect, "--resource", killResource+"=read",
		"--metrics", "127.0.0.1:"+port, "--otlp", collector.URL, "--audit-file", filepath.Join(p.dir, "audit"))
	verifier := oauth.NewVerifier()
	sign := func(name, password, answer string) (code, page string) {
		return newVisitor(t, at).authorize(verifier, url.Values{"name": {name}, "password": {password}, "answer": {answer}})
	}
	v := newVisitor(t, at)
	code, page := v.authorize(verifier, url.Values{"name": {"swordfish"}, "password": {"correct-horse"}, "answer": {"approve"}})
	if code == "" {
		t.Fatalf("signing in: %s", page)
	}
	grant := url.Values{"grant_type": {oauth.GrantAuthorizationCode}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {killRedirect}}
	refresh, trouble := v.token(grant)
	if trouble != "" {
		t.Fatal(trouble)
	}
	if _, trouble := v.token(grant); trouble != oauth.InvalidGrant { // a code is good once
		t.Errorf("the second time: %q", trouble)
	}
	if _, trouble := v.token(url.Values{"grant_type": {"swordfish"}}); trouble != oauth.UnsupportedGrantType {
		t.Errorf("a made-up grant type: %q", trouble)
	}
	sign("swordfish", "swordfish-wrong", "sign-in")
	sign("nobody-swordfish", "swordfish-wrong", "sign-in")
	for range 12 { // a slow machine waits long enough between the first ones
		sign("often-swordfish", "swordfish-wrong", "sign-in")
	}
	sign("swordfish", "", "cancel")
	if code, out, said := command(t, "auth", "user", "--database", db, "disable", "swordfish"); code != 0 {
		t.Fatalf("disabling a user: %d\n%s%s", code, out, said)
	}
	sign("swordfish", "correct-horse", "sign-in")
	for i := range 20 { // paths that a stranger makes up
		get(t, fmt.Sprintf("%s/swordfish/%d", at, i), "")
	}
	get(t, at+"/.well-known/oauth-authorization-server", "")

	status, text := get(t, "http://127.0.0.1:"+port+"/metrics", "")
	if status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{
		`parley_auth_logins_total{outcome="ok"} 1`,
		`parley_auth_logins_total{outcome="cancelled"} 1`,
		`parley_auth_logins_total{outcome="throttled"} `,
		`parley_auth_logins_total{outcome="refused"} `,
		`parley_auth_logins_total{outcome="disabled"} 1`,
		`parley_auth_tokens_issued_total{grant_type="authorization_code"} 1`,
		`parley_auth_database_operation_duration_seconds_count{operation="consume code",outcome="ok"} `,
		`parley_auth_database_operation_duration_seconds_count{operation="read user",outcome="ok"} `,
		`parley_auth_audit_lines_total{outcome="written"} `,
		`parley_auth_audit_pending_lines 0`,
		`parley_auth_events_total{event="token.issued",outcome="ok"} 1`,
		`parley_auth_events_total{event="code.reused",outcome="invalid_grant"} 1`,
		`parley_auth_events_total{event="token.refused",outcome="unsupported_grant_type"} 1`,
		`parley_auth_request_duration_seconds_count{endpoint="token",status="200"} 1`,
		`parley_auth_request_duration_seconds_count{endpoint="token",status="400"} 2`,
		`parley_auth_request_duration_seconds_count{endpoint="other",status="404"} 20`,
		`parley_auth_request_duration_seconds_count{endpoint="metadata",status="200"} 1`,
		`parley_auth_request_duration_seconds_count{endpoint="login",status="403"} `,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("the page lacks %s:\n%s", want, text)
		}
	}
	checkPage(t, text)
	for _, never := range []string{"swordfish", "horse", code, killClient + `"`, killResource, `event="other"`, `outcome="other"`} {
		if strings.Contains(text, never) {
			t.Errorf("%q is on the page:\n%s", never, text)
		}
	}
	if status, _ := get(t, at+"/metrics", ""); status != http.StatusNotFound {
		t.Errorf("at the server's address the page is %d, want 404", status)
	}
	p.stop()
	written, err := os.ReadFile(filepath.Join(p.dir, "audit"))
	if err != nil || !strings.Contains(string(written), `"userName":"swordfish"`) {
		t.Errorf("the audit: %v\n%s", err, written)
	}
	for _, never := range []string{"horse", "swordfish-wrong", "nobody-swordfish", code, refresh, verifier} {
		if all := string(written) + p.said.String(); strings.Contains(all, never) {
			t.Errorf("%q is in the audit, or on standard error:\n%s", never, all)
		}
	}
	names := make(map[string]int)
	for _, s := range collector.Spans() {
		names[s.Name]++
		if told := fmt.Sprint(s); strings.Contains(told, "swordfish") || strings.Contains(told, code) || strings.Contains(told, "horse") {
			t.Errorf("a span tells too much: %s", told)
		}
	}
	if names["read user"] == 0 || names["consume code"] == 0 || names["sweep"] != 0 {
		t.Errorf("traced of the database: %v", names)
	}
	if names["POST token"] != 3 || names["GET authorize"] == 0 || names["GET metadata"] != 1 {
		t.Errorf("traced %v", names)
	}
}

// checkPage reads a page with Prometheus' own parser, and checks what stands on it by Prometheus'
// conventions.
func checkPage(t *testing.T, text string) {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("the page cannot be read: %v", err)
	}
	for name, f := range families {
		counts := f.GetType().String() == "COUNTER"
		if !strings.HasPrefix(name, "parley_auth_") || f.GetHelp() == "" || counts != strings.HasSuffix(name, "_total") {
			t.Errorf("%s, a %s: %q", name, f.GetType(), f.GetHelp())
		}
		if len(f.GetMetric()) > 60 {
			t.Errorf("%s has %d series", name, len(f.GetMetric()))
		}
	}
	key := families["parley_auth_signing_key_created_timestamp_seconds"].GetMetric()
	if len(key) != 1 || time.Since(time.Unix(int64(key[0].GetGauge().GetValue()), 0)) > time.Hour {
		t.Errorf("the signing key: %v", key)
	}
}
