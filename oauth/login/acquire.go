package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// want is what somebody needs of a resource that was refused or never tried.
type want struct {
	refusal
	// had is the generation of the tokens that were refused; "" if none were
	// sent.
	had string
	// scopes are wanted besides those of the challenge.
	scopes []string
	// stepUp says that tokens with more scopes are needed: refreshing does not
	// help.
	stepUp bool
	// operation is what a step-up counts for; "" counts for nothing.
	operation string
	// noRefresh says that refreshing was tried already.
	noRefresh bool
	// force asks the person even if there are tokens.
	force bool
	// explicit says that a person began this: one who refused a moment ago is
	// asked again.
	explicit bool
}

// outcome is what a flight brought.
type outcome struct {
	session *session
	// signedIn says that tokens came of a sign-in, not of a refresh.
	signedIn bool
}

// lock takes the lock of a resource in the store: whoever holds it may change
// its tokens. Who has it for long has a person sign in, if in another process.
func (c *Client) lock(ctx context.Context, id string, asking func()) (unlock func(), err error) {
	patient := time.AfterFunc(lockPatience, asking)
	defer patient.Stop()
	unlock, err = c.o.Store.Lock(ctx, storeName(kindBinding, id))
	if err != nil {
		return nil, fmt.Errorf("wait for a sign-in or refresh elsewhere: %w", err)
	}
	return unlock, nil
}

// lockPatience is how long another process may hold the lock of a resource
// before a person is thought to be the reason.
const lockPatience = time.Second

// acquire brings tokens that w can go on with: those that somebody else got in
// the meantime, refreshed ones, or new ones. Whoever wants the same resource
// shares one refresh and one sign-in.
func (c *Client) acquire(ctx context.Context, w *want) (*outcome, error) {
	if s, err := c.find(ctx, w.full()); err != nil {
		return nil, err
	} else if c.satisfies(s, w, nil) {
		return &outcome{session: s}, nil
	}
	d, err := c.discover(ctx, &w.refusal)
	if err != nil {
		return nil, err
	}
	c.forgetBetween(w.full(), d.id)
	for {
		got, joined, err := c.sharings.do(ctx, d.id, c.o.SignInTimeout, func(ctx context.Context, asking func()) (*outcome, error) {
			return c.renew(ctx, w, d, asking)
		})
		// What others asked for may lack what this one needs.
		if joined && (err == nil && !c.serves(got, w, d) || errors.Is(err, errSteps) || w.explicit && isRefused(err)) {
			continue
		}
		return got, err
	}
}

// satisfies reports whether a session has tokens that are worth a try: others
// than those refused, not about to end, with the scopes, of a server that the
// resource still names (d may be nil: not known).
func (c *Client) satisfies(s *session, w *want, d *discovery) bool {
	switch {
	case s == nil || s.tokens == nil || w.force || s.tokens.Generation == w.had:
		return false
	case !s.tokens.lasts(c.o.Now(), 0):
		return false
	case d != nil && !slices.Contains(d.servers, s.Issuer):
		return false
	}
	return covers(s.tokens.Requested, w.scopes) && (!w.stepUp || covers(s.tokens.Requested, w.refusal.scopes))
}

// serves reports whether what another one's flight brought will do. New tokens
// do even if they end at once, or all who wait would sign in one by one.
func (c *Client) serves(got *outcome, w *want, d *discovery) bool {
	if !got.signedIn {
		return c.satisfies(got.session, w, d)
	}
	requested := got.session.tokens.Requested
	return covers(requested, w.scopes) && (!w.stepUp || covers(requested, w.refusal.scopes))
}

// covers reports whether all of these scopes are among those.
func covers(those, these []string) bool {
	for _, scope := range these {
		if !slices.Contains(those, scope) {
			return false
		}
	}
	return true
}

// renew replaces the tokens of a resource, alone in this process and, with the
// store's lock, in all.
func (c *Client) renew(ctx context.Context, w *want, d *discovery, asking func()) (*outcome, error) {
	unlock, err := c.lock(ctx, d.id, asking)
	if err != nil {
		return nil, err
	}
	defer unlock()
	before, err := c.reload(ctx, d.id)
	if err != nil {
		return nil, err
	}
	if c.satisfies(before, w, d) { // another process was faster
		return &outcome{session: before}, nil
	}
	issuer, err := c.chooseServer(ctx, d, issuerOf(before))
	if err != nil {
		return nil, err
	}
	p := &plan{found: d, before: before, why: c.reason(w, before, issuer), asking: asking}
	if p.why == ReasonServerChanged {
		if err := c.checkMove(before.Issuer, issuer); err != nil {
			return nil, err
		}
	}
	if p.meta, err = c.server(ctx, d, issuer); err != nil {
		return nil, err
	}
	if p.why == ReasonSignIn && !w.noRefresh && !w.force && covers(requestedOf(before), w.scopes) {
		s, err := c.tryRefresh(ctx, p.meta, d.onLoopback, before)
		if refusedForGood(err) {
			c.log.WarnContext(ctx, "token cannot be refreshed", "resource", d.id, "issuer", issuer, "error", err)
			err = nil
		}
		if err != nil || s != nil {
			return &outcome{session: s}, err
		}
	}
	p.scopes = c.chooseScopes(w, p)
	if p.why == ReasonStepUp && w.operation != "" && !c.countStep(w.operation, covers(before.tokens.Requested, w.refusal.scopes)) {
		return nil, errSteps
	}
	if p.prover, err = c.proverFor(d, p.meta); err != nil {
		return nil, err
	}
	if err := c.refusedLately(d.id); err != nil && !w.explicit {
		return nil, err
	}
	s, err := c.signIn(ctx, p)
	if err = c.heed(ctx, p, err); err != nil {
		return nil, err
	}
	return &outcome{session: s, signedIn: true}, nil
}

// refusedForGood reports whether a server refuses to refresh a token in a way
// that asking again does not change, so that a person must sign in.
func refusedForGood(err error) bool {
	said, ok := errors.AsType[*oauth.Error](err)
	return ok && said.Code != "" && !isTransient(err)
}

// reload reads what the store has by now; what is in memory stays if the store
// has the same, for its nonces, or has failed to keep it.
func (c *Client) reload(ctx context.Context, id string) (*session, error) {
	stored, err := c.load(ctx, id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	known := c.sessions[id]
	c.mu.Unlock()
	if stored == nil && known == nil || stored != nil && known != nil && generationOf(stored) == generationOf(known) {
		return known, nil
	}
	if stored == nil || stored.tokens == nil {
		if known != nil && known.tokens != nil && known.probe.unsaved.Load() {
			return known, nil
		}
	}
	c.remember(id, stored)
	return stored, nil
}

func issuerOf(s *session) string {
	if s == nil {
		return ""
	}
	return s.Issuer
}

func requestedOf(s *session) []string {
	if s == nil {
		return nil
	}
	return s.Requested
}

func (c *Client) reason(w *want, before *session, issuer string) Reason {
	switch {
	case before != nil && before.Issuer != issuer:
		return ReasonServerChanged
	case w.stepUp && before != nil && before.tokens != nil:
		return ReasonStepUp
	}
	return ReasonSignIn
}

// checkMove refuses to go on where a resource that was used with credentials
// registered beforehand names another server, for which there are none: spec
// 2026-07-28, basic/authorization/client-registration, "Authorization Server
// Binding": SHOULD surface an error.
func (c *Client) checkMove(from, to string) error {
	if c.preregistered(from) == nil || c.preregistered(to) != nil {
		return nil
	}
	return &DiscoveryError{
		Step: StepChoice, URL: bare(to),
		Err:    fmt.Errorf("the resource names another authorization server than %s, which this client is registered at", bare(from)),
		Rule:   "spec basic/authorization/client-registration: credentials are bound to their issuer",
		Advice: "if the change is real, register there and give the credentials, or forget the resource first",
	}
}

// chooseScopes decides what is asked for. spec 2026-07-28,
// basic/authorization, "Scope Selection Strategy" and "Step-Up Authorization
// Flow": the challenge's, else all that the resource's metadata names, else
// none; always with those asked for before, so that none is lost.
func (c *Client) chooseScopes(w *want, p *plan) []string {
	base := w.refusal.scopes
	if base == nil {
		base = p.found.scopes
	}
	var before []string
	if p.why != ReasonServerChanged {
		for _, scope := range requestedOf(p.before) {
			if scope != oauth.ScopeOfflineAccess {
				before = append(before, scope)
			}
		}
	}
	all := oauth.UnionScopes(before, base, c.o.Scopes, w.scopes)
	// "Refresh Tokens": MAY add offline_access when the server's metadata
	// contains it. Alone it would take the place of the server's default.
	if len(all) > 0 && c.o.Grant == nil && slices.Contains(p.meta.ScopesSupported, oauth.ScopeOfflineAccess) {
		all = oauth.UnionScopes(all, []string{oauth.ScopeOfflineAccess})
	}
	return all
}

// tryRefresh refreshes tokens if that can be. No session and no error mean that
// new ones are needed. The lock of the resource is held.
func (c *Client) tryRefresh(ctx context.Context, m *oauth.ServerMetadata, onLoopback bool, s *session) (*session, error) {
	if s == nil || s.tokens == nil || s.tokens.Refresh == "" || s.Issuer != m.Issuer {
		return nil, nil
	}
	// Attack: metadata that moves the token endpoint would have the token.
	if s.tokens.TokenEndpoint != m.TokenEndpoint {
		c.log.WarnContext(ctx, "token endpoint moved; the refresh token is not sent there", "resource", s.ID, "issuer", s.Issuer)
		return nil, nil
	}
	creds, err := c.credentialsOf(ctx, m, s)
	if err != nil || creds == nil && s.ClientID != "" {
		return nil, err
	}
	made, err := c.refresh(ctx, m, onLoopback, s, creds)
	switch {
	case err == nil:
		return made, nil
	case errors.Is(err, &oauth.Error{Code: oauth.InvalidGrant}):
		c.dropTokens(ctx, s)
		return nil, nil
	case clientUnknown(err):
		c.unregister(ctx, creds)
		c.dropTokens(ctx, s)
		return nil, nil
	}
	return nil, err
}

// credentialsOf are those that a session's tokens were given to; nil if they
// are not there any more.
func (c *Client) credentialsOf(ctx context.Context, m *oauth.ServerMetadata, s *session) (*Credentials, error) {
	if s.ClientID == "" {
		return nil, nil
	}
	if creds := c.preregistered(m.Issuer); creds != nil && creds.ClientID == s.ClientID {
		return creds, nil
	}
	if s.ClientID == c.o.DocumentURL {
		return c.byDocument(m.Issuer), nil
	}
	return c.registered(ctx, m, s.ClientID)
}

// refresh makes one refresh request and keeps what it brings, before anybody
// uses it. The old refresh token stays if no new one comes (RFC 6749, section 6).
func (c *Client) refresh(ctx context.Context, m *oauth.ServerMetadata, onLoopback bool, s *session, creds *Credentials) (*session, error) {
	q := &grantRequest{
		fetch: c.fetcher(onLoopback), meta: m, creds: creds,
		resource: s.Resource, prover: s.prover, now: c.o.Now,
	}
	form := url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {s.tokens.Refresh}}
	if s.Resource != "" {
		form.Set("resource", s.Resource)
	}
	// Who leaves now must not cost the person the rotated token.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	r, err := requestToken(ctx, q, form)
	if err != nil {
		return nil, fmt.Errorf("refresh the token of %s: %w", s.ID, err)
	}
	if _, err := checkType(r.TokenType, s.prover != nil, s.prover != nil); err != nil {
		return nil, &DiscoveryError{Step: StepToken, URL: bare(m.TokenEndpoint), Err: err, Advice: "tell the server's operator"}
	}
	t := newTokens(&s.binding, m.TokenEndpoint, r, s.tokens.Requested, c.o.Now())
	t.Key = s.tokens.Key
	if t.Refresh == "" {
		t.Refresh = s.tokens.Refresh
	}
	if r.Scope == "" {
		t.Granted = s.tokens.Granted
	}
	made, err := s.with(t)
	if err != nil {
		return nil, err
	}
	made.probe = s.probe.afterRefresh()
	c.save(ctx, made)
	c.log.DebugContext(ctx, "refreshed", "resource", s.ID, "issuer", s.Issuer)
	return made, nil
}

// refreshTimeout bounds a refresh that nobody waits for any more.
const refreshTimeout = 30 * time.Second

// fresh is a session whose access token lasts for a request: refreshed if it
// is about to end. A nil session, or one without tokens that last, means that
// the request goes without; the answer tells what to do then.
func (c *Client) fresh(ctx context.Context, s *session) (*session, error) {
	if s == nil || s.tokens == nil {
		return nil, nil
	}
	now := c.o.Now()
	if !s.tokens.due(now, c.o.Margin) {
		return s, nil
	}
	valid := s.tokens.lasts(now, 0)
	if s.tokens.Refresh == "" || valid && c.isCooling(s.ID, now) {
		if !valid {
			s = nil
		}
		return s, nil
	}
	limit := c.o.SignInTimeout
	if valid {
		if c.sharings.busy(s.ID) { // a person may be signing in
			return s, nil
		}
		limit = min(limit, refreshTimeout)
	}
	got, _, err := c.sharings.do(ctx, s.ID, limit, func(ctx context.Context, asking func()) (*outcome, error) {
		return c.refreshEarly(ctx, s, asking)
	})
	switch {
	case err == nil && got.session != nil && got.session.tokens != nil:
		return got.session, nil
	case err == nil, !valid && refusedForGood(err): // the resource's answer leads to a sign-in
		return nil, nil
	case valid && ctx.Err() == nil: // trouble at the server is none of the request's yet
		c.cool(s.ID, now)
		c.log.WarnContext(ctx, "token is not refreshed yet", "resource", s.ID, "error", err)
		return s, nil
	}
	return nil, err
}

// refreshEarly refreshes what is about to end, without discovery of the
// resource: the issuer is the one on record.
func (c *Client) refreshEarly(ctx context.Context, s *session, asking func()) (*outcome, error) {
	unlock, err := c.lock(ctx, s.ID, asking)
	if err != nil {
		return nil, err
	}
	defer unlock()
	now, err := c.reload(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	if now == nil || now.tokens == nil || generationOf(now) != generationOf(s) && !now.tokens.due(c.o.Now(), c.o.Margin) {
		return &outcome{session: now}, nil
	}
	d := c.onRecord(&now.binding)
	m, err := c.server(ctx, d, now.Issuer)
	if err != nil {
		return nil, err
	}
	made, err := c.tryRefresh(ctx, m, d.onLoopback, now)
	return &outcome{session: made}, err
}

// onRecord is what is known of a resource without asking it.
func (c *Client) onRecord(b *binding) *discovery {
	d := &discovery{
		id: b.ID, resource: b.Resource, servers: []string{b.Issuer},
		legacy: b.Resource == "", version: c.o.ProtocolVersion,
	}
	if u, err := url.Parse(b.ID); err == nil {
		d.onLoopback = oauth.LoopbackHost(u.Hostname())
	}
	return d
}

// coolTime is the pause after a refresh that failed while the old token lasts.
const coolTime = 5 * time.Second

func (c *Client) isCooling(id string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return within(now, c.cooling[id], coolTime)
}

func (c *Client) cool(id string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cooling) >= maxSessions {
		clear(c.cooling)
	}
	c.cooling[id] = now
}
