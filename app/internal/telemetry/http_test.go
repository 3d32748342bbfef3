package telemetry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/parley-mcp/parley/app/internal/telemetry"
)

// A request of HTTP is a span with its route and status, the child of its
// caller's, and nothing that a client or a secret is in.
func TestHandler(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	h := telemetry.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/token":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusBadGateway)
		case "/flush":
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		default:
			http.NotFound(w, r)
		}
	}), provider, func(r *http.Request) string {
		return map[string]string{"/token": "token", "/flush": "flush"}[r.URL.Path]
	})
	for _, test := range []struct{ method, target, want string }{
		{"POST", "/token?code=swordfish", "POST token [http.request.method=POST http.route=token http.response.status_code=502] Error"},
		{"GET", "/flush", "GET flush [http.request.method=GET http.route=flush http.response.status_code=200] Unset"},
		{"SWORDFISH", "/swordfish", "_OTHER [http.request.method=_OTHER http.response.status_code=404] Unset"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), test.method, test.target, nil)
		r.Header.Set("Traceparent", "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01")
		h.ServeHTTP(httptest.NewRecorder(), r)
		s := spans.Ended()[len(spans.Ended())-1]
		var words []string
		for _, a := range s.Attributes() {
			words = append(words, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
		}
		if got := fmt.Sprintf("%s [%s] %s", s.Name(), strings.Join(words, " "), s.Status().Code); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
		if s.Parent().SpanID().String() != "0102030405060708" {
			t.Errorf("the parent is %s", s.Parent().SpanID())
		}
	}
}
