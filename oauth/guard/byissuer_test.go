package guard_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// Two issuers of JWTs whose keys have the same id, and of which the one is not taken for the other.
// Attack: mix-up of issuers (RFC 9068, section 4; RFC 8414, section 3.3).
func TestByIssuer(t *testing.T) {
	t.Parallel()
	const other = "https://other.example"
	b := &bench{t: t, clock: clocktest.New(epoch)}
	ours, theirs := namedKey(t), namedKey(t)
	var asked []string
	opaque := guard.Func("https://opaque.example", func(_ context.Context, token string) (*guard.Token, error) {
		asked = append(asked, token)
		return &guard.Token{Subject: "ada", Client: "app", Audience: []string{resource}}, nil
	})
	b.with(guard.ByIssuer(
		guard.JWT(issuerID, &guard.JWTOptions{JWKS: jwt.SetJSON(ours), Now: b.clock.Now}),
		guard.JWT(other, &guard.JWTOptions{JWKS: jwt.SetJSON(theirs), Now: b.clock.Now}),
		opaque,
	), nil)
	identities := map[string]bool{}
	for name, test := range map[string]struct {
		token  string
		status int
		asked  bool
	}{
		"of the first":                        {sign(t, ours, "at+jwt", usual(nil)), 200, false},
		"of the second":                       {sign(t, theirs, "at+jwt", usual(claims{"iss": other})), 200, false},
		"of the first by the second's key":    {sign(t, theirs, "at+jwt", usual(nil)), 401, false},
		"of the second by the first's key":    {sign(t, ours, "at+jwt", usual(claims{"iss": other})), 401, false},
		"a slash at the end":                  {sign(t, ours, "at+jwt", usual(claims{"iss": issuerID + "/"})), 401, false},
		"other case":                          {sign(t, ours, "at+jwt", usual(claims{"iss": "https://ISSUER.example"})), 401, false},
		"of nobody":                           {sign(t, ours, "at+jwt", usual(claims{"iss": "https://nobody.example"})), 401, false},
		"a JWT of the issuer that is asked":   {sign(t, ours, "at+jwt", usual(claims{"iss": "https://opaque.example"})), 200, true},
		"without issuer, as good as opaque":   {sign(t, ours, "at+jwt", usual(claims{"iss": nil})), 200, true},
		"opaque":                              {"opaque", 200, true},
		"another of the first, not signed":    {unsigned(usual(nil)), 401, false},
		"of the first, with a type of no use": {sign(t, ours, "JWT", usual(nil)), 401, false},
	} {
		asked = nil
		w := b.bearer(test.token)
		if w.Code != test.status || (len(asked) == 1) != test.asked {
			t.Errorf("%s: status %d, asked %d times, want %d, %v; log: %s", name, w.Code, len(asked), test.status, test.asked, b.log)
		}
		if w.Code == 200 {
			identities[w.Body.String()] = true
		}
	}
	// The same subject and client of three issuers are three principals.
	if len(identities) != 3 {
		t.Errorf("identities: %v", identities)
	}
	if body := b.request("GET", metadata).Body.String(); !strings.Contains(body,
		`"authorization_servers":["`+issuerID+`","`+other+`","https://opaque.example"]`) {
		t.Errorf("metadata: %s", body)
	}
}

// namedKey is a new key whose id is "same".
func namedKey(t *testing.T) *jwt.Key {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k, err := jwt.KeyOf(signer, "", "same")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// unsigned is a token with the right header and a signature of nothing.
func unsigned(c claims) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"ES256","typ":"at+jwt","kid":"same"}`)) + "." +
		part(fmt.Appendf(nil, `{"iss":%q,"aud":%q,"sub":"ada","exp":%d}`, c["iss"], resource, c["exp"])) + "." + part(make([]byte, 64))
}

// What names no issuer is shown to nobody where the wrong one could get it, and a verifier speaks for
// its own issuer alone. Attack: tokens of one issuer that another learns.
func TestByIssuerOpaque(t *testing.T) {
	t.Parallel()
	b := &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}
	asked := 0
	named := func(issuer, says string) guard.Verifier {
		return guard.Func(issuer, func(context.Context, string) (*guard.Token, error) {
			asked++
			return &guard.Token{Issuer: says, Subject: "ada", Audience: []string{resource}}, nil
		})
	}
	b.with(guard.ByIssuer(named("https://a.example", ""), named("https://b.example", "")), nil)
	b.refused(b.bearer("opaque"), 401, "invalid_token")
	if asked != 0 {
		t.Errorf("an opaque token was shown to %d of two", asked)
	}
	b.with(guard.ByIssuer(guard.JWT(issuerID, &guard.JWTOptions{JWKS: jwt.SetJSON(b.key), Now: b.clock.Now})), nil)
	b.refused(b.bearer("opaque"), 401, "invalid_token")
	b.with(guard.ByIssuer(named("https://a.example", issuerID), guard.JWT(issuerID, &guard.JWTOptions{JWKS: jwt.SetJSON(b.key)})), nil)
	b.refused(b.bearer("opaque"), 401, "invalid_token")

	// Of two issuers one may be away: the tokens of the other are judged.
	down := guard.Func("https://down.example", func(context.Context, string) (*guard.Token, error) {
		return nil, errors.Join(guard.ErrUnavailable, errors.New("down"))
	})
	b.with(guard.ByIssuer(down, guard.JWT(issuerID, &guard.JWTOptions{JWKS: jwt.SetJSON(b.key), Now: b.clock.Now})), nil)
	b.passed(b.bearer(b.token(nil)))
	b.refused(b.bearer(b.token(claims{"iss": "https://down.example"})), 503, "")

	if _, err := guard.New(resource, guard.ByIssuer(named(issuerID, ""), named(issuerID, "")), nil); err == nil || !strings.Contains(err.Error(), "two verifiers are for "+issuerID) {
		t.Errorf("one issuer twice: %v", err)
	}
}
