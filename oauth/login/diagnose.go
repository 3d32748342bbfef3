package login

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/parley-mcp/parley/oauth"
)

// A Verdict says how well a step went.
type Verdict string

// Verdicts.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn" // it works, but not as it should
	Fail Verdict = "fail" // signing in ends here
)

// A Finding is what Diagnose found at one step.
type Finding struct {
	Step Step
	// URL is what was looked at, without query.
	URL     string
	Verdict Verdict
	// Detail says what is the case.
	Detail string
	// Rule is the rule that the other side breaks, with its source; Advice how
	// to get past it. Both may be empty.
	Rule, Advice string
}

// Diagnose walks the way to a token of a resource step by step, as far as that
// goes without signing in or registering, and yields what it finds. It
// stores nothing.
func (c *Client) Diagnose(ctx context.Context, resource string) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		x := &examination{c: c, yield: yield, going: true}
		r, err := c.refer(resource)
		if err != nil {
			x.fail(StepResource, resource, err, "give the https URL of the resource")
			return
		}
		if !x.request(ctx, r) {
			return
		}
		d := x.metadata(ctx, r)
		if d == nil {
			return
		}
		for _, issuer := range d.servers {
			if x.going {
				x.server(ctx, d, issuer)
			}
		}
	}
}

// Issuers are the authorization servers that a resource names, found as for a
// sign-in: for asking a person for credentials there.
func (c *Client) Issuers(ctx context.Context, resource string) ([]string, error) {
	r, err := c.refer(resource)
	if err != nil {
		return nil, err
	}
	d, err := c.discover(ctx, r)
	if err != nil {
		return nil, err
	}
	return slices.Clone(d.servers), nil
}

// examination yields findings until nobody wants more.
type examination struct {
	c     *Client
	yield func(Finding) bool
	going bool
}

func (x *examination) tell(f Finding) {
	if x.going {
		f.URL = bare(f.URL)
		x.going = x.yield(f)
	}
}

func (x *examination) ok(step Step, place, format string, args ...any) {
	x.tell(Finding{Step: step, URL: place, Verdict: OK, Detail: fmt.Sprintf(format, args...)})
}

// fail tells of an error; what a DiscoveryError says comes first.
func (x *examination) fail(step Step, place string, err error, advice string) {
	f := Finding{Step: step, URL: place, Verdict: Fail, Detail: err.Error(), Advice: advice}
	if d := (*DiscoveryError)(nil); errors.As(err, &d) {
		f.Step, f.URL, f.Rule, f.Advice = d.Step, d.URL, d.Rule, d.Advice
		if d.Err != nil {
			f.Detail = d.Err.Error()
		}
	}
	x.tell(f)
}

// request asks the resource itself, without a token, and adds to r where its
// metadata lies. False ends the examination.
func (x *examination) request(ctx context.Context, r *refusal) bool {
	u := r.full()
	// An event stream, which would not end, is not asked for.
	resp, err := x.c.fetcher(oauth.LoopbackHost(u.Hostname())).Get(ctx, u.String(), jsonHeader())
	if err != nil {
		x.fail(StepResource, u.String(), err, fetchAdvice(err))
		return false
	}
	challenges := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
	challenge, ok := oauth.FindChallenge(challenges, "Bearer", "DPoP")
	if ok {
		r.metadata = challenge.Params["resource_metadata"]
	}
	switch {
	case resp.Status != http.StatusUnauthorized:
		x.tell(Finding{
			Step: StepResource, URL: u.String(), Verdict: Warn,
			Detail: fmt.Sprintf("it answers %d to a GET without a token, not 401", resp.Status),
			Advice: "if it needs no authorization, there is nothing to do; it may want one for other requests",
		})
	case !ok && len(challenges) > 0:
		x.tell(Finding{
			Step: StepResource, URL: u.String(), Verdict: Warn,
			Detail: "it asks for other credentials than tokens: " + printable(challenges[0].Scheme, 32),
			Advice: "set the Authorization header yourself",
		})
	case r.metadata == "":
		x.tell(Finding{
			Step: StepResource, URL: u.String(), Verdict: Warn, Detail: "it answers 401 without naming its metadata",
			Rule: "RFC 9728, section 5.1: resource_metadata in WWW-Authenticate",
		})
	default:
		x.ok(StepResource, u.String(), "it answers 401 and names its metadata")
	}
	return true
}

// metadata finds the resource's metadata; nil ends the examination.
func (x *examination) metadata(ctx context.Context, r *refusal) *discovery {
	d, err := x.c.walk(ctx, r)
	if err != nil {
		x.fail(StepMetadata, r.url.String(), err, "")
		return nil
	}
	if d.legacy {
		x.tell(Finding{
			Step: StepMetadata, URL: r.url.String(), Verdict: Warn,
			Detail: "it has no metadata; as in the oldest revision, its origin is taken for the authorization server",
			Rule:   "spec basic/authorization: MCP servers MUST implement protected resource metadata (RFC 9728)",
			Advice: "if it takes a key, set the Authorization header yourself",
		})
		return d
	}
	x.ok(StepMetadata, d.metadataURL, "the resource is %s, with %d authorization server(s)", printable(d.resource, 256), len(d.servers))
	if slices.Contains(d.scopes, oauth.ScopeOfflineAccess) {
		x.tell(Finding{
			Step: StepMetadata, URL: d.metadataURL, Verdict: Warn, Detail: "scopes_supported has offline_access",
			Rule: "spec basic/authorization, Refresh Tokens: SHOULD NOT",
		})
	}
	return d
}

// server examines one authorization server.
func (x *examination) server(ctx context.Context, d *discovery, issuer string) {
	if d.legacy {
		m, assumed, err := x.c.legacyServer(ctx, d, issuer)
		switch {
		case err != nil:
			x.fail(StepServer, issuer, err, "")
		case assumed:
			x.assumed(ctx, issuer, m)
		default:
			x.described(ctx, d, issuer, m)
		}
		return
	}
	m, err := x.c.server(ctx, d, issuer)
	if err != nil {
		x.fail(StepServer, issuer, err, "")
		return
	}
	x.described(ctx, d, issuer, m)
}

// assumed tells of a server of which there is nothing to read: that it has the
// endpoints of the oldest revision is a guess, which only a sign-in can try.
func (x *examination) assumed(ctx context.Context, issuer string, m *oauth.ServerMetadata) {
	x.tell(Finding{
		Step: StepServer, URL: issuer, Verdict: Warn,
		Detail: "it has no metadata; a sign-in would try /authorize, /token and /register there, as in the oldest revision, " +
			"and nothing shows that they exist or support PKCE",
		Rule:   "spec basic/authorization: it MUST provide RFC 8414 metadata or OpenID Connect discovery",
		Advice: "tell the operator; or sign in, to see whether it works",
	})
	creds, err := x.c.known(ctx, m)
	switch {
	case err != nil:
		x.fail(StepRegister, issuer, err, "")
	case creds != nil:
		x.ok(StepRegister, issuer, "there are credentials for this server")
	case x.c.o.Grant == nil:
		x.tell(Finding{
			Step: StepRegister, URL: m.RegistrationEndpoint, Verdict: Warn,
			Detail: "the client would try to register there, and nothing shows that it can",
			Advice: "if it cannot, have it registered by the operator and give its id with Options.Credentials",
		})
	}
}

// described examines one of which there is metadata.
func (x *examination) described(ctx context.Context, d *discovery, issuer string, m *oauth.ServerMetadata) {
	x.ok(StepServer, issuer, "metadata is there, and about this issuer")
	if m.CodeChallengeMethodsSupported != nil {
		x.ok(StepPKCE, issuer, "S256 is supported")
	}
	if !m.AuthorizationResponseIssParameterSupported {
		x.tell(Finding{
			Step: StepAuthorize, URL: issuer, Verdict: Warn, Detail: "its responses do not say that they are its own",
			Rule: "spec basic/authorization, Authorization Response Validation: SHOULD include iss (RFC 9207)",
		})
	}
	x.registration(ctx, issuer, m)
	if _, err := x.c.proverFor(d, m); err != nil {
		x.fail(StepToken, issuer, err, "")
	}
	if len(m.GrantTypesSupported) > 0 && !slices.Contains(m.GrantTypesSupported, oauth.GrantRefreshToken) {
		x.tell(Finding{
			Step: StepToken, URL: issuer, Verdict: Warn, Detail: "it does not offer refresh tokens",
			Advice: "the person will have to sign in whenever a token ends",
		})
	}
}

// registration says how the client would be known at a server.
func (x *examination) registration(ctx context.Context, issuer string, m *oauth.ServerMetadata) {
	creds, err := x.c.known(ctx, m)
	switch {
	case err != nil:
		x.fail(StepRegister, issuer, err, "")
	case creds != nil && creds.Document:
		x.ok(StepRegister, issuer, "the client is known by its metadata document")
	case creds != nil:
		x.ok(StepRegister, issuer, "the client is registered")
	case x.c.o.Grant != nil:
		x.tell(Finding{
			Step: StepRegister, URL: issuer, Verdict: Warn, Detail: "there are no credentials for this server",
			Advice: "give them with Options.Credentials, unless the grant needs none",
		})
	default:
		if err := x.c.mayRegister(&plan{meta: m}); err != nil {
			x.fail(StepRegister, issuer, err, "")
			return
		}
		x.ok(StepRegister, m.RegistrationEndpoint, "the client can register by itself")
	}
}
