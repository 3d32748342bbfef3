package prommcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

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

// Attack: a name that cannot be a label value, which a model or a program's own
// caller makes up. The counts of all else can still be read.
func TestHostileClientNames(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	m := metrics.New(nil)
	if err := prommcp.Register(reg, m); err != nil {
		t.Fatal(err)
	}
	failing := func(next client.Func) client.Func {
		return func(ctx context.Context, r *client.Request) (client.Result, error) {
			if r.Method() == mcp.MethodToolsCall {
				return nil, io.ErrUnexpectedEOF
			}
			return next(ctx, r)
		}
	}
	c, err := client.Connect(t.Context(), mem.New(greeter(prometheus.NewRegistry()), nil), &client.Options{
		Middleware: []client.Middleware{m.Client(), failing},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, name := range []string{"gr\xffeet", strings.Repeat("x", 1<<20), "greet"} {
		if _, err := c.CallTool(t.Context(), name, nil, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	if n, err := calls(reg); err != nil || n != 1 {
		t.Errorf("%d calls of greet, %v; want 1", n, err)
	}
	page := new(strings.Builder)
	if n, err := m.WriteTo(page); err != nil || n > 100<<10 || !utf8.ValidString(page.String()) {
		t.Errorf("a page of %d bytes, %v", n, err)
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
