package login_test

import (
	"net/http"
	"os"
	"testing"
)

// plain is a transport whose idle connections nobody closes.
type plain struct{ http.RoundTripper }

// The end of each httptest.Server closes the idle connections of http.DefaultTransport. A request
// of another test that has just taken one of them would fail.
func TestMain(m *testing.M) {
	http.DefaultTransport = plain{http.DefaultTransport}
	os.Exit(m.Run())
}
