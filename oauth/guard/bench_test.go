package guard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/principal"
)

// sink is a response writer that costs nothing.
type sink struct{ h http.Header }

func (s sink) Header() http.Header         { return s.h }
func (s sink) Write(p []byte) (int, error) { return len(p), nil }
func (s sink) WriteHeader(int)             {}

// prepared is a request with a token of usual length and the headers that MCP
// clients send.
func prepared(b testing.TB, bench *bench) *http.Request {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, resource, nil)
	r.Header = http.Header{
		"Authorization":        {"Bearer " + bench.token(claims{"scope": "mcp files:read files:write"})},
		"Accept":               {"application/json, text/event-stream"},
		"Accept-Encoding":      {"gzip"},
		"Content-Length":       {"120"},
		"Content-Type":         {"application/json"},
		"Mcp-Method":           {"tools/call"},
		"Mcp-Name":             {"search"},
		"Mcp-Protocol-Version": {"2026-07-28"},
		"User-Agent":           {"parley/1.0"},
	}
	return r
}

// trivial is an endpoint that looks who calls.
func trivial(b testing.TB) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if principal.FromContext(r.Context()) == nil {
			b.Error("nobody calls")
		}
	})
}

// BenchmarkCachedToken counts all that the guard adds to a request with a token
// that it remembers: reading the header, hashing and finding the token, and
// the request that goes on, with its context and headers. net/http itself is
// not counted, and what the endpoint does is one look at the principal.
func BenchmarkCachedToken(b *testing.B) {
	bench := setUp(b, &guard.Options{Scopes: []string{"mcp"}})
	h, r, w := bench.guard.Protect(trivial(b)), prepared(b, bench), sink{http.Header{}}
	h.ServeHTTP(w, r)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

// BenchmarkCachedTokenFresh is the same with RequireFresh, which registers the request to be ended.
func BenchmarkCachedTokenFresh(b *testing.B) {
	bench := &bench{t: b, key: newKey(b, "ES256"), clock: clocktest.New(epoch)}
	bench.with(newFixed(), &guard.Options{Scopes: []string{"mcp"}, RequireFresh: time.Minute})
	h, r, w := bench.guard.Protect(trivial(b)), prepared(b, bench), sink{http.Header{}}
	h.ServeHTTP(w, r)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

// BenchmarkCachedTokenParallel is the same from all cores at once.
func BenchmarkCachedTokenParallel(b *testing.B) {
	bench := setUp(b, &guard.Options{Scopes: []string{"mcp"}})
	h := bench.guard.Protect(trivial(b))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		r, w := prepared(b, bench), sink{http.Header{}}
		for pb.Next() {
			h.ServeHTTP(w, r)
		}
	})
}

// BenchmarkNewToken verifies the signature (ES256) for each request.
func BenchmarkNewToken(b *testing.B) {
	bench := setUp(b, &guard.Options{Scopes: []string{"mcp"}, CacheAge: -1})
	h, r, w := bench.guard.Protect(trivial(b)), prepared(b, bench), sink{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

// BenchmarkNoToken is a refusal, which a stranger can have for nothing.
func BenchmarkNoToken(b *testing.B) {
	bench := setUp(b, nil)
	h, r, w := bench.guard.Protect(trivial(b)), prepared(b, bench), sink{http.Header{}}
	r.Header.Del("Authorization")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

// A remembered token costs no more allocations than it must.
func TestCachedTokenAllocations(t *testing.T) {
	b := &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}
	b.with(guard.JWT(issuerID, &guard.JWTOptions{JWKS: jwt.SetJSON(b.key), Now: b.clock.Now}), nil)
	h, r, w := b.guard.Protect(trivial(t)), prepared(t, b), sink{http.Header{}}
	h.ServeHTTP(w, r)
	if n := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); n > 5 {
		t.Errorf("%v allocations, want 5 at most", n)
	}
}
