package userauth_test

import (
	"os"
	"testing"

	"github.com/parley-mcp/parley/app/internal/browsertest"
)

func TestMain(m *testing.M) {
	browsertest.KeepIdle()
	os.Exit(m.Run())
}
