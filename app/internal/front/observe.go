package front

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/telemetry"
	otelmcp "github.com/parley-mcp/parley/contrib/otel"
	"github.com/parley-mcp/parley/contrib/prometheus/metrics"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/web"
)

// metricsPath is where the page of metrics is, on a listener of its own.
const metricsPath = "/metrics"

// headersVariable holds keys for a collector, as for other exporters.
const headersVariable = "OTEL_EXPORTER_OTLP_HEADERS"

// Observe are the flags of commands that can be watched from outside.
type Observe struct {
	metrics string
	otlp    string
}

// AddObserveFlags adds the flags.
func (o *Observe) AddObserveFlags(f *pflag.FlagSet) {
	f.StringVar(&o.metrics, "metrics", "", "serve Prometheus metrics at this `ADDRESS`, such as :9090, under /metrics (default: none)")
	f.StringVar(&o.otlp, "otlp", "", "send traces to the collector at this `URL`, such as http://localhost:4318 (default: none)")
}

// Start makes what the flags say. watch has a server watched, before its first
// request; stop is called once all servers have ended.
func (o *Observe) Start(ctx context.Context, c *kit.Console, f *pflag.FlagSet) (watch func(s *server.Server), stop func(), err error) {
	provider, stopTraces, err := o.StartTraces(ctx, c, f)
	if err != nil {
		return nil, nil, err
	}
	m := metrics.New(nil)
	stopPage, err := o.StartPage(ctx, c, f, m)
	if err != nil {
		stopTraces()
		return nil, nil, err
	}
	watch = func(s *server.Server) {
		if provider != nil {
			s.Use(otelmcp.Server(&otelmcp.Options{TracerProvider: provider}))
		}
		if f.Changed("metrics") {
			s.Use(m.Server())
			s.Observe(m.ServerObserver())
		}
	}
	return watch, func() { stopPage(); stopTraces() }, nil
}

// StartTraces makes what traces go to, nil if they go nowhere.
func (o *Observe) StartTraces(ctx context.Context, c *kit.Console, f *pflag.FlagSet) (_ trace.TracerProvider, stop func(), err error) {
	if !f.Changed("otlp") {
		return nil, func() {}, nil
	}
	header, err := telemetry.ParseHeaders(os.Getenv(headersVariable))
	if err != nil {
		return nil, nil, kit.Usagef("%s: %w", headersVariable, err)
	}
	exporter, err := telemetry.NewExporter(o.otlp, &telemetry.ExporterOptions{Header: header, Logger: c.ServerLogger()})
	if err != nil {
		return nil, nil, kit.Usagef("--otlp: %w", err)
	}
	provider, err := telemetry.Provider(ctx, exporter, telemetry.Service{Name: "parley", Version: kit.Version()})
	if err != nil {
		return nil, nil, kit.Usagef("%w", err)
	}
	return provider, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), kit.ShutdownTime)
		defer cancel()
		if err := provider.Shutdown(last); err != nil {
			c.ServerLogger().Warn("sending the last traces", "error", err)
		}
	}, nil
}

// StartPage has a page of metrics served.
func (o *Observe) StartPage(ctx context.Context, c *kit.Console, f *pflag.FlagSet, page http.Handler) (stop func(), err error) {
	if !f.Changed("metrics") {
		return func() {}, nil
	}
	if _, _, err := net.SplitHostPort(o.metrics); err != nil {
		return nil, kit.Usagef("--metrics %q: must be HOST:PORT or :PORT", o.metrics)
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx)) // the page is there until the server has ended
	listening := make(chan net.Addr, 1)
	done := make(chan error, 1)
	go func() {
		done <- web.Serve(ctx, o.metrics, metricsHandler(page), &web.ServeOptions{
			Grace:     kit.ShutdownTime,
			Logger:    c.ServerLogger(),
			Listening: func(addr net.Addr) { listening <- addr },
		})
	}()
	select {
	case err := <-done:
		end()
		return nil, kit.Usagef("--metrics: %w", err)
	case addr := <-listening:
		c.Note("parley: metrics at http://%s%s", Reachable(addr), metricsPath)
		if kit.ListensEverywhere(o.metrics) {
			c.Note("parley: other machines can read the metrics without authentication")
		}
	}
	return func() {
		end()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			c.ServerLogger().Warn("serving metrics", "error", err)
		}
	}, nil
}

// metricsHandler serves the page to programs, and to no other site's pages.
func metricsHandler(page http.Handler) http.Handler {
	access := &web.Access{}
	mux := http.NewServeMux()
	mux.HandleFunc(metricsPath, func(w http.ResponseWriter, r *http.Request) {
		if _, ok := access.Admit(w, r, &web.CORS{Methods: []string{http.MethodGet}}); ok {
			page.ServeHTTP(w, r)
		}
	})
	return mux
}
