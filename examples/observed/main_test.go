package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/examples/testpage"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/streamable"
)

// TestMain is the program itself when the test starts it as a server.
func TestMain(m *testing.M) {
	if os.Getenv("OBSERVED") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A span is one of some service.
type span struct {
	service string
	*trace.Span
}

// A backend is a collector of traces.
type backend struct {
	mu    sync.Mutex
	spans []span
}

func (b *backend) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &request) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		service := ""
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				b.spans = append(b.spans, span{service, s})
			}
		}
	}
}

// find returns the one span of a service that has a name and a kind.
func (b *backend) find(t *testing.T, service, name string, kind trace.Span_SpanKind) *trace.Span {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []*trace.Span
	for _, s := range b.spans {
		if s.service == service && s.Name == name && s.Kind == kind {
			found = append(found, s.Span)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d spans %q of kind %v; there are %v", service, len(found), name, kind, b.spans)
	}
	return found[0]
}

// A process is the program with its addresses.
type process struct {
	url, metrics string
	log          strings.Builder
	stop         func()
}

func start(t *testing.T, name, collectorURL string, args ...string) *process {
	t.Helper()
	addr, metrics := testpage.FreeAddress(t), testpage.FreeAddress(t)
	p := &process{url: "http://" + addr + streamable.Path, metrics: "http://" + metrics}
	cmd := exec.Command(os.Args[0], append([]string{"-http", addr, "-metrics", metrics}, args...)...)
	cmd.Env = append(os.Environ(), "OBSERVED=1", "OTEL_SERVICE_NAME="+name, "OTEL_EXPORTER_OTLP_ENDPOINT="+collectorURL)
	cmd.Stderr = &p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, p.log.String())
		}
	})
	t.Cleanup(p.stop)
	testpage.Await(t, p.metrics, 0)
	testpage.Await(t, p.url, 0)
	return p
}

// One call goes through two servers: their spans are one trace, both count it,
// and the line of the log says which request it is from.
func TestTwoHops(t *testing.T) {
	b := &backend{}
	ts := httptest.NewServer(b)
	t.Cleanup(ts.Close)
	store := start(t, "store", ts.URL)
	front := start(t, "front", ts.URL, "-behind", store.url)
	c, err := client.Connect(t.Context(), streamable.URL(front.url), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if price, err := client.Call[float64](t.Context(), c, "price", item{"secret"}); err != nil || price != 3.5 {
		t.Fatalf("%v, %v", price, err)
	}
	const count = `_request_duration_seconds_count{method="tools/call",outcome="ok",revision="2026-07-28",target="price"} 1`
	for page, want := range map[string]string{
		testpage.Await(t, store.metrics, 0): "mcp_server" + count,
		testpage.Await(t, front.metrics, 0): "mcp_client" + count,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	front.stop()
	store.stop()

	const call = "tools/call price"
	first := b.find(t, "front", call, trace.Span_SPAN_KIND_SERVER)
	second := b.find(t, "front", call, trace.Span_SPAN_KIND_CLIENT)
	third := b.find(t, "store", call, trace.Span_SPAN_KIND_SERVER)
	if string(second.ParentSpanId) != string(first.SpanId) || string(third.ParentSpanId) != string(second.SpanId) {
		t.Errorf("no chain: %v, %v, %v", first, second, third)
	}
	if strings.Contains(fmt.Sprint(b.spans), "secret") {
		t.Error("an argument is in the traces")
	}
	if want := `msg="looked up" item=secret mcp.method=tools/call mcp.target=price`; !strings.Contains(store.log.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, store.log.String())
	}
}

// A question is no error, in traces and metrics; a failed tool is one.
func TestQuestion(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	registry := prometheus.NewRegistry()
	endpoint := streamable.NewHandler((&shop{}).server(registry), nil)
	ts := httptest.NewServer(endpoint)
	defer ts.Close()
	c, err := client.Connect(t.Context(), streamable.URL(ts.URL), &client.Options{
		OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(sure{true})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if text, err := client.Call[string](t.Context(), c, "order", item{"apples"}); err != nil || text != "ordered" {
		t.Fatalf("%q, %v", text, err)
	}
	if _, err := client.Call[float64](t.Context(), c, "price", item{"nothing"}); err == nil {
		t.Error("no error")
	}
	var got []string
	for _, s := range spans.Ended() {
		for _, a := range s.Attributes() {
			if a.Key == "mcp.method.name" && a.Value.AsString() == mcp.MethodToolsCall {
				got = append(got, s.Name()+" "+s.Status().Code.String())
			}
		}
	}
	if want := "tools/call order Unset, tools/call order Unset, tools/call price Error"; strings.Join(got, ", ") != want {
		t.Errorf("spans %q, want %q", got, want)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]uint64{}
	for _, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "outcome" && m.Histogram != nil {
					outcomes[l.GetValue()] += m.Histogram.GetSampleCount()
				}
			}
		}
	}
	if outcomes["input_required"] != 1 || outcomes["tool_error"] != 1 {
		t.Errorf("%v", outcomes)
	}
}
