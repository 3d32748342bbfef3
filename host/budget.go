package host

import (
	"context"
	"fmt"

	"github.com/parley-mcp/parley/internal/pausetimer"
)

// A BudgetError says that a run was ended because a budget was spent.
type BudgetError struct {
	// What is the budget: "steps", "calls", "time", "samples", "questions".
	What string
	// Limit is the budget as a text, for example "16 steps".
	Limit string
}

// Error names the budget.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget of %s is spent", e.Limit)
}

// run limits ctx to MaxTime without the time in which a person is asked, until the
// function that it returns is called. Then it ends with a BudgetError.
func (h *Host) run(ctx context.Context) (context.Context, func()) {
	limit := h.opts.MaxTime
	ctx, cancel := pausetimer.WithTimeout(ctx, limit, &BudgetError{"time", limit.String()})
	timer := pausetimer.From(ctx)
	h.mu.Lock()
	h.runs[timer] = struct{}{}
	h.mu.Unlock()
	return ctx, func() {
		h.mu.Lock()
		delete(h.runs, timer)
		h.mu.Unlock()
		cancel()
	}
}
