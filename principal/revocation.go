package principal

import (
	"context"
	"errors"
)

// ErrRevoked is the cause with which the context of a request ends whose caller lost its access
// while the request was under way.
var ErrRevoked = errors.New("the caller's access was revoked")

type revocationKey struct{}

// WithRevocation returns a copy of ctx that revoke ends, with [ErrRevoked] as its cause. It is for
// what authenticates callers and goes on to ask whether they still have access. Revoke may be called
// several times, and must be called in the end, to free what ctx holds.
func WithRevocation(ctx context.Context) (_ context.Context, revoke func()) {
	revoked, tell := context.WithCancelCause(context.Background())
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, revocationKey{}, revoked))
	return ctx, func() {
		tell(ErrRevoked)
		cancel(ErrRevoked)
	}
}

// UntilRevoked returns a copy of ctx that also ends, with [ErrRevoked] as its cause, when the access
// of the caller of request is revoked. It is for transports whose calls outlive the context of their
// request. Without [WithRevocation] in request it is ctx itself. End must be called when the call is
// over.
func UntilRevoked(ctx, request context.Context) (_ context.Context, end func()) {
	revoked, ok := request.Value(revocationKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(revoked, func() { cancel(ErrRevoked) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
