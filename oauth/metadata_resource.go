package oauth

import (
	"errors"
	"fmt"
	"strings"
)

// ResourceMetadata is the document with which a resource server names its
// authorization servers (RFC 9728, section 2). spec 2026-07-28,
// basic/authorization/authorization-server-discovery.
type ResourceMetadata struct {
	// Resource is the identifier of the resource: a URL without fragment.
	Resource string `json:"resource"`
	// AuthorizationServers are issuer identifiers.
	AuthorizationServers []string `json:"authorization_servers,omitzero"`
	// ScopesSupported are the scopes a client asks for if no challenge names
	// any; nil is absent.
	ScopesSupported []string `json:"scopes_supported,omitzero"`
	// BearerMethodsSupported is ["header"] for what this module serves.
	BearerMethodsSupported []string `json:"bearer_methods_supported,omitzero"`
	ResourceName           string   `json:"resource_name,omitzero"`
	ResourceDocumentation  string   `json:"resource_documentation,omitzero"`
	JWKSURI                string   `json:"jwks_uri,omitzero"`
	// DPoPBoundAccessTokensRequired says that only tokens bound to a key are taken.
	DPoPBoundAccessTokensRequired bool     `json:"dpop_bound_access_tokens_required,omitzero"`
	DPoPSigningAlgValuesSupported []string `json:"dpop_signing_alg_values_supported,omitzero"`

	// Ignored names the members of a document that could not be read, or not whole; see
	// [ParseResourceMetadata].
	Ignored []string `json:"-"`
}

// ParseResourceMetadata reads a document strictly as JSON (no duplicate
// members), ignores members it does not know, and refuses one without a
// resource. It does not compare the resource: see [ResourceMetadata.Check].
//
// A member of the wrong type is as absent, and so is one that is too long: a list of more than 1,000
// items, a text of more than 2,048 bytes. Items of the wrong type are left out of a list. If the
// member is resource, authorization_servers or dpop_bound_access_tokens_required, it cannot be
// absent, and the document is refused.
func ParseResourceMetadata(data []byte) (*ResourceMetadata, error) {
	var m ResourceMetadata
	d := document{
		needed:  []string{"resource", "authorization_servers", "dpop_bound_access_tokens_required"},
		ignored: &m.Ignored,
	}
	if err := d.read(data, &m); err != nil {
		return nil, fmt.Errorf("resource metadata: %w", err)
	}
	if m.Resource == "" {
		return nil, errors.New("resource metadata: no resource")
	}
	m.ResourceName = cleanText(m.ResourceName, maxText)
	return &m, nil
}

// Check says whether the document is about resource, the identifier that the
// metadata URL was made from, or the URL that was requested (RFC 9728, section
// 3.3): an exact comparison of strings, after the normalisation of
// [CanonicalResource] of both sides. A document about a parent path of
// requested on the same origin is taken too if parents is true (some servers
// have one document for all of an origin); path segments are compared whole.
func (m *ResourceMetadata) Check(requested string, parents bool) error {
	want, err := parseResource(requested)
	if err != nil {
		return fmt.Errorf("requested %w", err)
	}
	got, err := parseResource(m.Resource)
	if err != nil {
		return fmt.Errorf("resource metadata: %w", err)
	}
	if Origin(got) == Origin(want) {
		if resourcePath(got) == resourcePath(want) {
			return nil
		}
		parent := strings.TrimRight(got.EscapedPath(), "/") + "/"
		child := strings.TrimRight(want.EscapedPath(), "/") + "/"
		if parents && got.RawQuery == "" && strings.HasPrefix(child, parent) {
			return nil
		}
	}
	return fmt.Errorf("resource metadata is about %s, not about %s", withoutQuery(got), withoutQuery(want))
}

// ResourceMetadataURLs are the places where the metadata of a resource is
// looked for when no challenge names one, in order: with the path of the
// resource, then at the root of the origin (RFC 9728, section 3.1; spec
// 2026-07-28, basic/authorization/authorization-server-discovery: MUST). A
// resource without path has one place.
func ResourceMetadataURLs(resource string) ([]string, error) {
	u, err := parseResource(resource)
	if err != nil {
		return nil, err
	}
	root := Origin(u) + "/.well-known/oauth-protected-resource"
	if path := resourcePath(u); path != "" {
		return []string{root + path, root}, nil
	}
	return []string{root}, nil
}
