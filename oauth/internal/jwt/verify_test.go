package jwt_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// Proves: the example of RFC 7515, appendix A.3.
func TestVerifyKnownAnswer(t *testing.T) {
	t.Parallel()
	set, err := jwt.ParseSet([]byte(`{"kty":"EC","crv":"P-256",` +
		`"x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`))
	if err != nil {
		t.Fatal(err)
	}
	const token = "eyJhbGciOiJFUzI1NiJ9" +
		".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ" +
		".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
	c := &jwt.Check{Algorithms: []string{"ES256"}, Types: []string{""}, Issuer: "joe", Now: time.Unix(1300819379, 0)}
	got, err := jwt.Verify(t.Context(), token, set, c)
	if err != nil || got.Claims.Issuer != "joe" || got.Claims.Expiry.Unix() != 1300819380 {
		t.Errorf("%+v, %v", got, err)
	}
	c.Now = time.Unix(1300819380, 0)
	if _, err := jwt.Verify(t.Context(), token, set, c); !errors.Is(err, jwt.ErrExpired) {
		t.Errorf("at exp: %v", err)
	}
}

// Proves: R4: audience, issuer, time and type are those that were asked for.
func TestVerifyClaims(t *testing.T) {
	t.Parallel()
	k := keyOf(t, "k")
	set := setOf(t, k)
	for name, c := range map[string]struct {
		claims func(*jwt.Claims)
		check  func(*jwt.Check)
		want   error
	}{
		"good":                     {},
		"one of several audiences": {claims: func(c *jwt.Claims) { c.Audience = []string{"x", audience} }},
		"several are taken":        {check: func(c *jwt.Check) { c.Audience = []string{"y", audience} }},
		"audience is not asked":    {check: func(c *jwt.Check) { c.Audience = nil }, claims: func(c *jwt.Claims) { c.Audience = nil }},
		"issuer is not asked":      {check: func(c *jwt.Check) { c.Issuer = "" }, claims: func(c *jwt.Claims) { c.Issuer = "" }},
		"other audience":           {claims: func(c *jwt.Claims) { c.Audience = []string{audience + "/"} }, want: jwt.ErrAudience},
		"audience in other case":   {claims: func(c *jwt.Claims) { c.Audience = []string{strings.ToUpper(audience)} }, want: jwt.ErrAudience},
		"no audience":              {claims: func(c *jwt.Claims) { c.Audience = nil }, want: jwt.ErrAudience},
		"other issuer":             {claims: func(c *jwt.Claims) { c.Issuer = issuer + "/" }, want: jwt.ErrIssuer},
		"no issuer":                {claims: func(c *jwt.Claims) { c.Issuer = "" }, want: jwt.ErrIssuer},
		"expires now":              {claims: func(c *jwt.Claims) { c.Expiry = noon }, want: jwt.ErrExpired},
		"expires in a second":      {claims: func(c *jwt.Claims) { c.Expiry = noon.Add(time.Second) }},
		"expired within the skew": {
			claims: func(c *jwt.Claims) { c.Expiry = noon.Add(-29 * time.Second) },
			check:  func(c *jwt.Check) { c.Skew = 30 * time.Second },
		},
		"expired beyond the skew": {
			claims: func(c *jwt.Claims) { c.Expiry = noon.Add(-30 * time.Second) },
			check:  func(c *jwt.Check) { c.Skew = 30 * time.Second }, want: jwt.ErrExpired,
		},
		"no expiry":              {claims: func(c *jwt.Claims) { c.Expiry = time.Time{} }, want: jwt.ErrExpired},
		"no expiry is all right": {claims: func(c *jwt.Claims) { c.Expiry = time.Time{} }, check: func(c *jwt.Check) { c.NeedExpiry = false }},
		"expired in 1970":        {claims: func(c *jwt.Claims) { c.Expiry = time.Unix(0, 0) }, want: jwt.ErrExpired},
		"not yet":                {claims: func(c *jwt.Claims) { c.NotBefore = noon.Add(time.Second) }, want: jwt.ErrNotYet},
		"from now on":            {claims: func(c *jwt.Claims) { c.NotBefore = noon }},
		"soon, within the skew": {
			claims: func(c *jwt.Claims) { c.NotBefore = noon.Add(30 * time.Second) },
			check:  func(c *jwt.Check) { c.Skew = 30 * time.Second },
		},
		"type in full":         {check: func(c *jwt.Check) { c.Types = []string{"application/AT+JWT"} }},
		"one of several types": {check: func(c *jwt.Check) { c.Types = []string{"", "JWT", "at+jwt"} }},
		"other type":           {check: func(c *jwt.Check) { c.Types = []string{"JWT"} }, want: jwt.ErrType},
		"type must be absent":  {check: func(c *jwt.Check) { c.Types = []string{""} }, want: jwt.ErrType},
		"no type is taken":     {check: func(c *jwt.Check) { c.Types = nil }, want: jwt.ErrType},
		"no algorithm":         {check: func(c *jwt.Check) { c.Algorithms = nil }, want: jwt.ErrAlgorithm},
		"other algorithm":      {check: func(c *jwt.Check) { c.Algorithms = []string{"RS256"} }, want: jwt.ErrAlgorithm},
	} {
		cl, ch := claims(), check()
		if c.claims != nil {
			c.claims(cl)
		}
		if c.check != nil {
			c.check(ch)
		}
		token, err := k.Sign(jwt.TypeAccessToken, cl)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := jwt.Verify(t.Context(), token, set, ch); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	token, err := k.Sign(jwt.TypeAccessToken, claims())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jwt.Verify(t.Context(), token, set, nil); err == nil {
		t.Error("taken without a check")
	}
}

// everything stands for a caller who lists by mistake what must never be taken.
var everything = append(jwt.DefaultAlgorithms(), "none", "None", "NONE", "", "HS256", "HS384", "HS512", "ES256K", "RSA-OAEP")

// Attack: algorithm confusion, "none", tricks with kid, jku, x5u, jwk, crit and
// b64, other serialisations, other spellings of one token.
func TestAttackAlgorithmConfusion(t *testing.T) {
	t.Parallel()
	const payload = `{"iss":"` + issuer + `","aud":"` + audience + `","exp":1790000600}`
	const header = `{"alg":"ES256","typ":"at+jwt","kid":"k"}`
	k := keyOf(t, "k")
	set := setOf(t, k, newKey(t, "RS256"), newKey(t, "EdDSA"))
	good := forge(t, header, payload)
	parts := strings.Split(good, ".")
	unsigned := func(header string) string { return b64(header) + "." + b64(payload) + "." }
	head := func(members string) string { return forge(t, `{"alg":"ES256","typ":"at+jwt",`+members+`}`, payload) }
	attacker := newKey(t, "ES256")
	attack := func(header string) string {
		token, err := attacker.Sign("at+jwt", json.RawMessage(payload))
		if err != nil {
			t.Fatal(err)
		}
		p := strings.Split(token, ".")
		return b64(header) + "." + p[1] + "." + p[2]
	}
	der, err := x509.MarshalPKIXPublicKey(curveKey().Public())
	if err != nil {
		t.Fatal(err)
	}
	hmacWith := func(secret []byte) string {
		input := b64(`{"alg":"HS256","typ":"at+jwt","kid":"k"}`) + "." + b64(payload)
		m := hmac.New(sha256.New, secret)
		m.Write([]byte(input))
		return input + "." + b64(string(m.Sum(nil)))
	}
	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"good":                    {good, nil},
		"none":                    {unsigned(`{"alg":"none","typ":"at+jwt","kid":"k"}`), jwt.ErrMalformed},
		"none, signed":            {forge(t, `{"alg":"none","typ":"at+jwt","kid":"k"}`, payload), jwt.ErrAlgorithm},
		"None, signed":            {forge(t, `{"alg":"None","typ":"at+jwt","kid":"k"}`, payload), jwt.ErrAlgorithm},
		"empty, signed":           {forge(t, `{"alg":"","typ":"at+jwt","kid":"k"}`, payload), jwt.ErrAlgorithm},
		"absent, signed":          {forge(t, `{"typ":"at+jwt","kid":"k"}`, payload), jwt.ErrAlgorithm},
		"other case":              {forge(t, `{"alg":"es256","typ":"at+jwt","kid":"k"}`, payload), jwt.ErrAlgorithm},
		"alg is a list":           {forge(t, `{"alg":["ES256"],"typ":"at+jwt","kid":"k"}`, payload), jwt.ErrMalformed},
		"name in other case":      {forge(t, `{"ALG":"ES256","typ":"at+jwt","kid":"k"}`, payload), jwt.ErrAlgorithm},
		"no signature":            {parts[0] + "." + parts[1] + ".", jwt.ErrMalformed},
		"HMAC with the DER":       {hmacWith(der), jwt.ErrAlgorithm},
		"HMAC with the PEM":       {hmacWith(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), jwt.ErrAlgorithm},
		"HMAC with the JWK":       {hmacWith(k.Public()), jwt.ErrAlgorithm},
		"HMAC with nothing":       {hmacWith(nil), jwt.ErrAlgorithm},
		"RS256, key is EC":        {forge(t, `{"alg":"RS256","typ":"at+jwt","kid":"k"}`, payload), jwt.ErrNoKey},
		"RS256, any key":          {forge(t, `{"alg":"RS256","typ":"at+jwt"}`, payload), jwt.ErrSignature},
		"ES384, key is P-256":     {forge(t, `{"alg":"ES384","typ":"at+jwt","kid":"k"}`, payload), jwt.ErrNoKey},
		"EdDSA, any key":          {forge(t, `{"alg":"EdDSA","typ":"at+jwt"}`, payload), jwt.ErrSignature},
		"unknown kid":             {forge(t, `{"alg":"ES256","typ":"at+jwt","kid":"z"}`, payload), jwt.ErrNoKey},
		"no kid":                  {forge(t, `{"alg":"ES256","typ":"at+jwt"}`, payload), nil},
		"kid is a path":           {head(`"kid":"../../../../dev/null"`), jwt.ErrNoKey},
		"kid is SQL":              {head(`"kid":"k' OR '1'='1"`), jwt.ErrNoKey},
		"kid is a number":         {head(`"kid":1`), jwt.ErrMalformed},
		"jwk of the attacker":     {attack(`{"alg":"ES256","typ":"at+jwt","jwk":` + string(attacker.Public()) + `}`), jwt.ErrSignature},
		"jku of the attacker":     {attack(`{"alg":"ES256","typ":"at+jwt","jku":"https://evil.example/keys"}`), jwt.ErrSignature},
		"x5u of the attacker":     {attack(`{"alg":"ES256","typ":"at+jwt","x5u":"https://evil.example/cert"}`), jwt.ErrSignature},
		"jwk is ignored":          {head(`"jwk":` + string(attacker.Public())), nil},
		"jku and x5u are ignored": {head(`"jku":"https://evil.example/","x5u":"https://evil.example/"`), nil},
		"crit":                    {head(`"crit":["exp"],"exp":1`), jwt.ErrMalformed},
		"crit is empty":           {head(`"crit":[]`), jwt.ErrMalformed},
		"crit is null":            {head(`"crit":null`), jwt.ErrMalformed},
		"b64 false":               {head(`"b64":false,"crit":["b64"]`), jwt.ErrMalformed},
		"b64 false, not crit":     {head(`"b64":false`), jwt.ErrMalformed},
		"duplicate in header":     {forge(t, `{"alg":"none","alg":"ES256","typ":"at+jwt"}`, payload), jwt.ErrMalformed},
		"duplicate, spelt":        {forge(t, `{"alg":"ES256","\u0061lg":"none","typ":"at+jwt"}`, payload), jwt.ErrMalformed},
		"duplicate in payload":    {forge(t, header, `{"iss":"x",`+payload[1:]), jwt.ErrMalformed},
		"header no object":        {forge(t, `[]`, payload), jwt.ErrMalformed},
		"payload no object":       {forge(t, header, `"text"`), jwt.ErrMalformed},
		"two tokens":              {good + good, jwt.ErrMalformed},
		"two tokens, comma":       {good + "," + good, jwt.ErrMalformed},
		"two tokens, dot":         {good + "." + good, jwt.ErrMalformed},
		"five parts":              {good + ".a.b", jwt.ErrMalformed},
		"two parts":               {parts[0] + "." + parts[1], jwt.ErrMalformed},
		"detached":                {parts[0] + ".." + parts[2], jwt.ErrSignature},
		"space before":            {" " + good, jwt.ErrMalformed},
		"space after":             {good + " ", jwt.ErrMalformed},
		"line break after":        {good + "\n", jwt.ErrMalformed},
		"line break within":       {parts[0] + ".\r\n" + parts[1] + "." + parts[2], jwt.ErrMalformed},
		"padding":                 {good + "==", jwt.ErrMalformed},
		"other alphabet":          {strings.NewReplacer("-", "+", "_", "/").Replace(good) + "+", jwt.ErrMalformed},
		"NUL":                     {good + "\x00", jwt.ErrMalformed},
		"empty":                   {"", jwt.ErrMalformed},
		"dots":                    {"..", jwt.ErrMalformed},
		"JSON":                    {fmt.Sprintf(`{"protected":%q,"payload":%q,"signature":%q}`, parts[0], parts[1], parts[2]), jwt.ErrMalformed},
		"JSON with two dots":      {fmt.Sprintf(`{"protected":%q,"payload":%q,"signature":%q,"a":".."}`, parts[0], parts[1], parts[2]), jwt.ErrMalformed},
		"DER signature":           {parts[0] + "." + parts[1] + "." + b64(derSign(t, parts[0]+"."+parts[1])), jwt.ErrSignature},
		"zero signature":          {parts[0] + "." + parts[1] + "." + b64(strings.Repeat("\x00", 64)), jwt.ErrSignature},
		"payload changed":         {parts[0] + "." + b64(strings.Replace(payload, "790", "990", 1)) + "." + parts[2], jwt.ErrSignature},
		"header changed":          {b64(`{"alg":"ES256","typ":"at+jwt","kid":"k","a":1}`) + "." + parts[1] + "." + parts[2], jwt.ErrSignature},
		"too long":                {forge(t, header, `{"x":"`+strings.Repeat("x", 64<<10)+`"}`), jwt.ErrMalformed},
		"deep":                    {forge(t, header, `{"x":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`}`), jwt.ErrMalformed},
	} {
		ch := check()
		ch.Algorithms = everything
		if _, err := jwt.Verify(t.Context(), c.token, set, ch); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// The last character of a signature has bits that mean nothing; a token with
// others there would be a second spelling of the first (a replay that a cache
// or a list of used tokens does not see).
func TestVerifyOneSpelling(t *testing.T) {
	t.Parallel()
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	k := keyOf(t, "k")
	token, err := k.Sign(jwt.TypeAccessToken, claims())
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for _, c := range alphabet {
		if _, err := jwt.Verify(t.Context(), token[:len(token)-1]+string(c), setOf(t, k), check()); err == nil {
			taken++
		}
	}
	if taken != 1 {
		t.Errorf("%d spellings are taken, want 1", taken)
	}
}

// Attack: a source that hands out what it should not; whoever writes one may err.
func TestVerifyForeignSource(t *testing.T) {
	t.Parallel()
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	token := forge(t, `{"alg":"ES256","typ":"at+jwt"}`, `{}`)
	down := errors.New("down")
	for name, c := range map[string]struct {
		source source
		want   error
	}{
		"nothing":       {source{}, jwt.ErrNoKey},
		"useless":       {source{keys: []crypto.PublicKey{nil, "text", []byte("secret"), p224.Public(), (*ecdsa.PublicKey)(nil)}}, jwt.ErrNoKey},
		"private":       {source{keys: []crypto.PublicKey{curveKey()}}, jwt.ErrNoKey},
		"good at last":  {source{keys: append(others(t, 15), curveKey().Public())}, nil},
		"good too late": {source{keys: append(others(t, 16), curveKey().Public())}, jwt.ErrSignature},
		"error":         {source{err: down}, down},
	} {
		ch := &jwt.Check{Algorithms: []string{"ES256"}, Types: []string{"at+jwt"}}
		if _, err := jwt.Verify(t.Context(), token, c.source, ch); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A token that would be refused with any key is refused also while its key cannot be had, so
// that a guard need not ask its clients to come again with it.
func TestVerifyWithoutKeys(t *testing.T) {
	t.Parallel()
	k, down := keyOf(t, "k"), errors.New("down")
	for name, c := range map[string]struct {
		claims func(*jwt.Claims)
		want   error
	}{
		"good":           {func(*jwt.Claims) {}, down},
		"other issuer":   {func(c *jwt.Claims) { c.Issuer += "/" }, jwt.ErrIssuer},
		"other audience": {func(c *jwt.Claims) { c.Audience = []string{audience + "/"} }, jwt.ErrAudience},
		"expired":        {func(c *jwt.Claims) { c.Expiry = check().Now.Add(-time.Hour) }, jwt.ErrExpired},
	} {
		made := claims()
		c.claims(made)
		token, err := k.Sign("at+jwt", made)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := jwt.Verify(t.Context(), token, source{err: down}, check()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// Proves: R13: errors show nothing of a token.
func TestVerifyErrorsAreQuiet(t *testing.T) {
	t.Parallel()
	const secret = "SECRET"
	for _, token := range []string{
		secret, secret + "." + secret + "." + secret,
		forge(t, `{"alg":"`+secret+`"}`, `{}`),
		forge(t, `{"alg":"ES256","typ":"`+secret+`","`+secret+`":1,"`+secret+`":2}`, `{}`),
		forge(t, `{"alg":"ES256","typ":"at+jwt","kid":"`+secret+`"}`, `{}`),
		forge(t, `{"alg":"ES256","typ":"at+jwt"}`, `{"`+secret+`":1,"`+secret+`":2}`),
		forge(t, `{"alg":"ES256","typ":"at+jwt","jwk":"`+secret+`"}`, `{"iss":"`+secret+`"}`),
		forge(t, `{"alg":"ES256","typ":"at+jwt"}`, `{"exp":"`+secret+`"}`),
	} {
		_, err := jwt.Verify(t.Context(), token, setOf(t, keyOf(t, "k")), check())
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), b64(secret)) {
			t.Errorf("%v", err)
		}
		_, err = jwt.VerifyProof(token, nil)
		if !errors.Is(err, jwt.ErrProof) || strings.Contains(err.Error(), secret) {
			t.Errorf("proof: %v", err)
		}
	}
}

// source is a Source of anything.
type source struct {
	keys []crypto.PublicKey
	err  error
}

func (s source) Find(context.Context, string, string) ([]crypto.PublicKey, error) {
	return s.keys, s.err
}

func others(t *testing.T, n int) []crypto.PublicKey {
	t.Helper()
	keys := make([]crypto.PublicKey, n)
	for i := range keys {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = k.Public()
	}
	return keys
}

func derSign(t *testing.T, input string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(input))
	out, err := ecdsa.SignASN1(rand.Reader, curveKey(), sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
