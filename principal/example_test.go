package principal_test

import (
	"context"
	"fmt"

	"github.com/parley-mcp/parley/principal"
)

// Middleware of your own says who calls; handlers, limits and sessions ask.
func Example() {
	ctx := principal.NewContext(context.Background(), &principal.Principal{
		Issuer: "https://as.example", Subject: "ada", Client: "cli", Scopes: []string{"notes:read"},
	})
	who := principal.FromContext(ctx)
	fmt.Println(who.Subject, who.Anonymous(), who.Has("notes:read"), who.Has("notes:write"))
	// Output: ada false true false
}

// Callers that nobody knows are limited by where they come from.
func ExamplePrincipal_LimitKey() {
	for _, remote := range []string{"192.0.2.7", "2001:db8::1", "2001:db8::2"} {
		fmt.Println((&principal.Principal{Remote: remote}).LimitKey())
	}
	// Output:
	// @192.0.2.7
	// @2001:db8::/64
	// @2001:db8::/64
}
