package host

import (
	"context"
	"errors"
	"fmt"
)

// A grantKey is what a lasting grant is for.
type grantKey struct {
	kind         Kind
	server, name string
}

// A consentRequest is one action that needs policy or consent.
type consentRequest struct {
	key      grantKey
	digest   digest // of a tool's definition; zero for other kinds
	question *Question
	why      string // filled in: why it may be done
}

// consent lets a thing through, or returns a *ConsentError: the policy denies
// it, the person refuses it, or no person can be asked. Other errors are those of
// the face and of ctx.
func (h *Host) consent(ctx context.Context, j *consentRequest) error {
	v := h.opts.Policy.Decide(j.key.kind, j.key.server, j.key.name)
	deny := func(why string, refused bool, reason string) error {
		return &ConsentError{Kind: j.key.kind, Server: j.key.server, Name: j.key.name, Why: why, Refused: refused, Reason: reason}
	}
	switch v.Effect {
	case Allow:
		j.why = v.Why()
		return nil
	case Deny:
		return deny(v.Why(), true, "")
	case Ask:
	}
	if granted, _ := h.granted(j); granted {
		j.why = always
		return nil
	}
	if h.opts.Consent == nil {
		return deny("it needs a person's consent, and nobody can be asked here ("+v.Why()+")", false, "")
	}
	var d Decision
	err := h.withPerson(ctx, func() (err error) {
		// While this call waited, the person may have said "always" to another.
		granted, changed := h.granted(j)
		if granted {
			d.Grant = Always
			return nil
		}
		j.question.Changed, j.question.Why = changed, v.Why()
		d, err = h.opts.Consent.Ask(ctx, j.question)
		return err
	})
	switch {
	case errors.Is(err, ErrConsent):
		return err
	case err != nil:
		return fmt.Errorf("asking for consent: %w", err)
	}
	switch d.Grant {
	case Always:
		h.mu.Lock()
		h.grants[j.key] = j.digest
		h.mu.Unlock()
		j.why = always
		return nil
	case Once:
		j.why = "the person agreed"
		return nil
	default:
		return deny("the person refused", true, d.Reason)
	}
}

const always = "the person agreed to it for as long as the host runs"

// granted reports whether the person has agreed for good, and whether they
// have, but to another definition.
func (h *Host) granted(j *consentRequest) (granted, changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, ok := h.grants[j.key]
	return ok && d == j.digest, ok && d != j.digest
}
