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
	// Rule is the rule that the other side breaks, Advice how to get past it. Both may be empty.
	Rule, Advice string
}

// Diagnose walks the way to a token of a resource step by step, as far as that goes without signing
// in or registering, and yields what it finds. It stores nothing.
func (c *Client) Diagnose(ctx context.Context, resource string) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		x := &diagnosis{c: c, yield: yield, wanted: true}
		ch, err := c.parseResource(resource)
		if err != nil {
			x.fail(StepResource, resource, err, "give the https URL of the resource")
			return
		}
		if !x.request(ctx, ch) {
			return
		}
		if d := x.metadata(ctx, ch); d != nil {
			for _, issuer := range d.servers[:min(len(d.servers), maxExamined)] {
				if x.wanted {
					x.server(ctx, d, issuer)
				}
			}
			if n := len(d.servers) - maxExamined; n > 0 {
				x.report(Warn, StepChoice, d.id, fmt.Sprintf("it names %d more authorization servers, which were not examined", n), "", "")
			}
		}
	}
}

// maxExamined is how many authorization servers of a resource Diagnose examines: each may take a minute.
const maxExamined = 8

// Issuers are the authorization servers that a resource names, found as for a sign-in.
func (c *Client) Issuers(ctx context.Context, resource string) ([]string, error) {
	r, err := c.parseResource(resource)
	if err != nil {
		return nil, err
	}
	// Only its challenge may name the place of its metadata.
	if resp, err := c.fetcher(r.url.String()).Get(ctx, r.url.String(), jsonHeader()); err == nil && resp.Status == http.StatusUnauthorized {
		found, _ := oauth.FindChallenge(oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate")), "Bearer", "DPoP")
		r.metadata = found.Params["resource_metadata"]
	}
	d, err := c.discover(ctx, r)
	if err != nil {
		return nil, err
	}
	return slices.Clone(d.servers), nil
}

// diagnosis yields findings until the caller wants no more.
type diagnosis struct {
	c      *Client
	yield  func(Finding) bool
	wanted bool
}

func (x *diagnosis) report(verdict Verdict, step Step, place, detail, rule, advice string) {
	if x.wanted {
		x.wanted = x.yield(Finding{Step: step, URL: redactURL(place), Verdict: verdict, Detail: detail, Rule: rule, Advice: advice})
	}
}

func (x *diagnosis) ok(step Step, place, detail string) { x.report(OK, step, place, detail, "", "") }

// fail reports an error; what a DiscoveryError says comes first.
func (x *diagnosis) fail(step Step, place string, err error, advice string) {
	d, ok := errors.AsType[*DiscoveryError](err)
	if !ok {
		d = newDiscoveryError(step, place, err, "", advice)
	}
	x.report(Fail, d.Step, d.URL, d.Err.Error(), d.Rule, d.Advice)
}

// notes reports what was passed over.
func (x *diagnosis) notes(step Step, notes []note) {
	for _, n := range notes {
		x.report(Warn, step, n.url, "passed over: "+n.text, "", n.advice)
	}
}

// request asks the resource without a token for where its metadata lies. False ends the
// examination.
func (x *diagnosis) request(ctx context.Context, ch *challenge) bool {
	u := ch.url
	// An event stream, which would not end, is not asked for.
	resp, err := x.c.fetcher(u.String()).Get(ctx, u.String(), jsonHeader())
	if err != nil {
		x.fail(StepResource, u.String(), fetchError(StepResource, u.String(), err), "")
		return false
	}
	challenges := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
	challenge, ok := oauth.FindChallenge(challenges, "Bearer", "DPoP")
	if ok {
		ch.metadata = challenge.Params["resource_metadata"]
	}
	switch {
	case resp.Status != http.StatusUnauthorized:
		x.report(Warn, StepResource, u.String(), fmt.Sprintf("it answers %d to a GET without a token, not 401", resp.Status), "",
			"if it needs no authorization, there is nothing to do; it may want one for other requests")
	case !ok && len(challenges) > 0:
		x.report(Warn, StepResource, u.String(), "it asks for other credentials than tokens: "+printable(challenges[0].Scheme, 32), "",
			"set the Authorization header yourself")
	case ch.metadata == "":
		x.report(Warn, StepResource, u.String(), "it answers 401 without naming its metadata",
			"RFC 9728, section 5.1: resource_metadata in WWW-Authenticate", "")
	default:
		x.ok(StepResource, u.String(), "it answers 401 and names its metadata")
	}
	return true
}

// metadata finds the resource's metadata; nil ends the examination.
func (x *diagnosis) metadata(ctx context.Context, ch *challenge) *discovery {
	d, err := x.c.fetchDiscovery(ctx, ch)
	if err != nil {
		x.fail(StepMetadata, ch.url.String(), err, "")
		return nil
	}
	if d.legacy() {
		x.report(Warn, StepMetadata, ch.url.String(),
			"it has no metadata; as in the oldest revision, its origin is taken for the authorization server",
			ruleResourceMetadata+" (RFC 9728)", adviceKey)
		return d
	}
	x.notes(StepMetadata, d.notes)
	x.ok(StepMetadata, d.metadataURL,
		fmt.Sprintf("the resource is %s, with %d authorization server(s)", printable(d.resource, 256), len(d.servers)))
	if slices.Contains(d.scopes, oauth.ScopeOfflineAccess) {
		x.report(Warn, StepMetadata, d.metadataURL, "scopes_supported has offline_access", "spec basic/authorization, Refresh Tokens: SHOULD NOT", "")
	}
	return d
}

// server examines one authorization server.
func (x *diagnosis) server(ctx context.Context, d *discovery, issuer string) {
	m, about, err := x.c.server(ctx, d, issuer)
	if err != nil {
		x.fail(StepServer, issuer, err, "")
		return
	}
	x.notes(StepServer, about.notes)
	assumed := about.assumed
	if assumed { // only a sign-in can try
		x.report(Warn, StepServer, issuer,
			"it has no metadata; a sign-in would try /authorize, /token and /register there, as in the oldest revision, "+
				"and nothing shows that they exist or support PKCE",
			ruleServerMetadata, "tell the operator; or sign in, to see whether it works")
	} else {
		x.ok(StepServer, issuer, "metadata is there, and about this issuer")
	}
	if m.CodeChallengeMethodsSupported != nil {
		x.ok(StepPKCE, issuer, "S256 is supported")
	}
	if !assumed && !m.AuthorizationResponseIssParameterSupported {
		x.report(Warn, StepAuthorize, issuer, "its responses do not say that they are its own",
			"spec basic/authorization, Authorization Response Validation: SHOULD include iss (RFC 9207)", "")
	}
	x.registration(ctx, issuer, m, assumed)
	if _, err := x.c.newSignerFor(d, m); err != nil {
		x.fail(StepToken, issuer, err, "")
	}
	if len(m.GrantTypesSupported) > 0 && !slices.Contains(m.GrantTypesSupported, oauth.GrantRefreshToken) {
		x.report(Warn, StepToken, issuer, "it does not offer refresh tokens", "", "the person will have to sign in whenever a token ends")
	}
}

// registration says how the client would be known at a server.
func (x *diagnosis) registration(ctx context.Context, issuer string, m *oauth.ServerMetadata, assumed bool) {
	creds, err := x.c.knownCredentials(ctx, m)
	if err == nil && creds == nil && x.c.o.Grant == nil && !assumed {
		err = x.c.mayRegister(m)
	}
	switch {
	case err != nil:
		x.fail(StepRegister, issuer, err, "")
	case creds != nil && creds.Document:
		x.ok(StepRegister, issuer, "the client is known by its metadata document")
	case creds != nil:
		x.ok(StepRegister, issuer, "the client is registered")
	case x.c.o.Grant != nil:
		x.report(Warn, StepRegister, issuer, "there are no credentials for this server", "",
			"give them with Options.Credentials, unless the grant needs none")
	case assumed:
		x.report(Warn, StepRegister, m.RegistrationEndpoint, "the client would try to register there, and nothing shows that it can", "",
			"if it cannot, have it registered by the operator and give its id with Options.Credentials")
	default:
		x.ok(StepRegister, m.RegistrationEndpoint, "the client can register by itself")
	}
}
