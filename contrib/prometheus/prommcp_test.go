package prommcp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-mcp/parley/client"
	prommcp "github.com/parley-mcp/parley/contrib/prometheus"
	"github.com/parley-mcp/parley/contrib/prometheus/metrics"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

func greeter(reg prometheus.Registerer) *server.Server {
	s := server.New("hello", "1.0.0", nil)
	s.Use(prommcp.Server(reg))
	s.Add(server.Tool("greet", "Greets.", func(context.Context, mcp.None) (string, error) { return "hello", nil }))
	return s
}

func greet(s *server.Server) error {
	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(s, nil), nil)
	if err != nil {
		return err
	}
	_, err = c.CallTool(ctx, "greet", nil, nil)
	if err != nil {
		return err
	}
	return c.Close()
}

// calls is how many calls of the tool a registry knows.
func calls(reg prometheus.Gatherer) (n uint64, err error) {
	families, err := reg.Gather()
	for _, f := range families {
		for _, s := range f.GetMetric() {
			for _, l := range s.GetLabel() {
				if l.GetName() == "target" && l.GetValue() == "greet" {
					n += s.GetHistogram().GetSampleCount()
				}
			}
		}
	}
	return n, err
}

// Several servers count in one registry, which checks what it collects.
func TestOneRegistry(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	for range 2 {
		if err := greet(greeter(reg)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := calls(reg); err != nil || n != 2 {
		t.Errorf("%d calls, %v; want 2", n, err)
	}
}

func TestNamesTaken(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "mcp_server_requests_in_flight", Help: "Another."}))
	if err := prommcp.Register(reg, metrics.New(nil)); err == nil {
		t.Error("no error")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	prommcp.Server(reg)
}

func ExampleServer() {
	reg := prometheus.NewRegistry()
	s := server.New("hello", "1.0.0", nil)
	s.Use(prommcp.Server(reg))
	s.Add(server.Tool("greet", "Greets.", func(context.Context, mcp.None) (string, error) { return "hello", nil }))

	fmt.Println(greet(s))
	fmt.Println(calls(reg))
	// Output:
	// <nil>
	// 1 <nil>
}
