package guard

import (
	"context"
	"errors"
	"slices"
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
