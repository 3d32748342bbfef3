package login

// Backoff of sign-ins whose tokens never worked, that were refused, or that brought too few scopes,
// and of refreshes that fail.

import (
	"context"
	"errors"
	"strings"
	"time"
)

const (
	// minSignInBackoff is how long tokens that never worked are not replaced by another sign-in, which
	// their resource would only refuse. It doubles with each sign-in, up to maxSignInBackoff.
	minSignInBackoff = time.Minute
	maxSignInBackoff = time.Hour
	// refusalBackoff is how long a person who did not sign in is not asked again by requests.
	refusalBackoff = time.Minute
	// refreshBackoff is the pause after a refresh that failed while the old token lasts.
	refreshBackoff = 5 * time.Second
	// maxOperations bounds the operations of one resource that are counted; another does not ask.
	maxOperations = 256
)

// nextBackoff is the backoff after a sign-in that replaces s.
func (s *session) nextBackoff() time.Duration {
	if s == nil || s.signInBackoff == 0 || s.accepted.Load() {
		return minSignInBackoff
	}
	return min(2*s.signInBackoff, maxSignInBackoff)
}

// inBackoff reports whether the tokens never worked and their sign-in was a moment ago.
func (s *session) inBackoff(now time.Time) bool {
	return !s.accepted.Load() && isRecent(now, s.signedIn, s.signInBackoff)
}

// isRecent reports whether d has not passed since an earlier time. Clocks that are set back end it.
func isRecent(now, since time.Time, d time.Duration) bool {
	age := now.Sub(since)
	return age >= 0 && age < d
}

// A refusal is the end of a sign-in that a person was asked for and did not complete.
type refusal struct {
	at  time.Time
	err error
}

// recordOutcome remembers how a sign-in ended, and returns err as its error. One that all callers
// have left, or for which nobody was asked, is no refusal.
func (c *Client) recordOutcome(ctx context.Context, p *plan, err error) error {
	if err != nil && (!p.asked || errors.Is(context.Cause(ctx), context.Canceled) || errors.Is(err, ErrClosed)) {
		return err
	}
	var refused refusal
	if err != nil {
		err = &Error{Err: err}
		refused = refusal{c.o.Now(), err}
	}
	c.resources.with(p.found.id, func(r *entry) { r.refused = refused })
	return err
}

// countStepUp counts a step-up of an operation. To be asked again for what was asked for mostly
// means that it will not be given, so that one more is the last.
func (c *Client) countStepUp(id, operation string, known bool) {
	c.resources.with(id, func(r *entry) {
		if r.stepUps == nil {
			r.stepUps = map[string]int{}
		}
		r.stepUps[operation]++
		if known {
			r.stepUps[operation] = c.o.StepUps
		}
	})
}

// mayStepUp reports whether an operation may ask for more scopes.
func (r *entry) mayStepUp(operation string, most int) bool {
	done, counted := r.stepUps[operation]
	return done < most && (counted || len(r.stepUps) < maxOperations)
}

// stepUpsEnded reports whether endStepUps has logged why, or never will.
func (r *entry) stepUpsEnded(operation string, most int) bool {
	done, counted := r.stepUps[operation]
	return !counted || done > most
}

// endStepUps says in the log, once, why an operation asks for no more scopes.
func (c *Client) endStepUps(ctx context.Context, d *discovery, s *session, ch *challenge, operation string) {
	told := true
	c.resources.with(d.id, func(r *entry) {
		if told = r.stepUpsEnded(operation, c.o.StepUps); !told {
			r.stepUps[operation] = c.o.StepUps + 1
		}
	})
	if told {
		return
	}
	advice := "the account may lack the right: ask the operator of the resource"
	if m, _, err := c.server(ctx, d, s.Issuer); err == nil && m.ScopesSupported != nil && !covers(m.ScopesSupported, ch.scopes) {
		advice = "the authorization server does not list these scopes: tell the operator of the resource"
	}
	c.log.WarnContext(ctx, "signing in did not bring the scopes that the resource wants", "resource", d.id,
		"operation", operation, "scopes", strings.Join(ch.scopes, " "), "issuer", s.Issuer, "advice", advice)
}

// resetStepUps lets operations that were given up try again: somebody has asked.
func (c *Client) resetStepUps() {
	c.resources.each(func(r *entry) { clear(r.stepUps) })
}
