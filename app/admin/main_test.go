package admin_test

import (
	"os"
	"testing"

	"github.com/parley-mcp/parley/app/browsertest"
	"github.com/parley-mcp/parley/app/store/databasetest"
)

func TestMain(m *testing.M) {
	browsertest.KeepIdle()
	databasetest.Parallel()
	os.Exit(m.Run())
}
