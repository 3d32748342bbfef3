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
	// id is the canonical identifier, and resource the one to send; a resource
	// without metadata has its origin as id and sends none.
	id, resource string
	// metadataURL is where the document lay.
	metadataURL string
	// servers are issuers, in the resource's order.
	servers []string
	scopes  []string
	// legacy says that there is no metadata: the origin is the server.
	legacy bool
	// bound says that only tokens bound to a key are taken, with these
	// algorithms (none: any).
	bound      bool
	boundAlgs  []string
	onLoopback bool
	// version is the value of MCP-Protocol-Version, for legacy discovery.
	version string
}

// refusal is what a refused request tells.
type refusal struct {
	// url is what was requested, without query and fragment; query is that.
	url   *url.URL
	query string
	// metadata is the resource_metadata of the challenge, or empty.
	metadata string
	// scopes are those of the challenge; nil if it has none.
	scopes []string
	// code is the error of the challenge, or empty.
	code string
	// version is the MCP-Protocol-Version of the request.
	version string
}

func newRefusal(requested *url.URL, version string) *refusal {
	u := *requested
	u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment, u.User = "", false, "", "", nil
	return &refusal{url: &u, query: requested.RawQuery, version: version}
}

// full is what was requested, with its query, which may belong to the
// identifier of the resource (RFC 9728, section 1.2).
func (r *refusal) full() *url.URL {
	u := *r.url
	u.RawQuery = r.query
	return &u
}

// maxVersion bounds the MCP-Protocol-Version that is repeated.
const maxVersion = 64

// discover finds out what protects a resource: the metadata that the challenge
// names, or else that at the well-known places, or else the oldest revision's
// rule. spec 2026-07-28, basic/authorization/authorization-server-discovery.
func (c *Client) discover(ctx context.Context, r *refusal) (*discovery, error) {
	key := r.url.String() + "?" + r.query + " " + r.metadata
	d, _, err := c.discoveries.do(ctx, key, c.o.SignInTimeout, func(ctx context.Context, _ func()) (*discovery, error) {
		return c.walk(ctx, r)
	})
	return d, err
}

func (c *Client) walk(ctx context.Context, r *refusal) (*discovery, error) {
	requested, err := oauth.CanonicalResource(r.url.String())
	if err != nil {
		return nil, &DiscoveryError{
			Step: StepMetadata, URL: bare(r.url.String()), Err: err,
			Advice: "give the resource as an https URL",
		}
	}
	var places []string
	if r.metadata != "" {
		if err := c.checkMetadataURL(r.url, r.metadata); err != nil {
			return nil, err
		}
		places = []string{r.metadata}
	} else if places, err = oauth.ResourceMetadataURLs(requested); err != nil {
		return nil, &DiscoveryError{Step: StepMetadata, URL: bare(requested), Err: err}
	}
	for _, place := range places {
		d, err := c.resourceMetadata(ctx, r, requested, place)
		if err != nil {
			return nil, err
		}
		if d != nil {
			return d, nil
		}
	}
	if r.metadata != "" {
		return nil, &DiscoveryError{
			Step: StepMetadata, URL: bare(r.metadata), Err: errors.New("no document there"),
			Rule:   "RFC 9728, section 5.1: resource_metadata is the URL of the metadata",
			Advice: "the resource's challenge names a wrong place: tell its operator",
		}
	}
	return c.legacy(r, requested)
}

// legacy makes the origin of the resource its authorization server: revision
// 2025-03-26, basic/authorization, section 2.3.2 "Authorization Base URL".
func (c *Client) legacy(r *refusal, requested string) (*discovery, error) {
	if c.o.NoLegacy {
		return nil, &DiscoveryError{
			Step: StepMetadata, URL: bare(requested), Err: errors.New("the resource has no metadata"),
			Rule:   "RFC 9728; spec basic/authorization: MCP servers MUST implement protected resource metadata",
			Advice: "if it takes a key or a token of another kind, set the Authorization header yourself",
		}
	}
	base, err := oauth.CanonicalResource(origin(r.url))
	if err != nil {
		return nil, &DiscoveryError{Step: StepMetadata, URL: bare(requested), Err: err}
	}
	version := c.o.ProtocolVersion
	if version == "" && len(r.version) <= maxVersion {
		version = r.version
	}
	return &discovery{
		id: base, servers: []string{base}, legacy: true,
		onLoopback: oauth.LoopbackHost(r.url.Hostname()), version: version,
	}, nil
}

// checkMetadataURL says whether a challenge may point there: to the origin of
// the resource, or one that was allowed. Attack: metadata poisoning.
func (c *Client) checkMetadataURL(resource *url.URL, raw string) error {
	u, err := url.Parse(raw)
	if err == nil && u.User == nil && u.Fragment == "" {
		if sameOrigin(u, resource) {
			return nil
		}
		for _, allowed := range c.o.MetadataOrigins {
			if a, err := url.Parse(allowed); err == nil && sameOrigin(u, a) {
				return nil
			}
		}
	}
	return &DiscoveryError{
		Step: StepMetadata, URL: bare(raw), Err: errors.New("the challenge points to another origin than the resource's"),
		Advice: "if that place is trusted, allow it with Options.MetadataOrigins",
	}
}

// resourceMetadata fetches and checks one document; nil if there is none.
func (c *Client) resourceMetadata(ctx context.Context, r *refusal, requested, place string) (*discovery, error) {
	onLoopback := oauth.LoopbackHost(r.url.Hostname())
	broken := func(err error, rule, advice string) error {
		return &DiscoveryError{Step: StepMetadata, URL: bare(place), Err: err, Rule: rule, Advice: advice}
	}
	resp, err := c.fetcher(onLoopback).Get(ctx, place, jsonHeader())
	if err != nil {
		return nil, broken(unreachable(err), "", fetchAdvice(err))
	}
	if absent, err := noDocument(resp); absent || err != nil {
		if err != nil {
			return nil, broken(err, "", "try again later")
		}
		return nil, nil
	}
	m, err := oauth.ParseResourceMetadata(resp.Body)
	if err != nil {
		return nil, broken(err, "RFC 9728, section 2", "tell the resource's operator")
	}
	// A document about a parent is that parent's own only at its own place:
	// else one tenant of an origin could have tokens for all of it. Attack: PRM
	// resource spoof.
	own, err := oauth.ResourceMetadataURLs(m.Resource)
	parents := err == nil && len(own) > 0 && own[0] == place
	err = m.Check(requested, parents)
	if err != nil && r.query != "" && m.Check(r.full().String(), false) == nil {
		err = nil
	}
	if err != nil {
		return nil, broken(err, "RFC 9728, section 3.3: the document's resource MUST be the one asked about",
			"use the URL that the document names, if you trust it, or tell the resource's operator")
	}
	id, err := oauth.CanonicalResource(m.Resource)
	if err != nil {
		return nil, broken(err, "RFC 9728, section 1.2", "tell the resource's operator")
	}
	if len(m.AuthorizationServers) == 0 {
		return nil, broken(errors.New("the document names no authorization server"),
			"spec basic/authorization/authorization-server-discovery: MUST name at least one", "tell the resource's operator")
	}
	return &discovery{
		id: id, resource: m.Resource, metadataURL: place, servers: m.AuthorizationServers,
		scopes: supportedScopes(m.ScopesSupported),
		bound:  m.DPoPBoundAccessTokensRequired, boundAlgs: m.DPoPSigningAlgValuesSupported, onLoopback: onLoopback,
	}, nil
}

// supportedScopes are those of scopes_supported that are scopes at all.
func supportedScopes(listed []string) []string {
	valid := slices.DeleteFunc(slices.Clone(listed), func(s string) bool {
		one := strangersScopes(s)
		return len(one) != 1 || one[0] != s
	})
	return strangersScopes(oauth.JoinScope(valid))
}

// noDocument reads the status: a document is absent if the server says so in
// any way of the 400s, or gives a page instead; trouble is an error, since an
// attacker who can cause it must not choose the next place.
func noDocument(r *oauth.Response) (absent bool, err error) {
	switch {
	case r.Status/100 == 2:
		return !r.JSON() && !looksLikeObject(r.Body), nil
	case r.Status == http.StatusTooManyRequests || r.Status/100 == 5:
		return false, &transientError{fmt.Errorf("the server answered %d", r.Status)}
	}
	return true, nil
}

// looksLikeObject reports whether a body that is not announced as JSON is some
// all the same, as with servers of static files.
func looksLikeObject(body []byte) bool {
	return strings.HasPrefix(strings.TrimLeft(string(body[:min(len(body), 64)]), " \t\r\n"), "{")
}

// fetchAdvice says what to do about a fetch that did not take place.
func fetchAdvice(err error) string {
	var blocked *oauth.BlockedError
	if errors.As(err, &blocked) {
		return "if it is a server of your own network, allow it with FetchOptions.AllowHosts"
	}
	return "check the network and the address"
}

func jsonHeader() http.Header { return http.Header{"Accept": {"application/json"}} }

// sameOrigin reports whether two URLs have scheme, host and port in common.
func sameOrigin(a, b *url.URL) bool { return a.Host != "" && origin(a) == origin(b) }

// origin is scheme, host and port in lower case, without a default port.
func origin(u *url.URL) string {
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		return scheme + "://" + host
	}
	return scheme + "://" + host + ":" + port
}
