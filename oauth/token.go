package oauth

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// TokenResponse is the answer of a token endpoint (RFC 6749, section 5.1, RFC
// 8693, section 2.2.1).
type TokenResponse struct {
	AccessToken     string `json:"access_token"`
	TokenType       string `json:"token_type"`
	IssuedTokenType string `json:"issued_token_type,omitzero"`
	// ExpiresIn is in seconds; 0 is absent.
	ExpiresIn    int64  `json:"expires_in,omitzero"`
	RefreshToken string `json:"refresh_token,omitzero"`
	Scope        string `json:"scope,omitzero"`
	IDToken      string `json:"id_token,omitzero"`
	// Ignored names the members that could not be read as they were; see [ParseTokenResponse].
	Ignored []string `json:"-"`
}

// ParseTokenResponse reads an answer; one without access_token is refused, and
// so are access tokens with characters that no header may hold or longer
// than 64 KiB. expires_in may be a number or, as some servers write it, a
// string of digits.
//
// A lifetime of 0 or less, which some servers write for none, is absent; more
// than 68 years is 68 years. A token_type that is absent is Bearer. A scope may be a list, or a text
// with commas. A refresh token that cannot be used is absent. The errors show no values.
func ParseTokenResponse(data []byte) (*TokenResponse, error) {
	var t struct {
		TokenResponse
		Scope wire.RawValue `json:"scope"`
	}
	d := document{maxText: maxToken, needed: []string{"access_token", "token_type"}, ignored: &t.Ignored}
	if err := d.read(data, &t); err != nil {
		return nil, fmt.Errorf("token response: %w", err)
	}
	switch {
	case t.AccessToken == "" || !isToken(t.AccessToken):
		return nil, errors.New("token response: no access_token that a header can carry")
	case len(t.TokenType) > 64 || !isToken(t.TokenType):
		return nil, errors.New("token response: no valid token_type")
	}
	if t.TokenType == "" {
		t.TokenType = "Bearer"
		d.ignore("token_type")
	}
	if !isToken(t.RefreshToken) {
		t.RefreshToken = ""
		d.ignore("refresh_token")
	}
	t.TokenResponse.Scope = d.scope(t.Scope)
	t.ExpiresIn = min(max(t.ExpiresIn, 0), math.MaxInt32)
	return &t.TokenResponse, nil
}

// scope reads a scope, which some servers write as a list, or as a text with commas.
func (d document) scope(raw wire.RawValue) string {
	var text string
	var list []string
	switch {
	case raw == nil:
		return ""
	case d.setText(&text, raw) != nil:
		_ = d.setList(&list, raw) // what is neither says nothing
	case !strings.Contains(text, ","):
		return text
	default:
		list = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	}
	d.ignore("scope")
	return JoinScope(list)
}

// maxToken is the length in bytes of the longest token.
const maxToken = 64 << 10

// isToken reports whether s is of visible ASCII characters.
func isToken(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// Grant types and the types of tokens and assertions, as requests name them.
const (
	GrantAuthorizationCode = "authorization_code"
	GrantRefreshToken      = "refresh_token"
	GrantClientCredentials = "client_credentials"
	GrantJWTBearer         = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	GrantTokenExchange     = "urn:ietf:params:oauth:grant-type:token-exchange"
	GrantDeviceCode        = "urn:ietf:params:oauth:grant-type:device_code"

	TokenTypeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
	TokenTypeIDToken     = "urn:ietf:params:oauth:token-type:id_token"
	TokenTypeJWT         = "urn:ietf:params:oauth:token-type:jwt"
	TokenTypeIDJAG       = "urn:ietf:params:oauth:token-type:id-jag"

	ClientAssertionJWT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
)

// Methods of client authentication at the token endpoint.
const (
	AuthNone          = "none"
	AuthSecretBasic   = "client_secret_basic"
	AuthSecretPost    = "client_secret_post"
	AuthPrivateKeyJWT = "private_key_jwt"
)

// NewSecret returns 256 random bits as 43 characters that need no escaping: a
// code, a token, a state, a verifier.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
