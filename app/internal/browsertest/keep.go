package browsertest

import "net/http"

// keeper is a transport whose idle connections nobody closes.
type keeper struct{ http.RoundTripper }

// KeepIdle is for TestMain. The end of each httptest.Server closes the idle connections of
// http.DefaultTransport. A request of another test that has just taken one of them, or whose response
// has no body, would fail.
func KeepIdle() { http.DefaultTransport = keeper{http.DefaultTransport} }
