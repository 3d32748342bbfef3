// Command observed is a server with traces, metrics and logs. With -behind it
// asks another one, so that a trace has several hops. See
// docs/guide/observability.md.
//
//	OTEL_SERVICE_NAME=store OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 \
//	  observed -http 127.0.0.1:8080 -metrics 127.0.0.1:9090
//	OTEL_SERVICE_NAME=front OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 \
//	  observed -http 127.0.0.1:8081 -metrics 127.0.0.1:9091 -behind http://127.0.0.1:8080/mcp
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/parley-mcp/parley/client"
	otelmcp "github.com/parley-mcp/parley/contrib/otel"
	prommcp "github.com/parley-mcp/parley/contrib/prometheus"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "address to serve http://ADDRESS/mcp on")
	metrics := flag.String("metrics", "127.0.0.1:9090", "address to serve http://ADDRESS/ for Prometheus on")
	behind := flag.String("behind", "", "URL of another such server, which is asked")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *metrics, *behind); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr, metrics, behind string) error {
	slog.SetDefault(slog.New(server.RequestLogs(slog.NewTextHandler(os.Stderr, nil))))
	end, err := traces(ctx)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	s := &shop{}
	if behind != "" {
		if s.store, err = connect(ctx, streamable.URL(behind), registry); err != nil {
			return errors.Join(err, end())
		}
		defer func() { _ = s.store.Close() }()
	}
	// The end of one server ends the other.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	page := make(chan error, 1)
	go func() {
		defer cancel()
		page <- web.Serve(ctx, metrics, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil)
	}()
	err = streamable.Serve(ctx, addr, s.server(registry), nil)
	cancel()
	return errors.Join(err, <-page, end())
}

// traces sends the traces of this process to a collector. Where it is, and what
// this service is called, is in the environment: OTEL_EXPORTER_OTLP_ENDPOINT and
// OTEL_SERVICE_NAME.
func traces(ctx context.Context) (end func() error, err error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	otel.SetTracerProvider(provider)
	return func() error {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return provider.Shutdown(last) // sends what is left
	}, nil
}

// connect makes a client whose requests are traced and counted.
func connect(ctx context.Context, d transport.Dialer, registry prometheus.Registerer) (*client.Client, error) {
	return client.Connect(ctx, d, &client.Options{
		Middleware: []client.Middleware{otelmcp.Client(nil), prommcp.Client(registry)},
		Observers:  []client.Observer{otelmcp.ClientObserver(nil), prommcp.ClientObserver(registry)},
	})
}

// A shop knows prices, or asks the store behind it.
type shop struct {
	store *client.Client // nil: none is behind
}

func (s *shop) server(registry prometheus.Registerer) *server.Server {
	srv := server.New("shop", "1.0.0", nil)
	srv.Use(otelmcp.Server(nil), prommcp.Server(registry))
	srv.Observe(otelmcp.ServerObserver(nil), prommcp.ServerObserver(registry))
	srv.Add(
		server.Tool("price", "Tells a price.", s.price),
		server.Tool("order", "Orders something.", s.order),
	)
	return srv
}

type item struct {
	Name string `json:"name" minlen:"1"`
}

func (s *shop) price(ctx context.Context, in item) (float64, error) {
	if s.store != nil {
		return client.Call[float64](ctx, s.store, "price", in) // ctx contains the trace
	}
	slog.InfoContext(ctx, "looked up", "item", in.Name) // the line identifies the request
	if in.Name == "nothing" {
		return 0, mcp.Errorf("nothing has no price")
	}
	return 3.5, nil
}

type sure struct {
	Sure bool `json:"sure"`
}

func (s *shop) order(ctx context.Context, in item) (string, error) {
	a, err := server.Elicit[sure](ctx, fmt.Sprintf("Really order %s?", in.Name))
	if err != nil || !a.Accepted() || !a.Value.Sure {
		return "not ordered", err
	}
	return "ordered", nil
}
