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
}

// ParseServerMetadata reads a document, bounded like [ParseResourceMetadata],
// and refuses one whose issuer is not the same string as issuer, the
// identifier that its URL was made from (RFC 8414, section 3.3; spec
// 2026-07-28, basic/authorization/authorization-server-discovery: MUST NOT be
// used). Endpoints that are present are checked with [CheckEndpoint]. The
// error of a foreign issuer is an *IssuerError.
//
// A member of the wrong type is as absent, unless that would weaken what is
// decided by it (issuer, endpoints, PKCE, iss).
func ParseServerMetadata(data []byte, issuer string) (*ServerMetadata, error) {
	var m ServerMetadata
	d := document{needed: []string{
		"issuer", "authorization_endpoint", "token_endpoint", "jwks_uri",
		"code_challenge_methods_supported", "authorization_response_iss_parameter_supported",
	}}
	if err := d.read(data, &m); err != nil {
		return nil, fmt.Errorf("server metadata: %w", err)
	}
	if m.Issuer == "" {
		return nil, errors.New("server metadata: no issuer")
	}
	if m.Issuer != issuer {
		return nil, &IssuerError{Want: issuer, Got: m.Issuer}
	}
	if err := m.checkEndpoints(); err != nil {
		return nil, fmt.Errorf("server metadata: %w", err)
	}
	return &m, nil
}

func (m *ServerMetadata) checkEndpoints() error {
	endpoints := []struct{ name, url string }{
		{"authorization_endpoint", m.AuthorizationEndpoint},
		{"token_endpoint", m.TokenEndpoint},
		{"registration_endpoint", m.RegistrationEndpoint},
		{"revocation_endpoint", m.RevocationEndpoint},
		{"introspection_endpoint", m.IntrospectionEndpoint},
		{"device_authorization_endpoint", m.DeviceAuthorizationEndpoint},
		{"jwks_uri", m.JWKSURI},
	}
	for _, e := range endpoints {
		if e.url == "" {
			continue
		}
		if _, err := CheckEndpoint(e.url); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
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
