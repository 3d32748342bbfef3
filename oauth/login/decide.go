package login

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// An action is what a request needs next. Under way an attempt goes through these, each step
// decided by next from what is known by then:
//
//	send --401--> refresh --refused--> signIn --> send
//	send --403--> stepUp --> send
//	any  --no help--> fail
type action int

const (
	send    action = iota // with the tokens there are, or with none
	refresh               // the tokens, then decide again
	signIn                // without regard to the tokens
	stepUp                // sign in for more scopes
	fail                  // with an error that says why
)

// A purpose is what tokens are needed for.
type purpose int

const (
	forRequest   purpose = iota // a request, which goes without tokens if there are none
	forToken                    // Source: there must be a token
	forSignIn                   // SignIn: somebody began it; a refusal a moment ago does not count
	forNewSignIn                // the same, and tokens that there are do not count
)

// need is what a caller needs of a resource.
type need struct {
	purpose purpose
	// scopes are needed besides those of the challenge.
	scopes []string
	// generation is that of the tokens that were refused; "" if none were sent.
	generation string
	// operation is what a step-up counts for; "" counts for nothing.
	operation string
	// rounds is how often a challenge of this kind has come to one request, with this one.
	rounds int
	// refreshed says that refreshing was tried.
	refreshed bool
	// newNonce says that the challenge brought a nonce that the refused proof did not have.
	newNonce bool
}

// A policy is what decisions depend on besides resource, challenge and need.
type policy struct {
	now     time.Time
	margin  time.Duration // the life in a token at which it is refreshed
	stepUps int           // how often one operation may ask for more scopes
}

// maxRounds is how often a 401 leads to other tokens: those of another request, refreshed, new.
const maxRounds = 3

// errNoBetterTokens says that no other tokens would help: the resource's answer stands.
var errNoBetterTokens = errors.New("no other tokens would help")

// next decides what follows on a challenge. It is pure. The error is set for fail alone.
func (p policy) next(r *entry, ch *challenge, n *need) (action, error) {
	t, usable, due := p.checkTokens(r, ch, n)
	refreshable := t != nil && t.Refresh != "" && !n.refreshed && n.purpose != forNewSignIn && r.namesIssuer(t.Issuer) &&
		(covers(t.Requested, n.scopes) || !t.lasts(p.now, 0))
	more := ch.forbidden() // scopes are missing
	switch {
	case ch.status != 0 && !p.canMeet(r, ch, n):
		return fail, errNoBetterTokens
	case ch.code == oauth.UseDPoPNonce && n.newNonce, usable && !due:
		return send, nil
	case refreshable && !more:
		return refresh, nil
	case usable, ch.status == 0 && n.purpose == forRequest:
		return send, nil
	}
	more = t != nil && r.namesIssuer(t.Issuer) && (more || t.lasts(p.now, 0) && !covers(t.Requested, n.scopes))
	switch {
	case more && n.operation != "" && !r.mayStepUp(n.operation, p.stepUps):
		if r.servers == nil && !r.stepUpsEnded(n.operation, p.stepUps) {
			return stepUp, nil // the metadata are read first: they may name another server by now
		}
		return fail, errNoBetterTokens
	case n.purpose < forSignIn && r.refused.err != nil && isRecent(p.now, r.refused.at, refusalBackoff):
		return fail, r.refused.err
	case more:
		return stepUp, nil
	}
	return signIn, nil
}

// checkTokens reports whether the tokens are usable: others than those refused, not ended, with the
// scopes, of a server that the resource names; and whether it is time to refresh them first.
func (p policy) checkTokens(r *entry, ch *challenge, n *need) (t *tokens, usable, due bool) {
	if r.session == nil || r.session.tokens == nil {
		return nil, false, false
	}
	t = r.session.tokens
	usable = n.purpose != forNewSignIn && t.lasts(p.now, 0) && r.namesIssuer(t.Issuer) && n.covered(t, ch) &&
		(n.generation == "" || t.Generation != n.generation)
	// A flight may be one in which a person signs in.
	due = ch.status == 0 && t.due(p.now, p.margin) && r.flight == nil && !isRecent(p.now, r.refreshFailed, refreshBackoff)
	return t, usable, due
}

// covered reports whether tokens were asked for with the scopes that are needed.
func (n *need) covered(t *tokens, ch *challenge) bool {
	return covers(t.Requested, n.scopes) && (!ch.forbidden() || covers(t.Requested, ch.scopes))
}

// canMeet reports whether a challenge can be met at all.
func (p policy) canMeet(r *entry, ch *challenge, n *need) bool {
	s := r.session
	same := s != nil && s.tokens != nil && s.tokens.Generation == n.generation
	switch {
	case ch.foreign:
		return false
	case ch.forbidden():
		return ch.code == oauth.InsufficientScope && len(ch.scopes) > 0 && n.generation != "" && n.rounds <= max(p.stepUps, 0)+maxRounds
	case same && s.dpop != nil && ch.code == oauth.UseDPoPNonce:
		return n.newNonce
	}
	return n.rounds <= maxRounds && (!same || !s.inBackoff(p.now))
}

// namesIssuer reports whether the resource may still name an authorization server.
func (r *entry) namesIssuer(issuer string) bool {
	return r.servers == nil || names(r.servers, issuer)
}

func (ch *challenge) forbidden() bool { return ch.status == http.StatusForbidden }

// covers reports whether all of these scopes are among those.
func covers(those, these []string) bool {
	return !slices.ContainsFunc(these, func(scope string) bool { return !slices.Contains(those, scope) })
}
