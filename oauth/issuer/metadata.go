package issuer

import (
	"net/http"
	"slices"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// Metadata is what the server says of itself (RFC 8414, section 2, and OpenID
// Connect Discovery 1.0, section 3), in all places where clients look for it:
// one document, so that all of them name code_challenge_methods_supported
// (spec 2026-07-28, basic/authorization/security-considerations: MUST).
func (s *Server) Metadata() *oauth.ServerMetadata {
	secrets := []string{oauth.AuthSecretBasic, oauth.AuthSecretPost, oauth.AuthPrivateKeyJWT}
	m := &oauth.ServerMetadata{
		Issuer:                            s.issuer,
		AuthorizationEndpoint:             s.endpoint("authorize"),
		TokenEndpoint:                     s.endpoint("token"),
		RevocationEndpoint:                s.endpoint("revoke"),
		IntrospectionEndpoint:             s.endpoint("introspect"),
		JWKSURI:                           s.endpoint("jwks"),
		ScopesSupported:                   s.scopes(),
		ResponseTypesSupported:            []string{"code"},
		ResponseModesSupported:            []string{"query"},
		GrantTypesSupported:               s.grantTypes(),
		TokenEndpointAuthMethodsSupported: append([]string{oauth.AuthNone}, secrets...),
		TokenEndpointAuthSigningAlgValuesSupported: jwt.DefaultAlgorithms(),
		RevocationEndpointAuthMethodsSupported:     append([]string{oauth.AuthNone}, secrets...),
		IntrospectionEndpointAuthMethodsSupported:  secrets,
		CodeChallengeMethodsSupported:              []string{oauth.MethodS256},
		ClientIDMetadataDocumentSupported:          !s.opts.Documents.Off,
		// spec 2026-07-28, basic/authorization: a server that sends iss MUST say so.
		AuthorizationResponseIssParameterSupported: true,
		DPoPSigningAlgValuesSupported:              jwt.DefaultAlgorithms(),
		SubjectTypesSupported:                      []string{"public"},
		IDTokenSigningAlgValuesSupported:           []string{s.opts.SigningAlgorithm},
	}
	for _, res := range s.resources.order {
		m.ProtectedResources = append(m.ProtectedResources, res.URI)
	}
	if s.opts.Registration.On {
		m.RegistrationEndpoint = s.endpoint("register")
	}
	return m
}

// scopes are those of all resources, each once.
func (s *Server) scopes() []string {
	var names []string
	for _, res := range s.resources.order {
		for _, scope := range res.Scopes {
			if !slices.Contains(names, scope.Name) {
				names = append(names, scope.Name)
			}
		}
	}
	return names
}

func (s *Server) grantTypes() []string {
	types := []string{
		oauth.GrantAuthorizationCode, oauth.GrantRefreshToken, oauth.GrantClientCredentials,
	}
	if slices.ContainsFunc(s.resources.order, func(r *Resource) bool { return len(r.ExchangeTo) > 0 }) {
		types = append(types, oauth.GrantTokenExchange)
	}
	if len(s.issuers) > 0 {
		types = append(types, oauth.GrantJWTBearer)
	}
	return types
}

// describe encodes the metadata, which never changes. Where private_key_jwt is
// taken the algorithms must be named, for each endpoint (RFC 8414, section 2: MUST).
func (s *Server) describe() ([]byte, error) {
	m := s.Metadata()
	return wire.Marshal(struct {
		*oauth.ServerMetadata
		RevocationAlgorithms    []string `json:"revocation_endpoint_auth_signing_alg_values_supported"`
		IntrospectionAlgorithms []string `json:"introspection_endpoint_auth_signing_alg_values_supported"`
	}{m, m.TokenEndpointAuthSigningAlgValuesSupported, m.TokenEndpointAuthSigningAlgValuesSupported})
}

func (s *Server) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=300")
	writeJSON(w, http.StatusOK, s.metadata)
}
