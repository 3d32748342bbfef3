package login

import (
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// Credentials are of the client at one authorization server. No text form shows the secret.
type Credentials struct {
	// Issuer is the server that they are for; they are never sent to another.
	Issuer   string
	ClientID string
	// Secret of a confidential client.
	Secret string
	// Method of authentication at the token endpoint. Default: the best that both sides can.
	Method string
	// Signer signs private_key_jwt. Algorithm and KeyID have defaults that suit the key.
	Signer           crypto.Signer
	Algorithm, KeyID string
	// RedirectURIs are those that were registered.
	RedirectURIs []string
	// Expires is when a dynamic registration ends; zero is never.
	Expires time.Time
	// Dynamic is registered dynamically; Document has the URL of a metadata document as ClientID.
	Dynamic, Document bool
}

// String says which client they are of, and where, without secrets.
func (c Credentials) String() string {
	return fmt.Sprintf("credentials of client %q at %q", c.ClientID, c.Issuer)
}

// Format is String for each verb, so that %+v and %#v show no secret either.
func (c Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// MarshalText is String, for logs and JSON.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// assertionLife is the life of a client assertion: clocks may differ a little.
const assertionLife = 60 * time.Second

// ParsePrivateKey reads a private key in PEM for [Credentials].Signer: PKCS #8, or the older forms
// of EC and RSA keys. Encrypted keys are refused; the error does not show the text.
func ParsePrivateKey(text []byte) (crypto.Signer, error) { return jwt.ParsePEM(text) }

// method is how the client authenticates at the token endpoint: Method if it is set, else the best
// of what the server lists and what there is. Without secret and key it is none, which many servers
// forget to list. One that lists nothing takes client_secret_basic (RFC 8414, section 2).
func (c *Credentials) method(meta *oauth.ServerMetadata) (string, error) {
	if c.Method != "" {
		return c.Method, c.checkMethod()
	}
	listed := meta.TokenEndpointAuthMethodsSupported
	takes := func(method string) bool { return slices.Contains(listed, method) }
	switch {
	case c.Signer != nil && (len(listed) == 0 || takes(oauth.AuthPrivateKeyJWT)):
		return oauth.AuthPrivateKeyJWT, nil
	case c.Secret != "" && (len(listed) == 0 || takes(oauth.AuthSecretBasic)):
		return oauth.AuthSecretBasic, nil
	case c.Secret != "" && takes(oauth.AuthSecretPost):
		return oauth.AuthSecretPost, nil
	case c.Secret == "" && c.Signer == nil, takes(oauth.AuthNone):
		return oauth.AuthNone, nil
	}
	return "", errors.New(authAdvice(listed))
}

// checkMethod says whether there is what Method needs.
func (c *Credentials) checkMethod() error {
	switch c.Method {
	case oauth.AuthNone:
	case oauth.AuthSecretBasic, oauth.AuthSecretPost:
		if c.Secret == "" {
			return fmt.Errorf("%s needs a client secret; give a Secret", c.Method)
		}
	case oauth.AuthPrivateKeyJWT:
		if c.Signer == nil {
			return fmt.Errorf("%s needs a private key; give a Signer", c.Method)
		}
	default:
		return fmt.Errorf("client authentication %q is not supported; use one of %s, %s, %s, %s", c.Method,
			oauth.AuthPrivateKeyJWT, oauth.AuthSecretBasic, oauth.AuthSecretPost, oauth.AuthNone)
	}
	return nil
}

// authAdvice tells people what a server that lists these methods asks for.
func authAdvice(listed []string) string {
	var give []string
	if slices.Contains(listed, oauth.AuthSecretBasic) || slices.Contains(listed, oauth.AuthSecretPost) {
		give = append(give, "a Secret")
	}
	if slices.Contains(listed, oauth.AuthPrivateKeyJWT) {
		give = append(give, "a Signer")
	}
	if len(give) == 0 {
		return fmt.Sprintf("the authorization server takes only %s, none of which is supported", quotedWords(listed))
	}
	return fmt.Sprintf("the authorization server takes only %s; give %s", quotedWords(listed), strings.Join(give, " or "))
}

// quotedWords lists words of a stranger so that they do no harm in a message.
func quotedWords(words []string) string {
	const most = 8
	var out []string
	for _, w := range words[:min(len(words), most)] {
		out = append(out, fmt.Sprintf("%.40q", w))
	}
	if len(words) > most {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}

// authenticate adds to a request what proves who the client is, and returns the method. A client
// without credentials, or without id, adds nothing.
func (q *grantRequest) authenticate(form url.Values, header http.Header) (string, error) {
	c := q.creds
	if c == nil || c.ClientID == "" {
		return oauth.AuthNone, nil
	}
	// Credentials are never sent to another server than theirs (spec 2026-07-28,
	// basic/authorization/client-registration: MUST NOT).
	if c.Issuer != "" && !oauth.SameIssuer(c.Issuer, q.meta.Issuer) {
		return "", fmt.Errorf("the credentials are for %q, and not for %q", c.Issuer, q.meta.Issuer)
	}
	method, err := c.method(q.meta)
	if err != nil {
		return "", err
	}
	switch method {
	case oauth.AuthSecretBasic:
		header.Set("Authorization", basic(c.ClientID, c.Secret))
	case oauth.AuthSecretPost:
		form.Set("client_id", c.ClientID)
		form.Set("client_secret", c.Secret)
	case oauth.AuthPrivateKeyJWT:
		assertion, err := c.assertion(q.meta, q.now())
		if err != nil {
			return "", err
		}
		// The assertion's subject is the client: no client_id beside it.
		form.Set("client_assertion_type", oauth.ClientAssertionJWT)
		form.Set("client_assertion", assertion)
	default:
		form.Set("client_id", c.ClientID)
	}
	return method, nil
}

// basic is the Authorization header of client_secret_basic. Both parts are form-encoded first, so
// that a colon or a blank in them does no harm (RFC 6749, section 2.3.1).
func basic(id, secret string) string {
	pair := url.QueryEscape(id) + ":" + url.QueryEscape(secret)
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
}

// assertion identifies the client by its key (RFC 7523, section 3). The audience is the issuer
// alone: a URL that a server chooses could be that of another server (RFC 7523bis).
func (c *Credentials) assertion(meta *oauth.ServerMetadata, now time.Time) (string, error) {
	if meta.Issuer == "" {
		return "", fmt.Errorf("%s needs the issuer of the authorization server", oauth.AuthPrivateKeyJWT)
	}
	key, err := c.key(meta.TokenEndpointAuthSigningAlgValuesSupported)
	if err != nil {
		return "", err
	}
	signed, err := key.Sign(jwt.TypeJWT, &jwt.Claims{
		Issuer: c.ClientID, Subject: c.ClientID, Audience: []string{meta.Issuer},
		ID: oauth.NewSecret(), IssuedAt: now, Expiry: now.Add(assertionLife),
	})
	if err != nil {
		return "", fmt.Errorf("signing the client assertion: %w", err)
	}
	return signed, nil
}

// key is the signer with an algorithm that the server takes: the usual or named one, or another if
// none was named. A server that lists nothing takes all.
func (c *Credentials) key(listed []string) (*jwt.Key, error) {
	key, err := jwt.KeyOf(c.Signer, c.Algorithm, c.KeyID)
	if err != nil {
		return nil, fmt.Errorf("key of the client: %w", err)
	}
	if len(listed) == 0 || slices.Contains(listed, key.Algorithm()) {
		return key, nil
	}
	if c.Algorithm == "" {
		for _, algorithm := range listed {
			other, err := jwt.KeyOf(c.Signer, algorithm, c.KeyID)
			if err == nil && slices.Contains(jwt.DefaultAlgorithms(), algorithm) {
				return other, nil
			}
		}
	}
	return nil, fmt.Errorf("the authorization server takes only client assertions with %s, and the key signs with %s; give another Signer",
		quotedWords(listed), key.Algorithm())
}
