package cli_test

import (
	"context"
	"testing"

	"github.com/parley-mcp/parley/app/providertest"
	"github.com/parley-mcp/parley/app/servers/everything"
	"github.com/parley-mcp/parley/transport/streamable"
)

// The command login signs in to servers with the habits of those that exist; then a token is refreshed,
// and a scope that is missing is asked for. Package interop does the same in a real browser.
// Proves: rulings 36, 37; C3, C7, C11, C19, C20.
func TestProviders(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	t.Setenv("FORM", "answer=approve")
	for _, h := range providertest.Habits(t) {
		t.Run(h.Name, func(t *testing.T) {
			newEmptyPlace(t)
			handler := streamable.NewHandler(everything.New("1.0.0", nil), nil)
			t.Cleanup(func() {
				if err := handler.Shutdown(context.Background()); err != nil {
					t.Errorf("shutdown: %v", err)
				}
			})
			providertest.New(t, &h, handler).SignIn(t, func(args ...string) (int, string, string) { return command(t, args...) })
		})
	}
}
