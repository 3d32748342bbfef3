package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/oauth"
)

// discovery is what a resource says of itself, checked.
type discovery struct {
	// id is the canonical identifier, resource the one to send. Without metadata that is empty.
	id, resource string
	// metadataURL is where the document lay.
	metadataURL string
	// servers are issuers, in the resource's order.
	servers []string
	scopes  []string
	// bound says that only tokens bound to a key are taken, with these algorithms (none: any).
	bound     bool
	boundAlgs []string
	// version is the value of MCP-Protocol-Version, for legacy discovery.
	version string
	// notes say what was passed over on the way, for people.
	notes []note
}

// legacy says that there is no metadata: the origin is the server.
func (d *discovery) legacy() bool { return d.resource == "" }

// discover finds out what protects a resource: the metadata that the challenge names, or else that
// at the well-known places, or else the oldest revision's rule. spec 2026-07-28,
// basic/authorization/authorization-server-discovery.
func (c *Client) discover(ctx context.Context, ch *challenge) (*discovery, error) {
	key := ch.url.String() + " " + ch.metadata + " " + ch.known
	at := func() **flight[*discovery] { return &c.resources.at(key).discovery }
	d, _, err := share(ctx, &c.resources, at, c.o.SignInTimeout, func(ctx context.Context, _ func()) (*discovery, error) {
		return c.fetchDiscovery(ctx, ch)
	})
	return d, err
}

func (c *Client) fetchDiscovery(ctx context.Context, ch *challenge) (*discovery, error) {
	plain := *ch.url
	plain.RawQuery = ""
	requested, err := oauth.CanonicalResource(plain.String())
	if err != nil {
		return nil, newDiscoveryError(StepMetadata, ch.url.String(), err, "", "give the resource as an https URL")
	}
	places, err := oauth.ResourceMetadataURLs(requested)
	if err != nil {
		return nil, newDiscoveryError(StepMetadata, requested, err, "", "")
	}
	s := search{step: StepMetadata}
	if known, err := c.metadataPlace(ch.url, ch.known); err == nil && ch.known != "" && !slices.Contains(places, known) {
		places = slices.Insert(places, 1, known) // after the place of its own
	}
	if ch.metadata != "" {
		named, err := c.metadataPlace(ch.url, ch.metadata)
		if err != nil {
			s.add(err)
		} else {
			places = slices.Insert(slices.DeleteFunc(places, func(place string) bool { return place == named }), 0, named)
			s.promised = named
		}
	}
	for _, place := range places {
		resp, err := s.fetch(ctx, c.fetcher(ch.url.String()), place, jsonHeader())
		if err != nil {
			return nil, err
		}
		if resp == nil {
			continue
		}
		d, ignored, err := readResource(ch, requested, place, resp.Body)
		if err != nil {
			s.add(err)
			continue
		}
		d.notes = s.notes(place, ignored)
		c.logNotes(ctx, d.notes)
		return d, nil
	}
	if err := s.err(requested); err != nil {
		return nil, err
	}
	return c.legacy(ch, requested)
}

// legacy makes the origin of the resource its authorization server: revision 2025-03-26,
// basic/authorization, section 2.3.2 "Authorization Base URL".
func (c *Client) legacy(ch *challenge, requested string) (*discovery, error) {
	if c.o.NoLegacy {
		return nil, newDiscoveryError(StepMetadata, requested, errors.New("the resource has no metadata"),
			"RFC 9728; "+ruleResourceMetadata,
			"if it takes a key or a token of another kind, set the Authorization header yourself")
	}
	base, err := oauth.CanonicalResource(oauth.Origin(ch.url))
	if err != nil {
		return nil, newDiscoveryError(StepMetadata, requested, err, "", "")
	}
	const maxVersion = 64 // in bytes: it is repeated
	version := c.o.ProtocolVersion
	if version == "" && len(ch.version) <= maxVersion {
		version = ch.version
	}
	return &discovery{id: base, servers: []string{base}, version: version}, nil
}

// metadataPlace is where a challenge says that the metadata are, which may be relative and have
// quotes that are none. Only the origin of the resource may be named, or one that was allowed.
// Attack: metadata poisoning.
func (c *Client) metadataPlace(resource *url.URL, named string) (string, error) {
	u, err := resource.Parse(strings.Trim(named, ` '<>`))
	if err == nil && u.User == nil && u.Fragment == "" && (sameOrigin(u, resource) || slices.ContainsFunc(c.o.MetadataOrigins, func(allowed string) bool {
		a, err := url.Parse(allowed)
		return err == nil && sameOrigin(u, a)
	})) {
		return u.String(), nil
	}
	return "", newDiscoveryError(StepMetadata, named, errors.New("the challenge points to another origin than the resource's, which was not asked"), "",
		"if that place is trusted, allow it with Options.MetadataOrigins")
}

// readResource reads and checks a document about a resource. It also returns the members that
// cannot be read.
func readResource(ch *challenge, requested, place string, body []byte) (d *discovery, ignored []string, err error) {
	wrong := func(err error, rule, advice string) (*discovery, []string, error) {
		return nil, nil, newDiscoveryError(StepMetadata, place, err, rule, advice)
	}
	m, err := oauth.ParseResourceMetadata(body)
	if err != nil {
		return wrong(err, "RFC 9728, section 2", adviceTellResource)
	}
	// A document about a parent is that parent's own only at its own place: else one tenant of an
	// origin could have tokens for all of it. Attack: PRM resource spoof.
	own, err := oauth.ResourceMetadataURLs(m.Resource)
	parents := err == nil && len(own) > 0 && own[0] == place
	err = m.Check(requested, parents)
	if err != nil && ch.url.RawQuery != "" && m.Check(ch.url.String(), false) == nil {
		err = nil
	}
	if err != nil {
		return wrong(err, "RFC 9728, section 3.3: the document's resource MUST be the one asked about",
			"use the URL that the document names, if you trust it, or tell the resource's operator")
	}
	id, err := oauth.CanonicalResource(m.Resource)
	if err != nil {
		return wrong(err, "RFC 9728, section 1.2", adviceTellResource)
	}
	if len(m.AuthorizationServers) == 0 {
		return wrong(errors.New("the document names no authorization server"),
			"spec basic/authorization/authorization-server-discovery: MUST name at least one", adviceTellResource)
	}
	return &discovery{
		id: id, resource: m.Resource, metadataURL: place, servers: distinct(m.AuthorizationServers),
		scopes: supportedScopes(m.ScopesSupported),
		bound:  m.DPoPBoundAccessTokensRequired, boundAlgs: m.DPoPSigningAlgValuesSupported,
	}, m.Ignored, nil
}

// supportedScopes are those of scopes_supported that are scopes at all.
func supportedScopes(listed []string) []string {
	valid := slices.DeleteFunc(slices.Clone(listed), func(s string) bool {
		one := parseServerScopes(s)
		return len(one) != 1 || one[0] != s
	})
	return parseServerScopes(oauth.JoinScope(valid))
}

// fetchError is the error of a fetch that brought no answer.
func fetchError(step Step, place string, err error) *DiscoveryError {
	advice := "check the network and the address"
	if _, blocked := errors.AsType[*oauth.BlockedError](err); blocked {
		advice = "if it is a server of your own network, allow it with FetchOptions.AllowHosts"
	}
	return newDiscoveryError(step, place, unreachable(err), "", advice)
}

func jsonHeader() http.Header { return http.Header{"Accept": {"application/json"}} }

// sameOrigin reports whether two URLs have scheme, host and port in common.
func sameOrigin(a, b *url.URL) bool { return a.Host != "" && oauth.Origin(a) == oauth.Origin(b) }

// chooseServer picks the authorization server: the one used before if it is still named, what the
// options say, else the first with credentials, else the first. spec 2026-07-28,
// basic/authorization/authorization-server-discovery: the selection is the client's.
func (c *Client) chooseServer(ctx context.Context, d *discovery, before *session) (string, error) {
	if before != nil && names(d.servers, before.Issuer) {
		return before.Issuer, nil
	}
	if c.o.ChooseServer != nil && len(d.servers) > 1 {
		chosen, err := c.o.ChooseServer(ctx, slices.Clone(d.servers))
		if err == nil && !names(d.servers, chosen) {
			err = errors.New("ChooseServer chose one that the resource does not name")
		}
		if err != nil {
			return "", newDiscoveryError(StepChoice, d.id, err, "", "")
		}
		return chosen, nil
	}
	known := slices.IndexFunc(d.servers, func(issuer string) bool { return c.preregistered(issuer) != nil })
	return d.servers[max(known, 0)], nil
}

// names reports whether an issuer is among those that a resource names.
func names(servers []string, issuer string) bool {
	return slices.ContainsFunc(servers, func(named string) bool { return oauth.SameIssuer(named, issuer) })
}

// distinct leaves out issuers that came before, also in the other spelling.
func distinct(servers []string) []string {
	var left []string
	for _, issuer := range servers {
		if !names(left, issuer) {
			left = append(left, issuer)
		}
	}
	return left
}

// aboutServer is what there is to tell about the metadata of an authorization server.
type aboutServer struct {
	// assumed says that there are none.
	assumed bool
	// notes say what was passed over, for people.
	notes []note
}

// server fetches the metadata of an authorization server and checks what is indispensable: issuer,
// endpoints, PKCE. That of a resource without metadata may have none either, and then has default
// endpoints (revision 2025-03-26, basic/authorization, section 2.3.3: MUST). What it serves besides
// is not known, PKCE included, which is used all the same.
func (c *Client) server(ctx context.Context, d *discovery, issuer string) (*oauth.ServerMetadata, aboutServer, error) {
	header := jsonHeader()
	if d.legacy() && d.version != "" {
		header.Set("MCP-Protocol-Version", d.version)
	}
	m, notes, err := serverMetadata(ctx, c.fetcher(d.id), issuer, header)
	switch {
	case err != nil:
		return nil, aboutServer{}, err
	case m != nil:
		c.logNotes(ctx, notes)
		return m, aboutServer{notes: notes}, c.checkServer(d, issuer, m)
	case !d.legacy():
		return nil, aboutServer{}, newDiscoveryError(StepServer, issuer, errors.New("the authorization server has no metadata"),
			ruleServerMetadata, "check the issuer that the resource names, or tell its operator")
	}
	if _, err := oauth.CheckEndpoint(issuer); err != nil {
		return nil, aboutServer{}, newDiscoveryError(StepServer, issuer, err, "", "")
	}
	m = &oauth.ServerMetadata{
		Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token", RegistrationEndpoint: issuer + "/register",
	}
	if c.o.Device != nil { // there is no default endpoint for it
		err = c.checkServer(d, issuer, m)
	}
	return m, aboutServer{assumed: true}, err
}

// serverMetadata tries the places of the metadata in order, and returns what it passed over; nil if
// all are empty. A document of another issuer ends the search: spec 2026-07-28,
// basic/authorization/authorization-server-discovery: MUST NOT be used.
func serverMetadata(ctx context.Context, f *oauth.Fetcher, issuer string, header http.Header) (*oauth.ServerMetadata, []note, error) {
	places, err := oauth.ServerMetadataURLs(issuer)
	if err != nil {
		return nil, nil, newDiscoveryError(StepServer, issuer, err, "RFC 8414, section 2: an issuer is an https URL without query and fragment", adviceTellResource)
	}
	s := search{step: StepServer}
	for _, place := range places {
		resp, err := s.fetch(ctx, f, place, header)
		if err != nil {
			return nil, nil, err
		}
		if resp == nil {
			continue
		}
		m, err := oauth.ParseServerMetadata(resp.Body, issuer)
		if err == nil {
			return m, s.notes(place, m.Ignored), nil
		}
		rule, advice := issuerRule(err)
		s.add(newDiscoveryError(StepServer, place, err, rule, advice))
		if _, foreign := errors.AsType[*oauth.IssuerError](err); foreign {
			break
		}
	}
	return nil, nil, s.err(issuer)
}

// issuerRule is the rule that a document breaks, and what to do.
func issuerRule(err error) (rule, advice string) {
	mine, ok := errors.AsType[*oauth.IssuerError](err)
	if !ok {
		return "RFC 8414, section 2", "tell the authorization server's operator"
	}
	rule = "RFC 8414, section 3.3: the document's issuer MUST be identical to the one its URL was made from"
	if mine.Want+"/" == mine.Got || mine.Got+"/" == mine.Want {
		return rule, "they differ by a trailing slash alone: the resource's metadata must name the issuer as the server itself does"
	}
	return rule, "the document may be forged; tell the resource's operator"
}

// checkServer checks what metadata must have for the way ahead.
func (c *Client) checkServer(d *discovery, issuer string, m *oauth.ServerMetadata) error {
	lacks := func(step Step, text, rule, advice string) error {
		return newDiscoveryError(step, issuer, errors.New(text), rule, advice)
	}
	if m.TokenEndpoint == "" {
		return lacks(StepServer, "the metadata has no token_endpoint", "RFC 8414, section 2", adviceTellServer)
	}
	for _, endpoint := range []string{
		m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint, m.RevocationEndpoint, m.DeviceAuthorizationEndpoint,
	} {
		if endpoint == "" {
			continue
		}
		u, err := oauth.CheckEndpoint(endpoint)
		if err != nil {
			return newDiscoveryError(StepServer, endpoint, err,
				"spec basic/authorization/security-considerations: all endpoints MUST be served over HTTPS", adviceTellServer)
		}
		// A browser that is sent to this machine acts in the person's name there.
		if oauth.LoopbackHost(u.Hostname()) && !onLoopback(d.id) && !c.o.Loopback {
			return lacks(StepServer, "the server, which is elsewhere, names an endpoint on this machine", "",
				"if that is meant, set Options.Loopback")
		}
	}
	if c.o.Grant != nil {
		return nil // no authorization endpoint, no PKCE
	}
	if c.o.Device != nil {
		if m.DeviceAuthorizationEndpoint == "" {
			return lacks(StepServer, "the server offers no sign-in on another device: its metadata has "+absence(m, "device_authorization_endpoint"),
				"RFC 8628, section 4", "sign in with a browser, or ask its operator to allow this")
		}
		return nil
	}
	if m.AuthorizationEndpoint == "" {
		return lacks(StepServer, "the metadata has no authorization_endpoint", "RFC 8414, section 2",
			"the server may only serve programs: set Options.Grant")
	}
	if len(m.ResponseTypesSupported) > 0 && !slices.Contains(m.ResponseTypesSupported, "code") {
		return lacks(StepServer, "the server does not offer the response type code", "OAuth 2.1", adviceTellServer)
	}
	if !slices.Contains(m.CodeChallengeMethodsSupported, oauth.MethodS256) {
		text := "code_challenge_methods_supported lacks S256"
		if m.CodeChallengeMethodsSupported == nil {
			text = "code_challenge_methods_supported is absent"
		}
		return lacks(StepPKCE, text,
			"spec basic/authorization/security-considerations: clients MUST refuse to proceed without PKCE in the metadata",
			"tell the server's operator to list S256 in code_challenge_methods_supported, which most servers can do already")
	}
	return nil
}

// absence says that metadata have no endpoint, or one that was passed over.
func absence(m *oauth.ServerMetadata, endpoint string) string {
	if slices.Contains(m.Ignored, endpoint) {
		return "a " + endpoint + " that cannot be used: it must be an https URL"
	}
	return "no " + endpoint
}

// errPage says that an answer is not a document, but perhaps a page for people.
var errPage = errors.New("the answer is not a JSON document")

// explainMissingEndpoint explains default endpoints that are absent, or have a page as everything
// else there has: the resource hardly uses OAuth.
func explainMissingEndpoint(d *discovery, step Step, endpoint string, err error) error {
	said, ok := errors.AsType[*oauth.Error](err)
	missing := ok && (said.Status == http.StatusNotFound || said.Status == http.StatusMethodNotAllowed)
	if !d.legacy() || !missing && !errors.Is(err, errPage) {
		return err
	}
	return newDiscoveryError(step, endpoint, fmt.Errorf("the resource wants authorization but offers no way to get it: %w", err),
		ruleResourceMetadata, adviceKey)
}
