package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/parley-mcp/parley/oauth"
)

// chooseServer picks the authorization server: the one used before if it is
// still named, what the options say, else the first with credentials, else the
// first. spec 2026-07-28, basic/authorization/authorization-server-discovery:
// the selection is the client's.
func (c *Client) chooseServer(ctx context.Context, d *discovery, before string) (string, error) {
	if slices.Contains(d.servers, before) {
		return before, nil
	}
	if c.o.ChooseServer != nil && len(d.servers) > 1 {
		chosen, err := c.o.ChooseServer(ctx, slices.Clone(d.servers))
		if err != nil {
			return "", &DiscoveryError{Step: StepChoice, URL: bare(d.id), Err: err}
		}
		if !slices.Contains(d.servers, chosen) {
			return "", &DiscoveryError{
				Step: StepChoice, URL: bare(d.id), Err: errors.New("ChooseServer chose one that the resource does not name"),
			}
		}
		return chosen, nil
	}
	for _, issuer := range d.servers {
		if c.preregistered(issuer) != nil {
			return issuer, nil
		}
	}
	return d.servers[0], nil
}

// server fetches the metadata of an authorization server and checks what
// cannot do without: issuer, endpoints, PKCE.
func (c *Client) server(ctx context.Context, d *discovery, issuer string) (*oauth.ServerMetadata, error) {
	if d.legacy {
		m, _, err := c.legacyServer(ctx, d, issuer)
		return m, err
	}
	m, err := c.serverMetadata(ctx, d, issuer)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, &DiscoveryError{
			Step: StepServer, URL: bare(issuer), Err: errors.New("the authorization server has no metadata"),
			Rule:   "spec basic/authorization: it MUST provide RFC 8414 metadata or OpenID Connect discovery",
			Advice: "check the issuer that the resource names, or tell its operator",
		}
	}
	return m, c.checkServer(d, issuer, m)
}

// serverMetadata tries the places of the metadata in order; nil if all are
// empty. A document of another issuer ends the search: spec 2026-07-28,
// basic/authorization/authorization-server-discovery: MUST NOT be used.
func (c *Client) serverMetadata(ctx context.Context, d *discovery, issuer string) (*oauth.ServerMetadata, error) {
	places, err := oauth.ServerMetadataURLs(issuer)
	if err != nil {
		return nil, &DiscoveryError{
			Step: StepServer, URL: bare(issuer), Err: err, Rule: "RFC 8414, section 2: an issuer is an https URL without query and fragment",
			Advice: "tell the resource's operator",
		}
	}
	header := jsonHeader()
	if d.legacy && d.version != "" {
		header.Set("MCP-Protocol-Version", d.version)
	}
	var trouble error
	for _, place := range places {
		resp, err := c.fetcher(d.onLoopback).Get(ctx, place, header)
		if err != nil {
			return nil, &DiscoveryError{Step: StepServer, URL: bare(place), Err: unreachable(err), Advice: fetchAdvice(err)}
		}
		absent, err := noDocument(resp)
		if err != nil { // some servers fail for places that they do not have
			trouble = &DiscoveryError{Step: StepServer, URL: bare(place), Err: err, Advice: "try again later"}
			continue
		}
		if absent {
			continue
		}
		m, err := oauth.ParseServerMetadata(resp.Body, issuer)
		if err != nil {
			return nil, &DiscoveryError{Step: StepServer, URL: bare(place), Err: err, Rule: issuerRule(err), Advice: issuerAdvice(err)}
		}
		return m, nil
	}
	return nil, trouble
}

func issuerRule(err error) string {
	if mine := (*oauth.IssuerError)(nil); errors.As(err, &mine) {
		return "RFC 8414, section 3.3: the document's issuer MUST be identical to the one its URL was made from"
	}
	return "RFC 8414, section 2"
}

func issuerAdvice(err error) string {
	mine := (*oauth.IssuerError)(nil)
	switch {
	case !errors.As(err, &mine):
		return "tell the authorization server's operator"
	case mine.Want+"/" == mine.Got || mine.Got+"/" == mine.Want:
		return "they differ by a trailing slash alone: the resource's metadata must name the issuer as the server itself does"
	}
	return "the document may be forged; tell the resource's operator"
}

// checkServer checks what metadata must have for the way ahead.
func (c *Client) checkServer(d *discovery, issuer string, m *oauth.ServerMetadata) error {
	broken := func(step Step, text, rule, advice string) error {
		return &DiscoveryError{Step: step, URL: bare(issuer), Err: errors.New(text), Rule: rule, Advice: advice}
	}
	if m.TokenEndpoint == "" {
		return broken(StepServer, "the metadata has no token_endpoint", "RFC 8414, section 2", "tell the server's operator")
	}
	for _, endpoint := range []string{m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint, m.RevocationEndpoint} {
		if endpoint == "" {
			continue
		}
		u, err := oauth.CheckEndpoint(endpoint)
		if err != nil {
			return &DiscoveryError{
				Step: StepServer, URL: bare(endpoint), Err: err,
				Rule:   "spec basic/authorization/security-considerations: all endpoints MUST be served over HTTPS",
				Advice: "tell the server's operator",
			}
		}
		// A browser that is sent to this machine acts in the person's name there.
		if oauth.LoopbackHost(u.Hostname()) && !d.onLoopback && !c.o.Loopback {
			return broken(StepServer, "the server, which is elsewhere, names an endpoint on this machine", "",
				"if that is meant, set Options.Loopback")
		}
	}
	if c.o.Grant != nil {
		return nil // no authorization endpoint, no PKCE
	}
	if m.AuthorizationEndpoint == "" {
		return broken(StepServer, "the metadata has no authorization_endpoint", "RFC 8414, section 2",
			"the server may only serve programs: set Options.Grant")
	}
	if len(m.ResponseTypesSupported) > 0 && !slices.Contains(m.ResponseTypesSupported, "code") {
		return broken(StepServer, "the server does not offer the response type code", "OAuth 2.1", "tell the server's operator")
	}
	if !slices.Contains(m.CodeChallengeMethodsSupported, oauth.MethodS256) {
		return broken(StepPKCE, pkceText(m),
			"spec basic/authorization/security-considerations: clients MUST refuse to proceed without PKCE in the metadata",
			"tell the server's operator to list S256 in code_challenge_methods_supported, which most servers can do already")
	}
	return nil
}

func pkceText(m *oauth.ServerMetadata) string {
	if m.CodeChallengeMethodsSupported == nil {
		return "code_challenge_methods_supported is absent"
	}
	return "code_challenge_methods_supported lacks S256"
}

// legacyServer is the authorization server of the oldest revision: with
// metadata at the root of the origin, or else with default endpoints (revision
// 2025-03-26, basic/authorization, section 2.3.3: MUST). What it serves besides
// metadata is not known, PKCE included, which is used all the same. assumed says
// that there was nothing to read, and nobody has seen the endpoints.
func (c *Client) legacyServer(ctx context.Context, d *discovery, issuer string) (m *oauth.ServerMetadata, assumed bool, err error) {
	m, err = c.serverMetadata(ctx, d, issuer)
	if err != nil {
		return nil, false, err
	}
	if m != nil {
		return m, false, c.checkServer(d, issuer, m)
	}
	if _, err := oauth.CheckEndpoint(issuer); err != nil {
		return nil, false, &DiscoveryError{Step: StepServer, URL: bare(issuer), Err: err}
	}
	return &oauth.ServerMetadata{
		Issuer:                issuer,
		AuthorizationEndpoint: issuer + "/authorize",
		TokenEndpoint:         issuer + "/token",
		RegistrationEndpoint:  issuer + "/register",
	}, true, nil
}

// noOAuth makes an error of default endpoints that are not there readable:
// the resource most likely wants something else than OAuth.
func noOAuth(d *discovery, step Step, endpoint string, err error) error {
	said := (*oauth.Error)(nil)
	if !d.legacy || !errors.As(err, &said) || said.Status != http.StatusNotFound && said.Status != http.StatusMethodNotAllowed {
		return err
	}
	return &DiscoveryError{
		Step: step, URL: bare(endpoint), Err: fmt.Errorf("the resource wants authorization but offers no way to get it: %w", err),
		Rule:   "spec basic/authorization: MCP servers MUST implement protected resource metadata",
		Advice: "if it takes a key, set the Authorization header yourself",
	}
}
