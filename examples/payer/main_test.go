package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A shop cuts some connections: before the payment, or after it.
type shop struct {
	mu       sync.Mutex
	payments int
	cuts     []string // what happens to the calls of pay: "before", "after", ""
	lookCut  bool     // whether calls of is_paid are cut too
}

func (s *shop) pay(context.Context, order) (mcp.None, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.payments++
	return mcp.None{}, nil
}

func (s *shop) isPaid(context.Context, order) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.payments > 0, nil
}

// cut is what happens to a request.
func (s *shop) cut(r *http.Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name := r.Header.Get("Mcp-Name"); {
	case name == "is_paid" && s.lookCut:
		return "before"
	case name != "pay" || len(s.cuts) == 0:
		return ""
	}
	next := s.cuts[0]
	s.cuts = s.cuts[1:]
	return next
}

func (s *shop) connect(t *testing.T, o *client.Options) *client.Client {
	t.Helper()
	mcpServer := server.New("shop", "1.0.0", nil)
	mcpServer.Add(
		server.Tool("pay", "Pays an order.", s.pay),
		server.Tool("is_paid", "Says whether an order is paid.", s.isPaid),
		server.Tool("busy", "Takes one call in ten seconds.", s.pay).With(server.ToolOptions{Rate: 0.001}),
	)
	endpoint := streamable.NewHandler(mcpServer, nil)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch s.cut(r) {
		case "before":
			panic(http.ErrAbortHandler)
		case "after":
			endpoint.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			endpoint.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		if err := endpoint.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		ts.Close()
	})
	c, err := client.Connect(t.Context(), streamable.URL(ts.URL), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Whenever the connection breaks, the order is paid once.
func TestPaidOnce(t *testing.T) {
	for name, cuts := range map[string][]string{
		"no cut": {}, "cut before": {"before"}, "cut after": {"after"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shop{cuts: cuts}
			if err := pay(t.Context(), s.connect(t, nil), order{"17"}); err != nil {
				t.Error(err)
			}
			if s.payments != 1 {
				t.Errorf("paid %d times", s.payments)
			}
		})
	}
}

// If nothing can be found out, the person is told so.
func TestUnknown(t *testing.T) {
	s := &shop{cuts: []string{"after"}, lookCut: true}
	err := pay(t.Context(), s.connect(t, nil), order{"17"})
	if !errors.Is(err, transport.ErrInterrupted) || !strings.HasPrefix(explain(err), "it may have been paid") {
		t.Errorf("%v", err)
	}
}

func TestExplain(t *testing.T) {
	s := &shop{}
	c := s.connect(t, &client.Options{Retries: -1})
	for _, test := range []struct {
		tool string
		args any
		want string
	}{
		{"pay", nil, `not paid: tool "pay": invalid arguments: member "order" is required`},
		{"nothing", nil, "not paid: "},
	} {
		_, err := client.Call[mcp.None](t.Context(), c, test.tool, test.args)
		if got := explain(err); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", test.tool, got, test.want)
		}
	}
	var err error
	for range 100 {
		if _, err = client.Call[mcp.None](t.Context(), c, "busy", order{"17"}); err != nil {
			break
		}
	}
	if got := explain(err); !strings.HasPrefix(got, "not paid: the shop is busy, try again in ") {
		t.Errorf("%q", got)
	}
}

// Middleware sees a request once, whatever it takes.
func TestLogged(t *testing.T) {
	var log strings.Builder
	previous := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(previous) })
	c := (&shop{}).connect(t, &client.Options{Middleware: []client.Middleware{logged}})
	if err := pay(t.Context(), c, order{"17"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "msg=tools/call target=pay attempts=1") {
		t.Errorf("%s", log.String())
	}
}
