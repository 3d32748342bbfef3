package cli

import (
	"context"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/telemetry"
	"github.com/parley-mcp/parley/contrib/prometheus/metrics"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// issuerMetrics count what happens at an authorization server. Labels are fixed
// words: no label has the name of a user or a client.
type issuerMetrics struct {
	requests *metrics.Histogram
	signIns  *metrics.Counter
	events   *metrics.Counter
}

func newIssuerMetrics() *issuerMetrics {
	return &issuerMetrics{
		requests: metrics.NewHistogram("parley_auth_request_duration_seconds",
			"How long the authorization server took for requests.", metrics.DefaultBuckets(), "endpoint", "status"),
		signIns: metrics.NewCounter("parley_auth_logins_total", "How attempts to sign in ended.", "outcome"),
		events:  metrics.NewCounter("parley_auth_events_total", "What happened, as in the audit.", "event", "outcome"),
	}
}

func (m *issuerMetrics) page() metrics.Page { return metrics.Page{m.requests, m.signIns, m.events} }

// watch has an authorization server watched as the flags say. The first function
// that it returns puts what is needed around the server's handler; stop ends it
// all, and is called once the server has ended.
func (o *observeFlags) watch(ctx context.Context, p *program, f *pflag.FlagSet, m *issuerMetrics) (around func(h http.Handler, endpoint func(*http.Request) string) http.Handler, stop func(), err error) {
	provider, stopTraces, err := o.startTraces(ctx, p, f)
	if err != nil {
		return nil, nil, err
	}
	stopPage, err := o.startPage(ctx, p, f, m.page())
	if err != nil {
		stopTraces()
		return nil, nil, err
	}
	around = func(h http.Handler, endpoint func(*http.Request) string) http.Handler {
		if f.Changed("metrics") {
			h = m.handler(h, endpoint)
		}
		if provider != nil {
			h = telemetry.Handler(h, provider, endpoint)
		}
		return h
	}
	return around, func() { stopPage(); stopTraces() }, nil
}

// otherLabel stands for what is none of the words that are known.
const otherLabel = "other"

// handler counts the requests that next answers.
func (m *issuerMetrics) handler(next http.Handler, endpoint func(r *http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := endpoint(r)
		if at == "" {
			at = otherLabel
		}
		s, start := &telemetry.Status{ResponseWriter: w}, time.Now()
		defer func() { m.requests.Observe(time.Since(start).Seconds(), at, strconv.Itoa(s.Code())) }()
		next.ServeHTTP(s, r)
	})
}

// issuerEndpoint returns a function that names the endpoint of a request, of those
// at paths: "token" for /tenant/token, "" for none of them.
func issuerEndpoint(paths []string) func(r *http.Request) string {
	names := make(map[string]string)
	below := ""
	for _, p := range paths {
		switch {
		case strings.HasSuffix(p, "/"):
			below = p // of the pages of a login
		case strings.Contains(p, "/.well-known/"):
			names[p] = "metadata"
		default:
			names[p] = path.Base(p)
		}
	}
	return func(r *http.Request) string {
		p := r.URL.EscapedPath()
		if below != "" && strings.HasPrefix(p, below) {
			return path.Base(below)
		}
		return names[p]
	}
}

// before counts what the audit is told.
func (m *issuerMetrics) before(audit func(context.Context, issuer.Event)) func(context.Context, issuer.Event) {
	return func(ctx context.Context, e issuer.Event) {
		m.event(e)
		audit(ctx, e)
	}
}

// event counts an event.
func (m *issuerMetrics) event(e issuer.Event) {
	name, outcome := otherLabel, otherLabel
	if auditNames[e.Name] {
		name = e.Name
	}
	if auditOutcomes[e.Outcome] {
		outcome = e.Outcome
	}
	m.events.Add(1, name, outcome)
	if how := signInOutcome(e); how != "" {
		m.signIns.Add(1, how)
	}
}

// signInOutcome is how an attempt to sign in ended, or "" if e tells of
// something else.
func signInOutcome(e issuer.Event) string {
	switch {
	case e.Name == "login" && e.Outcome == "ok":
		return "ok"
	case e.Name == "login" && e.Outcome == oauth.AccessDenied && e.Reason == "too many attempts":
		return "throttled"
	case e.Name == "login" && e.Outcome == oauth.AccessDenied:
		return "refused"
	case e.Name == "authorize" && e.Reason == "login was cancelled":
		return "cancelled"
	case e.Name == "authorize" && e.Reason == "login failed":
		return "failed"
	}
	return ""
}

// The words that events and outcomes are counted under; an outcome that is none of
// them is made up by a client.
var (
	auditNames = words(
		"authorize", "client.registered", "code.issued", "code.reused", "consent", "grant.revoked", "introspection.refused",
		"login", "refresh.reused", "revocation.refused", "token.issued", "token.refused", "token.revoked",
	)
	auditOutcomes = words(
		"ok", oauth.InvalidRequest, oauth.InvalidClient, oauth.InvalidGrant, oauth.UnauthorizedClient,
		oauth.UnsupportedGrantType, oauth.UnsupportedResponseType, oauth.UnsupportedTokenType, oauth.InvalidScope,
		oauth.InvalidTarget, oauth.AccessDenied, oauth.ServerError, oauth.TemporarilyUnavailable, oauth.LoginRequired,
		oauth.ConsentRequired, oauth.InteractionRequired, oauth.InvalidToken, oauth.InsufficientScope,
		oauth.InvalidRedirectURI, oauth.InvalidClientMetadata, oauth.InvalidDPoPProof, oauth.UseDPoPNonce,
	)
)

func words(list ...string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, w := range list {
		set[w] = true
	}
	return set
}
