package storetest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/oauth/issuer/storetest"
)

// A store that takes its time, for tests of races.
func ExampleSlow() {
	trips := 0
	store := storetest.Slow(issuer.NewMemory(), func() { trips++ })
	first, err := store.UseID(context.Background(), "https://as.example", "id", time.Now().Add(time.Minute), time.Now())
	fmt.Println(first, err, trips)
	// Output: true <nil> 2
}
