package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
)

// preregistered are the credentials that the options have for an issuer, or nil. They go to no other
// server (spec 2026-07-28, basic/authorization/client-registration: MUST NOT).
func (c *Client) preregistered(issuer string) *Credentials {
	if issuer == "" {
		return nil
	}
	var own Credentials
	if i := slices.IndexFunc(c.o.Credentials, func(own Credentials) bool { return oauth.SameIssuer(own.Issuer, issuer) }); i >= 0 {
		own = c.o.Credentials[i]
	} else {
		if c.o.CredentialsFor == nil {
			return nil
		}
		found := c.o.CredentialsFor(issuer)
		if found == nil {
			return nil
		}
		own = *found
	}
	own.Issuer = issuer
	own.RedirectURIs = slices.Clone(own.RedirectURIs)
	return &own
}

// knownCredentials are the credentials for a server that need no registration, in the order of spec
// 2026-07-28, basic/authorization/client-registration: those registered beforehand, a metadata
// document, an earlier dynamic registration; nil if there are none.
func (c *Client) knownCredentials(ctx context.Context, m *oauth.ServerMetadata) (*Credentials, error) {
	if creds := c.preregistered(m.Issuer); creds != nil {
		return creds, nil
	}
	if c.o.DocumentURL != "" && m.ClientIDMetadataDocumentSupported {
		u, err := oauth.CheckEndpoint(c.o.DocumentURL)
		if err == nil && strings.Trim(u.Path, "/") == "" {
			err = errors.New("the URL has no path")
		}
		if err != nil {
			return nil, newDiscoveryError(StepRegister, c.o.DocumentURL, err,
				"spec basic/authorization/client-registration: the client_id URL MUST be https and have a path",
				"correct Options.DocumentURL")
		}
		return c.documentCredentials(m.Issuer), nil
	}
	return c.storedRegistration(ctx, m, "")
}

// documentCredentials are the credentials of a client that is known by its metadata document (spec
// 2026-07-28, basic/authorization/client-registration: MAY be private_key_jwt).
func (c *Client) documentCredentials(issuer string) *Credentials {
	creds := &Credentials{
		Issuer: issuer, ClientID: c.o.DocumentURL, Method: oauth.AuthNone,
		RedirectURIs: slices.Clone(c.o.DocumentRedirects), Document: true,
	}
	if c.o.DocumentSigner != nil {
		creds.Method, creds.Signer = oauth.AuthPrivateKeyJWT, c.o.DocumentSigner
	}
	return creds
}

// storedRegistration is a dynamic registration that still holds, or nil: that of a client id, or
// else the latest. Tokens stay with the client that they were given to.
func (c *Client) storedRegistration(ctx context.Context, m *oauth.ServerMetadata, id string) (*Credentials, error) {
	var r registration
	name := registrationName(m.Issuer, id)
	ok, err := c.read(ctx, name, &r)
	if err != nil || !ok || id != "" && r.ClientID != id {
		return nil, err
	}
	// Attack: metadata that keeps the issuer but moves an endpoint would have the secret. A client
	// with redirect URIs sends nothing to that of devices.
	if r.Issuer != m.Issuer || r.ClientID == "" || r.TokenEndpoint != m.TokenEndpoint ||
		len(r.RedirectURIs) == 0 && r.DeviceEndpoint != m.DeviceAuthorizationEndpoint {
		return nil, nil
	}
	creds := r.credentials()
	if !creds.Expires.IsZero() && !c.o.Now().Add(time.Minute).Before(creds.Expires) {
		return nil, nil
	}
	return creds, nil
}

// register registers the client dynamically (RFC 7591) and keeps what it got.
func (c *Client) register(ctx context.Context, p *plan, redirect string) (*Credentials, error) {
	m := p.meta
	if err := c.mayRegister(m); err != nil {
		return nil, err
	}
	metadata := c.clientMetadata(m, redirect, p.dpop != nil)
	body, err := wire.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("write a registration: %w", err)
	}
	failed := func(err error, advice string) error {
		return explainMissingEndpoint(p.found, StepRegister, m.RegistrationEndpoint, newDiscoveryError(StepRegister, m.RegistrationEndpoint, err, "", advice))
	}
	resp, err := c.fetcher(p.found.id).PostJSON(ctx, m.RegistrationEndpoint, body, jsonHeader())
	if err != nil {
		return nil, fetchError(StepRegister, m.RegistrationEndpoint, err)
	}
	info, err := oauth.ParseClientInformation(resp.Body)
	said := oauth.ParseError(resp.Status, resp.Body)
	switch {
	case resp.Status/100 != 2, err != nil && said.Code != "": // some servers report errors with 200
		return nil, failed(said, "register the client at the server by hand and give its id with Options.Credentials")
	case err != nil && !resp.Document():
		return nil, failed(fmt.Errorf("%w: %w", errPage, err), adviceTellServer)
	case err != nil:
		return nil, failed(err, adviceTellServer)
	}
	r := registration{
		Issuer: m.Issuer, ClientID: info.ClientID, Secret: info.ClientSecret,
		Method: answeredMethod(m, info), TokenEndpoint: m.TokenEndpoint, DeviceEndpoint: m.DeviceAuthorizationEndpoint,
		RedirectURIs: metadata.RedirectURIs, Expires: info.ClientSecretExpiresAt,
	}
	notes := noteMembers(m.RegistrationEndpoint, info.Ignored)
	if said := info.TokenEndpointAuthMethod; said != "" && said != r.Method {
		notes = append(notes, note{
			url:  redactURL(m.RegistrationEndpoint),
			text: fmt.Sprintf("token_endpoint_auth_method %.40q, without what that needs; using %s", said, r.Method),
		})
	}
	c.logNotes(ctx, notes)
	for _, name := range []string{registrationName(m.Issuer, r.ClientID), registrationName(m.Issuer, "")} {
		if err := c.write(ctx, name, &r); err != nil {
			c.log.ErrorContext(ctx, "registration is kept in memory alone", "issuer", m.Issuer, "error", err)
		}
	}
	c.log.InfoContext(ctx, "registered", "issuer", m.Issuer, "client", printable(r.ClientID, 128))
	return r.credentials(), nil
}

// clientMetadata is what the client says of itself. Without a redirect URI it asks for the device flow.
func (c *Client) clientMetadata(m *oauth.ServerMetadata, redirect string, bound bool) *oauth.ClientMetadata {
	about := &oauth.ClientMetadata{
		ClientName: c.o.ClientName, ClientURI: c.o.ClientURI,
		SoftwareID: c.o.SoftwareID, SoftwareVersion: c.o.SoftwareVersion,
		ApplicationType: applicationType(redirect), RedirectURIs: []string{redirect}, ResponseTypes: []string{"code"},
		// spec 2026-07-28, basic/authorization, "Refresh Tokens": SHOULD include refresh_token.
		GrantTypes:              []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken},
		TokenEndpointAuthMethod: registrationMethod(m), DPoPBoundAccessTokens: bound,
	}
	if redirect == "" {
		about.RedirectURIs, about.ResponseTypes = nil, []string{}
		about.GrantTypes = []string{oauth.GrantDeviceCode, oauth.GrantRefreshToken}
	}
	return about
}

// registrationMethod is how a client that has nothing yet wants to authenticate: as little as the
// server takes. Servers that list nothing are mostly those that know public clients alone.
func registrationMethod(m *oauth.ServerMetadata) string {
	listed := m.TokenEndpointAuthMethodsSupported
	for _, method := range []string{oauth.AuthNone, oauth.AuthSecretBasic, oauth.AuthSecretPost} {
		if len(listed) == 0 || slices.Contains(listed, method) {
			return method
		}
	}
	return oauth.AuthNone
}

// answeredMethod is how a client authenticates that was just registered: as the answer says, if there
// is what that needs. Else a secret that came is used (RFC 7591, section 2: client_secret_basic is the
// default): some servers say nothing about it.
func answeredMethod(m *oauth.ServerMetadata, info *oauth.ClientInformation) string {
	given, listed := info.TokenEndpointAuthMethod, m.TokenEndpointAuthMethodsSupported
	bySecret := given == oauth.AuthSecretBasic || given == oauth.AuthSecretPost
	switch {
	case given == oauth.AuthNone, bySecret && info.ClientSecret != "":
		return given
	case info.ClientSecret == "":
		return oauth.AuthNone
	case len(listed) == 0 || slices.Contains(listed, oauth.AuthSecretBasic):
		return oauth.AuthSecretBasic
	case given == "" && slices.Contains(listed, oauth.AuthNone) && !slices.Contains(listed, oauth.AuthSecretPost):
		return oauth.AuthNone // the server takes no secret, and was asked for none
	}
	return oauth.AuthSecretPost
}

// applicationType is native for redirects to this machine or a scheme of the client's own, else
// web: spec 2026-07-28, basic/authorization/client-registration: MUST be specified.
func applicationType(redirect string) string {
	u, err := url.Parse(redirect)
	if err == nil && u.Scheme == "https" && !oauth.LoopbackHost(u.Hostname()) {
		return "web"
	}
	return "native"
}

// unregister forgets a dynamic registration that the server does not know any more.
func (c *Client) unregister(ctx context.Context, creds *Credentials) {
	if creds == nil || !creds.Dynamic {
		return
	}
	if err := c.dropRegistration(ctx, creds.Issuer, creds.ClientID); err != nil {
		c.log.WarnContext(ctx, "registration was not deleted", "issuer", creds.Issuer, "error", err)
	}
}

// registrationName is the name of the record of a client id, or of the latest registration.
func registrationName(issuer, id string) string {
	if id == "" {
		return storeName(kindClient, issuer)
	}
	return storeName(kindClient, issuer, id)
}

// dropRegistration deletes the registration of a client id, also as the latest one if it is that.
func (c *Client) dropRegistration(ctx context.Context, issuer, id string) error {
	latest, own := registrationName(issuer, ""), registrationName(issuer, id)
	var now registration
	ok, err := c.read(ctx, latest, &now)
	if err == nil && ok && now.ClientID == id {
		err = c.o.Store.Delete(ctx, latest)
	}
	return errors.Join(err, c.o.Store.Delete(ctx, own))
}

// prepareClient begins a visit, with credentials that its redirect URI belongs to.
func (c *Client) prepareClient(ctx context.Context, p *plan) (*Credentials, Visit, error) {
	unlock, err := c.o.Store.Lock(ctx, storeName(kindClient, p.meta.Issuer))
	if err != nil {
		return nil, nil, fmt.Errorf("wait for another registration: %w", err)
	}
	defer unlock()
	creds, err := c.knownCredentials(ctx, p.meta)
	var redirects []string
	switch {
	case creds != nil:
		redirects = creds.RedirectURIs
	case err == nil:
		err = c.mayRegister(p.meta)
	}
	if err != nil {
		return nil, nil, err
	}
	visit, err := c.beginVisit(ctx, redirects)
	if err != nil {
		return nil, nil, err
	}
	// Servers may compare ports: what was registered with another one is registered anew.
	if creds != nil && (!creds.Dynamic || slices.Contains(creds.RedirectURIs, visit.RedirectURI())) {
		return creds, visit, nil
	}
	creds, err = c.register(ctx, p, visit.RedirectURI())
	if err == nil {
		return creds, visit, nil
	}
	// A refused redirect URI is tried once more with the other name of this machine, if the
	// Authorizer can use it: spec 2026-07-28, basic/authorization/client-registration: MAY.
	variant := otherLoopbackName(visit.RedirectURI())
	if closing := visit.Close(); closing != nil || variant == "" || !errors.Is(err, &oauth.Error{Code: oauth.InvalidRedirectURI}) {
		return nil, nil, errors.Join(err, closing)
	}
	visit, again := c.beginVisit(ctx, []string{variant})
	if again != nil {
		return nil, nil, errors.Join(err, again)
	}
	if visit.RedirectURI() == variant {
		if creds, again := c.register(ctx, p, variant); again == nil {
			return creds, visit, nil
		}
	}
	return nil, nil, errors.Join(err, visit.Close())
}

func (c *Client) beginVisit(ctx context.Context, registered []string) (Visit, error) {
	visit, err := c.o.Authorizer.Begin(ctx, registered)
	if err != nil {
		return nil, fmt.Errorf("prepare the sign-in: %w", err)
	}
	if err := oauth.CheckRedirectURI(visit.RedirectURI(), true); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the sign-in: %w", err), visit.Close())
	}
	return visit, nil
}

// mayRegister says why the client cannot be registered, if so.
func (c *Client) mayRegister(m *oauth.ServerMetadata) error {
	reason, advice := "", "give its id with Options.Credentials"
	switch {
	case m.RegistrationEndpoint == "":
		reason, advice = "the server registers none by itself (its metadata has "+absence(m, "registration_endpoint")+")",
			"register it at the server by hand and "+advice
	case c.o.NoRegistration:
		reason = "Options.NoRegistration is set"
	default:
		return nil
	}
	return newDiscoveryError(StepRegister, m.Issuer, errors.New("this client is not registered there, and "+reason), "", advice)
}

// otherLoopbackName is a loopback redirect URI with localhost for an address or reversed; "" if
// none.
func otherLoopbackName(redirect string) string {
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme != "http" || !oauth.LoopbackHost(u.Hostname()) {
		return ""
	}
	name := "localhost"
	if strings.EqualFold(u.Hostname(), name) {
		name = "127.0.0.1"
	}
	if port := u.Port(); port != "" {
		name += ":" + port
	}
	u.Host = name
	return u.String()
}
