package issuer_test

import (
	"runtime"
	"testing"

	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/oauth/issuer/storetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(testing.TB) issuer.Store { return issuer.NewMemory() })
}

func TestMemorySlow(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(testing.TB) issuer.Store { return storetest.Slow(issuer.NewMemory(), runtime.Gosched) })
}
