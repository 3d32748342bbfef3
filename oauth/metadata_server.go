package oauth

import (
	"errors"
	"fmt"
	"strings"
)

// ServerMetadata describes an authorization server (RFC 8414, section 2, and
// OpenID Connect Discovery 1.0). Members that are absent are zero; a nil list
// is absent.
type ServerMetadata struct {
	Issuer                                     string   `json:"issuer,omitzero"`
	AuthorizationEndpoint                      string   `json:"authorization_endpoint,omitzero"`
	TokenEndpoint                              string   `json:"token_endpoint,omitzero"`
	RegistrationEndpoint                       string   `json:"registration_endpoint,omitzero"`
	RevocationEndpoint                         string   `json:"revocation_endpoint,omitzero"`
	IntrospectionEndpoint                      string   `json:"introspection_endpoint,omitzero"`
	DeviceAuthorizationEndpoint                string   `json:"device_authorization_endpoint,omitzero"` // RFC 8628, section 4
	JWKSURI                                    string   `json:"jwks_uri,omitzero"`
	ScopesSupported                            []string `json:"scopes_supported,omitzero"`
	ResponseTypesSupported                     []string `json:"response_types_supported,omitzero"`
	ResponseModesSupported                     []string `json:"response_modes_supported,omitzero"`
	GrantTypesSupported                        []string `json:"grant_types_supported,omitzero"`
	TokenEndpointAuthMethodsSupported          []string `json:"token_endpoint_auth_methods_supported,omitzero"`
	TokenEndpointAuthSigningAlgValuesSupported []string `json:"token_endpoint_auth_signing_alg_values_supported,omitzero"`
	RevocationEndpointAuthMethodsSupported     []string `json:"revocation_endpoint_auth_methods_supported,omitzero"`
	IntrospectionEndpointAuthMethodsSupported  []string `json:"introspection_endpoint_auth_methods_supported,omitzero"`
	CodeChallengeMethodsSupported              []string `json:"code_challenge_methods_supported,omitzero"`
	// ClientIDMetadataDocumentSupported says that a client_id may be the URL of a document.
	ClientIDMetadataDocumentSupported bool `json:"client_id_metadata_document_supported,omitzero"`
	// AuthorizationResponseIssParameterSupported says that responses carry iss (RFC 9207).
	AuthorizationResponseIssParameterSupported bool     `json:"authorization_response_iss_parameter_supported,omitzero"`
	DPoPSigningAlgValuesSupported              []string `json:"dpop_signing_alg_values_supported,omitzero"`
	ProtectedResources                         []string `json:"protected_resources,omitzero"`
	ServiceDocumentation                       string   `json:"service_documentation,omitzero"`
	UILocalesSupported                         []string `json:"ui_locales_supported,omitzero"`
	// The rest belongs to OpenID Connect, and is there for clients that insist on it.
	SubjectTypesSupported            []string `json:"subject_types_supported,omitzero"`
	IDTokenSigningAlgValuesSupported []string `json:"id_token_signing_alg_values_supported,omitzero"`

	// Ignored names the members of a document that could not be read; see [ParseServerMetadata].
	Ignored []string `json:"-"`
}

// ParseServerMetadata reads a document, bounded like [ParseResourceMetadata],
// and refuses one whose issuer is not the issuer that its URL was made from, by
// [SameIssuer] (RFC 8414, section 3.3; spec 2026-07-28,
// basic/authorization/authorization-server-discovery: MUST NOT be used). From here on the
// document's own spelling counts. The error of a foreign issuer is an *IssuerError.
//
// The endpoints for authorization and tokens are checked with [CheckEndpoint]; others that do not
// pass are as absent. So is a member of the wrong type, unless that would weaken what is
// decided by it (issuer, the two endpoints, PKCE, iss).
func ParseServerMetadata(data []byte, issuer string) (*ServerMetadata, error) {
	var m ServerMetadata
	d := document{needed: []string{
		"issuer", "authorization_endpoint", "token_endpoint",
		"code_challenge_methods_supported", "authorization_response_iss_parameter_supported",
	}, ignored: &m.Ignored}
	if err := d.read(data, &m); err != nil {
		return nil, fmt.Errorf("server metadata: %w", err)
	}
	if m.Issuer == "" {
		return nil, errors.New("server metadata: no issuer")
	}
	if !SameIssuer(m.Issuer, issuer) {
		return nil, &IssuerError{Want: issuer, Got: m.Issuer}
	}
	if err := m.checkEndpoints(); err != nil {
		return nil, fmt.Errorf("server metadata: %w", err)
	}
	return &m, nil
}

// checkEndpoints refuses an endpoint that cannot be used, or takes it away if it is not one of the
// two that every sign-in may need.
func (m *ServerMetadata) checkEndpoints() error {
	endpoints := []struct {
		name   string
		url    *string
		needed bool
	}{
		{"authorization_endpoint", &m.AuthorizationEndpoint, true},
		{"token_endpoint", &m.TokenEndpoint, true},
		{"registration_endpoint", &m.RegistrationEndpoint, false},
		{"revocation_endpoint", &m.RevocationEndpoint, false},
		{"introspection_endpoint", &m.IntrospectionEndpoint, false},
		{"device_authorization_endpoint", &m.DeviceAuthorizationEndpoint, false},
		{"jwks_uri", &m.JWKSURI, false},
	}
	for _, e := range endpoints {
		if *e.url == "" {
			continue
		}
		switch _, err := CheckEndpoint(*e.url); {
		case err == nil:
		case e.needed:
			return fmt.Errorf("%s: %w", e.name, err)
		default:
			*e.url = ""
			m.Ignored = append(m.Ignored, e.name)
		}
	}
	return nil
}

// SameIssuer reports whether two issuer identifiers are one: the same text, but for the slash of an
// empty path. https://as.example and https://as.example/ have one metadata URL (RFC 8414, section
// 3.1) and are one URL (RFC 3986, section 6.2.3), and servers write both. With a path every
// character counts.
func SameIssuer(a, b string) bool { return withoutEmptyPath(a) == withoutEmptyPath(b) }

// withoutEmptyPath is an issuer without the slash of a path that is empty.
func withoutEmptyPath(issuer string) string {
	_, host, ok := strings.Cut(issuer, "://")
	if host, slash := strings.CutSuffix(host, "/"); ok && slash && host != "" && !strings.ContainsAny(host, "/?#") {
		return issuer[:len(issuer)-1]
	}
	return issuer
}

// An IssuerError says that a document is about another issuer than the one
// it was fetched for.
type IssuerError struct{ Want, Got string }

func (e *IssuerError) Error() string {
	return fmt.Sprintf("server metadata is of issuer %q, not of %q", cleanText(e.Got, 256), cleanText(e.Want, 256))
}

// ServerMetadataURLs are the places where the metadata of an issuer is looked
// for, in the order of the specification: for an issuer with a path
// /.well-known/oauth-authorization-server/path,
// /.well-known/openid-configuration/path, /path/.well-known/openid-configuration;
// for one without, the first two without path (spec 2026-07-28,
// basic/authorization/authorization-server-discovery: MUST).
func ServerMetadataURLs(issuer string) ([]string, error) {
	u, err := CheckIssuer(issuer)
	if err != nil {
		return nil, err
	}
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	origin, path := Origin(u), strings.TrimRight(u.EscapedPath(), "/")
	urls := []string{origin + oauth + path, origin + openID + path}
	if path != "" {
		urls = append(urls, origin+path+openID)
	}
	return urls, nil
}
