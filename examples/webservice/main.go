// Command webservice is a server within a web application: a router (chi),
// compression, traces (OpenTelemetry), metrics (Prometheus) and API keys. See
// docs/guide/limits.md.
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// keys knows API keys by their digest, so that looking one up tells nothing
// about the others.
type keys map[[sha256.Size]byte]string

// authenticate admits callers that have a key, and gives the server their principal.
func (k keys) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		user, ok := k[sha256.Sum256([]byte(key))]
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer realm="api key"`)
			http.Error(w, "an API key is needed", http.StatusUnauthorized)
			return
		}
		who := &principal.Principal{Subject: user}
		next.ServeHTTP(w, r.WithContext(principal.NewContext(r.Context(), who)))
	})
}

// measure counts requests, by method, name and outcome, and their time.
func measure(reg prometheus.Registerer) server.Middleware {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mcp_requests_total", Help: "Requests, by outcome.",
	}, []string{"method", "target", "outcome"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "mcp_request_seconds", Help: "Time of requests.",
	}, []string{"method"})
	reg.MustRegister(total, seconds)
	return func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			begun := time.Now()
			res, err := next(c)
			target := ""
			if c.Offered() { // names that callers make up would be labels too
				target = c.Target()
			}
			total.WithLabelValues(c.Method(), target, server.OutcomeOf(c, res, err).String()).Inc()
			seconds.WithLabelValues(c.Method()).Observe(time.Since(begun).Seconds())
			return res, err
		}
	}
}

func hello(ctx context.Context, _ mcp.None) (string, error) {
	return "Hello, " + server.Caller(ctx).Subject + "!", nil
}

// routes is the whole web application, and the endpoint for its end.
func routes(k keys, reg *prometheus.Registry) (http.Handler, *streamable.Handler) {
	s := server.New("webservice", "1.0.0", &server.Options{
		Limits: server.Limits{ToolRate: 20, MaxInFlight: 32},
	})
	s.Use(measure(reg))
	s.Add(server.Tool("hello", "Greets the caller.", hello))
	endpoint := streamable.NewHandler(s, &streamable.Options{Logger: slog.Default()})

	r := chi.NewRouter()
	r.Use(middleware.RequestID, middleware.Recoverer)
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	r.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	r.Group(func(r chi.Router) {
		r.Use(
			func(next http.Handler) http.Handler { return otelhttp.NewHandler(next, "mcp") },
			middleware.Compress(5, "application/json"),
			k.authenticate,
		)
		r.Handle(streamable.Path, endpoint)
	})
	return r, endpoint
}

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "address to serve on")
	key, user := os.Getenv("API_KEY"), "ada"
	flag.Parse()
	if key == "" {
		log.Fatal("set API_KEY, for example to: openssl rand -hex 16")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	h, endpoint := routes(keys{sha256.Sum256([]byte(key)): user}, prometheus.NewRegistry())
	if err := web.Serve(ctx, *addr, h, &web.ServeOptions{Shutdown: endpoint.Shutdown}); err != nil {
		log.Fatal(err)
	}
}
