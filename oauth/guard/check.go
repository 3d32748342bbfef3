package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Check tries what the verifiers of this package need of their issuers: metadata and keys, or an
// answer to a question about a token that nobody has. Nil says that they have it. An error that wraps
// [ErrUnavailable] is one that may pass, such as an issuer that does not answer; every other needs a
// change of somebody: the metadata is of another issuer or names no endpoint, the issuer refuses the
// client, an address is one that must not be dialled. Ctx ends the attempts. It is meant for the
// start of a program, so that the operator learns at once what each request would be answered.
func (g *Guard) Check(ctx context.Context) error {
	v, ok := g.verifier.(builtinVerifier)
	if !ok {
		return nil
	}
	errs := v.try(ctx)
	lasting := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return errors.Is(err, ErrUnavailable) })
	if len(lasting) > 0 {
		errs = lasting
	}
	return errors.Join(errs...)
}

// Ready says whether the tokens of an issuer can be judged now, for the readiness of a server that is
// asked often: the keys of [JWT] are there, or can be fetched; the endpoint of [Introspection] has
// answered within RequireFresh, or else CacheAge, and not failed since, or answers a question about a
// token that nobody has. Nil says so, also of a verifier that is not of this package. An error is for the
// log. Keys whose issuer does not answer are good for as long as [JWT] says. Ctx ends the attempt.
func (g *Guard) Ready(ctx context.Context, issuer string) error {
	if !slices.Contains(g.issuers, issuer) {
		return fmt.Errorf("guard: %q is none of the issuers", issuer)
	}
	v, ok := g.verifier.(builtinVerifier)
	if !ok {
		return nil
	}
	within := g.opts.CacheAge // which is RequireFresh at most
	if within <= 0 {
		within = g.opts.VerifyTimeout
	}
	return v.ready(ctx, issuer, within)
}

// ready says whether all verifiers of an issuer are.
func (a anyOf) ready(ctx context.Context, issuer string, within time.Duration) error {
	var errs []error
	for _, v := range a {
		if v, ok := v.(builtinVerifier); ok && slices.Contains(v.Issuers(), issuer) {
			errs = append(errs, v.ready(ctx, issuer, within))
		}
	}
	return errors.Join(errs...)
}

// ready says whether there are keys.
func (v *jwtVerifier) ready(ctx context.Context, _ string, _ time.Duration) error {
	if v.remote == nil {
		return nil
	}
	if err := v.remote.Ready(ctx); err != nil {
		return unavailable(err)
	}
	return nil
}

// ready asks, if no answer within that time says that the issuer can be asked.
func (v *introspection) ready(ctx context.Context, _ string, within time.Duration) error {
	v.mu.Lock()
	answered := v.answered
	v.mu.Unlock()
	if now := v.opts.Now(); !answered.IsZero() && now.Sub(answered) < within && !now.Before(answered) {
		return nil
	}
	return errors.Join(v.try(ctx)...)
}
