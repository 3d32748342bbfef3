package oauth

import (
	"errors"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// ClientMetadata describes a client: in a registration request (RFC 7591,
// section 2) and, with ClientID, as a client ID metadata document.
type ClientMetadata struct {
	// ClientID is the URL of a client ID metadata document, in that document.
	ClientID                    string        `json:"client_id,omitzero"`
	ClientName                  string        `json:"client_name,omitzero"`
	ClientURI                   string        `json:"client_uri,omitzero"`
	LogoURI                     string        `json:"logo_uri,omitzero"`
	RedirectURIs                []string      `json:"redirect_uris,omitzero"`
	GrantTypes                  []string      `json:"grant_types,omitzero"`
	ResponseTypes               []string      `json:"response_types,omitzero"`
	TokenEndpointAuthMethod     string        `json:"token_endpoint_auth_method,omitzero"`
	TokenEndpointAuthSigningAlg string        `json:"token_endpoint_auth_signing_alg,omitzero"`
	Scope                       string        `json:"scope,omitzero"`
	Contacts                    []string      `json:"contacts,omitzero"`
	TOSURI                      string        `json:"tos_uri,omitzero"`
	PolicyURI                   string        `json:"policy_uri,omitzero"`
	JWKSURI                     string        `json:"jwks_uri,omitzero"`
	JWKS                        wire.RawValue `json:"jwks,omitzero"`
	SoftwareID                  string        `json:"software_id,omitzero"`
	SoftwareVersion             string        `json:"software_version,omitzero"`
	// ApplicationType is "native" or "web".
	ApplicationType       string `json:"application_type,omitzero"`
	DPoPBoundAccessTokens bool   `json:"dpop_bound_access_tokens,omitzero"`
}

// ClientInformation is the answer to a registration (RFC 7591, section 3.2.1).
type ClientInformation struct {
	ClientMetadata
	ClientSecret string `json:"client_secret,omitzero"`
	// ClientIDIssuedAt and ClientSecretExpiresAt are seconds since 1970; an
	// expiry of 0 means never.
	ClientIDIssuedAt      int64 `json:"client_id_issued_at,omitzero"`
	ClientSecretExpiresAt int64 `json:"client_secret_expires_at,omitzero"`
	// Ignored names the members that could not be read; see [ParseClientInformation].
	Ignored []string `json:"-"`
}

// ParseClientMetadata reads what a client says of itself, bounded like
// [ParseResourceMetadata]. It checks no policy. A client_secret, which is no metadata, is ignored (RFC
// 7591, section 2); documents are read by [ParseClientDocument].
func ParseClientMetadata(data []byte) (*ClientMetadata, error) {
	var m ClientMetadata
	if err := readClient(data, &m); err != nil {
		return nil, err
	}
	m.ClientName = cleanText(m.ClientName, maxText)
	return &m, nil
}

// ParseClientDocument reads a client ID metadata document that was fetched from url, and checks it
// as [ClientMetadata.CheckDocument] does. One with a client_secret is refused: documents are public
// (spec 2026-07-28, basic/authorization/client-registration).
func ParseClientDocument(data []byte, url string, loopback bool) (*ClientMetadata, error) {
	var m struct {
		ClientMetadata
		Secret wire.RawValue `json:"client_secret"`
	}
	if err := readClient(data, &m); err != nil {
		return nil, err
	}
	if m.Secret != nil {
		return nil, errors.New("client document: it must not have a client_secret")
	}
	m.ClientName = cleanText(m.ClientName, maxText)
	if err := m.CheckDocument(url, loopback); err != nil {
		return nil, err
	}
	return &m.ClientMetadata, nil
}

func readClient(data []byte, v any) error {
	d := document{needed: clientNeeded}
	if err := d.read(data, v); err != nil {
		return fmt.Errorf("client metadata: %w", err)
	}
	return nil
}

var clientNeeded = []string{
	"client_id", "redirect_uris", "grant_types", "response_types",
	"token_endpoint_auth_method", "jwks_uri", "jwks", "application_type", "dpop_bound_access_tokens",
}

// ParseClientInformation reads the answer to a registration; one without a
// client_id is refused. Members of the wrong type that this package does not
// need for signing in are ignored. Texts may have 8,192 bytes: ids and secrets
// of some servers hold all of the registration.
func ParseClientInformation(data []byte) (*ClientInformation, error) {
	var c ClientInformation
	d := document{maxText: 8192, needed: []string{"client_id", "client_secret"}, ignored: &c.Ignored}
	if err := d.read(data, &c); err != nil {
		return nil, fmt.Errorf("registration: %w", err)
	}
	if c.ClientID == "" {
		return nil, errors.New("registration: no client_id")
	}
	c.ClientName = cleanText(c.ClientName, maxText)
	return &c, nil
}

// CheckDocument checks a client ID metadata document that was fetched from
// url: an https URL with a path, client_id the same string as url, client_name
// and redirect_uris present, no shared secret and no method of authentication
// that needs one (spec 2026-07-28, basic/authorization/client-registration:
// MUST). With loopback an http URL of a loopback host is taken as well, for
// tests and development.
func (m *ClientMetadata) CheckDocument(url string, loopback bool) error {
	u, err := CheckEndpoint(url)
	if err != nil {
		return fmt.Errorf("client document: %w", err)
	}
	switch {
	case u.Scheme != "https" && !loopback:
		return errors.New("client document: URL must be https")
	case u.Path == "" || u.Path == "/":
		return errors.New("client document: URL must have a path")
	case m.ClientID != url:
		return errors.New("client document: client_id is not the URL of the document")
	case m.ClientName == "":
		return errors.New("client document: no client_name")
	case len(m.RedirectURIs) == 0:
		return errors.New("client document: no redirect_uris")
	case strings.HasPrefix(m.TokenEndpointAuthMethod, "client_secret_"):
		return errors.New("client document: authentication by a shared secret")
	case m.hasSymmetricKey():
		return errors.New("client document: jwks has a symmetric or private key")
	}
	return nil
}

// hasSymmetricKey reports whether jwks holds a key that must not be public, or
// is no set of keys.
func (m *ClientMetadata) hasSymmetricKey() bool {
	if len(m.JWKS) == 0 {
		return false
	}
	set, err := wire.ParseObject(m.JWKS, wire.Limits{Bytes: maxDocument, Depth: maxDepth})
	if err != nil {
		return true
	}
	raw, _ := set.Member("keys")
	keys, err := wire.ParseArray(raw, wire.Limits{Depth: maxDepth}, maxList)
	if err != nil {
		return true
	}
	for _, raw := range keys {
		key, err := wire.ParseObject(raw, wire.Limits{Depth: maxDepth})
		if err != nil {
			return true
		}
		_, symmetric := key.Member("k")
		_, private := key.Member("d")
		if symmetric || private {
			return true
		}
	}
	return false
}
