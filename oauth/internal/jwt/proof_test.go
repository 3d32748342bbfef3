package jwt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

const target = "https://mcp.example/mcp"

// The header and the key of the examples of RFC 9449.
const (
	rfcHeader = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6Ik" +
		"VDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCR" +
		"nMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JE" +
		"QSIsImNydiI6IlAtMjU2In19"
	rfcThumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
)

// Proves: the examples of RFC 9449, sections 5 and 7.1.
func TestVerifyProofKnownAnswer(t *testing.T) {
	t.Parallel()
	const atToken = rfcHeader +
		".eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ" +
		".2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"
	const atResource = rfcHeader +
		".eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9" +
		".2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA"
	got, err := jwt.VerifyProof(atToken, &jwt.ProofCheck{Method: "POST", URL: "https://server.example.com/token", Now: time.Unix(1562262616, 0)})
	want := &jwt.Proof{Thumbprint: rfcThumbprint, ID: "-BwC3ESc6acc2lTc", IssuedAt: time.Unix(1562262616, 0)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("at the token endpoint: %v %s", err, diff)
	}
	got, err = jwt.VerifyProof(atResource, &jwt.ProofCheck{
		Method: "GET", URL: "https://resource.example.org/protectedresource", Now: time.Unix(1562262618, 0),
		AccessToken: "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU",
	})
	want = &jwt.Proof{Thumbprint: rfcThumbprint, ID: "e1j3V_bKic8-LAEB", IssuedAt: time.Unix(1562262618, 0)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("at the resource: %v %s", err, diff)
	}
}

func TestNewProof(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"ES256", "EdDSA", "RS256"} {
		k := newKey(t, algorithm)
		proof, err := k.NewProof("POST", target+"?a=b#c", "n1", "token", noon)
		if err != nil {
			t.Fatal(err)
		}
		c := &jwt.ProofCheck{Method: "POST", URL: target, AccessToken: "token", Now: noon}
		got, err := jwt.VerifyProof(proof, c)
		if err != nil {
			t.Fatal(err)
		}
		if got.ID == "" {
			t.Error("no jti")
		}
		want := &jwt.Proof{Thumbprint: k.Thumbprint(), ID: got.ID, Nonce: "n1", IssuedAt: noon}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		header, payload := open(t, proof)
		if header["typ"] != "dpop+jwt" || header["alg"] != algorithm || header["kid"] != nil || len(header) != 3 {
			t.Errorf("header %v", header)
		}
		if jwk := header["jwk"].(map[string]any); jwk["d"] != nil || jwk["p"] != nil {
			t.Error("the proof shows the private key")
		}
		if payload["htu"] != target || payload["ath"] == nil {
			t.Errorf("payload %v", payload)
		}
		// A proof is never made twice.
		again, err := k.NewProof("POST", target, "", "", noon)
		if err != nil {
			t.Fatal(err)
		}
		header, payload = open(t, again)
		if payload["jti"] == got.ID || payload["nonce"] != nil || payload["ath"] != nil {
			t.Errorf("second proof: %v %v", header, payload)
		}
	}
	for _, bad := range []string{"", "/path", "mcp.example", "https://u:p@mcp.example/", "https://\x7f/", "mailto:a@b.example"} {
		if _, err := newKey(t, "ES256").NewProof("GET", bad, "", "", noon); err == nil {
			t.Errorf("a proof for %q", bad)
		}
	}
}

// Proves: RFC 9449, section 4.3: every single check.
func TestVerifyProof(t *testing.T) {
	t.Parallel()
	jwk := string(keyOf(t, "").Public())
	private, err := keyOf(t, "").Private()
	if err != nil {
		t.Fatal(err)
	}
	foreign := newKey(t, "ES256")
	rsaKey := newKey(t, "RS256")
	payload := map[string]any{"jti": "j1", "htm": "POST", "htu": target, "iat": noon.Unix()}
	body := func(changes map[string]any) string {
		text, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		return string(with(t, text, changes))
	}
	// sha256("token") in base64url.
	const ath = "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A"
	head := func(jwk string) string { return `{"alg":"ES256","typ":"dpop+jwt","jwk":` + jwk + `}` }
	for name, c := range map[string]struct {
		header  string // default: a good one
		changes map[string]any
		check   func(*jwt.ProofCheck)
		good    bool
	}{
		"good":                   {good: true},
		"type in full":           {header: `{"alg":"ES256","typ":"application/DPoP+JWT","jwk":` + jwk + `}`, good: true},
		"bare key":               {header: head(string(with(t, []byte(jwk), map[string]any{"use": nil, "alg": nil, "kid": nil}))), good: true},
		"no type":                {header: `{"alg":"ES256","jwk":` + jwk + `}`},
		"other type":             {header: `{"alg":"ES256","typ":"JWT","jwk":` + jwk + `}`},
		"no key":                 {header: `{"alg":"ES256","typ":"dpop+jwt"}`},
		"key is null":            {header: head("null")},
		"key is a text":          {header: head(`"k"`)},
		"key is a list":          {header: head("[" + jwk + "]")},
		"key is a set":           {header: head(`{"keys":[` + jwk + `]}`)},
		"private key":            {header: head(string(private))},
		"symmetric key":          {header: head(`{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`)},
		"symmetric algorithm":    {header: `{"alg":"HS256","typ":"dpop+jwt","jwk":{"kty":"oct","k":"AAAA"}}`},
		"alg none":               {header: `{"alg":"none","typ":"dpop+jwt","jwk":` + jwk + `}`},
		"key of another kind":    {header: head(string(rsaKey.Public()))},
		"key of somebody else":   {header: head(string(foreign.Public()))},
		"key for encryption":     {header: head(string(with(t, []byte(jwk), map[string]any{"use": "enc"})))},
		"two keys":               {header: `{"alg":"ES256","typ":"dpop+jwt","jwk":` + jwk + `,"jwk":` + string(foreign.Public()) + `}`},
		"crit":                   {header: `{"alg":"ES256","typ":"dpop+jwt","crit":["x"],"x":1,"jwk":` + jwk + `}`},
		"algorithm is not taken": {check: func(c *jwt.ProofCheck) { c.Algorithms = []string{"EdDSA"} }},
		"no algorithm is taken":  {check: func(c *jwt.ProofCheck) { c.Algorithms = []string{} }},
		"HMAC is listed": {
			header: `{"alg":"HS256","typ":"dpop+jwt","jwk":{"kty":"oct","k":"AAAA"}}`,
			check:  func(c *jwt.ProofCheck) { c.Algorithms = []string{"HS256"} },
		},
		"no jti":               {changes: map[string]any{"jti": nil}},
		"empty jti":            {changes: map[string]any{"jti": ""}},
		"jti of 256":           {changes: map[string]any{"jti": strings.Repeat("j", 256)}, good: true},
		"jti of 257":           {changes: map[string]any{"jti": strings.Repeat("j", 257)}},
		"jti is a number":      {changes: map[string]any{"jti": 1}},
		"no htm":               {changes: map[string]any{"htm": nil}},
		"no htm, none asked":   {changes: map[string]any{"htm": nil}, check: func(c *jwt.ProofCheck) { c.Method = "" }},
		"htm in lower case":    {changes: map[string]any{"htm": "post"}},
		"htm is another":       {changes: map[string]any{"htm": "GET"}},
		"no htu":               {changes: map[string]any{"htu": nil}},
		"htu is a number":      {changes: map[string]any{"htu": 1}},
		"htu is another":       {changes: map[string]any{"htu": "https://evil.example/mcp"}},
		"htu has a query":      {changes: map[string]any{"htu": target + "?a=b"}, good: true},
		"htu has a fragment":   {changes: map[string]any{"htu": target + "#a"}, good: true},
		"htu is a query":       {changes: map[string]any{"htu": "?" + target}},
		"no iat":               {changes: map[string]any{"iat": nil}},
		"iat is a text":        {changes: map[string]any{"iat": "now"}},
		"just young enough":    {changes: map[string]any{"iat": noon.Unix() - 300}, good: true},
		"too old":              {changes: map[string]any{"iat": noon.Unix() - 301}},
		"from the near future": {changes: map[string]any{"iat": noon.Unix() + 300}, good: true},
		"from the future":      {changes: map[string]any{"iat": noon.Unix() + 301}},
		"beyond the window":    {changes: map[string]any{"iat": noon.Unix() - 11}, check: func(c *jwt.ProofCheck) { c.Window = 10 * time.Second }},
		"from 1970":            {changes: map[string]any{"iat": 0}},
		"from the year 9999":   {changes: map[string]any{"iat": 253402300799}},
		"with token":           {changes: map[string]any{"ath": ath}, check: withToken, good: true},
		"without ath":          {check: withToken},
		"ath is another":       {changes: map[string]any{"ath": ath[1:] + "A"}, check: withToken},
		"ath is padded":        {changes: map[string]any{"ath": ath + "="}, check: withToken},
		"ath is not asked":     {changes: map[string]any{"ath": "x"}, good: true},
		"nonce is a number":    {changes: map[string]any{"nonce": 1}},
		"too long":             {changes: map[string]any{"x": strings.Repeat("x", 8<<10)}},
	} {
		header := c.header
		if header == "" {
			header = head(jwk)
		}
		check := &jwt.ProofCheck{Method: "POST", URL: target + "?q=1#f", Now: noon}
		if c.check != nil {
			c.check(check)
		}
		got, err := jwt.VerifyProof(forge(t, header, body(c.changes)), check)
		if (err == nil) != c.good || (err != nil && !errors.Is(err, jwt.ErrProof)) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err == nil && got.Thumbprint != keyOf(t, "").Thumbprint() {
			t.Errorf("%s: thumbprint %q", name, got.Thumbprint)
		}
	}
	if _, err := jwt.VerifyProof(forge(t, head(jwk), `{"jti":"a","jti":"b"}`), nil); !errors.Is(err, jwt.ErrProof) {
		t.Errorf("duplicate in payload: %v", err)
	}
}

func withToken(c *jwt.ProofCheck) { c.AccessToken = "token" }

// Proves: RFC 9449, section 4.3: htu is compared after normalisation, and
// nothing else is made equal by it.
func TestVerifyProofTarget(t *testing.T) {
	t.Parallel()
	k := keyOf(t, "")
	for _, c := range []struct {
		htu, url string
		same     bool
	}{
		{"https://h.example/a", "https://h.example/a", true},
		{"HTTPS://H.Example/a", "https://h.example/a", true},
		{"https://h.example:443/a", "https://h.example/a", true},
		{"http://h.example:80/a", "http://h.example/a", true},
		{"https://h.example", "https://h.example/", true},
		{"https://h.example:/a", "https://h.example/a", true},
		{"https://h.example/%61%2D%7e", "https://h.example/a-~", true},
		{"https://h.example/%2f", "https://h.example/%2F", true},
		{"https://[::1]:8080/a", "https://[::1]:8080/a", true},
		{"https://[2001:DB8::1]/a", "https://[2001:db8::1]/a", true},
		{"https://h.example/a", "https://h.example/a?b=c", true},
		{"https://h.example/a?b=c", "https://h.example/a?b=c", true},
		{"https://h.example/a?b=c#d", "https://h.example/a", true},
		{"https://h.example/a?", "https://h.example/a", true},
		{"https://h.example/?/a", "https://h.example/a", false},
		{"https://evil.example/a#https://h.example/a", "https://h.example/a", false},
		{"https://evil.example?@h.example/a", "https://h.example/a", false},
		{"https://h.example/A", "https://h.example/a", false},
		{"https://h.example/a/", "https://h.example/a", false},
		{"https://h.example/%2F", "https://h.example//", false},
		{"https://h.example/%252F", "https://h.example/%2F", false},
		{"https://h.example/x/../a", "https://h.example/a", false},
		{"http://h.example/a", "https://h.example/a", false},
		{"http://h.example:443/a", "https://h.example/a", false},
		{"https://h.example:8443/a", "https://h.example/a", false},
		{"https://h.example.evil.example/a", "https://h.example/a", false},
		{"https://h.example@evil.example/a", "https://h.example/a", false},
		{"https://u@h.example/a", "https://h.example/a", false},
		{"//h.example/a", "https://h.example/a", false},
		{"/a", "https://h.example/a", false},
		{"/a", "/a", false},
		{"", "", false},
		{"ftp://h.example/a", "ftp://h.example/a", false},
		{"https:h.example", "https:h.example", false},
		{"https://h.example/%zz", "https://h.example/%zz", false},
		{"https://h.example:8 /a", "https://h.example:8 /a", false},
		{"https://h.example/a\n", "https://h.example/a\n", false},
	} {
		text, err := json.Marshal(map[string]any{"jti": "j", "htm": "GET", "iat": noon.Unix(), "htu": c.htu})
		if err != nil {
			t.Fatal(err)
		}
		proof := forge(t, fmt.Sprintf(`{"alg":"ES256","typ":"dpop+jwt","jwk":%s}`, k.Public()), string(text))
		_, err = jwt.VerifyProof(proof, &jwt.ProofCheck{Method: "GET", URL: c.url, Now: noon})
		if (err == nil) != c.same {
			t.Errorf("%q and %q: %v, want same %t", c.htu, c.url, err, c.same)
		}
	}
}

// open reads header and payload without any check.
func open(t *testing.T, token string) (header, payload map[string]any) {
	t.Helper()
	p := strings.Split(token, ".")
	for i, v := range []*map[string]any{&header, &payload} {
		if err := json.Unmarshal([]byte(unb64(t, p[i])), v); err != nil {
			t.Fatal(err)
		}
	}
	return header, payload
}
