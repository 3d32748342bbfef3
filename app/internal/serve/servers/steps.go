package servers

import "context"

// CostPerPoll is the cost after which Steps looks at its context again: about a millisecond of work.
const CostPerPoll = 256 << 10

// Steps counts the cost of the steps of a call and polls the call's context, so that a cancelled call
// stops within CostPerPoll and the cost of one step. Every loop whose length a caller, a file or a site
// decides has one, or calls Ended in each step if a step costs much more than a poll, such as a system
// call. Steps is not safe for concurrent use.
type Steps struct {
	ctx  context.Context //nolint:containedctx // of the call whose steps these are
	left int
}

// NewSteps returns the Steps of a call.
func NewSteps(ctx context.Context) *Steps { return &Steps{ctx: ctx} }

// Add counts a step before it is done. cost is about the number of bytes that the step reads or copies;
// an item of a list adds 64 to them. The error is the cause of the cancellation of the context.
func (s *Steps) Add(cost int) error {
	if s.left -= 64 + cost; s.left > 0 {
		return nil
	}
	s.left = CostPerPoll
	return Ended(s.ctx)
}

// Ended returns the cause if a context has ended.
func Ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
