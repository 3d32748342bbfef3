package login

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/principal"
)

// outcome is what a flight brought.
type outcome struct {
	session *session
	// signedIn says that tokens came of a sign-in, not of a refresh.
	signedIn bool
}

// decide is next with what is known of the resource of a session. d is nil outside a flight.
func (c *Client) decide(s *session, d *discovery, ch *challenge, n *need) (action, error) {
	p := policy{now: c.o.Now(), margin: c.o.Margin, stepUps: c.o.StepUps}
	c.resources.mu.Lock()
	defer c.resources.mu.Unlock()
	var r entry
	switch {
	case d != nil: // the flight is this one
		r = *c.resources.at(d.id)
		r.servers, r.flight, r.refreshFailed = d.servers, nil, time.Time{}
	case s != nil:
		r = *c.resources.at(s.ID)
	}
	r.session = s
	return p.next(&r, ch, n)
}

// lock takes the lock of a resource in the store, with which its tokens may be changed. Another
// process that holds it for long is taken to have a person sign in.
func (c *Client) lock(ctx context.Context, id string, asking func()) (unlock func(), err error) {
	late := time.AfterFunc(lockDelay, asking)
	defer late.Stop()
	unlock, err = c.o.Store.Lock(ctx, storeName(kindBinding, id))
	if err != nil {
		return nil, fmt.Errorf("wait for a sign-in or refresh elsewhere: %w", err)
	}
	return unlock, nil
}

// lockDelay is how long another process holds a lock before a person is thought to be the reason.
const lockDelay = time.Second

// acquire brings a session that a refused request, or one that needs tokens, can go on with: one
// that another caller got in the meantime, a refreshed one, or a new one. Callers that need the
// same resource share one refresh and one sign-in.
func (c *Client) acquire(ctx context.Context, ch *challenge, n *need) (*session, error) {
	s, err := c.find(ctx, ch.url)
	if err != nil {
		return nil, err
	}
	switch act, err := c.decide(s, nil, ch, n); {
	case act == fail:
		return nil, err
	case act == send && s != nil:
		return s, nil
	}
	d, err := c.discover(ctx, ch)
	if err != nil {
		return nil, err
	}
	c.forgetBetween(ch.url, d.id)
	for {
		got, joined, err := c.joinFlight(ctx, d.id, c.o.SignInTimeout, func(ctx context.Context, asking func()) (*outcome, error) {
			return c.replaceTokens(ctx, d.id, d, ch, *n, asking)
		})
		// What others asked for may lack what this one needs, and who could not be asked for
		// them may be for this one.
		if joined && (c.o.Confirm != nil && !c.o.NonInteractive && isSignInRequired(err) ||
			err == nil && !c.satisfies(got, d, ch, n) || errors.Is(err, errNoBetterTokens) || n.purpose >= forSignIn && errors.Is(err, principal.ErrDenied)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return got.session, nil
	}
}

// joinFlight joins or starts the flight of a resource.
func (c *Client) joinFlight(ctx context.Context, id string, limit time.Duration, fn work[*outcome]) (*outcome, bool, error) {
	return share(ctx, &c.resources, func() **flight[*outcome] { return &c.resources.at(id).flight }, limit, fn)
}

// satisfies reports whether what another caller's flight brought will do. New tokens do even if
// they end at once, or all waiters would sign in one by one.
func (c *Client) satisfies(got *outcome, d *discovery, ch *challenge, n *need) bool {
	if got.signedIn {
		return n.covered(got.session.tokens, ch)
	}
	act, _ := c.decide(got.session, d, ch, n)
	return act == send
}

// replaceTokens replaces the tokens of a resource, alone in this process and, with the store's
// lock, in all. Without d the resource is not asked: tokens are refreshed at the issuer on record.
func (c *Client) replaceTokens(ctx context.Context, id string, d *discovery, ch *challenge, n need, asking func()) (*outcome, error) {
	unlock, err := c.lock(ctx, id, asking)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := c.reload(ctx, id)
	if err != nil {
		return nil, err
	}
	early := d == nil
	if early {
		if s == nil {
			return &outcome{}, nil
		}
		d = c.storedDiscovery(&s.binding)
	}
	p := &plan{found: d, before: s, onAsk: asking}
	for {
		switch act, err := c.decide(s, d, ch, &n); act {
		case fail:
			if s != nil && ch.forbidden() && errors.Is(err, errNoBetterTokens) {
				c.endStepUps(ctx, d, s, ch, n.operation)
			}
			return nil, err
		case send:
			return &outcome{session: s}, nil
		case refresh:
			n.refreshed = true
			if p.meta, _, err = c.server(ctx, d, s.Issuer); err != nil {
				return nil, err
			}
			if s, err = c.tryRefresh(ctx, p.meta, s); refusedForGood(err) && !early {
				c.log.WarnContext(ctx, "token cannot be refreshed", "resource", id, "issuer", s.Issuer, "error", err)
				err = nil
			}
			if err != nil {
				return nil, err
			}
		default:
			s, err := c.planSignIn(ctx, p, ch, &n, act == stepUp)
			if err != nil {
				return nil, err
			}
			return &outcome{session: s, signedIn: true}, nil
		}
	}
}

// planSignIn makes the plan of a sign-in and carries it out.
func (c *Client) planSignIn(ctx context.Context, p *plan, ch *challenge, n *need, more bool) (*session, error) {
	issuer, err := c.chooseServer(ctx, p.found, p.before)
	if err != nil {
		return nil, err
	}
	switch p.why = ReasonSignIn; {
	case p.before != nil && !oauth.SameIssuer(p.before.Issuer, issuer):
		p.why = ReasonServerChanged
		if err := c.checkServerChange(p.before.Issuer, issuer); err != nil {
			return nil, err
		}
	case more:
		p.why = ReasonStepUp
	}
	if p.meta == nil {
		if p.meta, _, err = c.server(ctx, p.found, issuer); err != nil {
			return nil, err
		}
	}
	p.scopes = c.chooseScopes(p, ch, n)
	if p.why == ReasonStepUp && n.operation != "" {
		c.countStepUp(p.found.id, n.operation, covers(p.before.Requested, ch.scopes))
	}
	if p.dpop, err = c.newSignerFor(p.found, p.meta); err != nil {
		return nil, err
	}
	s, err := c.signIn(ctx, p)
	return s, c.recordOutcome(ctx, p, err)
}

// checkServerChange refuses a new server without credentials where the old one had some: spec
// 2026-07-28, basic/authorization/client-registration, "Authorization Server Binding": SHOULD.
func (c *Client) checkServerChange(from, to string) error {
	if c.preregistered(from) == nil || c.preregistered(to) != nil {
		return nil
	}
	return newDiscoveryError(StepChoice, to,
		fmt.Errorf("the resource names another authorization server than %s, which this client is registered at", redactURL(from)),
		"spec basic/authorization/client-registration: credentials are bound to their issuer",
		"if the change is real, register there and give the credentials, or forget the resource first")
}

// chooseScopes decides what is asked for. spec 2026-07-28, basic/authorization, "Scope Selection
// Strategy" and "Step-Up Authorization Flow": the challenge's, else all that the resource's
// metadata names, else none; always with those asked for before, so that none is lost.
func (c *Client) chooseScopes(p *plan, ch *challenge, n *need) []string {
	base := p.found.scopes
	if ch.scopes != nil {
		base = ch.scopes
	}
	var before []string
	if p.before != nil && p.why != ReasonServerChanged {
		before = slices.DeleteFunc(slices.Clone(p.before.Requested), func(scope string) bool { return scope == oauth.ScopeOfflineAccess })
	}
	all := oauth.UnionScopes(before, base, c.o.Scopes, n.scopes)
	// "Refresh Tokens": MAY add offline_access when the server's metadata contains it. Alone it
	// would take the place of the server's default.
	if len(all) > 0 && c.o.Grant == nil && slices.Contains(p.meta.ScopesSupported, oauth.ScopeOfflineAccess) {
		all = oauth.UnionScopes(all, []string{oauth.ScopeOfflineAccess})
	}
	return all
}
