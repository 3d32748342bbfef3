package oauth_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/oauth"
)

// Proves: C11, with the example of RFC 7636, appendix B.
func TestVerifyS256(t *testing.T) {
	t.Parallel()
	const verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	if got := oauth.ChallengeS256(verifier); got != challenge {
		t.Errorf("got challenge %s, want %s", got, challenge)
	}
	long := strings.Repeat("a.-_~Z09", 16)
	for _, c := range []struct {
		verifier, challenge string
		want                bool
	}{
		{verifier, challenge, true},
		{long, oauth.ChallengeS256(long), true},
		{verifier, verifier, false}, // the plain method
		{verifier, challenge[:42], false},
		{verifier, challenge + "=", false},
		{verifier, "", false},
		{"", "", false},
		{"", oauth.ChallengeS256(""), false},
		{verifier[:42], oauth.ChallengeS256(verifier[:42]), false},
		{long + "a", oauth.ChallengeS256(long + "a"), false},
		{verifier[:42] + "+", oauth.ChallengeS256(verifier[:42] + "+"), false},
		{verifier[:42] + "\n", oauth.ChallengeS256(verifier[:42] + "\n"), false},
	} {
		if got := oauth.VerifyS256(c.verifier, c.challenge); got != c.want {
			t.Errorf("%q, %q: got %v, want %v", c.verifier, c.challenge, got, c.want)
		}
	}
}

func TestValidChallenge(t *testing.T) {
	t.Parallel()
	challenge := oauth.ChallengeS256("x")
	for c, want := range map[string]bool{
		challenge:                        true,
		"":                               false,
		challenge[:42]:                   false,
		challenge + "A":                  false,
		challenge[:42] + "=":             false,
		challenge[:42] + "B":             false, // bits beyond 256
		strings.Repeat("+", 43):          false,
		challenge[:40] + "\r\n" + "A":    false,
		strings.Repeat("A", 42) + "\x00": false,
	} {
		if got := oauth.ValidChallenge(c); got != want {
			t.Errorf("%q: got %v, want %v", c, got, want)
		}
	}
}

func TestNewVerifier(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for range 100 {
		v := oauth.NewVerifier()
		if seen[v] || len(v) != 43 || !oauth.VerifyS256(v, oauth.ChallengeS256(v)) || !oauth.ValidChallenge(oauth.ChallengeS256(v)) {
			t.Fatalf("%q is no fresh verifier", v)
		}
		seen[v] = true
	}
}
