package jwt

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/parley-mcp/parley/internal/wire"
)

// A Proof is a verified DPoP proof. Whether its ID was seen before, and its
// nonce, are the caller's to check.
type Proof struct {
	Thumbprint string
	ID         string
	Nonce      string
	IssuedAt   time.Time
}

// ProofCheck says what a DPoP proof must be.
type ProofCheck struct {
	Method string
	URL    string // compared after normalisation, without query and fragment
	// Algorithms are what is taken. Default DefaultAlgorithms.
	Algorithms []string
	// AccessToken is hashed and compared with ath, if not empty.
	AccessToken string
	// Window is how far iat may be from Now, either way. Default 5 min.
	Window time.Duration
	// Now is the time. Default time.Now().
	Now time.Time
}

// ErrProof says that a DPoP proof is not valid; the text says why, and nothing
// of what the proof holds.
var ErrProof = errors.New("DPoP proof")

const (
	maxProof   = 8 << 10
	maxProofID = 256
)

// NewProof makes a DPoP proof (RFC 9449, section 4.2): fresh jti, iat now, htm
// method, htu url without query and fragment; nonce and the hash of
// accessToken if they are not empty.
func (k *Key) NewProof(method, url, nonce, accessToken string, now time.Time) (string, error) {
	target, err := bareURL(url)
	if err != nil {
		return "", fmt.Errorf("make a DPoP proof: %w", err)
	}
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": target, "iat": now.Unix()}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if accessToken != "" {
		claims["ath"] = tokenHash(accessToken)
	}
	o := (&jose.SignerOptions{EmbedJWK: true}).WithType(TypeDPoP)
	proof, err := k.sign(o, claims)
	if err != nil {
		return "", fmt.Errorf("make a DPoP proof: %w", err)
	}
	return proof, nil
}

// VerifyProof checks a DPoP proof of at most 8 KiB (RFC 9449, section 4.3): one
// public key in the header and no private one, type, algorithm, signature,
// htm, htu, iat, ath. Its jti has 1 to 256 bytes. The error is an [ErrProof].
func VerifyProof(proof string, c *ProofCheck) (*Proof, error) {
	if c == nil {
		c = &ProofCheck{}
	}
	p, err := parse(proof, maxProof)
	if err != nil {
		return nil, refuse("it is not a signed token")
	}
	if _, ok := findType(p.typ, []string{TypeDPoP}); !ok {
		return nil, refuse("its type is another")
	}
	list := c.Algorithms
	if list == nil {
		list = algorithms
	}
	if !allowed(p.algorithm, list) {
		return nil, refuse("its algorithm is not allowed")
	}
	raw, _ := p.header.Member("jwk")
	k, ok := parsePublic(raw)
	if !ok || !k.fits(p.algorithm) {
		return nil, refuse("its header has no public key that fits")
	}
	if err := p.verify([]crypto.PublicKey{k.key}); err != nil {
		return nil, refuse("its signature is wrong")
	}
	o, err := wire.ParseObject(p.payload, wire.Limits{})
	if err != nil {
		return nil, refuse("its payload is not an object")
	}
	out, err := c.claims(&reader{o: o})
	if err != nil {
		return nil, err
	}
	if out.Thumbprint, err = thumbprint(k.key); err != nil {
		return nil, refuse("its key has no thumbprint")
	}
	return out, nil
}

// claims checks what a proof says.
func (c *ProofCheck) claims(r *reader) (*Proof, error) {
	htm, htu, ath := r.text("htm"), r.text("htu"), r.text("ath")
	p := &Proof{ID: r.text("jti"), Nonce: r.text("nonce"), IssuedAt: r.date("iat")}
	if r.err != nil {
		return nil, refuse("a claim is of a wrong kind")
	}
	if p.ID == "" || len(p.ID) > maxProofID {
		return nil, refuse("it has no jti, or one that is too long")
	}
	if htm == "" || htm != c.Method {
		return nil, refuse("it is for another method")
	}
	if !sameTarget(htu, c.URL) {
		return nil, refuse("it is for another URL")
	}
	now := c.Now
	if now.IsZero() {
		now = time.Now()
	}
	if p.IssuedAt.IsZero() || now.Sub(p.IssuedAt).Abs() > cmp.Or(c.Window, 5*time.Minute) {
		return nil, refuse("it is too old, or from the future")
	}
	if c.AccessToken != "" && subtle.ConstantTimeCompare([]byte(ath), []byte(tokenHash(c.AccessToken))) == 0 {
		return nil, refuse("it is for another access token")
	}
	return p, nil
}

func refuse(why string) error { return fmt.Errorf("%w: %s", ErrProof, why) }

// tokenHash is the ath of an access token.
func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// bareURL is a URL as htu names it.
func bareURL(raw string) (string, error) {
	u, err := url.Parse(withoutQuery(raw))
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil {
		// The error of url.Parse shows the URL, which may hold secrets.
		return "", errors.New("not an absolute URL")
	}
	return u.String(), nil
}

// sameTarget compares the htu of a proof with the URL of a request. Query and fragment do not
// count on either side (RFC 9449, section 4.3): some clients leave them in an htu.
func sameTarget(htu, target string) bool {
	a, known := normalURL(withoutQuery(htu))
	b, ok := normalURL(withoutQuery(target))
	return known && ok && a == b
}

// withoutQuery cuts query and fragment off a URL.
func withoutQuery(raw string) string {
	raw, _, _ = strings.Cut(raw, "#")
	raw, _, _ = strings.Cut(raw, "?")
	return raw
}

// normalURL brings an http(s) URL without query and fragment into a normal
// form (RFC 3986, sections 6.2.2 and 6.2.3): scheme and host in lower case, no
// default port, a path, nothing percent-encoded that need not be. Dot segments
// are left: a proof that has them is for what has them too.
func normalURL(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.Hostname() == "" || u.Opaque != "" {
		return "", false
	}
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	if scheme != "http" && scheme != "https" {
		return "", false
	}
	if (scheme == "https" && port == "443") || (scheme == "http" && port == "80") {
		port = ""
	}
	return scheme + "://" + host + " " + port + " " + cmp.Or(normalPath(u.EscapedPath()), "/"), true
}

// normalPath decodes what is unreserved and writes other escapes in upper case.
func normalPath(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] != '%' || i+2 >= len(path) {
			b.WriteByte(path[i])
			continue
		}
		c := unhex(path[i+1])<<4 | unhex(path[i+2])
		if unreserved(c) {
			b.WriteByte(c)
		} else {
			b.WriteString(strings.ToUpper(path[i : i+3]))
		}
		i += 2
	}
	return b.String()
}

// unhex is the value of a hexadecimal digit, as url.Parse has checked it to be.
func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
