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
// (spec 2026-07-28, basic/authorization/security-considerations: MUST). Of
// Options.MoreResources it has what was there when they were needed last.
func (s *Server) Metadata() *oauth.ServerMetadata { return s.metadata(s.resources.last()) }

func (s *Server) metadata(all *registry) *oauth.ServerMetadata {
	secrets := []string{oauth.AuthSecretBasic, oauth.AuthSecretPost, oauth.AuthPrivateKeyJWT}
	m := &oauth.ServerMetadata{
		Issuer:                            s.issuer,
		AuthorizationEndpoint:             s.endpoint("authorize"),
		TokenEndpoint:                     s.endpoint("token"),
		RevocationEndpoint:                s.endpoint("revoke"),
		IntrospectionEndpoint:             s.endpoint("introspect"),
		JWKSURI:                           s.endpoint("jwks"),
		ScopesSupported:                   all.scopes(),
		ResponseTypesSupported:            []string{"code"},
		ResponseModesSupported:            []string{"query"},
		GrantTypesSupported:               s.grantTypes(all),
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
	for _, res := range all.order {
		m.ProtectedResources = append(m.ProtectedResources, res.URI)
	}
	if s.opts.Registration.On {
		m.RegistrationEndpoint = s.endpoint("register")
	}
	if s.opts.Device.On {
		m.DeviceAuthorizationEndpoint = s.endpoint("device_authorization")
	}
	return m
}

// scopes are those of all resources, each once.
func (g *registry) scopes() []string {
	var names []string
	for _, res := range g.order {
		for _, scope := range res.Scopes {
			if !slices.Contains(names, scope.Name) {
				names = append(names, scope.Name)
			}
		}
	}
	return names
}

func (s *Server) grantTypes(all *registry) []string {
	types := []string{
		oauth.GrantAuthorizationCode, oauth.GrantRefreshToken, oauth.GrantClientCredentials,
	}
	if slices.ContainsFunc(all.order, func(r *Resource) bool { return len(r.ExchangeTo) > 0 }) {
		types = append(types, oauth.GrantTokenExchange)
	}
	if s.opts.Device.On {
		types = append(types, oauth.GrantDeviceCode)
	}
	if len(s.issuers) > 0 {
		types = append(types, oauth.GrantJWTBearer)
	}
	return types
}

// serveMetadata answers with the metadata. Where private_key_jwt is taken the algorithms
// must be named, for each endpoint (RFC 8414, section 2: MUST).
func (s *Server) serveMetadata(w http.ResponseWriter, r *http.Request) {
	all, err := s.resources.current(r.Context())
	var document []byte
	if err == nil {
		m := s.metadata(all)
		document, err = wire.Marshal(struct {
			*oauth.ServerMetadata
			RevocationAlgorithms    []string `json:"revocation_endpoint_auth_signing_alg_values_supported"`
			IntrospectionAlgorithms []string `json:"introspection_endpoint_auth_signing_alg_values_supported"`
		}{m, m.TokenEndpointAuthSigningAlgValuesSupported, m.TokenEndpointAuthSigningAlgValuesSupported})
	}
	if err != nil {
		s.refuseJSON(w, r, s.broken(r.Context(), "describing the server", err), "")
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	writeJSON(w, http.StatusOK, document)
}
