package frame

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/jsonrpc"
)

// A small message does not wait in the buffer of a large one. Proves: SEC-DOS-1.
func TestBuffersFit(t *testing.T) {
	for range 100 { // the pool gives back what it likes
		big, err := encode(&jsonrpc.Outgoing{Method: strings.Repeat("m", 500<<10)})
		if err != nil {
			t.Fatal(err)
		}
		big.free()
		small, err := encode(&jsonrpc.Outgoing{Method: "m"})
		if err != nil {
			t.Fatal(err)
		}
		if cap(small.b) > maxIdleCapacity {
			t.Fatalf("%d bytes wait in a buffer of %d", len(small.b), cap(small.b))
		}
		small.free()
	}
}
