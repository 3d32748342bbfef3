package issuer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// Types of applications (OpenID Connect Dynamic Client Registration 1.0).
const (
	applicationNative = "native"
	applicationWeb    = "web"
)

// serveRegister is the registration endpoint (RFC 7591, section 3).
func (s *Server) serveRegister(w http.ResponseWriter, r *http.Request) {
	if wait, ok := s.allow(r, "register", ""); !ok {
		s.refuseRate(w, r, wait)
		return
	}
	policy := s.opts.Registration
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		s.refuseJSON(w, r, &oauth.Error{
			Code: oauth.InvalidClientMetadata, Description: "the request must be application/json", Status: http.StatusUnsupportedMediaType,
		}, "")
		return
	}
	data, err := readBody(w, r, int64(policy.MaxSize))
	if err != nil {
		s.refuseJSON(w, r, &oauth.Error{
			Code: oauth.InvalidClientMetadata, Description: "the request cannot be read", Status: bodyStatus(err),
		}, err.Error())
		return
	}
	m, err := oauth.ParseClientMetadata(data)
	if err != nil {
		s.refuseJSON(w, r, &oauth.Error{Code: oauth.InvalidClientMetadata, Description: "the request cannot be read"}, err.Error())
		return
	}
	answer, err := s.register(r.Context(), m)
	event := Event{Name: "client.registered", Outcome: "ok", Remote: s.opts.Remote(r)}
	if err != nil {
		e := asError(err)
		event.Outcome, event.Reason = e.Code, e.Description
		s.audit(r.Context(), event)
		s.refuseJSON(w, r, e, "")
		return
	}
	event.Client, event.ClientName = answer.ClientID, m.ClientName
	s.audit(r.Context(), event)
	answerJSON(w, http.StatusCreated, answer)
}

// register stores a client under the policy. What the client asks for and does
// not get is left out of the answer (RFC 7591, section 3.2.1), so that older
// clients, which ask for more than they need, are served.
func (s *Server) register(ctx context.Context, m *oauth.ClientMetadata) (*registration, error) {
	if err := s.normalise(m); err != nil {
		return nil, err
	}
	now := s.now()
	c := &Client{ID: oauth.NewSecret(), Metadata: *m, Dynamic: true, Created: now, Expires: now.Add(s.opts.Registration.Unused)}
	digest, err := digestOf(m)
	if err != nil {
		return nil, s.broken(ctx, "hashing a registration", err)
	}
	c.Digest = digest
	secret := ""
	if usesSecret(m) {
		// The same registration twice cannot be one client here: the secret that
		// was handed out first is not known any more.
		secret = oauth.NewSecret()
		c.SecretHash, c.Digest = Hash(secret), Hash(c.ID)
	}
	stored, err := s.store.AddClient(ctx, c, s.opts.Registration.MaxClients)
	switch {
	case errors.Is(err, ErrFull):
		return nil, &oauth.Error{
			Code: oauth.TemporarilyUnavailable, Description: "no more clients can register for now", Status: http.StatusServiceUnavailable,
		}
	case err != nil:
		return nil, s.broken(ctx, "storing a client", err)
	}
	answer := &registration{ClientInformation: oauth.ClientInformation{
		ClientMetadata: stored.Metadata, ClientSecret: secret, ClientIDIssuedAt: stored.Created.Unix(),
	}}
	answer.ClientID = stored.ID
	if secret != "" {
		answer.SecretExpires = new(int64)
	}
	return answer, nil
}

// A registration is the answer to one. With a secret it must say when that
// expires, and 0 is never (RFC 7591, section 3.2.1: REQUIRED).
type registration struct {
	oauth.ClientInformation
	SecretExpires *int64 `json:"client_secret_expires_at,omitzero"`
}

func usesSecret(m *oauth.ClientMetadata) bool {
	return m.TokenEndpointAuthMethod == oauth.AuthSecretBasic || m.TokenEndpointAuthMethod == oauth.AuthSecretPost
}

// digestOf makes registrations comparable.
func digestOf(m *oauth.ClientMetadata) (string, error) {
	data, err := wire.Marshal(m)
	if err != nil {
		return "", err
	}
	if data, err = wire.Canonical(data); err != nil {
		return "", err
	}
	return Hash(string(data)), nil
}

// normalise fills in what a client that registers left out, and drops what it
// cannot have here.
func (s *Server) normalise(m *oauth.ClientMetadata) error {
	if err := checkPages(m); err != nil {
		return err
	}
	m.ClientID, m.Scope = "", ""
	m.LogoURI = "" // never loaded, so it is not needed
	if err := s.setType(m); err != nil {
		return err
	}
	if err := s.setFlows(m); err != nil {
		return err
	}
	if m.TokenEndpointAuthMethod == "" {
		m.TokenEndpointAuthMethod = oauth.AuthSecretBasic // RFC 7591, section 2: the default
	}
	return checkAuthentication(m)
}

// setFlows keeps the grant and response types that a client which registers may have.
func (s *Server) setFlows(m *oauth.ClientMetadata) error {
	onlyDevice := s.onlyDevice(m)
	if len(m.ResponseTypes) == 0 {
		m.ResponseTypes = []string{"code"}
	}
	if len(m.GrantTypes) == 0 {
		m.GrantTypes = []string{oauth.GrantAuthorizationCode}
	}
	m.ResponseTypes = keepOnly(m.ResponseTypes, "code")
	known := []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken}
	if s.opts.Device.On {
		known = append(known, oauth.GrantDeviceCode)
	}
	m.GrantTypes = keepOnly(m.GrantTypes, known...)
	if onlyDevice {
		m.ResponseTypes = nil
		return nil
	}
	if len(m.ResponseTypes) == 0 || !slices.Contains(m.GrantTypes, oauth.GrantAuthorizationCode) {
		return invalidMetadata("clients that register get codes, with grant type authorization_code and response type code")
	}
	return nil
}

// onlyDevice says whether a client that registers has no use for a browser: it
// asks for the device flow and not for codes, so that it needs no redirect URI.
func (s *Server) onlyDevice(m *oauth.ClientMetadata) bool {
	return s.opts.Device.On && slices.Contains(m.GrantTypes, oauth.GrantDeviceCode) &&
		!slices.Contains(m.GrantTypes, oauth.GrantAuthorizationCode)
}

func keepOnly(list []string, known ...string) []string {
	var kept []string
	for _, item := range list {
		if slices.Contains(known, item) && !slices.Contains(kept, item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// setType checks the redirect URIs for the type of application, which is
// inferred if the client left it out, as older clients do (spec 2026-07-28,
// basic/authorization/client-registration, "Application Type and Redirect URI
// Constraints").
func (s *Server) setType(m *oauth.ClientMetadata) error {
	switch m.ApplicationType {
	case "":
		m.ApplicationType = inferType(m.RedirectURIs)
	case applicationNative, applicationWeb:
	default:
		return invalidMetadata("application_type must be native or web")
	}
	if n := len(m.RedirectURIs); n == 0 && !s.onlyDevice(m) || n > maxRedirects {
		return &oauth.Error{Code: oauth.InvalidRedirectURI, Description: fmt.Sprintf("there must be 1 to %d redirect URIs", maxRedirects)}
	}
	for _, uri := range m.RedirectURIs {
		if s.redirects.check(uri, m.ApplicationType == applicationNative) != nil {
			return &oauth.Error{
				Code:        oauth.InvalidRedirectURI,
				Description: "a redirect URI must be https, or http on loopback; native clients may have a private-use scheme with a dot",
			}
		}
	}
	return nil
}

// inferType says native if no redirect URI leaves the device.
func inferType(uris []string) string {
	for _, uri := range uris {
		u, err := url.Parse(uri)
		if err != nil || u.Scheme == "https" || u.Scheme == "http" && !oauth.LoopbackHost(u.Hostname()) {
			return applicationWeb
		}
	}
	return applicationNative
}

// checkPages checks the URIs of pages about a client: they are stored, and whatever shows them to
// people must be able to make links of them.
func checkPages(m *oauth.ClientMetadata) error {
	for _, page := range []struct{ name, uri string }{
		{"client_uri", m.ClientURI}, {"logo_uri", m.LogoURI}, {"policy_uri", m.PolicyURI}, {"tos_uri", m.TOSURI},
	} {
		if page.uri == "" {
			continue
		}
		u, err := url.Parse(page.uri)
		if err != nil || !isWeb(u) || u.Hostname() == "" || u.User != nil {
			return invalidMetadata(page.name + " must be an http or https URL")
		}
	}
	return nil
}

// checkAuthentication checks that a client can use the method it names.
func checkAuthentication(m *oauth.ClientMetadata) error {
	if alg := m.TokenEndpointAuthSigningAlg; alg != "" && !slices.Contains(jwt.DefaultAlgorithms(), alg) {
		return invalidMetadata("token_endpoint_auth_signing_alg is not supported")
	}
	if m.JWKSURI != "" {
		if _, err := oauth.CheckEndpoint(m.JWKSURI); err != nil {
			return invalidMetadata("jwks_uri must be an https URL")
		}
	}
	switch m.TokenEndpointAuthMethod {
	case oauth.AuthNone, oauth.AuthSecretBasic, oauth.AuthSecretPost:
		return nil
	case oauth.AuthPrivateKeyJWT:
		if (len(m.JWKS) == 0) == (m.JWKSURI == "") {
			return invalidMetadata("private_key_jwt needs either jwks or jwks_uri")
		}
		if len(m.JWKS) > 0 {
			if _, err := parseKeys(m.JWKS); err != nil {
				return invalidMetadata("jwks has no public key that can be used")
			}
		}
		return nil
	}
	return invalidMetadata("token_endpoint_auth_method is not supported")
}

// parseKeys reads public keys and wants one at least.
func parseKeys(jwks []byte) (*jwt.Set, error) {
	set, err := jwt.ParseSet(jwks)
	if err != nil {
		return nil, err
	}
	for _, algorithm := range jwt.DefaultAlgorithms() {
		if keys, err := set.Find(context.Background(), "", algorithm); err == nil && len(keys) > 0 {
			return set, nil
		}
	}
	return nil, errors.New("no public key that can be used")
}

func invalidMetadata(text string) *oauth.Error {
	return &oauth.Error{Code: oauth.InvalidClientMetadata, Description: text}
}

// NewClient makes a client of what an operator says of it, with the defaults in place, for
// [Store.AddClient] say; Created is for the caller to set. What it may do is the operator's
// word, but its redirect URIs are under the same rules as others; schemes are
// [RegistrationPolicy.Schemes]. The error says what is wrong with it.
func NewClient(config StaticClient, schemes []string) (*Client, error) {
	redirects, err := newRedirects(schemes)
	if err != nil {
		return nil, err
	}
	return redirects.newClient(&config)
}

func (r *redirects) newClient(config *StaticClient) (*Client, error) {
	c := &Client{
		ID: config.ID, Metadata: config.Metadata, Scopes: slices.Clone(config.Scopes), Subject: config.Subject,
		AccessLifetime: config.AccessLifetime, RefreshLifetime: config.RefreshLifetime,
	}
	if c.ID == "" || len(c.ID) > maxClientID {
		return nil, fmt.Errorf("client %q: an id has 1 to %d bytes", c.ID, maxClientID)
	}
	if c.AccessLifetime < 0 || c.RefreshLifetime < 0 {
		return nil, fmt.Errorf("client %q: a lifetime is negative", c.ID)
	}
	for _, given := range config.Resources {
		uri, err := oauth.CanonicalResource(given)
		if err != nil {
			return nil, fmt.Errorf("client %q: resource %q: %w", c.ID, given, err)
		}
		c.Resources = append(c.Resources, uri)
	}
	if config.Secret != "" {
		c.SecretHash = Hash(config.Secret)
	}
	fillStatic(c)
	m := &c.Metadata
	for _, uri := range m.RedirectURIs {
		if err := r.check(uri, m.ApplicationType == applicationNative); err != nil {
			return nil, fmt.Errorf("client %q: %q: %w", c.ID, uri, err)
		}
	}
	if usesSecret(m) != (config.Secret != "") {
		return nil, fmt.Errorf("client %q: secret and token_endpoint_auth_method %s do not fit", c.ID, m.TokenEndpointAuthMethod)
	}
	if err := cmp.Or(checkAuthentication(m), checkPages(m)); err != nil {
		return nil, fmt.Errorf("client %q: %w", c.ID, err)
	}
	return cloneClient(c), nil
}

// staticClients makes clients of the configuration, which may have its resources alone, unless
// there are more.
func (s *Server) staticClients(list []StaticClient) (map[string]*Client, error) {
	clients := make(map[string]*Client, len(list))
	for _, config := range list {
		c, err := s.redirects.newClient(&config)
		if err != nil {
			return nil, err
		}
		if clients[c.ID] != nil {
			return nil, fmt.Errorf("client %q is there twice", c.ID)
		}
		for _, uri := range c.Resources {
			if s.opts.MoreResources == nil && s.resources.fixed.byURI[uri] == nil {
				return nil, fmt.Errorf("client %q: there is no resource %q", c.ID, uri)
			}
		}
		clients[c.ID] = c
	}
	return clients, nil
}

// fillStatic puts the defaults of clients of the configuration in place.
func fillStatic(c *Client) {
	m := &c.Metadata
	if m.ApplicationType == "" {
		m.ApplicationType = inferType(m.RedirectURIs)
	}
	if len(m.GrantTypes) == 0 && len(m.RedirectURIs) > 0 {
		m.GrantTypes = []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken}
	}
	m.TokenEndpointAuthMethod = authMethod(c)
}
