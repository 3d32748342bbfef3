package issuer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// A Server is an authorization server: an http.Handler for everything that its
// issuer identifier promises, the well-known documents at the root of the
// origin included. It may be used by many goroutines at once.
type Server struct {
	issuer string
	base   *url.URL
	opts   Options // with all defaults in place
	local  bool    // the issuer is on loopback
	store  Store
	login  Login
	auto   *Person // who approves everything at once, or nil
	fetch  *oauth.Fetcher
	log    *slog.Logger
	now    func() time.Time

	static    map[string]*Client // of the configuration
	issuers   []*assertionIssuer
	keys      *keyring
	resources *resources
	redirects *redirects
	docs      *documents
	rates     *rates
	guesses   *guesses
	limit     *auditLimit
	cookies   cookies
	pages     []AccountPage // of the login
	routes    map[string]http.Handler
}

// New makes a Server. The issuer identifier is an https URL without query, or
// an http one of a loopback host; the store and the login outlive the Server.
// Options may be nil. The clients of the configuration are checked here; they
// are not written to the store, so that one that is no longer configured is
// gone.
func New(issuer string, store Store, login Login, o *Options) (*Server, error) {
	base, err := oauth.CheckIssuer(issuer)
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	if store == nil || login == nil {
		return nil, errors.New("issuer needs a store and a login")
	}
	s := &Server{issuer: issuer, base: base, local: oauth.LoopbackHost(base.Hostname()), store: store, login: login}
	if auto, ok := login.(*autoApprove); ok {
		if !s.local {
			return nil, errors.New("AutoApprove is for issuers on loopback")
		}
		s.auto = &auto.person
	}
	if o != nil {
		s.opts = *o
	}
	s.opts.fill(s.local)
	s.fetch, s.log, s.now = s.opts.Fetch, s.opts.Logger, s.opts.Now
	if s.redirects, err = newRedirects(s.opts.Registration.Schemes); err != nil {
		return nil, err
	}
	fixed, err := newRegistry(s.opts.Resources)
	if err != nil {
		return nil, err
	}
	s.resources = &resources{fixed: fixed, source: s.opts.MoreResources, log: s.log, now: s.now}
	if s.static, err = s.staticClients(s.opts.Clients); err != nil {
		return nil, err
	}
	if s.issuers, err = newAssertionIssuers(s.opts.Assertions); err != nil {
		return nil, err
	}
	if err = s.opts.check(); err != nil {
		return nil, err
	}
	s.keys = newKeyring(s)
	s.docs = newDocuments(s.opts.Documents, s.redirects, s.opts.Loopback && s.local, s.now)
	s.rates = newRates(s.opts.RateLimit, s.now)
	s.guesses = newGuesses(s.now)
	s.limit = newAuditLimit(s.now)
	s.cookies = newCookies(base)
	if l, ok := login.(AccountLogin); ok {
		s.pages = l.AccountPages()
	}
	if s.routes, err = s.newRoutes(); err != nil {
		return nil, err
	}
	return s, nil
}

// fill puts the defaults in place.
func (o *Options) fill(loopback bool) {
	o.SigningAlgorithm = cmp.Or(o.SigningAlgorithm, "ES256")
	o.KeyLifetime = cmp.Or(o.KeyLifetime, 30*24*time.Hour)
	o.CodeLifetime = cmp.Or(o.CodeLifetime, time.Minute)
	o.AccessLifetime = cmp.Or(o.AccessLifetime, 10*time.Minute)
	o.RefreshLifetime = cmp.Or(o.RefreshLifetime, 30*24*time.Hour)
	o.RefreshIdle = cmp.Or(o.RefreshIdle, 14*24*time.Hour)
	o.ConsentLifetime = cmp.Or(o.ConsentLifetime, 30*24*time.Hour)
	o.LoginLifetime = cmp.Or(o.LoginLifetime, 8*time.Hour)
	o.RateLimit = cmp.Or(o.RateLimit, 120)
	o.Loopback = o.Loopback || loopback
	if o.Fetch == nil {
		o.Fetch = oauth.NewFetcher(nil)
		if o.Loopback {
			o.Fetch = o.Fetch.Loopback()
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Remote == nil {
		o.Remote = remoteHost
	}
	o.Registration.MaxClients = cmp.Or(o.Registration.MaxClients, 10_000)
	o.Registration.Unused = cmp.Or(o.Registration.Unused, 24*time.Hour)
	o.Registration.Used = cmp.Or(o.Registration.Used, 90*24*time.Hour)
	o.Registration.MaxSize = cmp.Or(o.Registration.MaxSize, 16<<10)
	o.Device.Lifetime = cmp.Or(o.Device.Lifetime, 10*time.Minute)
	o.Device.Interval = cmp.Or(o.Device.Interval, 5*time.Second)
	o.Documents.MaxSize = cmp.Or(o.Documents.MaxSize, 16<<10)
	o.Documents.MaxCached = cmp.Or(o.Documents.MaxCached, 1000)
	o.Documents.MaxAge = cmp.Or(o.Documents.MaxAge, 24*time.Hour)
}

// check refuses what no default can mend.
func (o *Options) check() error {
	if !slices.Contains(ownAlgorithms, o.SigningAlgorithm) {
		return fmt.Errorf("signing algorithm %q: it must be one of %s", o.SigningAlgorithm, strings.Join(ownAlgorithms, ", "))
	}
	for name, d := range map[string]time.Duration{
		"KeyLifetime": o.KeyLifetime, "CodeLifetime": o.CodeLifetime, "AccessLifetime": o.AccessLifetime,
		"RefreshLifetime": o.RefreshLifetime, "RefreshIdle": o.RefreshIdle, "LoginLifetime": o.LoginLifetime,
		"Device.Lifetime": o.Device.Lifetime, "Device.Interval": o.Device.Interval,
	} {
		if d < time.Second {
			return fmt.Errorf("%s is %v, and must be a second at least", name, d)
		}
	}
	if o.Device.Interval >= o.Device.Lifetime {
		return fmt.Errorf("Device.Interval is %v, and must be shorter than Device.Lifetime, which is %v", o.Device.Interval, o.Device.Lifetime)
	}
	return nil
}

// endpoint is the URL of an endpoint of this issuer, such as "token".
func (s *Server) endpoint(name string) string {
	return strings.TrimSuffix(s.issuer, "/") + "/" + name
}

// path is the path of an endpoint.
func (s *Server) path(name string) string {
	return strings.TrimSuffix(s.base.EscapedPath(), "/") + "/" + name
}

// useClient notes that a client was granted something, so that it stays.
func (s *Server) useClient(ctx context.Context, c *Client) error {
	if !c.Dynamic {
		return nil
	}
	return s.store.UseClient(ctx, c.ID, s.now().Add(s.opts.Registration.Used))
}

// noteClient notes that a person is asked for a client, which has not been granted anything yet:
// clients that only registered make room before it does.
func (s *Server) noteClient(ctx context.Context, c *Client) error {
	now, unused := s.now(), s.opts.Registration.Unused
	if !c.Dynamic || c.Expires.IsZero() || c.Expires.After(now.Add(unused)) {
		return nil
	}
	return s.store.UseClient(ctx, c.ID, now.Add(2*unused))
}
