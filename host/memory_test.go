package host_test

import (
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/host/storetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) host.Store { return new(host.Memory) })
}
