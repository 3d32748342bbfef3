package admin_test

import (
	"os"
	"testing"

	"github.com/parley-mcp/parley/app/internal/authserver/userauth"
	"github.com/parley-mcp/parley/app/internal/browsertest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
)

func TestMain(m *testing.M) {
	userauth.CheapHashes()
	browsertest.KeepIdle()
	databasetest.Parallel()
	os.Exit(m.Run())
}
