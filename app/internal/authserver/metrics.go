package authserver

import (
	"context"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-mcp/parley/app/internal/front"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/app/internal/telemetry"
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
	tokens   *metrics.Counter
	database *metrics.Histogram
	server   atomic.Pointer[issuer.Server] // nil until it is there
}

func newIssuerMetrics() *issuerMetrics {
	return &issuerMetrics{
		requests: metrics.NewHistogram("parley_auth_request_duration_seconds",
			"How long the authorization server took for requests.", metrics.DefaultBuckets(), "endpoint", "status"),
		signIns: metrics.NewCounter("parley_auth_logins_total", "How attempts to sign in ended.", "outcome"),
		events:  metrics.NewCounter("parley_auth_events_total", "What happened, as in the audit.", "event", "outcome"),
		tokens:  metrics.NewCounter("parley_auth_tokens_issued_total", "Access tokens that were issued.", "grant_type"),
		database: metrics.NewHistogram("parley_auth_database_operation_duration_seconds",
			"How long operations on the database took, with what they waited.",
			[]float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, "operation", "outcome"),
	}
}

func (m *issuerMetrics) page() metrics.Page {
	return metrics.Page{m.requests, m.signIns, m.events, m.tokens, m.database, gauge{
		"parley_auth_signing_key_created_timestamp_seconds", "When the key was made that signs access tokens now.",
		[]string{"algorithm"},
		m.keyCreated,
	}}
}

// A gauge is a metric that is read when the page is.
type gauge struct {
	name, help string
	labels     []string
	read       func() []metrics.Sample
}

// Families implements metrics.Source.
func (g gauge) Families() []metrics.Family {
	return []metrics.Family{{Name: g.name, Help: g.help, Kind: metrics.KindGauge, Labels: g.labels, Samples: g.read()}}
}

// keyCreated is no sample if there is no key.
func (m *issuerMetrics) keyCreated() []metrics.Sample {
	server := m.server.Load()
	if server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), front.HealthTime)
	defer cancel()
	key, err := server.SigningKey(ctx)
	if err != nil {
		return nil
	}
	return []metrics.Sample{{Values: []string{key.Algorithm}, Value: float64(key.Created.Unix())}}
}

// observeDatabase returns what the database tells of its operations; traced, which may be nil, is told too.
func (m *issuerMetrics) observeDatabase(traced databaseObserver) databaseObserver {
	return func(ctx context.Context, operation string) (context.Context, func(error)) {
		start, ended := time.Now(), func(error) {}
		if traced != nil {
			ctx, ended = traced(ctx, operation)
		}
		return ctx, func(err error) {
			outcome := "ok"
			if err != nil {
				outcome = "error"
			}
			m.database.Observe(time.Since(start).Seconds(), operation, outcome)
			ended(err)
		}
	}
}

// A databaseObserver is a records.Options.Observe.
type databaseObserver = func(ctx context.Context, operation string) (context.Context, func(error))

// A watched is what the flags of an authorization server say of metrics and traces.
type watched struct {
	counts   *issuerMetrics
	provider trace.TracerProvider // nil without traces
	metered  bool
	stop     func() // ends it all, and is called once the server has ended
}

// watch begins to show metrics and to send traces, as the flags say.
func watch(ctx context.Context, o *front.Observe, p *group, f *pflag.FlagSet, audit *audit) (*watched, error) {
	w := &watched{counts: newIssuerMetrics(), metered: f.Changed("metrics")}
	provider, stopTraces, err := o.StartTraces(ctx, p.Console, f)
	if err != nil {
		return nil, err
	}
	stopPage, err := o.StartPage(ctx, p.Console, f, append(w.counts.page(), audit.figures()...))
	if err != nil {
		stopTraces()
		return nil, err
	}
	w.provider, w.stop = provider, func() { stopPage(); stopTraces() }
	return w, nil
}

// records are the options of the records at a place.
func (w *watched) records(dsn string) *records.Options {
	var traced databaseObserver
	if w.provider != nil {
		system := "sqlite"
		if kit.IsURL(dsn) {
			system = "postgresql"
		}
		traced = telemetry.Operations(w.provider, system)
	}
	return &records.Options{Observe: w.counts.observeDatabase(traced)}
}

// around puts what is needed around the server's handler.
func (w *watched) around(h http.Handler, endpoint func(*http.Request) string) http.Handler {
	if w.metered {
		h = w.counts.handler(h, endpoint)
	}
	if w.provider != nil {
		h = telemetry.Handler(h, w.provider, endpoint)
	}
	return h
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

// event counts an event.
func (m *issuerMetrics) event(_ context.Context, e issuer.Event) {
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
	if e.Name == "token.issued" {
		kind := e.GrantType
		if !grantTypeNames[kind] {
			kind = otherLabel
		}
		m.tokens.Add(1, kind)
	}
}

// signInOutcome is how an attempt to sign in ended, or "" if e tells of
// something else.
func signInOutcome(e issuer.Event) string {
	switch {
	case e.Name == "login" && e.Outcome == "ok":
		return "ok"
	case e.Name == "login" && e.Outcome == oauth.AccessDenied && strings.HasPrefix(e.Reason, "too many "):
		return "throttled"
	case e.Name == "login" && e.Outcome == oauth.AccessDenied && e.Reason == "the user is disabled":
		return "disabled"
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
		"account.invitation", "account.password",
		"authorize", "client.registered", "code.issued", "code.reused", "consent", "consent.revoked", "device.approved",
		"device.entered", "device.refused", "device.requested", "grant.revoked", "introspection.refused",
		"login", "logout", "refresh.reused", "revocation.refused", "session.revoked", "token.issued", "token.refused", "token.revoked",
	)
	grantTypeNames = words(
		oauth.GrantAuthorizationCode, oauth.GrantRefreshToken, oauth.GrantClientCredentials, oauth.GrantJWTBearer,
		oauth.GrantTokenExchange, oauth.GrantDeviceCode,
	)
	auditOutcomes = words(
		"ok", oauth.InvalidRequest, oauth.InvalidClient, oauth.InvalidGrant, oauth.UnauthorizedClient,
		oauth.UnsupportedGrantType, oauth.UnsupportedResponseType, oauth.UnsupportedTokenType, oauth.InvalidScope,
		oauth.InvalidTarget, oauth.AccessDenied, oauth.ServerError, oauth.TemporarilyUnavailable, oauth.LoginRequired,
		oauth.ConsentRequired, oauth.InteractionRequired, oauth.InvalidToken, oauth.InsufficientScope,
		oauth.InvalidRedirectURI, oauth.InvalidClientMetadata, oauth.InvalidDPoPProof, oauth.UseDPoPNonce, oauth.ExpiredToken,
	)
)

func words(list ...string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, w := range list {
		set[w] = true
	}
	return set
}
