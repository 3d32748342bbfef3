package host

import (
	"context"
	"fmt"

	"github.com/parley-mcp/parley/internal/pausetimer"
)

// A BudgetError says that a run was ended because a budget was spent.
type BudgetError struct {
	// What is the budget: "steps", "calls", "time", "tokens", "money",
	// "samples", "questions".
	What string
	// Limit is the budget as a text, for example "16 steps".
	Limit string
}

// Error names the budget.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget of %s is spent", e.Limit)
}

// limit ends ctx with a BudgetError after MaxTime, without the time in which a
// person is asked, until the function that it returns is called.
func (h *Host) limit(ctx context.Context) (context.Context, func()) {
	ctx, cancel := pausetimer.WithTimeout(ctx, h.opts.MaxTime, &BudgetError{"time", h.opts.MaxTime.String()})
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
