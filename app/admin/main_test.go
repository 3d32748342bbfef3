package admin_test

import (
	"os"
	"testing"

	"github.com/parley-mcp/parley/app/browsertest"
	"github.com/parley-mcp/parley/app/store/databasetest"
	"github.com/parley-mcp/parley/app/userauth"
)

func TestMain(m *testing.M) {
	userauth.CheapHashes()
	browsertest.KeepIdle()
	databasetest.Parallel()
	os.Exit(m.Run())
}
