package guard_test

import (
	"os"
	"testing"

	"github.com/parley-mcp/parley/internal/webtest"
)

func TestMain(m *testing.M) {
	webtest.KeepIdle()
	os.Exit(m.Run())
}
